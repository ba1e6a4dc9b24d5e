"""Questions of a row and a time: seconds and memory of `infomax embed --at` on a shop in a folder of parquet tables.

    python -m benchmarks.questions --questions 1e6 --lines 1e7 --folder FOLDER

Questions are about random customers on random days. The run is of the first days alone: what is measured is the second
command, which reads all order lines and the questions, and writes one vector for each.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.large import measured
from benchmarks.shop import blocks

FIRST, DAYS = np.datetime64("2020-01-01"), 1500


def main(words: list[str] | None = None) -> None:
    """Generate the tables and the questions if they are not there, train, and measure the
    answers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("questions", 1e6),
        ("customers", 1e5),
        ("products", 1e4),
        ("lines", 1e7),
    ):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--folder", type=Path, required=True, help="Folder for all files.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    shop, run, asked, out = (
        options.folder / name for name in ("shop", "run", "questions.parquet", "vectors.parquet")
    )
    sizes = [int(options.customers), int(options.products), int(options.lines)]
    if not shop.exists():
        write(shop, asked, int(options.questions), sizes)
    early = [
        "--as-of",
        str(FIRST + 3),
        "--type",
        "customers",
        "--epochs",
        "1",
        "--dim",
        "8",
        "--vectors",
        "encoder,own",
    ]
    stages = {
        "train": ["train", shop, *early, "--out", run],
        "embed --at": ["embed", run, shop, "--at", asked, "--out", out],
    }
    rows = []
    for name, command in stages.items():
        rows.append(
            {"stage": name, **measured([sys.executable, "-m", "infomax", *map(str, command)])}
        )
        line = "{stage:10} {seconds:8.1f} s  CPU {cpu:8.1f} s  RSS {rss:6.2f} GB  RssAnon {anonymous:6.2f} GB"
        print(line.format(**rows[-1]), flush=True)
    if options.json is not None:
        options.json.write_text(
            json.dumps({"sizes": sizes, "questions": options.questions, "rows": rows}) + "\n"
        )


def write(shop: Path, asked: Path, questions: int, sizes: list[int]) -> None:
    """Write the tables of the shop, and the questions: the id of a customer and a day."""
    import pyarrow as pa
    from pyarrow import parquet

    shop.mkdir(parents=True)
    tables: dict[str, list[pa.Table]] = {}
    for name, block in blocks(*sizes):
        tables.setdefault(name, []).append(pa.table(block))
    for name, parts in tables.items():
        parquet.write_table(pa.concat_tables(parts), shop / f"{name}.parquet")
    draw = np.random.default_rng(1)
    days = FIRST + draw.integers(0, DAYS, questions)
    parquet.write_table(
        pa.table({"customer_id": draw.integers(0, sizes[0], questions), "date": days}), asked
    )


if __name__ == "__main__":
    main()
