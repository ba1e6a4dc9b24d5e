"""Frames of new rows of tables with keys, to attach to the graph that was made of earlier rows.

A row may refer to known rows, which are not in the frames. So the id of the row that it refers to is taken from the
cells of the key, not from the other table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infomax.errors import InputError, shorten, suggest
from infomax.io.column_names import format_list
from infomax.io.columns import Columns
from infomax.io.database.deciding import take_decisions
from infomax.io.database.described import decisions_of
from infomax.io.database.files import copy_frames
from infomax.io.database.roles import Plan
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.sources import tables_of
from infomax.io.database.tables import Table, quoted, type_name
from infomax.io.record import Record
from infomax.io.schema.schema import Schema, TableSchema
from infomax.io.typed import Tables


def tables_of_new_rows(frames: Mapping[str, Any], columns: Columns, known: Record) -> Tables:
    """The tables of new rows of a known graph, by the names of its tables; those without new rows may be missing."""
    schema = columns.schema
    if schema is None or not schema.is_database:
        raise InputError("attach_to", "a graph of tables with keys, as the frames are", "another")
    _refuse_unknown(frames, schema)
    snapshot = Snapshot("frames")
    copy_frames(frames, snapshot)
    for name, described in schema.tables.items():
        if described.has_nodes and name not in frames:
            _add_empty_table(snapshot, name, described)
    plan = take_decisions(snapshot, decisions_of(schema))
    for table in plan.types.values():
        if not table.primary and table.row_count:
            _number_after(plan, table, known)
    return tables_of(plan, columns, attaches=True)


def _add_empty_table(snapshot: Snapshot, name: str, described: TableSchema) -> None:
    """Add a table without rows, to whose known rows new rows of others may refer: its ids, with their types."""
    columns = dict(zip(described.id.columns, described.id_types, strict=True)) or {"row": "BIGINT"}
    table = Table(name, f"known{len(snapshot.tables)}", columns)
    cells = ", ".join(f"{quoted(column)} {column_type}" for column, column_type in columns.items())
    snapshot.rows(f"CREATE TABLE {table.sql} ({cells})")
    snapshot.tables[name] = table


def _refuse_unknown(frames: Mapping[str, Any], schema: Schema) -> None:
    """Refuse a table that is not known, and the lack of one whose values stand in place of keys."""
    for name in frames:
        if name not in schema.tables:
            expected = f"tables of the known graph ({format_list(list(schema.tables))})"
            raise InputError("nodes", expected, shorten(name), suggest(name, schema.tables))
        for key in schema.tables[name].keys:
            if schema.tables[key.table].role == "lookup" and key.table not in frames:
                expected = (
                    f"a table {shorten(key.table)}, whose values stand for the keys of {name}"
                )
                raise InputError("nodes", expected, "none")


def _number_after(plan: Plan, table: Table, known: Record) -> None:
    """Give the rows of a table without a primary key the numbers that follow those of the known rows."""
    ids = known.nodes[type_name(table.name)].ids
    first = int(ids[:].max()) + 1
    number_column = "row"
    while number_column in table.columns:
        number_column += "_"
    sql = f"new{list(plan.tables).index(table.name)}"
    cells = f"row_number() OVER () + {first - 1} AS {quoted(number_column)}, *"
    plan.snapshot.rows(f"CREATE TABLE {sql} AS SELECT {cells} FROM {table.sql}")
    table.sql = sql
    table.columns[number_column] = "BIGINT"
    table.number_column = number_column
