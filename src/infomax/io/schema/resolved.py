"""The schema of tables that have been read: what each table and each column was taken for, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infomax.io.schema.schema import (
    ONLY_RELATION,
    ColumnSchema,
    Ends,
    Origin,
    Schema,
    TableSchema,
    TimeUse,
    TypeColumns,
    Use,
)

if TYPE_CHECKING:
    from infomax.io.columns import Columns
    from infomax.io.encoding.column import Column
    from infomax.io.encoding.encoding import Encoding
    from infomax.io.sources import Source
    from infomax.io.typed import Tables

_REASONS = {
    "number": "numbers",
    "numbers": "lists of numbers",
    "boolean": "two values",
    "date": "dates",
    "text": "text of several words",
    "tokens": "lists of words",
    "name": "a name",
    "ignore": "no values",
}


def node_table(source: Source, node_type: str) -> TableSchema:
    """What the table of the nodes of a type was taken for, once it has been read."""
    columns, chosen, known = source.columns, source.chosen, source.columns.known_table
    asked = source.asked_columns
    id_use = Use()
    if not columns.numbered:
        id_use = _use(asked, known, "id", chosen.identifier)
    special = [chosen.identifier, chosen.groups, chosen.time]
    return TableSchema(
        role="nodes" if known is None else known.role,
        node_type=node_type,
        id=id_use,
        name=_use(asked, known, "name", chosen.name),
        time=_time(asked, known, chosen.time),
        group=_use(asked, known, "group", chosen.groups),
        columns=_columns_of_nodes(source, {name for name in special if name is not None}),
        origin="found" if known is None else known.origin,
        reason="" if known is None else known.reason,
    )


def edge_table(source: Source, ends: Ends | None) -> TableSchema:
    """What a table of edges was taken for, once it has been read."""
    columns, known = source.columns, source.columns.known_table
    found = source.edge_columns
    weight = found.weight
    if columns.counts(source.names):
        weight = "count"
    uses: dict[str, Any] = {
        "source": _use(columns, known, "source", found.source),
        "target": _use(columns, known, "target", found.target),
        "weight": _use(columns, known, "weight", weight),
        "relation": _use(columns, known, "relation", found.relation, "edge_type"),
    }
    used = {name for name in found if name is not None}
    others = [name for name in source.names if name not in used]
    reason = "its rows are nodes" if columns.edges_as else "no end and no weight of an edge"
    unused = {name: ColumnSchema("ignored", reason=reason) for name in others}
    return TableSchema("edges", ends=ends, columns=unused, **uses)


def resolved(
    tables: Tables, nodes: Mapping[str, TableSchema], edges: Sequence[TableSchema]
) -> Schema:
    """The schema of tables that have been read, by the schemas of those of nodes and of edges."""
    if tables.schema is not None:  # of a database
        return _with_columns(tables.schema, nodes)
    columns = tables.columns
    known = columns.schema or Schema()
    found = {name: table for name, table in known.tables.items() if table.role != "edges"}
    for node_type, table in nodes.items():
        found[node_type or "nodes"] = table
    for table in edges:
        name = "edges"
        if table.ends is not None and table.ends != ONLY_RELATION:
            name = ".".join(table.ends)
        while name in found:
            name += "_"
        found[name] = table
    for name, table in known.tables.items():
        found.setdefault(name, table)
    first, last = columns.types or ("", "")
    type_columns = TypeColumns(
        (first, last) if columns.types else None,
        columns.edge_type or "",
        columns.node_type or "",
        columns.edges_as or "",
    )
    return Schema(found, type_columns)


def _with_columns(schema: Schema, nodes: Mapping[str, TableSchema]) -> Schema:
    """The schema of a database, with what the columns of nodes were taken for."""
    tables = dict(schema.tables)
    for name, table in tables.items():
        if table.has_nodes and table.node_type in nodes:
            read = nodes[table.node_type]
            # Names and times that are put together of several columns have names of their own.
            own = {
                column: about
                for column, about in read.columns.items()
                if not column.startswith("node:")
            }
            for key in table.keys:
                column = key.table if key.table in own else "+".join(key.columns)
                is_read = column in own and own[column].role != "label"
                if is_read and schema.tables[key.table].role == "lookup":
                    reason = f"the values of the lookup {key.table}"
                    own[column] = ColumnSchema("feature", own[column].column_type, reason=reason)
            labels = {name: about for name, about in own.items() if about.role == "label"}
            tables[name] = replace(table, columns={**own, **table.columns, **labels})
    return replace(schema, tables=tables)


def _use(
    columns: Columns,
    known: TableSchema | None,
    purpose: str,
    column: str | None,
    option: str = "",
) -> Use:
    """The column that is used for a purpose, with where the choice comes from."""
    if column is None:
        return Use()
    remembered: Use = Use() if known is None else getattr(known, purpose)
    if remembered.columns == (column,):
        return remembered
    asked = getattr(columns, option or {"group": "groups"}.get(purpose, purpose))
    if asked == column:
        return Use((column,), "said")
    if column.lower() == purpose:
        return Use((column,), reason=f"called {column}")
    reasons = {
        "id": "the first column",
        "name": "texts that tell rows apart",
        "source": "one of the first two columns",
        "target": "one of the first two columns",
    }
    return Use((column,), reason=reasons.get(purpose, f"called {column}"))


def _time(columns: Columns, known: TableSchema | None, column: str | None) -> TimeUse | None:
    """The column of times."""
    if column is None:
        return None
    if known is not None and known.time is not None and known.time.column == column:
        return known.time
    return TimeUse(column, origin="said" if columns.time else "found")


def _columns_of_nodes(source: Source, special: set[str]) -> dict[str, ColumnSchema]:
    """What each column of a table of nodes became that has no other use."""
    known = source.columns.known_table
    known_columns = {} if known is None else known.columns
    encoding = source.columns.encoding
    learnt = {} if encoding is None else {column.name: column for column in encoding.columns}
    labels, splits = set(source.chosen.labels.values()), set(source.chosen.splits.values())
    raw_features = set(source.chosen.features) if encoding is None else set()
    found: dict[str, ColumnSchema] = {}
    for name in source.names:
        if name in labels:
            column = ColumnSchema("label", origin=_origin(name in source.asked_columns.labels))
        elif name in splits:
            column = ColumnSchema("split", reason=f"called {name}")
        elif name in learnt:
            column = _learnt_column(learnt[name], source.asked_columns, encoding)
        elif name in raw_features:
            list_type = "numbers" if name in source.lists else "number"
            column = ColumnSchema("feature", list_type, reason=_REASONS[list_type])
        elif name in special:
            continue
        elif name == source.chosen.name:
            column = ColumnSchema("ignored", reason="it names the nodes")
        elif source.only is not None:
            column = ColumnSchema("ignored", reason="it tells the type, or is empty for this one")
        else:
            column = ColumnSchema("ignored", origin=_origin(name in source.asked_columns.ignore))
        if name in known_columns:
            column = _as_known(column, known_columns[name])
        elif source.columns.obeys_schema:
            column = ColumnSchema("ignored", reason="the schema does not name it")
        found[name] = column
    return found


def _as_known(column: ColumnSchema, known: ColumnSchema) -> ColumnSchema:
    """What a column is, with the origin that is known of it, unless a person has now said something else."""
    is_same = column.role == known.role and known.column_type in ("", column.column_type)
    if column.origin == "said" and not is_same:
        return column
    return replace(known, column_type=known.column_type or column.column_type)


def _origin(is_said: bool) -> Origin:
    return "said" if is_said else "found"


def _learnt_column(column: Column, asked: Columns, encoding: Encoding | None) -> ColumnSchema:
    """What a column became whose values were looked at."""
    said_type = asked.kinds.get(column.name)
    if column.feature_names:
        reason = _REASONS.get(column.column_type, "")
        if column.column_type == "category":
            reason = f"{column.distinct:,} different values" if column.distinct else "codes"
        if said_type is not None:
            return ColumnSchema("feature", column.column_type, "said")
        return ColumnSchema("feature", column.column_type, reason=reason)
    reason = column.note or _REASONS.get(column.column_type, "")
    if column.column_type == "id":
        reason = "values that differ from row to row, or that are ids of other nodes"
    if column.distinct == 1:
        reason = "one value only"
    return ColumnSchema("ignored", origin=_origin(said_type is not None), reason=reason)
