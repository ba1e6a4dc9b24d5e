"""Two types of nodes, users and items, joined by ratings: seconds and memory of each stage, from tables to vectors.

    python -m benchmarks.ratings --users 1e6 --items 1e5 --ratings 2e7 --folder FOLDER

The graph is generated: users and items have a taste, which shows in their features and in who rates what; a rating has
stars, its weight, and a date, which is not used. Every stage is a separate command; see `benchmarks.large`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from benchmarks.large import measured

TASTES, FEATURES, ROWS = 20, {"user": 16, "item": 24}, 1 << 20
AGREE = 0.7
"""The share of ratings of an item of the user's own taste."""


def main(words: list[str] | None = None) -> None:
    """Generate tables if the folder has none, then run and measure the stages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("users", 1e6), ("items", 1e5), ("ratings", 2e7)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--folder", type=Path, required=True, help="Folder for all files.")
    parser.add_argument("--memory", default="4GB", help="Memory limit of prepare.")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    tables, graph, run = (options.folder / name for name in ("tables", "ratings.graph", "run"))
    if not tables.exists():
        generate(tables, int(options.users), int(options.items), int(options.ratings))
    width, steps = ["--dim", options.dim], ["--steps", options.steps]
    stages = {
        "prepare": [
            "prepare",
            tables,
            "--out",
            graph,
            "--memory",
            options.memory,
            "--weight",
            "stars",
        ],
        "train": ["train", graph, "--out", run, *width, *steps, "--device", "cpu"],
        "embed": ["embed", run, "--out", f"{options.folder / 'vectors'}/"],
    }
    rows = []
    for name, command in stages.items():
        rows.append(
            {"stage": name, **measured([sys.executable, "-m", "infomax", *map(str, command)])}
        )
        line = "{stage:8} {seconds:8.1f} s  CPU {cpu:8.1f} s  RSS {rss:6.2f} GB  RssAnon {anonymous:6.2f} GB"
        print(line.format(**rows[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(
            json.dumps({**vars(options), "folder": "", "json": "", "rows": rows}, indent=2) + "\n"
        )


def generate(folder: Path, users: int, items: int, ratings: int, seed: int = 0) -> None:
    """Write nodes/user.parquet, nodes/item.parquet and edges/user.rated.item.parquet."""
    draw = np.random.default_rng(seed)
    for name in ("nodes", "edges"):
        (folder / name).mkdir(parents=True)
    for kind, count in (("user", users), ("item", items)):
        centres = draw.standard_normal((TASTES, FEATURES[kind]))
        rows = np.arange(count)
        values = (
            centres[rows % TASTES] + 2 * draw.standard_normal((count, FEATURES[kind]))
        ).astype(np.float32)
        columns = {
            "id": pa.array(rows),
            **{f"x{at}": pa.array(values[:, at]) for at in range(FEATURES[kind])},
        }
        parquet.write_table(pa.table(columns), folder / "nodes" / f"{kind}.parquet")
    days = pa.date32()
    schema = pa.schema(
        [("user", pa.int64()), ("item", pa.int64()), ("stars", pa.float32()), ("date", days)]
    )
    with parquet.ParquetWriter(folder / "edges" / "user.rated.item.parquet", schema) as file:
        for first in range(0, ratings, ROWS):
            count = min(ROWS, ratings - first)
            user, item = draw.integers(0, users, count), _popular(draw, items, count)
            same = np.minimum(item - item % TASTES + user % TASTES, items - 1)
            item = np.where(draw.random(count) < AGREE, same, item)
            stars, date = (
                draw.integers(1, 6, count).astype(np.float32),
                draw.integers(17000, 19000, count),
            )
            cells = [user, item, stars, pa.array(date.astype(np.int32)).cast(days)]
            file.write_table(pa.table(cells, schema=schema))


def _popular(draw: np.random.Generator, items: int, count: int) -> NDArray[np.int64]:
    """Items, some of which are drawn far more often than others."""
    return np.minimum((items * draw.random(count) ** 2).astype(np.int64), items - 1)


if __name__ == "__main__":
    main()
