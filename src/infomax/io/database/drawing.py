"""A drawing of the tables of a database and the keys between them, and what each table becomes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from infomax.arrays.times import parse_time
from infomax.io.database.decisions import Key, TimeDecision
from infomax.io.database.described import schema_of
from infomax.io.database.in_words import ignored_tables_in_words, reasons_in_words
from infomax.io.database.roles import NODE_ROLES, Plan
from infomax.io.database.tables import Table
from infomax.io.database.times import moment, with_times
from infomax.io.schema.schema import ORIGINS, Schema

WIDTH = 80
WIDTH_OF_KEYS = WIDTH - 12
HEADINGS = ("table", "rows", "becomes", "name", "time")


def drawn(plan: Plan) -> list[str]:
    """A tree from the tables that no other refers to, along the keys; ``=`` leads to a category, ``>`` to itself."""
    tables = [
        table for table in plan.tables.values() if plan.role(table.name) not in ("ignore", "lookup")
    ]
    referred = {key.table for table in tables for key in table.keys if key.table != table.name}

    def rank(table: Table) -> tuple[bool, int, str]:
        return table.name in referred, -len(table.keys), table.name

    lines: list[str] = []
    drawn_tables: set[str] = set()
    for table in sorted(tables, key=rank):
        if table.name not in drawn_tables and (table.keys or table.name not in referred):
            lines.append(table.name)
            lines += _below(plan, table, drawn_tables)
    return lines


def _below(plan: Plan, table: Table, drawn_tables: set[str]) -> Iterator[str]:
    """The keys of a table and what is below them; those with nothing below share a line."""
    drawn_tables.add(table.name)
    branches: list[Key] = []
    leaves: list[Key] = []
    for key in table.keys:
        other = plan.tables[key.table]
        if plan.role(key.table) == "ignore":
            continue
        is_open = other.name not in drawn_tables and plan.role(other.name) != "lookup"
        if other.keys and is_open:
            branches.append(key)
        else:
            leaves.append(key)

    for number, key in enumerate(branches):
        is_last = number == len(branches) - 1 and not leaves
        yield f"{'└' if is_last else '├'} {_arrow(plan, table, key)}"
        other = plan.tables[key.table]
        if other.name not in drawn_tables:
            for line in _below(plan, other, drawn_tables):
                yield f"{' ' if is_last else '│'} {line}"

    line = ""
    for key in leaves:
        arrow = _arrow(plan, table, key)
        if line and len(line) + len(arrow) > WIDTH_OF_KEYS:
            yield f"├ {line},"
            line = ""
        line += f", {arrow}" if line else arrow
    if line:
        yield f"└ {line}"


def _arrow(plan: Plan, table: Table, key: Key) -> str:
    """``driverId ─ drivers``, with the values that are missing there."""
    lost = f" ({key.lost:,} of {key.filled:,} missing)" if key.lost else ""
    sign = "─"
    if key.table == table.name:
        sign = ">"
    elif plan.role(key.table) == "lookup":
        sign = "="
    return f"{key.name}{lost} {sign} {key.table}"


def rows(plan: Plan, as_of: str | None = None) -> list[tuple[str, ...]]:
    """Each table that becomes something: its rows, as of a day; what it becomes, its names and its times."""
    until = None if as_of is None else parse_time(as_of, "--as-of")
    table_rows: list[tuple[str, ...]] = []
    for name, table in plan.tables.items():
        if plan.role(name) == "ignore":
            continue
        is_node = plan.role(name) in NODE_ROLES
        name_decision = plan.names.get(name)
        name_columns = "+".join(name_decision.columns) if is_node and name_decision else ""
        time = plan.times.get(name)
        time_words = _time_in_words(time) if is_node and time is not None else ""
        count = _row_count(plan, table, until)
        table_rows.append((name, count, _becomes(plan, table), name_columns, time_words))
    return table_rows


def _row_count(plan: Plan, table: Table, until: int | None) -> str:
    """The number of rows that are there by a time."""
    if until is None or table.name not in with_times(plan):
        return f"{table.row_count:,}"
    joins: list[str] = []
    is_there = f"coalesce({moment(plan, table, joins)} <= {until}, true)"
    query = f"SELECT count(*) FROM {table.sql} AS t {' '.join(joins)} WHERE {is_there}"
    return f"{plan.snapshot.number(query):,}"


def _time_in_words(time: TimeDecision) -> str:
    """The column of times, or the tables whose times the rows have."""
    if time.column is not None:
        return time.column
    return ", ".join(f"as {key.table}" for key in time.keys)


def _becomes(plan: Plan, table: Table) -> str:
    role = plan.role(table.name)
    if role == "edges":
        return "edges"  # between which tables is drawn above
    if role == "lookup":
        owners = dict.fromkeys(other.name for other, _ in plan.referring(table.name))
        return f"category of {', '.join(owners)}"
    return "nodes" if role == "nodes" else "nodes, facts"


def closing(plan: Plan) -> list[str]:
    """What was decided and why, what train does with it, and how another choice is made."""
    schema = schema_of(plan, Schema())
    return [
        *ignored_tables_in_words(schema),
        *reasons_in_words(schema),
        *_trained_types_in_words(plan),
        *_other_choices_in_words(plan),
    ]


def _trained_types_in_words(plan: Plan) -> list[str]:
    """The types that train takes without being told, and those that it leaves out."""
    types_by_role = {
        role: [name for name, table in plan.types.items() if plan.role(table.name) == role]
        for role in NODE_ROLES
    }
    entities, facts = types_by_role["nodes"], types_by_role["facts"]
    lines = [f"train: one run for each of {', '.join(entities or facts)}"]
    if entities and facts:
        lines.append(f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}")
    return lines


def _other_choices_in_words(plan: Plan) -> list[str]:
    """The options that decide otherwise, each with an example from the tables."""
    keys = [(table.name, key) for table in plan.tables.values() for key in table.keys]
    counts = {origin: sum(key.origin == origin for _, key in keys) for origin in ORIGINS}
    counted = ", ".join(f"{count} {origin}" for origin, count in counts.items() if count)
    table_name, key = keys[0]

    found_lookups = [
        name for name in plan.tables if plan.role(name) == "lookup" and not plan.is_said(name)
    ]
    example = f"{next(iter(plan.tables))}=ignore"
    if found_lookups:
        example = f"{found_lookups[0]}=nodes"
    return [
        f"keys: {counted}; another: --key {table_name}.{key.name}=TABLE, or =none",
        f"another role: --table {example}, of nodes, facts, edges, lookup, ignore",
        "other names: --name TABLE.COLUMN; other times: --time TABLE.COLUMN, or =none",
        "columns of a type, and paths from it: --type NAME",
    ]
