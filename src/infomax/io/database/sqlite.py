"""Tables of a SQLite file, read by Python's own library in one transaction, read-only."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infomax.errors import InputError, one_line
from infomax.io.database.columns import unreadable_type
from infomax.io.database.snapshot import (
    DECLARED,
    Key,
    Snapshot,
    Table,
    declared_key,
    quoted,
)

FIRST_BYTES = b"SQLite format 3\0"
ROWS_PER_BATCH = 1 << 16
_ROW_NUMBERS = ("rowid", "_rowid_", "oid")
"""What SQLite calls the number of a row, unless a column is called so."""
_BYTES = "bytes"
"""In place of a type of Arrow: bytes, which are read as hexadecimal digits."""


@dataclass
class _TableInFile:
    """One table or view as SQLite describes it."""

    name: str
    is_view: bool
    has_row_numbers: bool
    columns: dict[str, str]
    """The declared type of each column, generated ones among them."""
    primary: tuple[str, ...]
    keys: list[Key]


def copy_sqlite(path: Path, snapshot: Snapshot) -> None:
    """Copy all tables of a file that are wanted, and the views that a person names."""
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    if _is_fixed(path.resolve()):
        address += "&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
            connection.execute("BEGIN")
            tables = _wanted_tables(connection, snapshot)
            key_columns = _columns_of_keys(tables)
            for table in tables:
                _copy(connection, table, key_columns, snapshot)
    except sqlite3.Error as error:
        expected = "a SQLite database that can be read"
        raise InputError(str(path), expected, one_line(error)) from None
    except UnicodeDecodeError:  # of the name of a table or of a column
        expected = "a SQLite database that can be read"
        remedy = "The file is damaged, or its text is not UTF-8."
        raise InputError(str(path), expected, "names that are not UTF-8", remedy) from None


def _is_fixed(path: Path) -> bool:
    """Whether nobody writes the file, and SQLite cannot make its log, as on read-only media."""
    with path.open("rb") as file:
        has_log = file.read(20)[18:] == b"\2\2"
    return has_log and not Path(f"{path}-wal").exists() and not os.access(path.parent, os.W_OK)


# What the file says of its tables


def _wanted_tables(connection: sqlite3.Connection, snapshot: Snapshot) -> list[_TableInFile]:
    """The tables and views to read, in the order of their names."""
    tables = []
    rows = connection.execute("PRAGMA main.table_list").fetchall()
    for _, name, table_type, _, without_row_numbers, *_ in sorted(rows, key=lambda row: row[1]):
        is_view = table_type == "view"
        is_data = table_type in ("table", "view") and not name.startswith("sqlite_")
        if is_data and snapshot.wants(name, is_view):
            has_row_numbers = not is_view and not without_row_numbers
            columns, primary = _columns(connection, name)
            keys = _declared_keys(connection, name, snapshot)
            tables.append(_TableInFile(name, is_view, has_row_numbers, columns, primary, keys))
    return tables


def _columns(connection: sqlite3.Connection, name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The columns of a table with their declared types, and those of its primary key in order."""
    columns: dict[str, str] = {}
    ranks: dict[str, int] = {}
    # Of hidden columns, 1 is one that belongs to a virtual table; 2 and 3 are generated ones.
    pragma = f"PRAGMA table_xinfo({quoted(name)})"
    for _, column, declared_type, _, _, rank, hidden in connection.execute(pragma).fetchall():
        if hidden == 1:
            continue
        columns[column] = str(declared_type).upper()
        if rank:
            ranks[column] = rank
    return columns, tuple(sorted(ranks, key=lambda column: ranks[column]))


def _declared_keys(connection: sqlite3.Connection, name: str, snapshot: Snapshot) -> list[Key]:
    """The keys that a table declares; SQLite has one row for each column of a key."""
    parts: dict[int, tuple[str, list[str], list[str]]] = {}
    pragma = f"PRAGMA foreign_key_list({quoted(name)})"
    for number, _, other, column, target, *_ in connection.execute(pragma).fetchall():
        _, columns, targets = parts.setdefault(number, (other, [], []))
        columns.append(column)
        if target:  # else it is the primary key
            targets.append(target)
    return [
        declared_key(columns, other, targets)
        for other, columns, targets in parts.values()
        if not snapshot.is_left_out(other)
    ]


