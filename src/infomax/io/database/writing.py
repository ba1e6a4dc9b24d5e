"""Vectors back to where the rows are: tables of the primary key and the vector, written in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.errors import InputError, one_line, shorten
from infomax.io.database.schema import quoted
from infomax.io.parquet import arrow_column

WIDEST = 16_000
"""Numbers that pgvector's type can hold."""


class VectorTable(NamedTuple):
    """A table to write: ids ``[N]`` in a column ``key``, and vectors ``[N, d]``, in memory or stored."""

    name: str
    ids: Any
    vectors: Any
    key: str

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [self.key if self.key.lower() != "vector" else "id", "vector"]


class Destination(NamedTuple):
    """The table of a database to write, and the kind of the database: "sqlite", "duckdb" or "postgresql"."""

    kind: str
    address: str
    table: str


def destination(said: str) -> Destination:
    """What ``sqlite:///shop.db:vectors`` means; also ``duckdb:///...`` and ``postgresql://...``."""
    address, _, table = said.rpartition(":")
    found = re.match("(sqlite|duckdb|postgres(ql)?)://", address)
    if found is None or not table or "/" in table:
        expected = "ADDRESS:TABLE, such as sqlite:///shop.db:vectors, duckdb:///... or postgresql://..."
        raise InputError("--into", expected, shorten(said))
    if found[1].startswith("postgres"):
        return Destination("postgresql", address, table)
    if not address[found.end() :].startswith("/"):
        raise InputError("--into", f"{found[1]}:///PATH:TABLE, with three slashes", shorten(said))
    return Destination(found[1], address[found.end() + 1 :], table)


def primary_key(choices: Mapping[str, str], kind: str) -> str:
    """The column of ids of a type, of a graph that was read with these choices, its ``table_columns``."""
    ids = choices.get("id", "").split(",")
    named = (one.removeprefix(f"{kind}.") for one in ids if not kind or one.startswith(f"{kind}."))
    return next(named, "") or "id"


def write_into(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Write tables into a database, all of them or nothing.

    A table of the same two columns is replaced, any other of that name is refused.
    """
    write = {"sqlite": _sqlite, "duckdb": _duckdb, "postgresql": _postgres}[place.kind]
    write(place, tables)


def _blocks(table: VectorTable) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
    first = 0
    for block in row_blocks(table.vectors):
        yield table.ids[first : first + len(block)], np.asarray(block, np.float32)
        first += len(block)


def _refuse_other(place: Destination, table: VectorTable, columns: list[str]) -> None:
    """Refuse a table that is there and was not written by this, by its columns."""
    if columns and columns != table.columns:
        found, remedy = f"one with the columns {', '.join(columns[:6])}", "Name another table, or drop it."
        raise InputError(f"{place.address}, table {table.name}", "a table that is not there yet", found, remedy)


@contextmanager
def _refusing(place: Destination, failure: type[Exception], file: Path | None = None) -> Iterator[None]:
    """Make one message of a driver's error; a file that was not there before is removed."""
    is_new = file is not None and not file.exists()
    try:
        yield
    except BaseException as error:
        if is_new and file is not None and file.exists():
            file.unlink()
        if not isinstance(error, failure):
            raise
        raise InputError(place.address, "a database that can be written", one_line(error)) from None


def _are_numbers(ids: Any) -> bool:
    return len(ids) > 0 and not isinstance(ids[:1].tolist()[0], str)


def _sqlite(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are arrays of JSON, which every SQL can read: json_each(vector), or vec_f32(vector) of sqlite-vec."""
    path = Path(place.address)
    with _refusing(place, sqlite3.Error, path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for table in tables:
            name = quoted(table.name)
            kind = "INTEGER" if _are_numbers(table.ids) else "TEXT"
            _refuse_other(place, table, [row[1] for row in connection.execute(f"PRAGMA table_info({name})")])
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(
                f"CREATE TABLE {name} ({quoted(table.columns[0])} {kind} PRIMARY KEY, vector TEXT NOT NULL)"
            )
            for some, block in _blocks(table):
                words = ("[" + ",".join(map("{:.9g}".format, row)) + "]" for row in block.tolist())
                rows = zip(some.tolist(), words, strict=True)
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)  # noqa: S608
        connection.execute("COMMIT")


def _arrow(table: VectorTable, ids: NDArray[Any], block: NDArray[np.float32]) -> Any:
    import pyarrow as pa

    cells = pa.array(ids.tolist()), arrow_column(block).cast(pa.list_(pa.float32()))
    return pa.table(dict(zip(table.columns, cells, strict=True)))


def _duckdb(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are FLOAT[d], as DuckDB's array_cosine_similarity takes them."""
    import duckdb

    path = Path(place.address)
    query = "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND database_name = current_database()"
    with _refusing(place, duckdb.Error, path), duckdb.connect(str(path.absolute())) as connection:
        connection.execute("BEGIN")
        for table in tables:
            name = quoted(table.name)
            kind = "BIGINT" if _are_numbers(table.ids) else "VARCHAR"
            _refuse_other(place, table, [row[0] for row in connection.execute(query, [table.name]).fetchall()])
            columns = f"{quoted(table.columns[0])} {kind} PRIMARY KEY, vector FLOAT[{table.vectors.shape[1]}]"
            connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
            for some, block in _blocks(table):
                connection.register("block", _arrow(table, some, block))
                connection.execute(f"INSERT INTO {name} SELECT * FROM block")  # noqa: S608
                connection.unregister("block")
        connection.execute("COMMIT")


def _postgres(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are of pgvector's type where it is installed, else real[]."""
    from infomax.io.database.postgres import connect, driver, shown

    place = place._replace(address=shown(address := place.address))
    query = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0"
    with connect(address) as connection, connection.cursor() as cursor, _refusing(place, driver().Error):
        cursor.execute("SELECT to_regtype('vector') IS NOT NULL")
        (has_type,) = cursor.fetchone()
        for table in tables:
            name = quoted(table.name)
            column = quoted(table.columns[0])
            width = table.vectors.shape[1]
            cursor.execute(f"{query} AND NOT attisdropped ORDER BY attnum", (name,))
            _refuse_other(place, table, [row[0] for row in cursor.fetchall()])
            for number, (some, block) in enumerate(_blocks(table)):
                mode = "append" if number else "create"
                cursor.adbc_ingest("infomax_vectors", _arrow(table, some, block), mode, temporary=True)
            cell = f"vector::vector({width})" if has_type and width <= WIDEST else "vector::real[]"
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} AS SELECT {column}, {cell} AS vector FROM infomax_vectors")  # noqa: S608
            cursor.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({column})")
            cursor.execute("DROP TABLE infomax_vectors")
        connection.commit()
