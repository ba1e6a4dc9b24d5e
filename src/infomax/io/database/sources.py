"""The tables of a database as the tables of a graph: of nodes by type, and of edges by relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from infomax.errors import InputError, shorten, suggest, warn
from infomax.io.column_names import format_list
from infomax.io.columns import NAME, TIME, Columns
from infomax.io.database.decisions import Key
from infomax.io.database.described import schema_of
from infomax.io.database.dropped import unknown_columns
from infomax.io.database.roles import Plan, lookup_column
from infomax.io.database.snapshot import Query, Snapshot
from infomax.io.database.tables import Table, joined, quoted, type_name
from infomax.io.database.times import moment, with_times
from infomax.io.label_names import LABEL, spelled_labels
from infomax.io.schema.schema import ColumnSchema, Schema, TableSchema, Use
from infomax.io.sources import Source
from infomax.io.typed import Tables, of_sources
from infomax.io.unite import Ends


def tables_of(plan: Plan, columns: Columns, *, attaches: bool = False) -> Tables:
    """The tables of the graph, with all choices among the columns, so that a later database is read alike.

    Where it ``attaches`` new rows to those of a known graph, tables may be empty, and rows may refer to known ones.
    """
    columns = with_spelled_labels(plan.snapshot, columns)
    if columns.features != ():  # else labels are read to score vectors that are there already
        _tell_labels_that_are_keys(plan, columns)

    nodes: dict[str, Source] = {}
    column_types: dict[str, str] = {}
    known = columns.schema or Schema()
    of_types: dict[str, TableSchema] = {}
    for node_type, table in plan.types.items():
        if attaches and not table.row_count:
            continue
        query, lookups = _nodes(plan, node_type, table, columns)
        nodes[node_type] = Source([_location(plan, table)], columns, query)
        column_types |= {f"{node_type}.{name}": "category" for name in lookups}
        category_name = _category_name(plan, table)
        column_types |= {f"{node_type}.{name}": "category" for name in category_name}
        # Ids, names and times are put together by the query, whatever columns the table has for them.
        of_types[node_type] = replace(
            known.of_type(node_type) or TableSchema(columns=category_name),
            node_type=node_type,
            id=Use((next(iter(query.columns)),)),
            name=Use(),
            time=None,
        )
    edges = {
        ends: Source([_location(plan, table)], columns, query)
        for ends, table, query in _edges(plan, columns, attaches=attaches)
    }
    decided = replace(
        columns,
        key=(),
        table=(),
        pk=(),
        ignore=unknown_columns(plan.snapshot, columns.ignore),
        name=None,
        time=None,
        kinds=column_types | dict(columns.kinds),
        schema=Schema(of_types),
    )
    tables = of_sources(nodes, edges, decided, is_database=True)
    directed = frozenset(ends for ends in edges if ends[0] == ends[2])
    return replace(tables, directed=directed, schema=schema_of(plan, known))


def _location(plan: Plan, table: Table) -> Path:
    """What stands for a table in messages."""
    return Path(f"{plan.snapshot.location}, table {table.name}")


def with_spelled_labels(snapshot: Snapshot, columns: Columns) -> Columns:
    """The choices with labels as the tables of a database spell them, those of TABLE.COLUMN as TYPE.COLUMN.

    A column of many tables is meant where it is not what tells the rows apart: CategoryID of Products, not of
    Categories.
    """
    tables = snapshot.tables.values()
    headers = {name: [*table.columns, name] for name, table in snapshot.tables.items()}
    headers |= {type_name(name): header for name, header in headers.items()}
    labels: list[str] = []
    for word in spelled_labels(columns.labels, headers):
        owners = [table for table in tables if word in table.columns]
        referring = [table for table in owners if table.primary != (word,)]
        if owners and referring and len(referring) < len(owners):
            labels += [f"{type_name(table.name)}.{word}" for table in referring]
            continue
        qualified = [
            f"{type_name(table.name)}.{column}"
            for table in tables
            for column in table.columns
            if word == f"{table.name}.{column}"
        ]
        labels.append(next(iter(qualified), word))

    # The values of a lookup may be called as its table is.
    names = dict.fromkeys(name for header in headers.values() for name in header)
    names |= {f"{table}.{name}": None for table, header in headers.items() for name in header}
    for label in labels:
        if label not in names and f"{LABEL}{label}" not in names:
            expected = f"a column {shorten(label)} in one of the tables"
            found = f"none in {format_list(list(snapshot.tables))}"
            raise InputError("labels", expected, found, suggest(label, sorted(names)))
    return replace(columns, labels=tuple(labels))


def _is_label(table: Table, column: str, columns: Columns) -> bool:
    """Whether a column was named as a label, now or for the known graph."""
    known = None if columns.schema is None else columns.schema.tables.get(table.name)
    is_known_label = known is not None and column in known.with_role("label")
    return is_known_label or table.is_named(column, columns.labels)


def _holds_label(table: Table, key: Key, columns: Columns) -> bool:
    """Whether a key leads to what a label tells: its edges, or the category, would give the label away."""
    return any(_is_label(table, column, columns) for column in key.columns)


def _tell_labels_that_are_keys(plan: Plan, columns: Columns) -> None:
    """Say which keys lead to no edges and no category, since a label is among their columns."""
    for table in plan.types.values():
        for key in plan.keys(table, "nodes", "facts", "lookup"):
            if _holds_label(table, key, columns):
                is_category = plan.role(key.table) == "lookup"
                what = "values of" if is_category else "edges to"
                warn(
                    f"{table.name}.{key.name} is a label: {what} {key.table} would give it away, "
                    "so they are left out."
                )


def _category_name(plan: Plan, table: Table) -> dict[str, ColumnSchema]:
    """The column of names, where it is a category of its rows as well."""
    name = plan.names.get(table.name)
    if name is None or not name.is_category:
        return {}
    reason = "each row is a value that many rows have"
    return {name.columns[0]: ColumnSchema("feature", "category", reason=reason)}


def _nodes(
    plan: Plan, node_type: str, table: Table, columns: Columns
) -> tuple[Query, dict[str, str]]:
    """The rows of a table: id, columns that are no keys, lookups in place of keys, name and time; and the lookups."""
    lookups, joins = _lookups(plan, table, columns)
    data_columns = _data_columns(plan, node_type, table, columns)
    cells = {column: table.cell(column) for column in data_columns} | lookups

    # The id has the name of the primary key, unless a column that becomes features has it.
    id_column = "id"
    if len(table.primary) == 1 and "," not in table.primary[0]:
        id_column = table.primary[0]
    while id_column in cells:
        id_column += "_"

    name_decision = plan.names.get(table.name)
    if name_decision is not None:
        parts = ", ".join(f"t.{quoted(column)}" for column in name_decision.columns)
        cells[NAME] = f"concat_ws(' ', {parts})"
    if table.name in with_times(plan):
        cells[TIME] = f"make_timestamp({moment(plan, table, joins)})"
    source = f"FROM {table.sql} AS t {' '.join(joins)}"
    query = Query(plan.snapshot, {id_column: table.row_id(), **cells}, source, table.row_count)
    return query, lookups


def _lookups(plan: Plan, table: Table, columns: Columns) -> tuple[dict[str, str], list[str]]:
    """The values of the lookups that a table refers to, in SQL, by the names of columns; and the joins that they need.

    A value is called as its lookup is; where two keys lead to it, or a column is called so, as its key is.
    """
    lookups: dict[str, str] = {}
    joins: list[str] = []
    tables_referred_to = [key.table for key in table.keys]
    for number, key in enumerate(plan.keys(table, "lookup")):
        is_known = columns.schema is not None
        if not (key.filled or is_known) or _holds_label(table, key, columns):
            continue
        lookup = plan.tables[key.table]
        alias = f"l{number}"
        joins.append(f"LEFT JOIN {lookup.sql} AS {alias} ON {joined(table, key, lookup, alias)}")
        is_only_key = tables_referred_to.count(lookup.name) == 1
        name = lookup.name if is_only_key and lookup.name not in table.columns else key.name
        lookups[name] = f"{alias}.{quoted(str(lookup_column(lookup)))}"
    return lookups, joins


def _data_columns(plan: Plan, node_type: str, table: Table, columns: Columns) -> list[str]:
    """The columns of a table that may become features or labels; those whose use a person said among them."""
    data_columns = table.data_columns
    used_columns = [
        column
        for column in table.columns
        if f"{node_type}.{column}" in columns.kinds or table.is_named(column, columns.labels)
    ]
    data_columns += [column for column in used_columns if column not in data_columns]

    # A name alone would be no feature, as no two rows share it.
    name = plan.names.get(table.name)
    if name is None or name.is_category:
        return data_columns
    if name.origin != "said" and list(name.columns) != data_columns:
        return data_columns
    unused = {*name.columns}.difference(used_columns)
    return [column for column in data_columns if column not in unused]


def _edges(plan: Plan, columns: Columns, *, attaches: bool) -> Iterator[tuple[Ends, Table, Query]]:
    """The relation of each key, from the rows that refer to the rows referred to; and those of tables of edges."""
    for node_type, table in plan.types.items():
        for key in plan.keys(table):
            if _holds_label(table, key, columns) or (attaches and not table.row_count):
                continue
            other = plan.tables[key.table]
            if attaches:
                target = table.referred_id(key, other)
                source = f"FROM {table.sql} AS t WHERE {table.refers(key)}"
                row_count = key.filled
            else:
                target = other.row_id("r")
                source = (
                    f"FROM {table.sql} AS t JOIN {other.sql} AS r ON {joined(table, key, other)}"
                )
                row_count = key.filled - key.lost
            cells = {"source": table.row_id(), "target": target}
            query = Query(plan.snapshot, cells, source, row_count)
            yield (node_type, type_name(key.name), type_name(other.name)), table, query
    for table in plan.tables.values():
        if plan.role(table.name) == "edges":
            first_key, last_key = plan.keys(table)
            first = plan.tables[first_key.table]
            last = plan.tables[last_key.table]
            if attaches:
                cells = {
                    "source": table.referred_id(first_key, first),
                    "target": table.referred_id(last_key, last),
                }
                refers = f"{table.refers(first_key)} AND {table.refers(last_key)}"
                source = f"FROM {table.sql} AS t WHERE {refers}"
            else:
                cells = {"source": first.row_id("r"), "target": last.row_id("s")}
                source = (
                    f"FROM {table.sql} AS t "
                    f"JOIN {first.sql} AS r ON {joined(table, first_key, first)} "
                    f"JOIN {last.sql} AS s ON {joined(table, last_key, last, 's')}"
                )
            row_count = plan.snapshot.number(f"SELECT count(*) {source}")
            query = Query(plan.snapshot, cells, source, row_count)
            yield (type_name(first.name), type_name(table.name), type_name(last.name)), table, query
