"""What each table of a database becomes: nodes, edges, a category of other rows, or nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from infomax.errors import InputError, format_count, shorten, suggest
from infomax.io.column_names import format_list, plain
from infomax.io.database.decisions import (
    Decisions,
    Key,
    NameDecision,
    RoleDecision,
    TableDecision,
    TimeDecision,
)
from infomax.io.database.dropped import drop_constants_beside_keys
from infomax.io.database.names import column_spellings, only_words
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.tables import Table, type_name

ROLES = ("nodes", "facts", "edges", "lookup", "ignore")
"""Facts are nodes that no table refers to: train leaves them out unless it is told their type."""
NODE_ROLES = ("nodes", "facts")
MOST_LOOKUP_ROWS = 1000
"""Rows that a lookup has at most."""
LEAST_ROWS_PER_LOOKUP_ROW = 10
"""Rows of other tables for which a row of a lookup stands at least, in the mean."""


@dataclass
class Plan:
    """The tables of a snapshot, and what was decided about them; those of nodes have types, called as they are."""

    snapshot: Snapshot
    roles: dict[str, RoleDecision]
    names: dict[str, NameDecision] = field(default_factory=dict)
    times: dict[str, TimeDecision] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name."""
        return self.snapshot.tables

    @property
    def types(self) -> dict[str, Table]:
        """The tables whose rows are nodes, by the names of the types."""
        return {
            type_name(name): table
            for name, table in self.tables.items()
            if self.role(name) in NODE_ROLES
        }

    def role(self, name: str) -> str:
        """What a table becomes, in one word."""
        return self.roles[name].role

    def is_said(self, name: str) -> bool:
        """Whether a person said what a table becomes."""
        return self.roles[name].origin == "said"

    def keys(self, table: Table, *roles: str) -> list[Key]:
        """The keys of a table to tables of these roles, by default to nodes."""
        return [key for key in table.keys if self.role(key.table) in (roles or NODE_ROLES)]

    def referring(self, name: str) -> list[tuple[Table, Key]]:
        """The tables that refer to a table, and their keys."""
        return [
            (table, key)
            for table in self.tables.values()
            for key in table.keys
            if key.table == name
        ]

    def decisions(self) -> dict[str, TableDecision]:
        """All that was decided, by table."""
        return {
            name: TableDecision(
                role=self.roles[name],
                primary_key=table.primary_key,
                keys=tuple(table.keys),
                name=self.names.get(name),
                time=self.times.get(name),
                dropped=tuple(table.dropped.values()),
            )
            for name, table in self.tables.items()
        }


def decide_roles(snapshot: Snapshot, kept: Collection[tuple[str, str]] = ()) -> Plan:
    """The role of each table: as a person said, else by its keys."""
    said = _said_roles(snapshot)
    plan = Plan(snapshot, {})
    for name, table in snapshot.tables.items():
        if name in said and table.is_view:
            snapshot.copy_view(table)
    for name in snapshot.tables:
        plan.roles[name] = said.get(name) or RoleDecision("nodes", "found", "")
    for name, table in snapshot.tables.items():
        if name not in said:
            plan.roles[name] = _role_by_keys(plan, table, kept)
    for name, table in snapshot.tables.items():
        if plan.role(name) == "nodes" and name not in said:
            reason = _why_lookup(plan, table)
            if reason:
                plan.roles[name] = RoleDecision("lookup", "found", reason)
    _make_nodes_of_needed_lookups(plan)
    check_roles(plan)
    return plan


def take_roles(snapshot: Snapshot, decisions: Decisions) -> Plan:
    """The roles that were decided earlier; a table that was not there then is ignored."""
    plan = Plan(snapshot, {})
    unknown = RoleDecision("ignore", "found", "it was not there when the tables were first read")
    for name, table in snapshot.tables.items():
        decision = decisions.get(name)
        plan.roles[name] = unknown if decision is None else decision.role
        if decision is None:
            continue
        table.dropped = {column.column: column for column in decision.dropped}
        if table.is_view and table.sql and plan.role(name) != "ignore":
            snapshot.copy_view(table)
    check_roles(plan)
    return plan


def _said_roles(snapshot: Snapshot) -> dict[str, RoleDecision]:
    """The roles that a person said."""
    roles = {}
    for name, role in snapshot.said_roles.items():
        if name in snapshot.left_out:
            continue
        if role not in ROLES or name not in snapshot.tables:
            known_roles = f"Roles are {', '.join(ROLES)}."
            remedy = suggest(name, snapshot.tables) if role in ROLES else known_roles
            expected = f"TABLE=ROLE, of the tables {format_list(list(snapshot.tables))}"
            raise InputError("--table", expected, shorten(f"{name}={role}"), remedy)
        roles[name] = RoleDecision(role, "said", f"--table {name}={role}")
    return roles


