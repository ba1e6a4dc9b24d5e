"""A shop in a database: seconds and memory of each stage, from SQLite or Postgres to vectors of customers and products.

    python -m benchmarks.shop --customers 1e6 --products 1e5 --lines 2e7 --folder FOLDER
    python -m benchmarks.shop ... --postgres postgresql://me@localhost/shop    # which must be empty

The tables are generated: customers and products have a taste, which shows in their columns and in who buys what; an
order line has keys to both, a quantity, a price and a date. Keys are declared. Every stage is a separate command; see
`benchmarks.large`.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large import measured

TASTES, ROWS = 20, 1 << 18
AGREE = 0.7
"""The share of lines that hold a product of the customer's own taste."""
TABLES = {
    "customers": "id INTEGER PRIMARY KEY, age INTEGER, spends DOUBLE PRECISION, channel TEXT",
    "products": "id INTEGER PRIMARY KEY, name TEXT, price DOUBLE PRECISION, weight DOUBLE PRECISION, brand TEXT",
    "order_lines": "id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id), "
    "product_id INTEGER REFERENCES products (id), quantity INTEGER, paid DOUBLE PRECISION, ordered DATE",
}


def main(words: list[str] | None = None) -> None:
    """Generate the tables if they are not there, then run and measure the stages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("customers", 1e6), ("products", 1e5), ("lines", 2e7)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--folder", type=Path, required=True, help="Folder for all files.")
    parser.add_argument(
        "--postgres", metavar="ADDRESS", help="Read them from an empty database of this server."
    )
    parser.add_argument("--memory", default="2GB", help="Memory limit of prepare.")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument(
        "--vectors", default="recipe", help="Of more than two million rows, encoder and own."
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    options.folder.mkdir(parents=True, exist_ok=True)
    place, graph, run = (options.folder / name for name in ("shop.sqlite", "shop.graph", "run"))
    sizes = [int(options.customers), int(options.products), int(options.lines)]
    began = time.perf_counter()
    if options.postgres:
        fill_postgres(options.postgres, *sizes)
    elif not place.exists():
        fill_sqlite(place, *sizes)
    print(f"generated in {time.perf_counter() - began:.0f} s", flush=True)
    settings = ["--dim", options.dim, "--steps", options.steps, "--vectors", options.vectors]
    stages = {
        "prepare": [
            "prepare",
            options.postgres or place,
            "--out",
            graph,
            "--memory",
            options.memory,
        ],
        "train": ["train", graph, "--out", run, "--device", "cpu", *settings],
        "embed": ["embed", run, "--out", f"{options.folder / 'vectors'}/"],
    }
    rows = []
    for name, command in stages.items():
        rows.append(
            {"stage": name, **measured([sys.executable, "-m", "infomax", *map(str, command)])}
        )
        line = "{stage:8} {seconds:8.1f} s  CPU {cpu:8.1f} s  RSS {rss:6.2f} GB  RssAnon {anonymous:6.2f} GB"
        print(line.format(**rows[-1]), flush=True)
    print(f"together {sum(row['seconds'] for row in rows):8.1f} s", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({"sizes": sizes, "rows": rows}, indent=2) + "\n")


def blocks(
    customers: int, products: int, lines: int, seed: int = 0
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Some rows of a table at a time, as columns."""
    draw = np.random.default_rng(seed)
    for rows in _rows(customers):
        taste = rows % TASTES
        spends = np.round(20 + 3 * taste + 10 * draw.standard_normal(len(rows)), 2)
        channel = np.where(draw.random(len(rows)) < taste / TASTES, "shop", "web").tolist()
        yield (
            "customers",
            {
                "id": rows,
                "age": 18 + taste + draw.integers(0, 40, len(rows)),
                "spends": spends,
                "channel": channel,
            },
        )
    for rows in _rows(products):
        taste = rows % TASTES
        price, weight = (
            np.round(draw.gamma(2, 1 + taste), 2),
            np.round(draw.gamma(2, 2, len(rows)), 3),
        )
        words = {
            "name": [f"product {row}" for row in rows],
            "brand": [f"brand {one}" for one in taste // 2],
        }
        yield (
            "products",
            {
                "id": rows,
                "name": words["name"],
                "price": price,
                "weight": weight,
                "brand": words["brand"],
            },
        )
    for rows in _rows(lines):
        customer = draw.integers(0, customers, len(rows))
        product = (products * draw.random(len(rows)) ** 2).astype(np.int64)
        same = np.minimum(product - product % TASTES + customer % TASTES, products - 1)
        product = np.where(draw.random(len(rows)) < AGREE, same, product)
        days = np.datetime64("2020-01-01") + draw.integers(0, 1500, len(rows))
        paid = np.round(draw.gamma(2, 5, len(rows)), 2)
        columns = {
            "id": rows,
            "customer_id": customer,
            "product_id": product,
            "quantity": draw.integers(1, 6, len(rows)),
        }
        yield "order_lines", {**columns, "paid": paid, "ordered": days}


def _rows(count: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    return (np.arange(first, min(first + ROWS, count)) for first in range(0, count, ROWS))


def fill_sqlite(path: Path, *sizes: int) -> None:
    """Write the tables into a SQLite file."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(part)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        for name, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
        for name, block in blocks(*sizes):
            cells = [
                list(map(str, column)) if _dates(column) else _list(column)
                for column in block.values()
            ]
            marks = ", ".join("?" * len(cells))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", zip(*cells, strict=True))
        connection.commit()
    part.replace(path)


def _dates(column: Any) -> bool:
    return getattr(column, "dtype", np.dtype("O")).kind == "M"


def _list(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def fill_postgres(address: str, *sizes: int) -> None:
    """Write the tables into a database of a server, unless they are there."""
    import pyarrow as pa
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = 'order_lines'")
        if cursor.fetchone()[0]:
            return
        for (
            name,
            columns,
        ) in TABLES.items():  # keys are declared at the end, which is several times as fast
            plain = re.sub(r" PRIMARY KEY| REFERENCES \w+ \(id\)", "", columns)
            cursor.execute(f"CREATE TABLE {name} ({plain})")
        for name, block in blocks(*sizes):
            table = pa.table(block)
            narrow = [
                pa.field(one.name, pa.int32() if one.type == pa.int64() else one.type)
                for one in table.schema
            ]
            cursor.adbc_ingest(name, table.cast(pa.schema(narrow)), mode="append")
        for name, columns in TABLES.items():
            cursor.execute(f"ALTER TABLE {name} ADD PRIMARY KEY (id)")
            for column, other in re.findall(r"(\w+) INTEGER REFERENCES (\w+)", columns):
                cursor.execute(
                    f"ALTER TABLE {name} ADD FOREIGN KEY ({column}) REFERENCES {other} (id)"
                )
        connection.commit()


if __name__ == "__main__":
    main()
