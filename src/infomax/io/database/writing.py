"""Vectors back to where the rows are: tables of the primary key and the vector, written in one transaction."""

from __future__ import annotations

import json
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
from infomax.io.database.tables import quoted
from infomax.io.parquet import arrow_column

MARK = "|"
"""Between the columns of a key in an id."""
WIDEST = 16_000
"""Numbers that pgvector's type can hold."""


class VectorTable(NamedTuple):
    """A table to write: ids ``[N]`` in the columns of a key, and vectors ``[N, d]``, in memory or stored.

    ``key`` has the types of its columns by their names; ids of several are text, with a ``|`` between two.
    """

    name: str
    ids: Any
    vectors: Any
    key: Mapping[str, str]

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [*self.key, "vector"]

    def blocks(self) -> Iterator[tuple[list[list[Any]], NDArray[np.float32]]]:
        """The cells of each column of the key, and the vectors, of some rows at a time."""
        first = 0
        for block in row_blocks(self.vectors):
            ids = self.ids[first : first + len(block)].tolist()
            cells = (
                [ids] if len(self.key) == 1 else zip(*(one.split(MARK) for one in ids), strict=True)
            )
            yield [*map(list, cells)], np.asarray(block, np.float32)
            first += len(block)


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
        expected = (
            "ADDRESS:TABLE, such as sqlite:///shop.db:vectors, duckdb:///... or postgresql://..."
        )
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


def key_columns(choices: Mapping[str, str], kind: str, ids: Any) -> dict[str, str]:
    """The columns of the primary key of a type, and their types in SQL; one column where ids do not tell several.

    ``choices`` are those of the graph that was learnt from: ids ``[N]`` of a later one may be text where its were not.
    """
    first = ids[:1].tolist()
    are_text = not first or isinstance(first[0], str)
    own = {primary_key(choices, kind): "VARCHAR" if are_text else "BIGINT"}
    key: dict[str, str] = json.loads(choices.get("primary", "{}")).get(kind) or own
    marks = len(key) - 1
    told = all(str(row).count(MARK) == marks for row in ids[:].tolist()) if marks else True
    if not told or (not marks and are_text == ("INT" in next(iter(key.values())))):
        key = own
    return {f"{name}_id" if name.lower() == "vector" else name: sql for name, sql in key.items()}


def write_into(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Write tables into a database, all of them or nothing.

    A table of the same two columns is replaced, any other of that name is refused.
    """
    write = {"sqlite": _sqlite, "duckdb": _duckdb, "postgresql": _postgres}[place.kind]
    write(place, tables)


def _refuse_other(place: Destination, table: VectorTable, columns: list[str]) -> None:
    """Refuse a table that is there and was not written by this, by its columns."""
    if columns and columns != table.columns:
        found, remedy = (
            f"one with the columns {', '.join(columns[:6])}",
            "Name another table, or drop it.",
        )
        raise InputError(
            f"{place.address}, table {table.name}", "a table that is not there yet", found, remedy
        )


_PGVECTOR = """
SELECT format('%I.vector', nspname) FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
WHERE typname = 'vector' AND typmodin <> 0 AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY NOT pg_type_is_visible(t.oid)"""
"""Its type, in whatever schema it is; a table of the name is a type, too, which takes no width."""


@contextmanager
def _refusing(
    place: Destination, failure: type[Exception], file: Path | None = None
) -> Iterator[None]:
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


def _definitions(table: VectorTable, vector: str, integer: str = "BIGINT") -> str:
    """The columns in SQL, with the types of vectors and of large integers."""
    columns = (
        f"{quoted(name)} {integer if kind == 'BIGINT' else kind}"
        for name, kind in table.key.items()
    )
    return f"({', '.join(columns)}, vector {vector}, PRIMARY KEY ({', '.join(map(quoted, table.key))}))"


def _sqlite(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are arrays of JSON, which every SQL can read: json_each(vector), or vec_f32(vector) of sqlite-vec."""
    path = Path(place.address)
    with (
        _refusing(place, sqlite3.Error, path),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        connection.execute("BEGIN IMMEDIATE")
        for table in tables:
            name = quoted(table.name)
            _refuse_other(
                place, table, [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            )
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            connection.execute(
                f"CREATE TABLE {name} {_definitions(table, 'TEXT NOT NULL', 'INTEGER')}"
            )
            insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})"
            for cells, block in table.blocks():
                words = ("[" + ",".join(map("{:.9g}".format, row)) + "]" for row in block.tolist())
                connection.executemany(insert, zip(*cells, words, strict=True))
        connection.execute("COMMIT")


def _arrow(table: VectorTable, cells: list[list[Any]], block: NDArray[np.float32]) -> Any:
    import pyarrow as pa

    columns = *map(pa.array, cells), arrow_column(block).cast(pa.list_(pa.float32()))
    return pa.table(dict(zip(table.columns, columns, strict=True)))


def _duckdb(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are FLOAT[d], as DuckDB's array_cosine_similarity takes them."""
    import duckdb

    path = Path(place.address)
    there = (
        "table_name = ? AND schema_name = current_schema() AND database_name = current_database()"
    )
    query = f"SELECT column_name FROM duckdb_columns() WHERE {there}"
    with _refusing(place, duckdb.Error, path), duckdb.connect(str(path.absolute())) as connection:
        connection.execute("BEGIN")
        for table in tables:
            name = quoted(table.name)
            _refuse_other(
                place, table, [row[0] for row in connection.execute(query, [table.name]).fetchall()]
            )
            definitions = _definitions(table, f"FLOAT[{table.vectors.shape[1]}]")
            connection.execute(f"CREATE OR REPLACE TABLE {name} {definitions}")
            for cells, block in table.blocks():
                connection.register("block", _arrow(table, cells, block))
                connection.execute(f"INSERT INTO {name} SELECT * FROM block")
                connection.unregister("block")
        connection.execute("COMMIT")


def _postgres(place: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are of pgvector's type where the database has it, else real[]."""
    from infomax.io.database.postgres import connect, driver, shown

    place = place._replace(address=shown(address := place.address))
    query = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0"
    with (
        connect(address) as connection,
        connection.cursor() as cursor,
        _refusing(place, driver().Error),
    ):
        cursor.execute(_PGVECTOR)
        found = cursor.fetchall()
        for table in tables:
            name = quoted(table.name)
            width = table.vectors.shape[1]
            cursor.execute(f"{query} AND NOT attisdropped ORDER BY attnum", (name,))
            _refuse_other(place, table, [row[0] for row in cursor.fetchall()])
            for number, (cells, block) in enumerate(table.blocks()):
                mode = "append" if number else "create"
                cursor.adbc_ingest(
                    "infomax_vectors", _arrow(table, cells, block), mode, temporary=True
                )
            vector = f"{found[0][0]}({width})" if found and width <= WIDEST else "real[]"
            casts = ", ".join(f"{quoted(column)}::{kind}" for column, kind in table.key.items())
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} {_definitions(table, vector)}")
            cursor.execute(
                f"INSERT INTO {name} SELECT {casts}, vector::{vector} FROM infomax_vectors"
            )
            cursor.execute("DROP TABLE infomax_vectors")
        connection.commit()
