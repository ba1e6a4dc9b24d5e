"""The tables of a database as the tables of a graph: of nodes by type, and of edges by relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from infomax.errors import InputError, shorten, suggest, warn
from infomax.io.choices import UserChoices
from infomax.io.column_names import LABEL, NAME, TIME, format_list, spelled_labels
from infomax.io.database.columns import columns_of_no_table
from infomax.io.database.snapshot import Key, Query, Snapshot, Table, joined, quoted, type_name
from infomax.io.database.times import moment
from infomax.io.schema.schema import Ends, Schema, TableSchema, Use
from infomax.io.schema.tables_by_type import typed_tables
from infomax.io.sources import Source
from infomax.io.tables import Tables


def graph_tables(snapshot: Snapshot, choices: UserChoices) -> Tables:
    """The tables of the graph, as queries, with the choices by which later ones are read alike.

    Args:
        snapshot: the tables of the database, about which all was decided.
        choices: what a person says. Of new rows of a known graph, tables may be empty, and rows may
            refer to known rows.
    """
    choices = with_spelled_labels(snapshot, choices)
    if choices.features != ():  # else labels are read to score vectors that are there already
        _warn_of_labels_that_are_keys(snapshot, choices)

    nodes: dict[str, Source] = {}
    column_types: dict[str, str] = {}
    earlier_schema = choices.schema or Schema()
    schemas_by_type: dict[str, TableSchema] = {}
    for node_type, table in snapshot.node_tables.items():
        if choices.attaches and not table.row_count:
            continue
        query, lookup_columns = _nodes(snapshot, node_type, table, choices)
        nodes[node_type] = Source([_location(snapshot, table)], query)

        # Values of many rows are categories, whatever they look like.
        category_columns = [*lookup_columns]
        category_schema = {}
        if table.category_name:
            category_columns.append(table.category_name)
            category_schema[table.category_name] = table.schema.columns[table.category_name]
        column_types |= {f"{node_type}.{column}": "category" for column in category_columns}

        # Ids, names and times are put together by the query, whatever columns the table has for
        # them.
        schemas_by_type[node_type] = replace(
            earlier_schema.of_type(node_type) or TableSchema(columns=category_schema),
            node_type=node_type,
            id=Use((next(iter(query.columns)),)),
            name=Use(),
            time=None,
        )

    edges = {
        ends: Source([_location(snapshot, table)], query)
        for ends, table, query in _edges(snapshot, choices, attaches=choices.attaches)
    }
    # What was said about keys, roles, names and times is in the queries; what is left is about
    # columns.
    column_choices = replace(
        choices,
        keys=(),
        table_roles=(),
        primary_keys=(),
        ignore=columns_of_no_table(snapshot, choices.ignore),
        name=None,
        time=None,
        column_types=column_types | dict(choices.column_types),
    )
    tables = typed_tables(nodes, edges, column_choices, made_schema=Schema(schemas_by_type))
    directed = frozenset(ends for ends in edges if ends[0] == ends[2])
    database_schema = snapshot.schema(earlier_schema)
    return replace(tables, directed=directed, database_schema=database_schema)


def _location(snapshot: Snapshot, table: Table) -> Path:
    """What stands for a table in messages."""
    return Path(f"{snapshot.location}, table {table.name}")


# Labels


def with_spelled_labels(snapshot: Snapshot, choices: UserChoices) -> UserChoices:
    """The choices with labels as the tables spell them, those of TABLE.COLUMN as TYPE.COLUMN.

    A column of many tables is meant where it does not tell the rows apart: CategoryID of Products,
    not of Categories.
    """
    headers = {name: [*table.columns, name] for name, table in snapshot.tables.items()}
    headers |= {type_name(name): header for name, header in headers.items()}
    labels: list[str] = []
    for label in spelled_labels(choices.labels, headers):
        labels += _qualified_labels(snapshot, label)

    # The values of a lookup may be called as its table is.
    names = dict.fromkeys(name for header in headers.values() for name in header)
    names |= {f"{table}.{name}": None for table, header in headers.items() for name in header}
    for label in labels:
        if label not in names and f"{LABEL}{label}" not in names:
            expected = f"a column {shorten(label)} in one of the tables"
            tables = f"none in {format_list(list(snapshot.tables))}"
            raise InputError("labels", expected, tables, suggest(label, sorted(names)))
    return replace(choices, labels=tuple(labels))


def _qualified_labels(snapshot: Snapshot, label: str) -> list[str]:
    """A label as TYPE.COLUMN, once for each table that is meant; as it is where it says enough."""
    owners = [table for table in snapshot.tables.values() if label in table.columns]
    referring = [table for table in owners if table.primary != (label,)]
    if referring and len(referring) < len(owners):
        return [f"{type_name(table.name)}.{label}" for table in referring]
    for table in snapshot.tables.values():
        for column in table.columns:
            if label == f"{table.name}.{column}":
                return [f"{type_name(table.name)}.{column}"]
    return [label]


def _gives_label_away(table: Table, key: Key, choices: UserChoices) -> bool:
    """Whether a column of a key is a label, now or of the known graph: its edges would tell it."""
    known_labels: list[str] = []
    if choices.schema is not None and table.name in choices.schema.tables:
        known_labels = choices.schema.tables[table.name].with_role("label")
    return any(
        column in known_labels or table.is_named(column, choices.labels) for column in key.columns
    )


def _warn_of_labels_that_are_keys(snapshot: Snapshot, choices: UserChoices) -> None:
    """Say which keys lead to no edges and no category, since a label is among their columns."""
    for table in snapshot.node_tables.values():
        for key in snapshot.keys_to(table, "nodes", "facts", "lookup"):
            if _gives_label_away(table, key, choices):
                is_category = snapshot.tables[key.table].role == "lookup"
                hints = "values of" if is_category else "edges to"
                warn(
                    f"{table.name}.{key.name} is a label: {hints} {key.table} would give it away, "
                    "so they are left out."
                )


# Tables of nodes


def _nodes(
    snapshot: Snapshot, node_type: str, table: Table, choices: UserChoices
) -> tuple[Query, list[str]]:
    """The rows of a table: id, columns that are no keys, lookups in place of keys, name and time.

    Returns the names of the columns of lookups, too.
    """
    lookups, joins = _lookups(snapshot, table, choices)
    data_columns = _data_columns(node_type, table, choices)
    cells = {column: table.cell(column) for column in data_columns} | lookups

    # The id has the name of the primary key, unless a column that becomes features has it.
    id_column = "id"
    if len(table.primary) == 1 and "," not in table.primary[0]:
        id_column = table.primary[0]
    while id_column in cells:
        id_column += "_"

    name_columns = table.schema.name.columns
    if name_columns:
        parts = ", ".join(f"t.{quoted(column)}" for column in name_columns)
        cells[NAME] = f"concat_ws(' ', {parts})"
    if table.schema.has_times:
        cells[TIME] = f"make_timestamp({moment(snapshot, table, joins)})"
    source = f"FROM {table.sql} AS t {' '.join(joins)}"
    query = Query(snapshot, {id_column: table.row_id(), **cells}, source, table.row_count)
    return query, list(lookups)


def _lookups(
    snapshot: Snapshot, table: Table, choices: UserChoices
) -> tuple[dict[str, str], list[str]]:
    """The values of the lookups of a table, in SQL by column, and the joins that they need.

    A value is called as its lookup is; where two keys lead to it, or a column is called so, as its
    key is.
    """
    lookups: dict[str, str] = {}
    joins: list[str] = []
    targets = [key.table for key in table.keys]
    for number, key in enumerate(snapshot.keys_to(table, "lookup")):
        # An empty key is no column, except in later rows of a graph that has the column.
        is_empty = not key.filled and choices.schema is None
        if is_empty or _gives_label_away(table, key, choices):
            continue
        lookup = snapshot.tables[key.table]
        alias = f"l{number}"
        joins.append(f"LEFT JOIN {lookup.sql} AS {alias} ON {joined(table, key, lookup, alias)}")
        is_only_key = targets.count(lookup.name) == 1
        column = lookup.name if is_only_key and lookup.name not in table.columns else key.name
        lookups[column] = f"{alias}.{quoted(str(lookup.schema.name.column))}"
    return lookups, joins


def _data_columns(node_type: str, table: Table, choices: UserChoices) -> list[str]:
    """The columns that may become features or labels; those that a person names among them."""
    data_columns = table.data_columns
    used_columns = [
        column
        for column in table.columns
        if f"{node_type}.{column}" in choices.column_types or table.is_named(column, choices.labels)
    ]
    data_columns += [column for column in used_columns if column not in data_columns]

    # A name alone would be no feature, as no two rows share it.
    name = table.schema.name
    if not name.columns or table.category_name:
        return data_columns
    if name.origin != "said" and list(name.columns) != data_columns:
        return data_columns
    unused_columns = {*name.columns}.difference(used_columns)
    return [column for column in data_columns if column not in unused_columns]


# Tables of edges


def _edges(
    snapshot: Snapshot, choices: UserChoices, *, attaches: bool
) -> Iterator[tuple[Ends, Table, Query]]:
    """The relations of keys, from rows to the rows that they refer to, and of tables of edges."""
    for node_type, table in snapshot.node_tables.items():
        for key in snapshot.keys_to(table):
            if _gives_label_away(table, key, choices) or (attaches and not table.row_count):
                continue
            ends = (node_type, type_name(key.name), type_name(key.table))
            yield ends, table, _edges_of_key(snapshot, table, key, attaches=attaches)
    for table in snapshot.tables.values():
        if table.role == "edges":
            first_key, last_key = snapshot.keys_to(table)
            ends = (type_name(first_key.table), type_name(table.name), type_name(last_key.table))
            yield (
                ends,
                table,
                _edges_of_table(snapshot, table, first_key, last_key, attaches=attaches),
            )


def _edges_of_key(snapshot: Snapshot, table: Table, key: Key, *, attaches: bool) -> Query:
    """An edge from each row of a table of nodes to the row that it refers to."""
    other = snapshot.tables[key.table]
    if attaches:  # the row may be a known one, which is not among the tables
        cells = {"source": table.row_id(), "target": table.referred_id(key, other)}
        source = f"FROM {table.sql} AS t WHERE {table.refers(key)}"
        return Query(snapshot, cells, source, key.filled)
    cells = {"source": table.row_id(), "target": other.row_id("r")}
    source = f"FROM {table.sql} AS t JOIN {other.sql} AS r ON {joined(table, key, other)}"
    return Query(snapshot, cells, source, key.filled - key.lost)


def _edges_of_table(
    snapshot: Snapshot, table: Table, first_key: Key, last_key: Key, *, attaches: bool
) -> Query:
    """An edge for each row of a table of edges, between the two rows that it refers to."""
    first_table = snapshot.tables[first_key.table]
    last_table = snapshot.tables[last_key.table]
    if attaches:
        cells = {
            "source": table.referred_id(first_key, first_table),
            "target": table.referred_id(last_key, last_table),
        }
        refers = f"{table.refers(first_key)} AND {table.refers(last_key)}"
        source = f"FROM {table.sql} AS t WHERE {refers}"
    else:
        cells = {"source": first_table.row_id("r"), "target": last_table.row_id("s")}
        source = (
            f"FROM {table.sql} AS t "
            f"JOIN {first_table.sql} AS r ON {joined(table, first_key, first_table)} "
            f"JOIN {last_table.sql} AS s ON {joined(table, last_key, last_table, 's')}"
        )
    row_count = snapshot.number(f"SELECT count(*) {source}")
    return Query(snapshot, cells, source, row_count)
