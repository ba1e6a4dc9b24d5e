"""Tables of a DuckDB file, attached read-only."""

from __future__ import annotations

from pathlib import Path

from infomax.errors import InputError, one_line
from infomax.io.database.snapshot import (
    DECLARED,
    Snapshot,
    Table,
    declared_key,
    quoted,
    sql_string,
)

_TABLES = """
SELECT schema_name, {0}_name FROM duckdb_{0}s()
WHERE database_name = 'source' AND NOT internal ORDER BY 2"""
_CONSTRAINTS = """
SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints()
WHERE schema_name = {0} AND table_name = {1} AND database_name = 'source'"""


def attach_duckdb(path: Path, snapshot: Snapshot) -> None:
    """Attach a file, read-only; only tables with holes in the numbers of their rows are copied."""
    file = sql_string(str(path.resolve()))
    try:
        snapshot.database.execute(f"ATTACH {file} AS source (READ_ONLY, TYPE duckdb)")
    except snapshot.failure as error:
        expected = "a DuckDB database that can be opened"
        raise InputError(str(path), expected, one_line(error)) from None
    for table_type in ("table", "view"):
        is_view = table_type == "view"
        for schema_name, name in snapshot.rows(_TABLES.format(table_type)):
            if not snapshot.wants(name, is_view, schema_name):
                continue
            snapshot.refuse_second_table(name)
            sql = f"source.{quoted(schema_name)}.{quoted(name)}"
            table = Table(name, sql, snapshot.column_types(sql), is_view=is_view)
            if not is_view:
                table.row_count = snapshot.number(f"SELECT count(*) FROM {sql}")
                _note_constraints(snapshot, schema_name, table)
            if not snapshot.are_vectors(table, list(table.columns)):
                snapshot.tables[name] = table


def _note_constraints(snapshot: Snapshot, schema_name: str, table: Table) -> None:
    """Note the keys that a table of the attached file declares."""
    query = _CONSTRAINTS.format(sql_string(schema_name), sql_string(table.name))
    for constraint_type, columns, other, target in snapshot.rows(query):
        if constraint_type == "PRIMARY KEY":
            table.set_primary_key(columns, "declared", DECLARED)
        elif constraint_type == "FOREIGN KEY" and not snapshot.is_left_out(other, schema_name):
            table.keys.append(declared_key(columns, other, target))
