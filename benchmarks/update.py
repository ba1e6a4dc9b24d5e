"""Seconds of each stage of ``infomax update``, wall and CPU: python -m benchmarks.update --nodes 1e7 --folder FOLDER.

A generated graph, an encoder with its first weights and its vectors are written to FOLDER once, and a later graph with
other edges; then the run is read, updated and written, as the command does.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from infomax import DGI, Embeddings, Graph, read_graph

DEGREE, FEATURES, DIM, CHANGED = 6, 16, 32, 10_000


def make(folder: Path, n: int, later: str, *, stored: bool) -> None:
    """Write a run, its vectors and a later graph."""
    draws = np.random.default_rng(0)
    ends, features = (
        draws.integers(0, n, (2, n * DEGREE // 2)),
        draws.random((n, FEATURES), np.float32),
    )
    first = Graph.from_arrays(ends, features)
    if stored:
        first.save(folder / "first.graph")
        first = read_graph(folder / "first.graph")
    model = DGI(DIM, epochs=0, preset="batches" if stored else "whole-graph").fit(first)
    model.save(folder / "run")
    model.transform(model.graph_).save(folder / "vectors.parquet")
    changed = min(CHANGED, n // 10)
    ends[:, :changed] = draws.integers(0, n, (2, changed))
    Graph.from_arrays(ends, features).save(folder / later)


def timed(stage: str, work: Callable[[], Any]) -> Any:
    """Print how long some work takes, and return its result."""
    wall, used = time.perf_counter(), time.process_time()
    found = work()
    print(
        f"{stage:24} {time.perf_counter() - wall:7.2f} s, CPU {time.process_time() - used:7.2f} s",
        flush=True,
    )
    return found


def main() -> None:
    """Make what is missing, then update."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=float, default=1e6)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument(
        "--stored", action="store_true", help="from a graph folder to another, not from npz to npz"
    )
    given = options.parse_args()
    folder = given.folder / f"{int(given.nodes)}{'-stored' * given.stored}"
    name = "later.graph" if given.stored else "later.npz"
    if not (folder / name).exists():
        folder.mkdir(parents=True, exist_ok=True)
        make(folder, int(given.nodes), name, stored=given.stored)
    shutil.rmtree(folder / "run2", ignore_errors=True)
    model = timed("read the run", lambda: DGI.load(folder / "run"))
    vectors = timed("read its vectors", lambda: Embeddings.read(folder / "vectors.parquet"))
    later = timed("read the later graph", lambda: read_graph(folder / name))
    timed(
        "read the edges of both", lambda: (model.graph_.adjacency, later.adjacency)
    )  # `update` does so, too
    found = timed("update", lambda: model.update(later, vectors))
    timed("write the run", lambda: found.model.save(folder / "run2"))
    print(f"{found.changes}; {found.computed:,} vectors computed")


if __name__ == "__main__":
    main()
