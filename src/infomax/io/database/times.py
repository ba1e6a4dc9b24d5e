"""When the rows of a table came to be: by a column of dates of their own, or by the rows that they refer to."""

from __future__ import annotations

from dataclasses import dataclass

from infomax.arrays.times import WRITTEN
from infomax.errors import InputError, meant, number_of, shorten, warn
from infomax.io.column_names import listed, plain
from infomax.io.database.roles import DATED, SAMPLE, Plan
from infomax.io.database.schema import Key, Table, joined, quoted

DEEP = 3
"""Keys that are followed to a row that has a time."""
EARLIEST = 10**8
"""Seconds since 1970, March 1973: a column of smaller numbers alone holds years or counts."""
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
            columns = [
                f"{one.name}.{date}" for one in plan.tables.values() for date in _dates(plan, one)
            ]
            remedy = meant(word, columns)
            raise InputError(
                "--time", f"TABLE.COLUMN, such as {listed(columns)}", shorten(word), remedy
            )
        _check_cells(plan, plan.tables[name], column)
        found[name] = Time(column)
    for table in plan.types.values():
        if table.name not in found and table.keys and (column := _event_date(plan, table)):
            _check_cells(plan, table, column)
            found[table.name] = Time(column)
    for _ in range(DEEP):
        for table in plan.types.values():
            keys = tuple(
                key for key in plan.keys(table) if key.table in found and key.table != table.name
            )
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
            some = f"(SELECT {cell} FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {SAMPLE})"
            dated = f"count(*) FILTER (regexp_matches({cell}::VARCHAR, '{_DAY}')) / count(*)"
            if (plan.snapshot.rows(f"SELECT {dated} FROM {some}")[0][0] or 0) >= DATED:
                found.append(column)
    return found


def moment(
    plan: Plan, times: dict[str, Time], table: Table, joins: list[str], alias: str = "t"
) -> str:
    """The time of a row in SQL, in microseconds since 1970; ``joins`` gets the tables that it needs."""
    time = times[table.name]
    if time.column:
        return _microseconds(table, time.column, alias)
    found = []
    for key in time.keys:
        other, name = plan.tables[key.table], f"w{len(joins)}"
        joins.append(f"LEFT JOIN {other.sql} AS {name} ON {joined(table, key, other, name, alias)}")
        found.append(moment(plan, times, other, joins, name))
    return f"greatest({', '.join(found)})" if len(found) > 1 else found[0]


def _is_number(table: Table, column: str) -> bool:
    return "INT" in table.columns[column] or table.columns[column].startswith(
        ("DOUBLE", "FLOAT", "DECIMAL")
    )


def _microseconds(table: Table, column: str, alias: str) -> str:
    """A cell in SQL, in microseconds since 1970: text in UTC unless it says otherwise; NULL for what is no time."""
    cell = f"{alias}.{quoted(column)}"
    kind = table.columns[column]
    if _is_number(table, column):  # seconds since 1970, or thousandths of them
        scale = f"CASE WHEN abs({cell}) < 100000000000 THEN 1000000 ELSE 1000 END"
        return f"TRY_CAST(CAST({cell} AS DOUBLE) * {scale} AS BIGINT)"
    cell = table.cell(column, alias)
    return (
        f"epoch_us({cell})"
        if kind.startswith("TIMESTAMP")
        else f"epoch_us(TRY_CAST({cell} AS TIMESTAMPTZ))"
    )


def _check_cells(plan: Plan, table: Table, column: str) -> None:
    """Refuse a column of times without one; tell of cells that are none, since rows without a time are always there."""
    cell = f"t.{quoted(column)}"
    time = _microseconds(table, column, "t")
    good = (
        f"abs({time}) >= {EARLIEST * 1_000_000}"
        if _is_number(table, column)
        else f"{time} IS NOT NULL"
    )
    # As text: DuckDB makes a time with its zone for Python only where pytz is installed.
    words = f"(any_value({cell}) FILTER ({time} IS NULL))::VARCHAR, any_value({cell})::VARCHAR"
    query = f"SELECT count(*), count(*) FILTER ({good}), {words}"
    filled, times, other, some = plan.snapshot.rows(
        f"{query} FROM {table.sql} AS t WHERE {cell} IS NOT NULL"
    )[0]
    where = f"{plan.snapshot.where}, table {table.name}, column {column}"
    if filled and not times:
        expected = "seconds since 1970" if _is_number(table, column) else WRITTEN
        raise InputError(where, expected, shorten(str(some)))
    if other is not None and times < filled:
        lost = f"{number_of(filled - times, 'cell')} of {filled:,}, such as {shorten(str(other))}"
        warn(f"{where}: no time in {lost}. Rows without a time are always there, as of any day.")
