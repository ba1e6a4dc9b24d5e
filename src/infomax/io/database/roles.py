"""What each table of a database becomes: nodes, facts, edges, a lookup, or nothing."""

from __future__ import annotations

from collections.abc import Collection

from infomax.errors import InputError, format_count, shorten, suggest
from infomax.io.column_names import format_list, plain
from infomax.io.database.columns import leave_out_constants, name_spellings, only_text_column
from infomax.io.database.snapshot import NODE_ROLES, Snapshot, Table, type_name
from infomax.io.schema.schema import ColumnSchema, Schema, TableRole, Use

ROLES_OF_OPTION: dict[str, TableRole] = {
    "nodes": "nodes",
    "facts": "facts",
    "edges": "edges",
    "lookup": "lookup",
    "ignore": "ignored",
}
"""What ``--table`` can say that a table becomes.

Facts are nodes that no table refers to: train leaves them out unless it is told their type. The
rows of a lookup are categories of the rows that refer to them.
"""
MOST_LOOKUP_ROWS = 1000
"""Rows that a lookup has at most."""
LEAST_ROWS_PER_LOOKUP_ROW = 10
"""Rows of other tables for which a row of a lookup stands at least, in the mean."""


def decide_roles(snapshot: Snapshot, used_columns: Collection[tuple[str, str]] = ()) -> None:
    """The role of each table: as a person says, else by its keys.

    Args:
        snapshot: the tables, whose keys are known.
        used_columns: the tables and columns that a person uses, so that they are never left out.
    """
    options = _checked_role_options(snapshot)
    for name, role in options.items():
        table = snapshot.tables[name]
        if table.is_view:
            snapshot.copy_view(table)
        table.decide(
            role=role, origin="said", reason=f"--table {name}={snapshot.role_options[name]}"
        )

    # A table is one of edges only if its keys lead to nodes, so those that come later count as
    # nodes until they are looked at.
    for name, table in snapshot.tables.items():
        if name not in options:
            role, reason = _role_by_keys(snapshot, table, used_columns)
            table.decide(role=role, reason=reason)
    for name, table in snapshot.tables.items():
        if table.role == "nodes" and name not in options:
            reason = _why_lookup(snapshot, table)
            if reason:
                table.decide(role="lookup", reason=reason)
    _make_nodes_of_needed_lookups(snapshot)
    check_roles(snapshot)
    _name_lookups(snapshot)


def take_roles(snapshot: Snapshot, schema: Schema) -> None:
    """Give the tables the roles of a schema, their names, and the columns that are no features."""
    for name, table in snapshot.tables.items():
        known = schema.tables.get(name)
        if known is None:
            reason = "it was not there when the tables were first read"
            table.decide(role="ignored", reason=reason)
            continue
        name_columns = {*known.name.columns}
        columns = {
            column: about
            for column, about in known.columns.items()
            if about.role == "ignored" or column in name_columns
        }
        row_name = known.name if name_columns <= table.columns.keys() else Use()
        table.decide(
            role=known.role,
            origin=known.origin,
            reason=known.reason,
            columns=columns,
            name=row_name,
        )
        if table.is_view and table.sql and table.role != "ignored":
            snapshot.copy_view(table)
    check_roles(snapshot)
    _name_lookups(snapshot)


def _checked_role_options(snapshot: Snapshot) -> dict[str, TableRole]:
    """The roles that a person named, by table; those of no table, and unknown ones, are refused."""
    roles: dict[str, TableRole] = {}
    for name, role in snapshot.role_options.items():
        if name in snapshot.left_out:
            continue
        if role not in ROLES_OF_OPTION or name not in snapshot.tables:
            remedy = f"Roles are {', '.join(ROLES_OF_OPTION)}."
            if role in ROLES_OF_OPTION:
                remedy = suggest(name, snapshot.tables)
            expected = f"TABLE=ROLE, of the tables {format_list(list(snapshot.tables))}"
            raise InputError("--table", expected, shorten(f"{name}={role}"), remedy)
        roles[name] = ROLES_OF_OPTION[role]
    return roles


def _role_by_keys(
    snapshot: Snapshot, table: Table, used_columns: Collection[tuple[str, str]]
) -> tuple[TableRole, str]:
    """Nodes, facts, edges or nothing, by a table's keys and those that refer to it; and why."""
    if table.is_view and table.columns:
        return "ignored", "it holds vectors of other rows"
    if table.is_view:
        return "ignored", "it is a view, and no person named it"
    if not table.row_count:
        return "ignored", "it has no rows"
    referring = [other.name for other, _ in snapshot.referring(table.name) if other is not table]
    if referring:
        return "nodes", f"{_referring_in_words(referring)} to it"
    if not table.keys:
        return "ignored", "it has no keys, and no table refers to it"

    targets = [snapshot.tables[key.table] for key in table.keys]
    has_two_ends = len(targets) == 2 and all(
        other.row_count and other is not table and other.role in NODE_ROLES for other in targets
    )
    if has_two_ends:
        leave_out_constants(snapshot, table, used_columns)
        if not table.data_columns:
            reason = "it has two keys and nothing else"
            if table.left_out:
                reason = f"it has two keys, and beside them only {', '.join(table.left_out)}"
            return "edges", reason
    return "facts", "it has keys, and no table refers to it"


