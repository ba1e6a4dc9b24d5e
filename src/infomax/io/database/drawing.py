"""A drawing of the tables of a database and the keys between them, and what each table becomes, in words."""

from __future__ import annotations

from collections.abc import Iterator

from infomax.arrays.times import parse_time
from infomax.errors import InputError
from infomax.io.database.roles import Plan, name_columns
from infomax.io.database.schema import Key, Table
from infomax.io.database.times import Time, moment

WIDTH = 80
HEADINGS = ("table", "rows", "becomes", "name", "time")


def drawn(plan: Plan) -> list[str]:
    """A tree from the tables that no other refers to, along the keys; ``=`` leads to a category, ``>`` to itself."""
    tables = [
        table
        for table in plan.tables.values()
        if plan.roles[table.name] not in ("ignore", "lookup")
    ]
    referred = {key.table for table in tables for key in table.keys if key.table != table.name}
    lines, drawn_already = list[str](), set[str]()
    for table in sorted(tables, key=lambda one: (one.name in referred, -len(one.keys), one.name)):
        if table.name not in drawn_already and (table.keys or table.name not in referred):
            lines.append(table.name)
            lines += _below(plan, table, drawn_already)
    return lines


def _below(plan: Plan, table: Table, known: set[str]) -> Iterator[str]:
    """The keys of a table and what is below them; those with nothing below share a line."""
    known.add(table.name)
    keys = [key for key in table.keys if plan.roles[key.table] != "ignore"]
    deep, flat = list[Key](), list[Key]()
    for key in keys:
        other = plan.tables[key.table]
        grows = other.keys and other.name not in known and plan.roles[other.name] != "lookup"
        (deep if grows else flat).append(key)
    for number, key in enumerate(deep):
        last = number == len(deep) - 1 and not flat
        yield f"{'└' if last else '├'} {_leads(plan, table, key)}"
        other = plan.tables[key.table]
        if other.name not in known:
            yield from (f"{' ' if last else '│'} {line}" for line in _below(plan, other, known))
    line = ""
    for key in flat:
        word = _leads(plan, table, key)
        if line and len(line) + len(word) > WIDTH - 12:
            yield f"├ {line},"
            line = ""
        line += f", {word}" if line else word
    if line:
        yield f"└ {line}"


def _leads(plan: Plan, table: Table, key: Key) -> str:
    lost = f" ({key.lost:,} of {key.filled:,} missing)" if key.lost else ""
    arrow = ">" if key.table == table.name else "=" if plan.roles[key.table] == "lookup" else "─"
    return f"{key.name}{lost} {arrow} {key.table}"


def rows(plan: Plan, times: dict[str, Time], as_of: str | None = None) -> list[tuple[str, ...]]:
    """Each table: its rows, as of a day; what it becomes, its column of names and that of times."""
    found = list[tuple[str, ...]]()
    until = None if as_of is None else parse_time(as_of, "--as-of")
    if until is not None and not times:
        raise InputError(
            "--as-of", "tables with times", "none", "Name a column of times: --time TABLE.COLUMN."
        )
    for name, table in plan.tables.items():
        is_node = plan.roles[name] in ("nodes", "facts")
        named = "+".join(name_columns(plan.snapshot, table)) if is_node else ""
        time = times.get(name, Time())
        when = time.column or ", ".join(f"as {key.table}" for key in time.keys)
        count = f"{table.rows:,}" if table.sql else ""
        if until is not None and name in times:
            joins = list[str]()
            there = f"coalesce({moment(plan, times, table, joins)} <= {until}, true)"
            query = f"SELECT count(*) FROM {table.sql} AS t {' '.join(joins)} WHERE {there}"
            count = f"{plan.snapshot.number(query):,}"
        found.append((name, count, _becomes(plan, table), named, when if is_node else ""))
    return found


def _becomes(plan: Plan, table: Table) -> str:
    role = plan.roles[table.name]
    if role == "edges":
        return "edges: " + " ─ ".join(key.table for key in plan.keys(table))
    if role == "lookup":
        owners = dict.fromkeys(other.name for other, _ in plan.referring(table.name))
        return f"category of {', '.join(owners)}"
    if role == "ignore":
        if table.is_view and table.columns and table.name in plan.unsaid:
            return "nothing: vectors"
        if table.is_view or table.name not in plan.unsaid:
            return "nothing: a view" if table.is_view else "nothing"
        return "nothing: no keys" if table.rows else "nothing: no rows"
    return "nodes" if role == "nodes" else "nodes, facts"


def closing(plan: Plan) -> list[str]:
    """What train does with it, and how another choice is made."""
    trained = [kind for kind, table in plan.types.items() if plan.roles[table.name] == "nodes"]
    facts = [kind for kind in plan.types if kind not in trained]
    lines = [f"train: one run for each of {', '.join(trained or facts)}"]
    if trained and facts:
        lines.append(f"not trained, as facts: {', '.join(facts)}; to train one: --type {facts[0]}")
    keys = [(table.name, key) for table in plan.tables.values() for key in table.keys]
    counts = {how: sum(key.how == how for _, key in keys) for how in ("declared", "found", "said")}
    told = ", ".join(f"{count} {how}" for how, count in counts.items() if count)
    name, key = keys[0]
    lines.append(f"keys: {told}; another: --key {name}.{key.name}=TABLE, or =none")
    name = next(
        (name for name in plan.unsaid if plan.roles[name] == "lookup"), next(iter(plan.tables))
    )
    other = "nodes" if plan.roles[name] == "lookup" else "ignore"
    lines.append(f"another role: --table {name}={other}, of nodes, facts, edges, lookup, ignore")
    lines.append("other names: --name TABLE.COLUMN; other times: --time TABLE.COLUMN")
    lines.append("columns of a type, and paths from it: --type NAME")
    return lines
