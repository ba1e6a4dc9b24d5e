"""The tables of a database as the tables of a graph: of nodes by type, and of edges by relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from infomax.io.column_names import apart
from infomax.io.columns import NAME, TIME, Columns
from infomax.io.database.keys import written
from infomax.io.database.roles import Plan, lookup_column, name_columns, type_name
from infomax.io.database.schema import Table, joined, quoted
from infomax.io.database.snapshot import Query
from infomax.io.database.times import Time, moment
from infomax.io.json import to_json
from infomax.io.sources import Source
from infomax.io.typed import Tables, of_sources
from infomax.io.unite import Ends


def tables_of(plan: Plan, times: dict[str, Time], columns: Columns) -> Tables:
    """The tables of the graph, with all choices among the columns, so that a later database is read alike."""
    allowed = ("labels", "features", "ignore", "name", "time", "as_of", "kinds", "key", "table")
    columns.refuse_others(
        allowed,
        f"tables with keys, rather than the database {plan.snapshot.where}: see --key, --table",
    )
    nodes, kinds, ids = dict[str, Source](), dict[str, str](), list[str]()
    primary = {kind: table.key_types for kind, table in plan.types.items()}
    for kind, table in plan.types.items():
        query, categories = _nodes(plan, times, kind, table, columns)
        nodes[kind] = Source([_place(plan, table)], columns, query)
        kinds |= {f"{kind}.{name}": "category" for name in categories}
        ids.append(f"{kind}.{next(iter(query.columns))}")
    edges = {
        ends: Source([_place(plan, table)], columns, query) for ends, table, query in _edges(plan)
    }
    chosen = replace(
        columns,
        key=tuple(written(plan.tables)),
        table=tuple(f"{name}={role}" for name, role in plan.roles.items()),
        time=",".join(f"{name}.{time.column}" for name, time in times.items() if time.column)
        or None,
        kinds=kinds | dict(columns.kinds),
        mixed=True,
        earlier={**columns.earlier, "id": ",".join(ids), "primary": to_json(primary)},
    )
    found = of_sources(nodes, edges, replace(chosen, time=None))
    directed = frozenset(ends for ends in edges if ends[0] == ends[2])
    return replace(found, columns=replace(found.columns, time=chosen.time), directed=directed)


def _place(plan: Plan, table: Table) -> Path:
    """What stands for a table in messages."""
    return Path(f"{plan.snapshot.where}, table {table.name}")


def _nodes(
    plan: Plan, times: dict[str, Time], kind: str, table: Table, columns: Columns
) -> tuple[Query, dict[str, str]]:
    """The rows of a table: id, columns that are no keys, lookups in place of keys, name and time; and the lookups."""
    joins, lookups, own = list[str](), dict[str, str](), list(table.own)
    for number, key in enumerate(plan.keys(table, "lookup")):
        other, alias = plan.tables[key.table], f"l{number}"
        joins.append(f"LEFT JOIN {other.sql} AS {alias} ON {joined(table, key, other, alias)}")
        once = [one.table for one in table.keys].count(key.table) == 1
        name = other.name if once and other.name not in table.columns else key.name
        lookups[name] = f"{alias}.{quoted(str(lookup_column(other)))}"
    said = {*columns.labels, *columns.kinds}
    own += [name for name in table.columns if name not in own and f"{kind}.{name}" in said]
    named = name_columns(plan.snapshot, table)
    if named == own:  # it is the only column, and would be no feature
        own = []
    cells = {name: table.cell(name) for name in own} | lookups
    first = table.primary[0] if len(table.primary) == 1 and "," not in table.primary[0] else "id"
    while first in cells:
        first = f"{first}_"
    if named and not any(word.startswith(f"{kind}.") for word in apart(columns.name or "")):
        cells[NAME] = f"concat_ws(' ', {', '.join(f't.{quoted(name)}' for name in named)})"
    if table.name in times:
        cells[TIME] = f"make_timestamp({moment(plan, times, table, joins)})"
    rest = f"FROM {table.sql} AS t {' '.join(joins)}"
    return Query(plan.snapshot, {first: table.id(), **cells}, rest, table.rows), lookups


def _edges(plan: Plan) -> Iterator[tuple[Ends, Table, Query]]:
    """The relation of each key, from the rows that refer to the rows referred to; and those of tables of edges."""
    for kind, table in plan.types.items():
        for key in plan.keys(table):
            other = plan.tables[key.table]
            rest = f"FROM {table.sql} AS t JOIN {other.sql} AS r ON {joined(table, key, other)}"
            cells = {"source": table.id(), "target": other.id("r")}
            query = Query(plan.snapshot, cells, rest, key.filled - key.lost)
            yield (kind, type_name(key.name), type_name(other.name)), table, query
    for table in plan.tables.values():
        if plan.roles[table.name] == "edges":
            one, two = plan.keys(table)
            first, last = plan.tables[one.table], plan.tables[two.table]
            rest = f"FROM {table.sql} AS t JOIN {first.sql} AS r ON {joined(table, one, first)} "
            rest += f"JOIN {last.sql} AS s ON {joined(table, two, last, 's')}"
            count = plan.snapshot.number(f"SELECT count(*) {rest}")
            query = Query(
                plan.snapshot, {"source": first.id("r"), "target": last.id("s")}, rest, count
            )
            yield (type_name(first.name), type_name(table.name), type_name(last.name)), table, query
