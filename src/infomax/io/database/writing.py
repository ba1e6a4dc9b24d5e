"""Vectors back to where the rows are: tables of the primary key and the vector."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.errors import InputError, one_line, shorten
from infomax.io.atomic import replacing
from infomax.io.database import database_type
from infomax.io.database.snapshot import quoted
from infomax.io.parquet import arrow_column
from infomax.io.schema.schema import Schema

KEY_SEPARATOR = "|"
"""Between the columns of a key in an id."""
WIDEST_PGVECTOR = 16_000
"""Numbers that pgvector's type can hold."""
SECONDS_BETWEEN_LOOKS = 0.1
"""Between two looks at whether DuckDB has ended."""
_SIDE_FILES = ("-journal", "-wal", "-shm", ".wal")
"""What SQLite and DuckDB call the files beside one that is being written."""
_NAMES = {"sqlite": "SQLite", "duckdb": "DuckDB"}


@dataclass(frozen=True, eq=False)
class VectorTable:
    """A table to write: ids ``[N]`` in the columns of a key, and vectors ``[N, d]``.

    ``key`` has the types of its columns by their names; ids of several are text, with a ``|``
    between two.
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
            key_cells = [ids]
            if len(self.key) > 1:
                parts = (row_id.split(KEY_SEPARATOR) for row_id in ids)
                key_cells = [list(cells) for cells in zip(*parts, strict=True)]
            yield key_cells, np.asarray(block, np.float32)
            first += len(block)


@dataclass(frozen=True)
class Destination:
    """The table of a database to write; ``database_type`` is sqlite, duckdb or postgresql."""

    database_type: str
    address: str
    """The path of a file, or the address of a server."""
    table: str


def parse_destination(into: str) -> Destination:
    """What ``sqlite:///shop.db:vectors`` means; also ``duckdb:///...`` and ``postgresql://...``.

    Paths are written as in the addresses that are read: %20 is a space.
    """
    address, _, table = into.rpartition(":")
    scheme = re.match("(sqlite|duckdb|postgres(ql)?)://", address)
    if scheme is None or not table or "/" in table:
        expected = (
            "ADDRESS:TABLE, such as sqlite:///shop.db:vectors, duckdb:///... or postgresql://..."
        )
        raise InputError("--into", expected, shorten(into))
    if scheme[1].startswith("postgres"):
        return Destination("postgresql", address, table)

    path_after_scheme = address[scheme.end() :]
    if not path_after_scheme.startswith("/"):
        raise InputError("--into", f"{scheme[1]}:///PATH:TABLE, with three slashes", shorten(into))
    path = unquote(path_after_scheme[1:])
    if path in ("", ":memory:"):
        found = "a database in memory, which ends with the command" if path else "no path"
        raise InputError("--into", f"{scheme[1]}:///PATH:TABLE, the path of a file", found)
    return Destination(scheme[1], path, table)


def primary_key(schema: Schema | None, node_type: str) -> str:
    """The column of ids of a type, of a graph whose tables are those of a schema."""
    table = None if schema is None else schema.of_type(node_type)
    if table is None or len(table.id.columns) != 1:
        return "id"
    return table.id.columns[0]


def key_columns(schema: Schema | None, node_type: str, ids: Any) -> dict[str, str]:
    """The columns of the primary key of a type, and their types in SQL.

    There is one column where ids do not tell the cells of several. The schema is that of the graph
    that was learnt from: ids ``[N]`` of a later graph may be text where its were integers.
    """
    first_ids = ids[:1].tolist()
    are_text = not first_ids or isinstance(first_ids[0], str)
    key = {primary_key(schema, node_type): "VARCHAR" if are_text else "BIGINT"}
    table = None if schema is None else schema.of_type(node_type)
    if table is not None and table.id_types:
        declared_key = dict(zip(table.id.columns, table.id_types, strict=True))
        if _ids_fit(declared_key, ids, are_text=are_text):
            key = declared_key
    # The vectors are in a column of that name.
    return {
        f"{column}_id" if column.lower() == "vector" else column: sql_type
        for column, sql_type in key.items()
    }


def _ids_fit(key: Mapping[str, str], ids: Any, *, are_text: bool) -> bool:
    """Whether ids hold as many cells as a key has columns, and are integers where it is one."""
    if len(key) > 1:
        separators = len(key) - 1
        return all(str(row_id).count(KEY_SEPARATOR) == separators for row_id in ids[:].tolist())
    (sql_type,) = key.values()
    return are_text != ("INT" in sql_type)


def write_into(destination: Destination, tables: Sequence[VectorTable]) -> None:
    """Write tables into a database, all of them or nothing.

    A table of the same two columns is replaced, any other of that name is refused.
    """
    if destination.database_type == "postgresql":
        _write_postgres(destination, tables)
        return
    path = Path(destination.address)
    other_type = database_type(path)
    if path.is_file() and path.stat().st_size and other_type not in ("", destination.database_type):
        name = _NAMES[destination.database_type]
        address = f"{other_type}:///{destination.address}:{destination.table}"
        remedy = f"Write {address}, or name another file."
        raise InputError(
            destination.address, f"a file of {name}", f"one of {_NAMES[other_type]}", remedy
        )
    write = {"sqlite": _write_sqlite, "duckdb": _write_duckdb}[destination.database_type]
    write(destination, tables)


def _refuse_other_table(destination: Destination, table: VectorTable, columns: list[str]) -> None:
    """Refuse a table that is there and was not written by this, by its columns."""
    if columns and columns != table.columns:
        location = f"{destination.address}, table {table.name}"
        found = f"one with the columns {', '.join(columns[:6])}"
        remedy = "Name another table, or drop it."
        raise InputError(location, "a table that is not there yet", found, remedy)


@contextmanager
def _refusing(destination: Destination, failure: type[Exception]) -> Iterator[None]:
    """Make one message of a driver's error."""
    try:
        yield
    except failure as error:
        raise InputError(
            destination.address, "a database that can be written", one_line(error)
        ) from None


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """The file to write: the database that is there, or a new one, which appears at the end.

    A failure leaves nothing of a new one, nor of the files beside it: SQLite would take a journal
    that is left for that of a database that is put there later.
    """
    if path.exists():
        yield path
        return
    with replacing(path) as temporary:
        temporary.unlink()  # DuckDB takes no empty file
        try:
            yield temporary
        finally:
            for suffix in _SIDE_FILES:
                Path(f"{temporary}{suffix}").unlink(missing_ok=True)