def _role_by_keys(plan: Plan, table: Table, kept: Collection[tuple[str, str]]) -> RoleDecision:
    """Nodes, facts, edges or nothing, by the keys of a table and those that refer to it."""
    referring = [other.name for other, _ in plan.referring(table.name) if other is not table]
    if table.is_view and table.columns:
        return RoleDecision("ignore", "found", "it holds vectors of other rows")
    if table.is_view:
        return RoleDecision("ignore", "found", "it is a view, and no person named it")
    if not table.row_count:
        return RoleDecision("ignore", "found", "it has no rows")
    if referring:
        return RoleDecision("nodes", "found", f"{_joined_names(referring)} to it")
    if not table.keys:
        return RoleDecision("ignore", "found", "it has no keys, and no table refers to it")

    targets = [plan.tables[key.table] for key in table.keys]
    has_two_ends = len(targets) == 2 and all(
        other.row_count and other is not table and plan.role(other.name) in NODE_ROLES
        for other in targets
    )
    if has_two_ends:
        drop_constants_beside_keys(plan.snapshot, table, kept)
        if not table.data_columns:
            reason = "it has two keys and nothing else"
            if table.dropped:
                reason = f"it has two keys, and beside them only {', '.join(table.dropped)}"
            return RoleDecision("edges", "found", reason)
    return RoleDecision("facts", "found", "it has keys, and no table refers to it")


def _joined_names(names: list[str]) -> str:
    """``orders refers``, ``orders and lines refer``."""
    names = list(dict.fromkeys(names))
    if len(names) == 1:
        return f"{names[0]} refers"
    if len(names) > 3:
        return f"{', '.join(names[:2])} and {len(names) - 2} more refer"
    return f"{', '.join(names[:-1])} and {names[-1]} refer"


def _why_lookup(plan: Plan, table: Table) -> str:
    """Why a table is a category of other rows: a key and one short text, in few rows, each of which many rows have."""
    words = only_words(plan.snapshot, table)
    if not words or not _holds_values(plan, table):
        return ""
    referring = plan.referring(table.name)
    if any(plan.role(other.name) == "edges" for other, _ in referring):
        return ""
    references = sum(key.filled for _, key in referring)
    rows = format_count(table.row_count, "row")
    return f"it has a key and {words[0]} alone, and {references:,} rows refer to its {rows}"


def _holds_values(plan: Plan, table: Table) -> bool:
    """Whether the rows of a table are few, refer to no others, and many rows refer to each."""
    references = sum(key.filled for _, key in plan.referring(table.name))
    is_referred_to = references >= LEAST_ROWS_PER_LOOKUP_ROW * table.row_count
    return not table.keys and table.row_count <= MOST_LOOKUP_ROWS and is_referred_to


def make_categories_of_names(plan: Plan) -> None:
    """Make features of names that are all that a table of nodes has, where its rows are values of many others.

    Such is the genre of films that a table of two keys joins to them. As nodes without features its rows would be told
    apart by nothing.
    """
    for table in plan.types.values():
        name = plan.names.get(table.name)
        is_all = name is not None and list(name.columns) == only_words(plan.snapshot, table)
        if name is not None and is_all and _holds_values(plan, table):
            plan.names[table.name] = replace(name, is_category=True)


def _make_nodes_of_needed_lookups(plan: Plan) -> None:
    """Make nodes of those lookups without which a table of nodes would have no edge."""
    for table in list(plan.types.values()):
        if plan.keys(table) or plan.referring(table.name):
            continue
        for key in plan.keys(table, "lookup"):
            if not plan.is_said(key.table):
                reason = f"without it {table.name} would have no edge"
                plan.roles[key.table] = RoleDecision("nodes", "found", reason)


def check_roles(plan: Plan) -> None:
    """Refuse roles that keys do not allow."""
    location = plan.snapshot.location
    for name, table in plan.tables.items():
        keys = plan.keys(table)
        if plan.role(name) == "edges" and len(keys) != 2:
            found = f"{len(keys)}: {', '.join(key.name for key in keys) or 'none'}"
            remedy = f"Say --table {name}=nodes, or name keys: --key {name}.COLUMN=TABLE."
            expected = "two keys to nodes, for edges"
            raise InputError(f"{location}, table {name}", expected, found, remedy)
        if plan.role(name) == "lookup" and lookup_column(table) is None:
            found = f"the columns {format_list(table.data_columns)}"
            remedy = f"Say --table {name}=nodes or {name}=ignore."
            expected = "a column of text, for a lookup"
            raise InputError(f"{location}, table {name}", expected, found, remedy)

    names = [type_name(name) for name in plan.tables if plan.role(name) in NODE_ROLES]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        found = f"two tables called {shorten(twice[0])}"
        raise InputError(location, "a name for each type", found, "Rename one.")
    _refuse_without_edges(plan)


def _refuse_without_edges(plan: Plan) -> None:
    """Refuse tables of which no keys lead to nodes."""
    tables = [
        table for name, table in plan.tables.items() if plan.role(name) not in ("lookup", "ignore")
    ]
    if any(plan.keys(table) for table in tables):
        return
    location = plan.snapshot.location
    if plan.tables and not any(table.row_count for table in plan.tables.values()):
        raise InputError(location, "tables with rows", "none")
    found = f"the tables {format_list(list(plan.tables))}" if plan.tables else "no table"
    expected = "tables with keys that refer to each other"
    remedy = (
        "Keys that are neither declared nor called after a table: --key orders.buyer=customers."
    )
    raise InputError(location, expected, found, remedy)


def lookup_column(table: Table) -> str | None:
    """The column of a lookup that tells its rows."""
    texts = [column for column in table.data_columns if table.is_text_column(column)]
    named = [column for column in texts if plain(column) in column_spellings(table)]
    return next(iter([*named, *texts]), None)
