"""What was decided about a database, as tables of a schema, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from infomax.io.database.decisions import (
    Decisions,
    DroppedColumn,
    Key,
    NameDecision,
    PrimaryKey,
    RoleDecision,
    TableDecision,
    TimeDecision,
)
from infomax.io.database.roles import Plan, lookup_column
from infomax.io.database.tables import type_name
from infomax.io.schema.schema import (
    ColumnSchema,
    KeySchema,
    Schema,
    TableRole,
    TableSchema,
    TimeUse,
    Use,
)

EMPTY_KEY = "it is empty in every row"
"""The reason of a column of a key that has no values."""


def schema_of(plan: Plan, known: Schema) -> Schema:
    """The schema of a database; the columns of nodes are added once they have been read.

    Tables that are left out are not looked at: of these stays what was ``known``.
    """
    tables: dict[str, TableSchema] = {}
    for name, decision in plan.decisions().items():
        table = plan.tables[name]
        described = _described(name, decision)
        if described.has_nodes:
            id_types = tuple(table.key_types.values())
            tables[name] = replace(described, id_types=id_types)
        elif described.role == "lookup":
            tables[name] = replace(described, name=Use((str(lookup_column(table)),)))
        else:
            tables[name] = described
    for name in sorted(plan.snapshot.left_out):
        tables[name] = known.tables.get(name, TableSchema("ignored", origin="said"))
    return Schema(tables, is_database=True)


def _described(name: str, decision: TableDecision) -> TableSchema:
    """What was decided about one table."""
    role = decision.role.role
    is_node = role in ("nodes", "facts")
    keys = tuple(
        KeySchema(key.columns, key.table, key.target, key.is_float, key.origin, key.reason)
        for key in decision.keys
    )
    columns = {
        column: ColumnSchema("key", origin=key.origin, reason=_reason_of_key(key))
        for key in decision.keys
        for column in key.columns
    }
    for dropped in decision.dropped:
        columns[dropped.column] = ColumnSchema(
            "ignored", origin=dropped.origin, reason=dropped.reason
        )
    names = Use()
    if decision.name is not None:
        names = Use(decision.name.columns, decision.name.origin, decision.name.reason)
    primary_key = decision.primary_key
    return TableSchema(
        role=cast(TableRole, "ignored" if role == "ignore" else role),
        node_type=type_name(name) if is_node else "",
        id=Use(primary_key.columns, primary_key.origin, primary_key.reason),
        name=names,
        time=_time_use(decision.time),
        keys=keys,
        columns=columns,
        origin=decision.role.origin,
        reason=decision.role.reason,
    )


def _reason_of_key(key: Key) -> str:
    """What a column of a key is; a key without values leads to no edges and to no category."""
    return f"it refers to {key.table}" if key.filled else EMPTY_KEY


def _time_use(time: TimeDecision | None) -> TimeUse | None:
    if time is None:
        return None
    return TimeUse(
        time.column or "",
        tuple(key.columns for key in time.keys),
        time.unit,
        time.candidates,
        time.origin,
        time.reason,
    )


def decisions_of(schema: Schema) -> Decisions:
    """What a schema says of a database, as `take_decisions` takes it."""
    return {name: _decision(table) for name, table in schema.tables.items()}


def _decision(table: TableSchema) -> TableDecision:
    keys = tuple(
        Key(
            key.columns,
            key.table,
            key.target,
            key.origin,
            key.reason,
            is_float=key.is_float,
        )
        for key in table.keys
    )
    time = None
    if table.time is not None:
        of_time = table.time
        time = TimeDecision(
            of_time.column or None,
            tuple(key for key in keys if key.columns in of_time.keys),
            of_time.origin,
            of_time.reason,
            of_time.unit,
            of_time.candidates,
        )
    dropped = tuple(
        DroppedColumn(name, column.origin, column.reason)
        for name, column in table.columns.items()
        if column.role == "ignored"
    )
    role = "ignore" if table.role == "ignored" else table.role
    name = None
    if table.name.columns:
        of_name = table.columns.get(table.name.columns[0])
        is_category = of_name is not None and of_name.column_type == "category"
        name = NameDecision(table.name.columns, table.name.origin, table.name.reason, is_category)
    return TableDecision(
        role=RoleDecision(role, table.origin, table.reason),
        primary_key=PrimaryKey(table.id.columns, table.id.origin, table.id.reason),
        keys=keys,
        name=name,
        time=time,
        dropped=dropped,
    )
