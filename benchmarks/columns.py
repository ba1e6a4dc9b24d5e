"""A node table of ten columns of all kinds: the time to encode it beside that to parse it, and `prepare` on it.

    python -m benchmarks.columns --nodes 2e6 --folder FOLDER
    python -m benchmarks.columns --table flights.csv --id none

The table is generated: text ids, three numbers (one with missing values), a boolean, three categories (of 5, 200 and
20,000 values), a date with the time, a text of eight words and tokens. Encoding is both passes over the columns as
pyarrow parsed them: what they are, and the features of every row. Imports are not counted. ``--table`` encodes a csv
file that you have, but for the column of ids.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from benchmarks.large import measured
from infomax.io.encoding.encoding import Encoding
from infomax.io.encoding.survey import Survey

ROWS = 1 << 17


def main(words: list[str] | None = None) -> None:
    """Generate the tables if the folder has none, then encode and prepare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=float, default=1e5)
    places = parser.add_mutually_exclusive_group(required=True)
    places.add_argument("--folder", type=Path, help="Folder for all files.")
    places.add_argument("--table", type=Path, help="A csv file, which is only encoded.")
    parser.add_argument("--id", default="id", help="Its column that is no feature.")
    parser.add_argument("--memory", default="4GB", help="Memory limit of prepare.")
    parser.add_argument("--rounds", type=int, default=3, help="The best of so many is given.")
    parser.add_argument("--no-prepare", action="store_true", help="Only encode.")
    options = parser.parse_args(words)
    folder, table = options.folder, options.table or options.folder / "nodes.csv"
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    if not table.exists():
        generate(folder, int(options.nodes))
    rounds = [measure(table, options.id) for _ in range(options.rounds + 1)][
        1:
    ]  # the first one imports
    encoding, rows, _ = rounds[0]
    parsed, learnt, encoded = (
        min(times) for times in zip(*(times for *_, times in rounds), strict=True)
    )
    size = table.stat().st_size / 1e6
    print(
        ", ".join(
            f"{column.name} {column.column_type} ({len(column.feature_names)})"
            for column in encoding.columns
        )
    )
    print(
        f"{rows:,} rows, {size:.1f} MB, CPU seconds: parsed in {parsed:.4f}, learnt in {learnt:.4f}, ",
        end="",
    )
    print(
        f"encoded in {encoded:.4f}; both {(learnt + encoded) / parsed:.2f} times parsing",
        flush=True,
    )
    if folder and not options.no_prepare:
        tables = [folder / "edges.parquet", folder / "nodes.csv"]
        command = [
            "prepare",
            *tables,
            "--out",
            folder / "columns.graph",
            "--memory",
            options.memory,
        ]
        found = measured([sys.executable, "-m", "infomax", *map(str, command)])
        print(
            "prepare: {seconds:.1f} s, CPU {cpu:.1f} s, RSS {rss:.2f} GB, RssAnon {anonymous:.2f} GB".format(
                **found
            )
        )


def measure(path: Path, identifier: str) -> tuple[Encoding, int, list[float]]:
    """What a table's columns are, its rows, and the CPU seconds to parse it, to learn, and to
    encode it."""
    times = [time.process_time()]  # of all threads
    table = csv.read_csv(path).combine_chunks()
    times.append(time.process_time())
    survey = Survey([name for name in table.column_names if name != identifier], {})
    for batch in table.to_batches(ROWS):
        survey.add(batch, lambda row, name: name)
    encoding, _ = survey.finish()
    times.append(time.process_time())
    rows = sum(encoding.transform(batch).shape[0] for batch in table.to_batches(ROWS))
    times.append(time.process_time())
    return encoding, rows, [after - before for before, after in pairwise(times)]


def generate(folder: Path, n: int) -> None:
    """Write nodes.csv with n rows, and edges.parquet with two edges per node."""
    draws = np.random.default_rng(0)
    vocabulary = np.array([f"word{at}" for at in range(20_000)], dtype=object)
    writer = None
    for first in range(0, n, ROWS):
        count = min(ROWS, n - first)
        often = np.minimum(draws.zipf(1.3, (count, 8)) - 1, 19_999)
        seconds = draws.integers(0, 10**9, count)
        columns = {
            "id": [f"n{row}" for row in range(first, first + count)],
            "height": draws.normal(170, 10, count).round(2),
            "income": pa.array(
                draws.lognormal(10, 1, count).round(1), mask=draws.random(count) < 0.1
            ),
            "visits": draws.poisson(3, count),
            "member": draws.random(count) < 0.3,
            "plan": draws.choice(["free", "basic", "plus", "pro", "team"], count),
            "city": [f"city {value}" for value in draws.integers(200, size=count)],
            "shop": [f"shop{value}" for value in draws.integers(20_000, size=count)],
            "joined": pa.array(seconds, pa.timestamp("s")),
            "about": [" ".join(words) for words in vocabulary[often]],
            "tags": ["|".join(words) for words in vocabulary[often[:, :3] % 500]],
        }
        table = pa.table(columns)
        writer = writer or csv.CSVWriter(folder / "nodes.csv", table.schema)
        writer.write_table(table)
    if writer:
        writer.close()
    ends = [draws.integers(n, size=2 * n) for _ in range(2)]
    names = ("source", "target")
    edges = {
        name: pa.array([f"n{row}" for row in end]) for name, end in zip(names, ends, strict=True)
    }
    parquet.write_table(pa.table(edges), folder / "edges.parquet")


if __name__ == "__main__":
    main()
