"""Graphs larger than memory: seconds and memory of each stage, from tables on disk to vectors on disk.

    python -m benchmarks.large --nodes 2e6 --folder FOLDER

The graph is generated: text ids, ten neighbours per node, 64 features in parquet, 50 communities that show in features
and edges, a label for one node in a hundred. Every stage is a separate command. RSS also counts the pages of mapped
files, which the operating system can reclaim; RssAnon counts only memory that the process allocated.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, parquet

FEATURES, CLASSES, EDGES = 64, 50, 5
ROWS = 1 << 19
WITHIN = 0.6
"""The share of edges that join two nodes of one community."""


def main(words: list[str] | None = None) -> None:
    """Generate a graph if the folder has none, then run and measure the stages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=float, default=1e5)
    parser.add_argument("--folder", type=Path, required=True, help="Folder for all files.")
    parser.add_argument("--memory", default="4GB", help="Memory limit of prepare.")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument(
        "--half", action="store_true", help="Features and vectors in half precision."
    )
    parser.add_argument(
        "--more", action="store_true", help="Also run the commands that use a run and its vectors."
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    folder, half = options.folder, ["--half"] if options.half else []
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    if not (folder / "nodes.parquet").exists():
        generate(folder, int(options.nodes))
    print(f"generated in {time.perf_counter() - began:.0f} s", flush=True)
    edges, nodes, graph, run = (
        folder / name for name in ("edges.parquet", "nodes.parquet", "big.graph", "run")
    )
    stages = {
        "prepare": [
            "prepare",
            edges,
            nodes,
            "--out",
            graph,
            "--labels",
            "kind",
            "--memory",
            options.memory,
            *half,
        ],
        "info": ["info", graph],
        "train": [
            "train",
            graph,
            "--out",
            run,
            "--dim",
            options.dim,
            "--steps",
            options.steps,
            "--device",
            "cpu",
        ],
        "embed": ["embed", run, "--out", f"{folder / 'vectors'}/", *half],
        "evaluate": ["evaluate", run],
    }
    if options.more:
        vectors, node = folder / "vectors", "user-0"
        stages |= {
            "evaluate parts": ["evaluate", vectors, "--labels", f"{graph}:kind"],
            "neighbours": ["neighbours", vectors, node],
            "cluster": ["cluster", run, "--out", folder / "clusters.parquet"],
            "map": ["map", run, "--out", folder / "map.html"],
            "analyse": ["analyse", run, "--out", folder / "report"],
        }
    rows = []
    for name, command in stages.items():
        rows.append(
            {"stage": name, **measured([sys.executable, "-m", "infomax", *map(str, command)])}
        )
        print(
            "{stage:14} {seconds:8.1f} s  CPU {cpu:8.1f} s  RSS {rss:6.2f} GB  RssAnon {anonymous:6.2f} GB".format(
                **rows[-1]
            ),
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(
            json.dumps({"nodes": int(options.nodes), "rows": rows}, indent=2) + "\n"
        )


def generate(folder: Path, n: int, seed: int = 0) -> None:
    """Write edges.parquet and then nodes.parquet."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((CLASSES, FEATURES)).astype(np.float32)
    with parquet.ParquetWriter(
        folder / "edges.parquet", pa.schema([("source", pa.string()), ("target", pa.string())])
    ) as file:
        for count in _counts(EDGES * n):
            source, target = rng.integers(0, n, (2, count))
            near = np.minimum(target - target % CLASSES + source % CLASSES, n - 1)
            target = np.where(rng.random(count) < WITHIN, near, target)
            file.write_table(pa.table({"source": _ids(source), "target": _ids(target)}))
    vector = pa.list_(pa.float32(), FEATURES)
    schema = pa.schema([("id", pa.string()), ("kind", pa.string()), ("vector", vector)])
    first = 0
    with parquet.ParquetWriter(
        folder / "part.parquet", schema, use_dictionary=["kind"], compression="none"
    ) as file:
        for count in _counts(n):
            rows = np.arange(first, first + count)
            values = centres[rows % CLASSES] + 2 * rng.standard_normal(
                (count, FEATURES), dtype=np.float32
            )
            labels = np.where(rng.random(count) < 0.01, (rows % CLASSES).astype(str), "").astype(
                object
            )
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), FEATURES)
            file.write_table(
                pa.table({"id": _ids(rows), "kind": pa.array(labels), "vector": vectors})
            )
            first += count
    (folder / "part.parquet").replace(folder / "nodes.parquet")


def _counts(total: int) -> Iterator[int]:
    return (min(ROWS, total - first) for first in range(0, total, ROWS))


def _ids(numbers: NDArray[np.int64]) -> Any:
    """Make text ids whose order differs from that of the numbers."""
    scrambled = pa.array(
        numbers * 7_368_787 % 1_000_000_007
    )  # both are primes, so no two are equal
    return compute.binary_join_element_wise("user", scrambled.cast(pa.string()), "-")


def measured(command: list[str]) -> dict[str, Any]:
    """Run a command; returns seconds, CPU seconds, and peak resident and anonymous memory in GB."""
    import psutil

    began, rss, anonymous, worked = time.perf_counter(), 0, 0, 0.0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status")
            if status.exists():
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                rss = max(rss, int(lines.get("VmRSS", "0").split()[0]) * 1024)
                anonymous = max(anonymous, int(lines.get("RssAnon", "0").split()[0]) * 1024)
            else:
                rss = max(rss, watched.memory_info().rss)
            worked = max(worked, sum(watched.cpu_times()[:2]))
        except (OSError, psutil.Error):
            pass
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - began,
        "cpu": worked,
        "rss": rss / 1e9,
        "anonymous": anonymous / 1e9,
    }


if __name__ == "__main__":
    main()
