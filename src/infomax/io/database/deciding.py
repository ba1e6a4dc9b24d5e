"""What the tables of a database become: decided from what a person says, what is declared, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infomax.io.database.decisions import Decisions
from infomax.io.database.dropped import drop_columns, ignore_columns
from infomax.io.database.keys import find_keys, take_keys
from infomax.io.database.names import find_names
from infomax.io.database.roles import Plan, decide_roles, make_categories_of_names, take_roles
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.times import find_times, take_times


@dataclass(frozen=True)
class DatabaseChoices:
    """What a person says about the tables of a database, as it is written; roles are in the snapshot."""

    keys: Sequence[str] = ()
    primary_keys: Sequence[str] = ()
    times: Sequence[str] = ()
    names: Sequence[str] = ()
    used_columns: Sequence[str] = ()
    """Columns that are used whatever they hold: labels, and those whose type was said; COLUMN or TABLE.COLUMN."""
    ignored_columns: Sequence[str] = ()
    """Columns that become nothing: no features, no times, no names and no edges; COLUMN or TABLE.COLUMN."""


def decide(snapshot: Snapshot, choices: DatabaseChoices) -> Plan:
    """Decide about all tables of a snapshot."""
    find_keys(snapshot, choices.keys, choices.primary_keys)
    ignore_columns(snapshot, choices.ignored_columns)
    used = {
        (table.name, column)
        for table in snapshot.tables.values()
        for column in table.columns
        if table.is_named(column, choices.used_columns)
    }
    drop_columns(snapshot, used)
    plan = decide_roles(snapshot, used)
    snapshot.number_rows()
    find_names(plan, choices.names)
    make_categories_of_names(plan)
    find_times(plan, choices.times)
    return plan


def take_decisions(
    snapshot: Snapshot, decisions: Decisions, ignored_columns: Sequence[str] = ()
) -> Plan:
    """Take what was decided about earlier tables for those of a snapshot: nothing is searched or guessed."""
    take_keys(snapshot, decisions)
    plan = take_roles(snapshot, decisions)
    ignore_columns(snapshot, ignored_columns)
    snapshot.number_rows()
    for name in plan.tables:
        decision = decisions.get(name)
        if decision is None or decision.name is None:
            continue
        if plan.tables[name].columns.keys() >= {*decision.name.columns}:
            plan.names[name] = decision.name
    take_times(plan, decisions)
    return plan
