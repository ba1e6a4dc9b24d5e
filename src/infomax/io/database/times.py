"""When the rows of a table came to be: by a column of dates of their own, or by the rows that they refer to."""

from __future__ import annotations

from dataclasses import dataclass

from infomax.errors import InputError, meant, shorten
from infomax.io.column_names import listed
from infomax.io.database.roles import Plan
from infomax.io.database.schema import Key, Table, joined, quoted
from infomax.io.encoding.keys import plain

DATED = 0.95
"""The share of the values of a column of text that are dates where it is a column of dates."""
SAMPLE = 1000
DEEP = 3
"""Keys that are followed to a row that has a time."""
_USUAL = ("date", "datetime", "timestamp", "time", "day")
_DAY = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"


@dataclass(frozen=True)
class Time:
    """The time of the rows of a table: a column of dates, or the latest of the rows that some keys refer to."""

    column: str = ""
    keys: tuple[Key, ...] = ()


def find_times(plan: Plan, said: str) -> dict[str, Time]:
    """The time of each table that has one.

    ``said`` are columns, TABLE.COLUMN, by commas. A row that refers to others is an event, with the one date that it
    has; a fact without a date is as old as the latest of the rows that it refers to.
    """
    found = {}
    for word in filter(None, said.split(",")):
        name = max((one for one in plan.tables if word.startswith(f"{one}.")), key=len, default="")
        column = word[len(name) + 1 :]
        if not name or column not in plan.tables[name].columns:
            columns = [f"{one.name}.{date}" for one in plan.tables.values() for date in _dates(plan, one)]
            remedy = meant(word, columns)
            raise InputError("--time", f"TABLE.COLUMN, such as {listed(columns)}", shorten(word), remedy)
        found[name] = Time(column)
    for table in plan.types.values():
        if table.name not in found and table.keys and (column := _event_date(plan, table)):
            found[table.name] = Time(column)
    for _ in range(DEEP):
        for table in plan.types.values():
            keys = tuple(key for key in plan.keys(table) if key.table in found and key.table != table.name)
            if table.name not in found and plan.roles[table.name] == "facts" and keys:
                found[table.name] = Time(keys=keys)
    return found


def _event_date(plan: Plan, table: Table) -> str:
    """The one column of dates of a table or, of several, the one that is called so; "" where that is none."""
    dates = _dates(plan, table)
    usual = [column for word in _USUAL for column in dates if plain(column) == word]
    return dates[0] if len(dates) == 1 else next(iter(usual), "")


def _dates(plan: Plan, table: Table) -> list[str]:
    """The columns of a table that hold dates."""
    found = []
    for column in table.own:
        if table.is_date(column):
            found.append(column)
        elif table.holds_text(column):
            cell = quoted(column)
            some = f"(SELECT {cell} FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {SAMPLE})"  # noqa: S608
            dated = f"count(*) FILTER (regexp_matches({cell}::VARCHAR, '{_DAY}')) / count(*)"
            if (plan.snapshot.rows(f"SELECT {dated} FROM {some}")[0][0] or 0) >= DATED:  # noqa: S608
                found.append(column)
    return found


def moment(plan: Plan, times: dict[str, Time], table: Table, joins: list[str], alias: str = "t") -> str:
    """The time of a row in SQL, in microseconds since 1970; ``joins`` gets the tables that it needs."""
    time = times[table.name]
    if time.column:
        cell, kind = f"{alias}.{quoted(time.column)}", table.columns[time.column]
        if "INT" in kind:  # seconds since 1970, or thousandths of them
            return f"CAST({cell} AS BIGINT) * CASE WHEN abs({cell}) < 100000000000 THEN 1000000 ELSE 1000 END"
        return f"epoch_us({cell})" if kind.startswith("TIMESTAMP") else f"epoch_us(TRY_CAST({cell} AS TIMESTAMP))"
    found = []
    for key in time.keys:
        other, name = plan.tables[key.table], f"w{len(joins)}"
        joins.append(f"LEFT JOIN {other.sql} AS {name} ON {joined(table, key, other, name, alias)}")
        found.append(moment(plan, times, other, joins, name))
    return f"greatest({', '.join(found)})" if len(found) > 1 else found[0]
