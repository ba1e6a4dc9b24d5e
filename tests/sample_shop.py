"""A small shop in tables with keys of all kinds, as SQLite, DuckDB, or a folder of csv or parquet files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

CITIES = ["Bern", "Basel"]
TABLES: dict[str, dict[str, list[Any]]] = {
    "cities": {"id": [1, 2], "name": CITIES},
    "customers": {
        "customer_id": list(range(1, 21)),
        "first_name": [f"Ann{n}" for n in range(20)],
        "last_name": ["Bell"] * 20,
        "age": [20.5 + n for n in range(20)],
        "city_id": [1 + n % 2 for n in range(20)],
    },
    "products": {
        "id": [10, 20, 30],
        "name": ["tea", "cup", "pot"],
        "price": [1.5, 2.5, 30.0],
        "zip": ["8001", "A1", "8002"],
    },
    "orders": {
        "id": list(range(1, 13)),
        "customer_id": [1 + n % 5 for n in range(12)],
        "ordered": [f"2024-01-{n + 1:02}" for n in range(12)],
    },
    "lines": {
        "order_id": [n // 2 + 1 for n in range(24)],
        "line": [n % 2 + 1 for n in range(24)],
        "product_id": [(10, 20, 30)[n % 3] for n in range(24)],
        "amount": [n % 4 + 1 for n in range(24)],
    },
    "tags": {"id": [1, 2], "label": ["hot", "new"]},
    "product_tags": {"product_id": [10, 10, 30], "tag_id": [1, 2, 1]},
    "staff": {
        "id": [1, 2, 3],
        "name": ["Eve", "Bob", "Ida"],
        "wage": [3.5, 2.0, 1.0],
        "parent_id": [None, 1, 1],
    },
    "notes": {"id": [1, 2], "text": ["a", "b"]},
}
KEYS = {
    "cities": "PRIMARY KEY (id)",
    "customers": "PRIMARY KEY (customer_id), FOREIGN KEY (city_id) REFERENCES cities (id)",
    "products": "PRIMARY KEY (id)",
    "orders": "PRIMARY KEY (id), FOREIGN KEY (customer_id) REFERENCES customers (customer_id)",
    "lines": "PRIMARY KEY (order_id, line), FOREIGN KEY (order_id) REFERENCES orders (id), "
    "FOREIGN KEY (product_id) REFERENCES products (id)",
    "tags": "PRIMARY KEY (id)",
    "product_tags": "FOREIGN KEY (product_id) REFERENCES products (id), FOREIGN KEY (tag_id) REFERENCES tags (id)",
    "staff": "PRIMARY KEY (id), FOREIGN KEY (parent_id) REFERENCES staff (id)",
    "notes": "PRIMARY KEY (id)",
}


def statements(
    tables: dict[str, dict[str, list[Any]]] = TABLES, keys: dict[str, str] = KEYS
) -> list[str]:
    """The SQL that makes the tables, with the keys that are declared."""
    made = []
    for name, columns in tables.items():
        kinds = {str: "TEXT", int: "INTEGER", float: "DOUBLE PRECISION"}
        cells = [f'"{column}" {kinds[type(values[-1])]}' for column, values in columns.items()]
        made.append(
            f'CREATE TABLE "{name}" ({", ".join([*cells, *filter(None, [keys.get(name)])])})'
        )
        for row in zip(*columns.values(), strict=True):
            cells = ", ".join("NULL" if cell is None else repr(cell) for cell in row)
            made.append(f'INSERT INTO "{name}" VALUES ({cells})')
    return made


def sqlite_file(path: Path, *more: str, **parts: Any) -> Path:
    """The tables, and what ``more`` statements make, in a SQLite file."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in [*statements(**parts), *more]:
            connection.execute(statement)
        connection.commit()
    return path


def duckdb_file(path: Path, *more: str, **parts: Any) -> Path:
    """The tables in a DuckDB file."""
    import duckdb

    with duckdb.connect(path) as connection:
        for statement in [*statements(**parts), *more]:
            connection.execute(statement)
    return path


def folder(path: Path, suffix: str, tables: dict[str, dict[str, list[Any]]] = TABLES) -> Path:
    """The tables as files of a folder."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    path.mkdir()
    for name, columns in tables.items():
        table = pa.table(columns)
        (csv.write_csv if suffix == "csv" else parquet.write_table)(
            table, path / f"{name}.{suffix}"
        )
    return path