def _referring_in_words(names: list[str]) -> str:
    """``orders refers``, ``orders and lines refer``."""
    names = list(dict.fromkeys(names))
    if len(names) == 1:
        return f"{names[0]} refers"
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more refer"
    return f"{', '.join(names[:-1])} and {names[-1]} refer"


def _why_lookup(snapshot: Snapshot, table: Table) -> str:
    """Why a table is a lookup: a key and one short text, in few rows that many refer to."""
    text_column = only_text_column(snapshot, table)
    if text_column is None or not _holds_values(snapshot, table):
        return ""
    referring = snapshot.referring(table.name)
    # The ends of edges are nodes, and no values.
    if any(other.role == "edges" for other, _ in referring):
        return ""
    references = sum(key.filled for _, key in referring)
    rows = format_count(table.row_count, "row")
    return f"it has a key and {text_column} alone, and {references:,} rows refer to its {rows}"


def _holds_values(snapshot: Snapshot, table: Table) -> bool:
    """Whether the rows of a table are few, refer to no others, and many rows refer to each."""
    references = sum(key.filled for _, key in snapshot.referring(table.name))
    is_often_referred_to = references >= LEAST_ROWS_PER_LOOKUP_ROW * table.row_count
    return not table.keys and table.row_count <= MOST_LOOKUP_ROWS and is_often_referred_to


def make_categories_of_names(snapshot: Snapshot) -> None:
    """Make features of names that are all that a table has, where many rows refer to each row.

    Such is the genre of films that a table of two keys joins to them. As nodes without features its
    rows would be told apart by nothing.
    """
    for table in snapshot.node_tables.values():
        text_column = only_text_column(snapshot, table)
        if text_column is None or table.schema.name.columns != (text_column,):
            continue
        if _holds_values(snapshot, table):
            reason = "each row is a value that many rows have"
            category = ColumnSchema("feature", "category", reason=reason)
            table.decide(columns={**table.schema.columns, text_column: category})


def _make_nodes_of_needed_lookups(snapshot: Snapshot) -> None:
    """Make nodes of those lookups without which a table of nodes would have no edge."""
    for table in list(snapshot.node_tables.values()):
        if snapshot.keys_to(table) or snapshot.referring(table.name):
            continue
        for key in snapshot.keys_to(table, "lookup"):
            lookup = snapshot.tables[key.table]
            if lookup.schema.origin != "said":
                lookup.decide(role="nodes", reason=f"without it {table.name} would have no edge")


def check_roles(snapshot: Snapshot) -> None:
    """Refuse roles that keys do not allow."""
    location = snapshot.location
    for name, table in snapshot.tables.items():
        keys = snapshot.keys_to(table)
        if table.role == "edges" and len(keys) != 2:
            found = f"{len(keys)}: {', '.join(key.name for key in keys) or 'none'}"
            remedy = f"Say --table {name}=nodes, or name keys: --key {name}.COLUMN=TABLE."
            expected = "two keys to nodes, for edges"
            raise InputError(f"{location}, table {name}", expected, found, remedy)
        if table.role == "lookup" and _lookup_column(table) is None:
            found = f"the columns {format_list(table.data_columns)}"
            remedy = f"Say --table {name}=nodes or {name}=ignore."
            expected = "a column of text, for a lookup"
            raise InputError(f"{location}, table {name}", expected, found, remedy)

    type_names = [
        type_name(name) for name, table in snapshot.tables.items() if table.role in NODE_ROLES
    ]
    repeated_names = [name for name in type_names if type_names.count(name) > 1]
    if repeated_names:
        found = f"two tables called {shorten(repeated_names[0])}"
        raise InputError(location, "a name for each type", found, "Rename one.")
    _refuse_without_edges(snapshot)


def _refuse_without_edges(snapshot: Snapshot) -> None:
    """Refuse tables of which no keys lead to nodes."""
    used_tables = [
        table for table in snapshot.tables.values() if table.role not in ("lookup", "ignored")
    ]
    if any(snapshot.keys_to(table) for table in used_tables):
        return
    if snapshot.tables and not any(table.row_count for table in snapshot.tables.values()):
        raise InputError(snapshot.location, "tables with rows", "none")
    found = "no table"
    if snapshot.tables:
        found = f"the tables {format_list(list(snapshot.tables))}"
    expected = "tables with keys that refer to each other"
    remedy = (
        "Keys that are neither declared nor called after a table: --key orders.buyer=customers."
    )
    raise InputError(snapshot.location, expected, found, remedy)


def _name_lookups(snapshot: Snapshot) -> None:
    """Note the column of each lookup whose text stands in place of the key to it."""
    for table in snapshot.tables.values():
        column = _lookup_column(table) if table.role == "lookup" else None
        if column is not None:
            table.decide(name=Use((column,)))


def _lookup_column(table: Table) -> str | None:
    """The column whose text stands for a row of a lookup: one called a name, or the first."""
    text_columns = [column for column in table.data_columns if table.is_text_column(column)]
    for column in text_columns:
        if plain(column) in name_spellings(table):
            return column
    return next(iter(text_columns), None)
