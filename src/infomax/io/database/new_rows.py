"""Frames of new rows of tables with keys, to attach to the graph that was made of earlier rows.

A row may refer to known rows, which are not in the frames. So the id of the row that it refers to
is taken from the cells of the key, not from the other table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infomax.errors import InputError, shorten, suggest
from infomax.io.choices import UserChoices
from infomax.io.column_names import format_list
from infomax.io.database import take_schema
from infomax.io.database.files import copy_frames
from infomax.io.database.graph_tables import graph_tables
from infomax.io.database.snapshot import Snapshot, Table, quoted
from infomax.io.record import Record
from infomax.io.schema.schema import Schema, TableSchema
from infomax.io.tables import Tables


def tables_of_new_rows(frames: Mapping[str, Any], choices: UserChoices, known: Record) -> Tables:
    """The tables of new rows, which are read as those of the known graph were.

    Args:
        frames: the new rows by table; a table without new rows may be missing.
        choices: what the user says of columns.
        known: the graph to which the rows are attached.
    """
    schema = known.schema
    if schema is None or not schema.is_database:
        raise InputError("attach_to", "a graph of tables with keys, as the frames are", "another")
    _refuse_unknown(frames, schema)
    snapshot = Snapshot("frames")
    copy_frames(frames, snapshot)
    for name, known_table in schema.tables.items():
        if known_table.has_nodes and name not in frames:
            _add_empty_table(snapshot, name, known_table)
    take_schema(snapshot, schema)

    # Rows of a table without a primary key are numbered, on from the last known row.
    for table_index, (node_type, table) in enumerate(snapshot.node_tables.items()):
        if not table.primary and table.row_count:
            last_id = int(known.nodes[node_type].ids[:].max())
            snapshot.add_numbers(table, f"new{table_index}", f"row_number() OVER () + {last_id}")
    return graph_tables(snapshot, choices)


def _add_empty_table(snapshot: Snapshot, name: str, known_table: TableSchema) -> None:
    """Add a table without rows, to whose known rows new rows of others may refer."""
    id_columns = known_table.id.columns
    columns = dict(zip(id_columns, known_table.id_types, strict=True)) or {"row": "BIGINT"}
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
