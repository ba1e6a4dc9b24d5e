"""What each table of a database becomes, by its keys alone: nodes, edges, a category of other rows, or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from infomax.errors import InputError, meant, shorten
from infomax.io.column_names import listed, plain, singulars
from infomax.io.database.schema import Key, Table, quoted
from infomax.io.database.snapshot import Snapshot

ROLES = ("nodes", "facts", "edges", "lookup", "ignore")
"""Facts are nodes that no table refers to: train leaves them out unless it is told their type."""
MOST, REPEATED = 1000, 10
"""A lookup has at most so many rows, and each of them stands for so many rows of other tables, in the mean."""
SAMPLE, DATED = 1000, 0.95
"""A column of text is one of dates, or of numbers, where this share of so many of its values are."""
_FIRST, _LAST = ("firstname", "forename", "givenname"), ("lastname", "surname", "familyname")


@dataclass
class Plan:
    """The tables of a snapshot with their roles; those of nodes have types, which are called as they are."""

    snapshot: Snapshot
    roles: dict[str, str]
    unsaid: list[str] = field(default_factory=list)
    """The tables whose role nobody said."""

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
            if self.roles[name] in ROLES[:2]
        }

    def keys(self, table: Table, *roles: str) -> list[Key]:
        """The keys of a table to tables of these roles, by default to nodes."""
        return [key for key in table.keys if self.roles[key.table] in (roles or ROLES[:2])]

    def referring(self, name: str) -> list[tuple[Table, Key]]:
        """The tables that refer to a table, and their keys."""
        return [
            (table, key)
            for table in self.tables.values()
            for key in table.keys
            if key.table == name
        ]


def type_name(table: str) -> str:
    """The type of nodes that the rows of a table are; some signs have a meaning in names of types."""
    return re.sub(r"[-.:\[\]/\\\0]", "_", table.strip())


def facts_among(choices: Mapping[str, str]) -> list[str]:
    """The types that are facts, of a graph that was read with these choices, its ``table_columns``."""
    said = (one.rpartition("=") for one in choices.get("table", "").split("\n"))
    return [type_name(name) for name, _, role in said if role == "facts"]


def decide(snapshot: Snapshot) -> Plan:
    """The role of each table: as a person said, else by its keys."""
    chosen = {name: role for name, role in snapshot.said.items() if name not in snapshot.left_out}
    for name, role in chosen.items():
        if role not in ROLES or name not in snapshot.tables:
            remedy = (
                meant(name, snapshot.tables) if role in ROLES else f"Roles are {', '.join(ROLES)}."
            )
            expected = f"TABLE=ROLE, of the tables {listed(list(snapshot.tables))}"
            raise InputError("--table", expected, shorten(f"{name}={role}"), remedy)
    unsaid = [name for name in snapshot.tables if name not in chosen]
    plan = Plan(snapshot, dict.fromkeys(snapshot.tables, "nodes"), unsaid)
    for name, table in snapshot.tables.items():
        others = any(other is not table for other, _ in plan.referring(name))
        if name in chosen and table.is_view:
            snapshot.copy_view(table)
        if table.is_view or not table.rows or not (others or table.keys):
            plan.roles[name] = "ignore"
        elif not others:
            plan.roles[name] = "edges" if len(table.keys) == 2 and not table.own else "facts"
    plan.roles |= chosen
    for name in plan.unsaid:
        if plan.roles[name] == "nodes" and _is_lookup(plan, snapshot.tables[name]):
            plan.roles[name] = "lookup"
    _give_edges(plan)
    _check(plan)
    return plan


def _is_lookup(plan: Plan, table: Table) -> bool:
    """Whether a table is a key and one short text, in few rows, each of which many rows of other tables have."""
    referring = plan.referring(table.name)
    if table.keys or table.rows > MOST or not _only_words(plan.snapshot, table):
        return False
    if any(plan.roles[other.name] == "edges" for other, _ in referring):
        return False
    return sum(key.filled for _, key in referring) >= REPEATED * table.rows


def _give_edges(plan: Plan) -> None:
    """Make nodes of those lookups without which a table of nodes would have no edge."""
    for table in list(plan.types.values()):
        if not plan.keys(table) and not plan.referring(table.name):
            plan.roles |= {
                key.table: "nodes" for key in plan.keys(table, "lookup") if key.table in plan.unsaid
            }


def _check(plan: Plan) -> None:
    """Refuse roles that keys do not allow."""
    where = plan.snapshot.where
    for name, table in plan.tables.items():
        keys = plan.keys(table)
        if plan.roles[name] == "edges" and len(keys) != 2:
            found = f"{len(keys)}: {', '.join(key.name for key in keys) or 'none'}"
            remedy = f"Say --table {name}=nodes, or name keys: --key {name}.COLUMN=TABLE."
            raise InputError(
                f"{where}, table {name}", "two keys to nodes, for edges", found, remedy
            )
        if plan.roles[name] == "lookup" and lookup_column(table) is None:
            found = f"the columns {listed(table.own)}"
            remedy = f"Say --table {name}=nodes or {name}=ignore."
            raise InputError(
                f"{where}, table {name}", "a column of text, for a lookup", found, remedy
            )
    names = [type_name(name) for name in plan.tables if plan.roles[name] in ROLES[:2]]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(
            where, "a name for each type", f"two tables called {shorten(twice)}", "Rename one."
        )
    edges = sum(
        len(plan.keys(table))
        for name, table in plan.tables.items()
        if plan.roles[name] not in ROLES[3:]
    )
    if not edges:
        if plan.tables and not any(table.rows for table in plan.tables.values()):
            raise InputError(where, "tables with rows", "none")
        found = f"the tables {listed(list(plan.tables))}" if plan.tables else "no table"
        remedy = (
            "Keys that are neither declared nor called after a table: --key orders.buyer=customers."
        )
        raise InputError(where, "tables with keys that refer to each other", found, remedy)


def lookup_column(table: Table) -> str | None:
    """The column of a lookup that tells its rows."""
    texts = [column for column in table.own if table.holds_text(column)]
    named = [column for column in texts if plain(column) in _names(table)]
    return next(iter([*named, *texts]), None)


def _only_words(snapshot: Snapshot, table: Table) -> list[str]:
    """The only column that belongs to no key, if it is one of words rather than of dates, or of numbers in a file."""
    if len(table.own) != 1 or not table.holds_text(table.own[0]):
        return []
    cell = f"{quoted(table.own[0])}::VARCHAR"
    some = f"(SELECT * FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {SAMPLE})"
    other = (
        f"TRY_CAST({cell} AS TIMESTAMP) IS NULL"
        + f" AND TRY_CAST({cell} AS DOUBLE) IS NULL" * table.is_text
    )
    shares = snapshot.rows(f"SELECT count(*) FILTER ({other}) / count(*) FROM {some}")
    return table.own if (shares[0][0] or 0) > 1 - DATED else []


def name_columns(snapshot: Snapshot, table: Table) -> list[str]:
    """The columns that make the name of a row: one, or a first and a last name; the only one; or none."""
    texts = {
        plain(column): column for column in reversed(table.columns) if table.holds_text(column)
    }
    for word in _names(table):
        if word in texts:
            return [texts[word]]
    person = [
        next((texts[word] for word in words if word in texts), "") for words in (_FIRST, _LAST)
    ]
    if all(person):
        return person
    if "title" in texts:
        return [texts["title"]]
    return _only_words(snapshot, table)


def _names(table: Table) -> tuple[str, ...]:
    """What a column of names is called, plain."""
    return "name", *(f"{one}name" for one in singulars(table.name)), "fullname", "displayname"
