"""Tables of a Postgres server, read by its ADBC driver in one transaction, read-only."""

from __future__ import annotations

import re
from typing import Any

from infomax.errors import InputError, library, one_line
from infomax.io.database.schema import Key, Table, quoted
from infomax.io.database.snapshot import Snapshot

_TABLES = """
SELECT n.nspname::text, c.relname::text, c.relkind IN ('v', 'm') AS is_view, c.oid::int8,
    has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT') AS allowed
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 2, 1"""
_COLUMNS = """
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = {} AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_KEYS = """
SELECT contype::text,
    (SELECT nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = confrelid),
    (SELECT relname::text FROM pg_class WHERE oid = confrelid),
    (SELECT array_agg(attname::text ORDER BY place) FROM unnest(conkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = number),
    (SELECT array_agg(attname::text ORDER BY place) FROM unnest(confkey) WITH ORDINALITY AS k(number, place)
        JOIN pg_attribute ON attrelid = confrelid AND attnum = number)
FROM pg_constraint WHERE conrelid = {} AND contype IN ('p', 'f')"""
_PLAIN = re.compile(
    r"(smallint|integer|bigint|real|double precision|boolean|text|character.*|date|timestamp.*)(\[\])?"
)
_UNREAD = re.compile("bytea|jsonb?|xml|tsvector|.*range")


def shown(address: str) -> str:
    """An address without the password in it."""
    return re.sub(r"//([^:/@]*):[^@/]*@", r"//\1@", address).partition("?")[0]


def connect(address: str) -> Any:
    """A connection to a server; its first statement begins a transaction."""
    dbapi = driver()
    try:
        return dbapi.connect(address)
    except dbapi.Error as error:
        raise InputError(
            shown(address), "a Postgres server that lets you in", one_line(error)
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
            for schema, name, is_view, oid, allowed in cursor.fetchall():
                if not snapshot.wants(name, is_view, schema):
                    continue
                if not allowed:
                    remedy = f"Grant SELECT on it, or leave it out: --table {name}=ignore."
                    raise InputError(
                        snapshot.where, f"permission to read table {schema}.{name}", "none", remedy
                    )
                _copy(
                    cursor,
                    f"{quoted(schema)}.{quoted(name)}",
                    Table(name, "", {}, is_view=is_view),
                    oid,
                    snapshot,
                )
        except (dbapi.Error, pa.ArrowException, OSError) as error:
            remedy = "Nothing was written; the same command starts anew."
            raise InputError(
                snapshot.where, "tables that can be read to their end", one_line(error), remedy
            ) from None


def _copy(cursor: Any, place: str, table: Table, oid: int, snapshot: Snapshot) -> None:
    cursor.execute(_COLUMNS.format(oid))
    kinds = dict(cursor.fetchall())
    cells = {name: cell for name, kind in kinds.items() if (cell := _cell(name, kind))}
    cursor.execute(_KEYS.format(oid))
    for kind, schema, other, own, target in cursor.fetchall():
        if kind == "p":
            table.primary = tuple(own)
        elif not snapshot.is_left_out(other, schema):
            table.keys.append(Key(tuple(own), other, tuple(target)))
    if cells and not snapshot.are_vectors(table, list(kinds)):
        table.copied = {name: "UUID" for name, kind in kinds.items() if kind == "uuid"}
        cursor.execute(f"SELECT {', '.join(cells.values())} FROM {place}")
        batches = (
            dict(zip(batch.schema.names, batch.columns, strict=True))
            for batch in cursor.fetch_record_batch()
        )
        snapshot.copy(table, batches, names=list(cells))


def _cell(name: str, kind: str) -> str:
    """A column in SQL, as a type that Arrow has; "" for one that is no feature."""
    cell = quoted(name)
    if _PLAIN.fullmatch(kind):
        return cell
    if _UNREAD.fullmatch(kind):
        return ""
    if re.fullmatch(r"(.*\.)?(vector|halfvec)(\(\d+\))?", kind):  # of pgvector
        return f"{cell}::real[] AS {cell}"
    whole = re.fullmatch(r"numeric\((\d+),0\)", kind)
    other = (
        "int8"
        if whole and int(whole[1]) <= 18
        else "float8"
        if kind.startswith("numeric")
        else "text"
    )
    return f"{cell}::{other} AS {cell}"
