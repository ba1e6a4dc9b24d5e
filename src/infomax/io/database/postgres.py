"""Tables of a Postgres server, read by its ADBC driver in one transaction, read-only."""

from __future__ import annotations

import re
from typing import Any

from infomax.errors import InputError, library, one_line
from infomax.io.database.columns import unreadable_type
from infomax.io.database.snapshot import DECLARED, Snapshot, Table, declared_key, quoted

_TABLES = """
SELECT n.nspname::text, c.relname::text, c.relkind IN ('v', 'm') AS is_view, c.oid::int8,
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS allowed
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid)
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 2, 1"""
_COLUMNS = """
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_KEYS = """
SELECT contype::text,
    (SELECT nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE c.oid = confrelid),
    (SELECT relname::text FROM pg_class WHERE oid = confrelid),
    (SELECT array_agg(attname::text ORDER BY rank)
        FROM unnest(conkey) WITH ORDINALITY AS k(number, rank)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = number),
    (SELECT array_agg(attname::text ORDER BY rank)
        FROM unnest(confkey) WITH ORDINALITY AS k(number, rank)
        JOIN pg_attribute ON attrelid = confrelid AND attnum = number)
FROM pg_constraint WHERE conrelid = {} AND contype IN ('p', 'f')"""
_PLAIN = re.compile(
    r"(smallint|integer|bigint|real|double precision|boolean|text|character.*|date|timestamp.*)"
    r"(\[\])?"
)
"""Types that Arrow has as well."""
_UNREADABLE = re.compile("bytea|jsonb?|xml|tsvector|.*range")
_VECTOR_OF_PGVECTOR = re.compile(r"(.*\.)?(vector|halfvec)(\(\d+\))?")
MOST_DIGITS_OF_INTEGER = 18
"""Whole numbers of more digits may not fit into 64 bits."""


def address_without_password(address: str) -> str:
    """An address without its password, and without parameters, which may hold one."""
    return re.sub(r"//([^:/@]*):[^@/]*@", r"//\1@", address).partition("?")[0]


def connect(address: str) -> Any:
    """A connection to a server; its first statement begins a transaction."""
    dbapi = driver()
    try:
        return dbapi.connect(address)
    except dbapi.Error as error:
        raise InputError(
            address_without_password(address),
            "a Postgres server that lets you in",
            one_line(error),
        ) from None


def driver() -> Any:
    """The module of the driver."""
    return library(
        "adbc_driver_postgresql.dbapi", "postgres", "postgresql://", ", to read a Postgres server"
    )


def copy_postgres(address: str, snapshot: Snapshot) -> None:
    """Copy all tables that are wanted; of other views only the names are read."""
    import pyarrow as pa

    dbapi = driver()
    with connect(address) as connection, connection.cursor() as cursor:
        try:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(_TABLES)
            for schema_name, name, is_view, oid, is_allowed in cursor.fetchall():
                if not snapshot.wants(name, is_view, schema_name):
                    continue
                if not is_allowed:
                    expected = f"permission to read table {schema_name}.{name}"
                    remedy = f"Grant SELECT on it, or leave it out: --table {name}=ignore."
                    raise InputError(snapshot.location, expected, "none", remedy)
                table = Table(name, is_view=is_view)
                _copy(cursor, f"{quoted(schema_name)}.{quoted(name)}", table, oid, snapshot)
        except (dbapi.Error, pa.ArrowException, OSError) as error:
            expected = "tables that can be read to their end"
            remedy = "Nothing was written; the same command starts anew."
            raise InputError(snapshot.location, expected, one_line(error), remedy) from None


def _copy(cursor: Any, sql_name: str, table: Table, oid: int, snapshot: Snapshot) -> None:
    """Copy a table, with the keys that it declares."""
    cursor.execute(_COLUMNS.format(oid))
    column_types = dict(cursor.fetchall())
    cursor.execute(_KEYS.format(oid))
    for constraint_type, schema_name, other, columns, target in cursor.fetchall():
        if constraint_type == "p":
            table.set_primary_key(columns, "declared", DECLARED)
        elif not snapshot.is_left_out(other, schema_name):
            table.keys.append(declared_key(columns, other, target))

    cells = {}
    for column, column_type in column_types.items():
        cell = _cell(column, column_type)
        if cell is not None:
            cells[column] = cell
        elif column_type == "bytea" and table.is_of_a_key(column):  # they tell rows apart
            cells[column] = f"encode({quoted(column)}, 'hex') AS {quoted(column)}"
        else:
            table.leave_out(column, unreadable_type(column_type))
    if not cells or snapshot.are_vectors(table, list(column_types)):
        return

    table.original_types = {
        name: "UUID" for name, column_type in column_types.items() if column_type == "uuid"
    }
    cursor.execute(f"SELECT {', '.join(cells.values())} FROM {sql_name}")
    batches = (
        dict(zip(batch.schema.names, batch.columns, strict=True))
        for batch in cursor.fetch_record_batch()
    )
    snapshot.copy(table, batches, names=list(cells))


def _cell(name: str, column_type: str) -> str | None:
    """A column in SQL, as a type that Arrow has; None for one that is no feature."""
    cell = quoted(name)
    if _PLAIN.fullmatch(column_type):
        return cell
    if _UNREADABLE.fullmatch(column_type):
        return None
    if _VECTOR_OF_PGVECTOR.fullmatch(column_type):
        return f"{cell}::real[] AS {cell}"
    if column_type.startswith("interval"):
        return f"extract(epoch FROM {cell})::float8 AS {cell}"
    whole_number = re.fullmatch(r"numeric\((\d+),0\)", column_type)
    if whole_number and int(whole_number[1]) <= MOST_DIGITS_OF_INTEGER:
        return f"{cell}::int8 AS {cell}"
    if column_type.startswith("numeric"):
        return f"{cell}::float8 AS {cell}"
    return f"{cell}::text AS {cell}"
