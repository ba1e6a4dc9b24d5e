"""Tables of a SQLite file, read by Python's own library in one transaction, read-only."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infomax.errors import InputError
from infomax.io.database.schema import Key, Table, quoted
from infomax.io.database.snapshot import Snapshot

MAGIC = b"SQLite format 3\0"
ROWS = 1 << 16


def copy_sqlite(path: Path, snapshot: Snapshot) -> None:
    """Copy all tables of a file that are wanted, and its views."""
    try:
        address = f"file:{quote(str(path.resolve()))}?mode=ro{'&immutable=1' if _is_fixed(path.resolve()) else ''}"
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            connection.execute("BEGIN")
            tables = connection.execute("PRAGMA main.table_list").fetchall()
            for _, name, kind, *_ in sorted(tables, key=lambda row: str(row[1])):
                ours = kind in ("table", "view") and not name.startswith("sqlite_")
                if ours and snapshot.wants(name, kind == "view"):
                    _copy(connection, name, kind == "view", snapshot)
    except sqlite3.Error as error:
        raise InputError(str(path), "a SQLite database that can be read", str(error)) from None


def _is_fixed(path: Path) -> bool:
    """Whether nobody writes a file that has a write-ahead log, and SQLite cannot make one, as on read-only media."""
    with path.open("rb") as file:
        logged = file.read(20)[18:] == b"\2\2"
    return logged and not Path(f"{path}-wal").exists() and not os.access(path.parent, os.W_OK)


def _copy(connection: sqlite3.Connection, name: str, is_view: bool, snapshot: Snapshot) -> None:
    """Copy a table; a column of which a cell has another type than it says is read as text."""
    import pyarrow as pa

    about = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    types = {
        column: kind for _, column, declared, *_ in about if (kind := _type(str(declared).upper()))
    }
    primary = sorted((rank, column) for _, column, _, _, _, rank in about if rank)
    keys: dict[int, list[Any]] = {}
    for number, _, table, own, target, *_ in connection.execute(
        f"PRAGMA foreign_key_list({quoted(name)})"
    ).fetchall():
        keys.setdefault(number, [table, [], []])[1].append(own)
        keys[number][2] += [target] if target else []
    wanted = (key for key in keys.values() if not snapshot.is_left_out(key[0]))
    found = [Key(tuple(own), table, tuple(target)) for table, own, target in wanted]
    table = Table(name, "", {}, tuple(column for _, column in primary), found, is_view=is_view)
    query = f"SELECT {', '.join(map(quoted, types))} FROM {quoted(name)}"
    if not types or snapshot.are_vectors(table, [row[1] for row in about]):
        return
    while True:
        try:
            snapshot.copy(table, _batches(connection.execute(query), types), names=list(types))
            return
        except _OtherTypeError as error:
            types[error.column] = "double" if types[error.column] == "int64" else "string"
        except pa.ArrowException as error:
            raise InputError(
                f"{snapshot.where}, table {name}", "cells that Arrow can hold", str(error)
            ) from None


class _OtherTypeError(Exception):
    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _type(declared: str) -> str:
    """The type to begin with, by the rules of SQLite; none for what is no feature."""
    rules = {
        "INT": "int64",
        "CHAR|CLOB|TEXT|DATE|TIME": "string",
        "REAL|FLOA|DOUB": "double",
        "BLOB": "",
    }
    return next((kind for words, kind in rules.items() if re.search(words, declared)), "int64")


def _batches(rows: sqlite3.Cursor, types: dict[str, str]) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    while some := rows.fetchmany(ROWS):
        batch = {}
        for (name, kind), cells in zip(types.items(), zip(*some, strict=True), strict=True):
            if kind == "string":
                batch[name] = pa.array(map(_text, cells), kind)
                continue
            try:
                batch[name] = pa.array(cells, kind)
            except (pa.ArrowException, OverflowError, TypeError):
                raise _OtherTypeError(name) from None
        yield batch


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
