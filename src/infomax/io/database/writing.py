"""Vectors back to where the rows are: a table of the primary key and the vector, written in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.errors import InputError, shorten
from infomax.io.database.schema import quoted

POSTGRES = re.compile("postgres(ql)?://")
WIDEST = 16_000
"""Numbers that pgvector's type can hold."""


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


def write_into(place: Destination, ids: Any, vectors: Any, key: str) -> None:
    """Write ids ``[N]`` and vectors ``[N, d]``, in memory or stored; all of them, or nothing.

    A table of the same two columns is replaced, any other of that name is refused.
    """
    key = key if key.lower() != "vector" else "id"
    write = {"sqlite": _sqlite, "duckdb": _duckdb, "postgresql": _postgres}[place.kind]
    write(place, ids, vectors, key)


def _blocks(ids: Any, vectors: Any) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
    first = 0
    for block in row_blocks(vectors):
        yield ids[first : first + len(block)], np.asarray(block, np.float32)
        first += len(block)


def _refuse_other(place: Destination, columns: list[str], key: str) -> None:
    """Refuse a table that is there and was not written by this, by its columns."""
    if columns and columns != [key, "vector"]:
        found, remedy = f"one with the columns {', '.join(columns[:6])}", "Name another table, or drop it."
        raise InputError(f"{place.address}, table {place.table}", "a table that is not there yet", found, remedy)


def _failed(place: Destination, error: Exception) -> InputError:
    words = re.sub(r"\s+", " ", str(error)).strip()
    return InputError(f"{place.address}, table {place.table}", "a database that can be written", words)


def _sqlite(place: Destination, ids: Any, vectors: Any, key: str) -> None:
    """Vectors are arrays of JSON, which every SQL can read: json_each(vector), or vec_f32(vector) of sqlite-vec."""
    path, name, column = Path(place.address), quoted(place.table), quoted(key)
    is_new = not path.exists()
    kind = "INTEGER" if len(ids) and not isinstance(ids[:1].tolist()[0], str) else "TEXT"
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _refuse_other(place, [row[1] for row in connection.execute(f"PRAGMA table_info({name})")], key)
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(f"CREATE TABLE {name} ({column} {kind} PRIMARY KEY, vector TEXT NOT NULL)")
            for some, block in _blocks(ids, vectors):
                words = ("[" + ",".join(map("{:.9g}".format, row)) + "]" for row in block.tolist())
                rows = zip(some.tolist(), words, strict=True)
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)  # noqa: S608
            connection.execute("COMMIT")
    except BaseException as error:
        if is_new:
            path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise _failed(place, error) from None
        raise


def _arrow(ids: Any, block: NDArray[np.float32], key: str, *, fixed: bool) -> Any:
    import pyarrow as pa

    values = pa.array(np.ascontiguousarray(block).ravel())
    if fixed:
        lists = pa.FixedSizeListArray.from_arrays(values, block.shape[1])
    else:
        lists = pa.ListArray.from_arrays(np.arange(len(block) + 1, dtype=np.int32) * block.shape[1], values)
    return pa.table({key: pa.array(ids.tolist()), "vector": lists})


def _duckdb(place: Destination, ids: Any, vectors: Any, key: str) -> None:
    """Vectors are FLOAT[d], as DuckDB's array_cosine_similarity takes them."""
    import duckdb

    path, name = Path(place.address), quoted(place.table)
    is_new = not path.exists()
    kind = "BIGINT" if len(ids) and not isinstance(ids[:1].tolist()[0], str) else "VARCHAR"
    try:
        with duckdb.connect(str(path.absolute())) as connection:
            connection.execute("BEGIN")
            query = (
                "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND database_name = current_database()"
            )
            _refuse_other(place, [row[0] for row in connection.execute(query, [place.table]).fetchall()], key)
            width = vectors.shape[1]
            columns = f"{quoted(key)} {kind} PRIMARY KEY, vector FLOAT[{width}]"
            connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")
            for some, block in _blocks(ids, vectors):
                connection.register("block", _arrow(some, block, key, fixed=True))
                connection.execute(f"INSERT INTO {name} SELECT * FROM block")  # noqa: S608
                connection.unregister("block")
            connection.execute("COMMIT")
    except BaseException as error:
        if is_new:
            path.unlink(missing_ok=True)
        if isinstance(error, duckdb.Error):
            raise _failed(place, error) from None
        raise


def _postgres(place: Destination, ids: Any, vectors: Any, key: str) -> None:
    """Vectors are of pgvector's type where it is installed, else real[]."""
    from infomax.io.database.postgres import connect, driver, shown

    shown_place, error_of = place._replace(address=shown(place.address)), driver().Error
    name, column, width = quoted(place.table), quoted(key), vectors.shape[1]
    with connect(place.address) as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
            has_vectors = cursor.fetchone()[0] and width <= WIDEST
            query = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0"
            cursor.execute(f"{query} AND NOT attisdropped ORDER BY attnum", (name,))
            _refuse_other(shown_place, [row[0] for row in cursor.fetchall()], key)
            for number, (some, block) in enumerate(_blocks(ids, vectors)):
                mode = "append" if number else "create"
                cursor.adbc_ingest("infomax_vectors", _arrow(some, block, key, fixed=False), mode, temporary=True)
            cell = f"vector::vector({width})" if has_vectors else "vector::real[]"
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} AS SELECT {column}, {cell} AS vector FROM infomax_vectors")  # noqa: S608
            cursor.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({column})")
            cursor.execute("DROP TABLE infomax_vectors")
            connection.commit()
        except error_of as error:
            raise _failed(shown_place, error) from None