def _columns_of_keys(tables: Sequence[_TableInFile]) -> set[tuple[str, str]]:
    """The tables and columns, in lower case, of primary keys and of both sides of others."""
    columns = set()
    for table in tables:
        columns |= {(table.name.lower(), column.lower()) for column in table.primary}
        for key in table.keys:
            columns |= {(table.name.lower(), column.lower()) for column in key.columns}
            columns |= {(key.table.lower(), column.lower()) for column in key.target}
    return columns


# Reading rows


def _copy(
    connection: sqlite3.Connection,
    in_file: _TableInFile,
    key_columns: set[tuple[str, str]],
    snapshot: Snapshot,
) -> None:
    """Copy a table; a column with a cell of another type than it declares is read as text."""
    import pyarrow as pa

    table = Table(in_file.name, keys=in_file.keys, is_view=in_file.is_view)
    if in_file.primary:
        table.set_primary_key(in_file.primary, "declared", DECLARED)
    arrow_types: dict[str, str] = {}
    for column, declared_type in in_file.columns.items():
        arrow_type = _arrow_type(declared_type)
        is_of_a_key = (in_file.name.lower(), column.lower()) in key_columns
        if arrow_type == _BYTES and not is_of_a_key:
            table.leave_out(column, unreadable_type(declared_type))
        else:
            arrow_types[column] = arrow_type
    if not arrow_types or snapshot.are_vectors(table, list(in_file.columns)):
        return

    # Types of SQLite bind nobody. The first cell that does not fit widens the type of its column,
    # and the table is read again: from integers to numbers, and from numbers to text.
    query = _query(in_file, list(arrow_types))
    while True:
        batches = _batches(connection.execute(query), arrow_types)
        try:
            snapshot.copy(table, batches, names=list(arrow_types))
            return
        except _OtherTypeError as error:
            is_integer = arrow_types[error.column] == "int64"
            arrow_types[error.column] = "double" if is_integer else "string"
        except pa.ArrowException as error:
            location = f"{snapshot.location}, table {in_file.name}"
            raise InputError(location, "cells that Arrow can hold", one_line(error)) from None


def _query(table: _TableInFile, columns: list[str]) -> str:
    """All rows as they came, or by their keys; without an order SQLite may take an index's."""
    cells = ", ".join(map(quoted, columns))
    names = {column.lower() for column in table.columns}
    free_name = next((name for name in _ROW_NUMBERS if name not in names), None)
    order = ""
    if table.has_row_numbers and free_name is not None:
        order = f" ORDER BY {free_name}"
    elif table.has_row_numbers:  # all three are columns
        order = " NOT INDEXED"
    elif table.primary:
        order = f" ORDER BY {', '.join(map(quoted, table.primary))}"
    return f"SELECT {cells} FROM {quoted(table.name)}{order}"


class _OtherTypeError(Exception):
    """A cell of a column is not of the type that is tried."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


def _arrow_type(declared_type: str) -> str:
    """The type to begin with, by the rules of SQLite."""
    if "INT" in declared_type:
        return "int64"
    if re.search("CHAR|CLOB|TEXT|DATE|TIME", declared_type):
        return "string"
    if re.search("REAL|FLOA|DOUB", declared_type):
        return "double"
    return _BYTES if "BLOB" in declared_type else "int64"


def _batches(rows: sqlite3.Cursor, arrow_types: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of a query as columns of Arrow."""
    import pyarrow as pa

    while fetched := rows.fetchmany(ROWS_PER_BATCH):
        batch = {}
        columns = zip(arrow_types.items(), zip(*fetched, strict=True), strict=True)
        for (name, arrow_type), cells in columns:
            if arrow_type == "string":
                batch[name] = pa.array(map(_text, cells), "string")
                continue
            if arrow_type == _BYTES:
                texts = (cell.hex() if isinstance(cell, bytes) else _text(cell) for cell in cells)
                batch[name] = pa.array(texts, "string")
                continue
            try:
                batch[name] = pa.array(cells, arrow_type)
            except (pa.ArrowException, OverflowError, TypeError):
                raise _OtherTypeError(name) from None
        yield batch


def _text(cell: Any) -> str | None:
    """A cell as text; bytes that are none become hexadecimal digits, so they stay different."""
    if cell is None or isinstance(cell, str):
        return cell
    if not isinstance(cell, bytes):
        return str(cell)
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell.hex()
