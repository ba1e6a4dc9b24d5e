"""Make the paper's table on one GPU, with several processes; slow methods have fewer runs.

    python recipes/table.py FOLDER [--workers 6]

The same command continues where it was stopped. Small models leave a GPU idle between their steps, so several processes
share it; the seconds in the table are those of a shared GPU.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from infomax_paper.baselines import CITATION
from infomax_paper.table import make_table, write_table

WALKS = ("DeepWalk", "DeepWalk + features")
# Data set, methods, runs; the slowest first.
PARTS = [
    ("ppi", ("GraphSAGE-LSTM",), 3),
    *(("pubmed", (method,), 10) for method in WALKS),
    ("ppi", ("Avg. pooling",), 5),
    ("ppi", ("GraphSAGE-GCN", "GraphSAGE-mean", "GraphSAGE-pool"), 3),
    ("ppi", ("Raw features", "Random-Init", "DGI", "GCN", "FastGCN"), 10),
    *((name, WALKS, 20) for name in ("cora", "citeseer")),
    *((name, ("Raw features", "LP", "Random-Init", "DGI", "GCN"), 50) for name in CITATION),
    *((name, ("Planetoid",), 20) for name in CITATION),
    (
        "generated-reddit",
        ("Raw features", "LP", "Random-Init", "GCN", "FastGCN", "Avg. pooling"),
        1,
    ),
    (
        "generated-reddit",
        ("GraphSAGE-GCN", "GraphSAGE-mean", "GraphSAGE-pool", "GraphSAGE-LSTM"),
        1,
    ),
    ("generated-reddit", ("DGI",), 1),
]


def make(folder: Path, part: tuple[str, tuple[str, ...], int]) -> None:
    """Make one part of the table, in its own process."""
    dataset, methods, runs = part
    make_table(folder, datasets=[dataset], methods=methods, runs=runs)
    print(f"{dataset}: {', '.join(methods)}", flush=True)


def main() -> None:
    """Make all parts and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=6)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        list(pool.map(partial(make, options.folder), PARTS))
    write_table(options.folder, "paper", {})


if __name__ == "__main__":
    main()