def _definitions(table: VectorTable, vector_type: str, integer_type: str = "BIGINT") -> str:
    """The columns in SQL, with the types of vectors and of large integers."""
    columns = [
        f"{quoted(name)} {integer_type if column_type == 'BIGINT' else column_type}"
        for name, column_type in table.key.items()
    ]
    columns.append(f"vector {vector_type}")
    columns.append(f"PRIMARY KEY ({', '.join(map(quoted, table.key))})")
    return f"({', '.join(columns)})"


def _write_sqlite(destination: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are arrays of JSON, for json_each(vector), or vec_f32(vector) of sqlite-vec."""
    with (
        _refusing(destination, sqlite3.Error),
        _whole_file(Path(destination.address)) as file,
        closing(sqlite3.connect(file, isolation_level=None)) as connection,
    ):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for table in tables:
                _write_sqlite_table(connection, destination, table)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # it has ended the transaction itself
                connection.execute("ROLLBACK")
            raise


def _write_sqlite_table(
    connection: sqlite3.Connection, destination: Destination, table: VectorTable
) -> None:
    name = quoted(table.name)
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    _refuse_other_table(destination, table, columns)
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} {_definitions(table, 'TEXT NOT NULL', 'INTEGER')}")
    insert = f"INSERT INTO {name} VALUES ({', '.join('?' * len(table.columns))})"
    for key_cells, block in table.blocks():
        # Nine digits tell all numbers of 32 bits apart.
        texts = ("[" + ",".join(map("{:.9g}".format, row)) + "]" for row in block.tolist())
        connection.executemany(insert, zip(*key_cells, texts, strict=True))


def _arrow_table(table: VectorTable, key_cells: list[list[Any]], block: NDArray[np.float32]) -> Any:
    import pyarrow as pa

    columns = [pa.array(cells) for cells in key_cells]
    columns.append(arrow_column(block).cast(pa.list_(pa.float32())))
    return pa.table(dict(zip(table.columns, columns, strict=True)))


_COLUMNS_OF_DUCKDB = """
SELECT column_name FROM duckdb_columns()
WHERE table_name = ? AND schema_name = current_schema() AND database_name = current_database()"""


def _write_duckdb(destination: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are FLOAT[d], as DuckDB's array_cosine_similarity takes them."""
    import duckdb

    is_stopped = threading.Event()

    def write(file: Path) -> None:
        with duckdb.connect(str(file.absolute())) as connection:
            connection.execute("BEGIN")
            for table in tables:
                _write_duckdb_table(connection, destination, table, is_stopped)
            connection.execute("COMMIT")

    with _refusing(destination, duckdb.Error), _whole_file(Path(destination.address)) as file:
        _interruptible(lambda: write(file), is_stopped)


def _write_duckdb_table(
    connection: Any, destination: Destination, table: VectorTable, is_stopped: threading.Event
) -> None:
    name = quoted(table.name)
    rows = connection.execute(_COLUMNS_OF_DUCKDB, [table.name]).fetchall()
    _refuse_other_table(destination, table, [row[0] for row in rows])
    definitions = _definitions(table, f"FLOAT[{table.vectors.shape[1]}]")
    connection.execute(f"CREATE OR REPLACE TABLE {name} {definitions}")
    for key_cells, block in table.blocks():
        if is_stopped.is_set():
            raise KeyboardInterrupt
        connection.register("block", _arrow_table(table, key_cells, block))
        connection.execute(f"INSERT INTO {name} SELECT * FROM block")
        connection.unregister("block")


def _interruptible(work: Callable[[], None], is_stopped: threading.Event) -> None:
    """Have another thread do the work, so that Ctrl-C ends it; DuckDB makes its own error of it.

    The work looks at ``is_stopped`` between blocks. DuckDB's own way to interrupt a statement is
    not used: one that was interrupted while it read from an Arrow table did not always end.
    """
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(work)
        try:
            while wait([future], SECONDS_BETWEEN_LOOKS).not_done:
                pass
        except BaseException:
            is_stopped.set()
            raise
        future.result()


_PGVECTOR = """
SELECT format('%I.vector', nspname) FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
WHERE typname = 'vector' AND typmodin <> 0 AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY NOT pg_type_is_visible(t.oid)"""
"""Its type, in whatever schema it is; a table of the name is a type, too, which takes no width."""
_COLUMNS_OF_POSTGRES = """
SELECT attname::text FROM pg_attribute
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


def _write_postgres(destination: Destination, tables: Sequence[VectorTable]) -> None:
    """Vectors are of pgvector's type where the database has it, else real[]."""
    from infomax.io.database.postgres import address_without_password, connect, driver

    shown_destination = replace(destination, address=address_without_password(destination.address))
    with (
        connect(destination.address) as connection,
        connection.cursor() as cursor,
        _refusing(shown_destination, driver().Error),
    ):
        cursor.execute(_PGVECTOR)
        pgvector_types = cursor.fetchall()
        for table in tables:
            width = table.vectors.shape[1]
            vector_type = "real[]"
            if pgvector_types and width <= WIDEST_PGVECTOR:
                vector_type = f"{pgvector_types[0][0]}({width})"
            _write_postgres_table(cursor, shown_destination, table, vector_type)
        connection.commit()


def _write_postgres_table(
    cursor: Any, destination: Destination, table: VectorTable, vector_type: str
) -> None:
    name = quoted(table.name)
    cursor.execute(_COLUMNS_OF_POSTGRES, (name,))
    _refuse_other_table(destination, table, [row[0] for row in cursor.fetchall()])
    for number, (key_cells, block) in enumerate(table.blocks()):
        rows = _arrow_table(table, key_cells, block)
        mode = "append" if number else "create"
        cursor.adbc_ingest("infomax_vectors", rows, mode, temporary=True)
    casts = ", ".join(f"{quoted(column)}::{sql_type}" for column, sql_type in table.key.items())
    cursor.execute(f"DROP TABLE IF EXISTS {name}")
    cursor.execute(f"CREATE TABLE {name} {_definitions(table, vector_type)}")
    cursor.execute(f"INSERT INTO {name} SELECT {casts}, vector::{vector_type} FROM infomax_vectors")
    cursor.execute("DROP TABLE infomax_vectors")
