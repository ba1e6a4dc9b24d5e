"""When the rows of a table came to be: by a column of times of their own, or by the rows that they refer to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from infomax.arrays.times import WRITTEN
from infomax.errors import InputError, format_count, shorten, suggest, warn
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.decisions import Decisions, TimeDecision
from infomax.io.database.dropped import (
    LEAST_SHARE_DATED,
    date_columns,
    share_of_sample,
)
from infomax.io.database.roles import Plan
from infomax.io.database.tables import Table, joined, quoted

MOST_INHERITED = 3
"""Keys that are followed to a row that has a time."""
NO_TIME = "none"
"""In place of a column: the rows have no time."""
LEAST_SHARE_FILLED = 0.95
"""A date that fewer rows have is not that of the event where another one has more."""
LEAST_SHARE_EARLIER = 0.95
"""A date is that of the event where it is no later than the others in this share of the rows."""
_USUAL_NAMES = ("date", "datetime", "timestamp", "time", "day")
_ENDINGS = ("date", "datetime", "timestamp", "time", "day", "at", "on", "ts", "dt")
_CREATED = re.compile(
    "(row|record)?(creat|insert|add|enter|register|sign(ed)?up|join)(ed|ion)?(date|time|at|on|day|ts)*"
)
_NOT_AN_EVENT = re.compile("birth|born|dob$|death|died|deceased|expir|(^|[^a-z])due|deadline")
"""Dates of a row that are not when it came to be."""
_YEARS = (1000, 2999)
_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 10**9}
"""Units of numbers by how many make a second."""
_YEAR_1900, _YEAR_2100 = -2_208_988_800, 4_102_444_800
"""In seconds since 1970."""
LEAST_SECONDS = 10**8
"""March 1973: a column of smaller numbers of seconds alone holds counts."""


def find_times(plan: Plan, said: Sequence[str] = ()) -> None:
    """The time of each table that has one.

    ``said`` are columns, TABLE.COLUMN; with =none, or TABLE=none, rows have no time. A row that refers to others is an
    event, with the date that is its own; a fact without a date is as old as the latest of the rows that it refers to.
    """
    for word in said:
        table, column = _said_time(plan, word)
        plan.times[table.name] = _decided_by_person(plan, table, column, word)
    for table in plan.types.values():
        if table.name not in plan.times and table.keys:
            time = _event_time(plan, table)
            if time is not None:
                plan.times[table.name] = time
    _inherit(plan)
    _check_all(plan)


def take_times(plan: Plan, decisions: Decisions) -> None:
    """The times that were decided earlier."""
    for name in plan.tables:
        decision = decisions.get(name)
        time = None if decision is None else decision.time
        if time is not None and (time.column is None or time.column in plan.tables[name].columns):
            plan.times[name] = time
    _check_all(plan)


def _check_all(plan: Plan) -> None:
    for name, time in plan.times.items():
        if time.column is not None:
            _check_cells(plan, plan.tables[name], time)


def with_times(plan: Plan) -> dict[str, TimeDecision]:
    """The times of the tables whose rows have one."""
    return {name: time for name, time in plan.times.items() if time.exists}


def time_candidates(plan: Plan) -> list[str]:
    """All columns of times, TABLE.COLUMN, for a message."""
    return [
        f"{table.name}.{column}"
        for table in plan.types.values()
        for column in date_columns(plan.snapshot, table)
    ]


# What a person says


def _said_time(plan: Plan, word: str) -> tuple[Table, str | None]:
    """The table and the column that a word names; None: its rows have no time."""
    left, _, right = word.rpartition("=")
    is_none = right == NO_TIME and bool(left)
    name = left if is_none else word
    if is_none and name in plan.tables:
        return plan.tables[name], None
    owners = [table for table in plan.tables if name.startswith(f"{table}.")]
    table = plan.tables[max(owners, key=len)] if owners else None
    column = "" if table is None else name[len(table.name) + 1 :]
    if table is None or column not in table.columns:
        candidates = time_candidates(plan)
        expected = f"TABLE.COLUMN, such as {format_list(candidates)}"
        raise InputError("--time", expected, shorten(word), suggest(word, candidates))
    return table, None if is_none else column


def _decided_by_person(plan: Plan, table: Table, column: str | None, word: str) -> TimeDecision:
    candidates = tuple(date_columns(plan.snapshot, table))
    unit = "" if column is None else _unit(plan, table, column)
    return TimeDecision(column, (), "said", f"--time {word}", unit, candidates)


# The date of an event


def _event_time(plan: Plan, table: Table) -> TimeDecision | None:
    """The date of the event that a row is; a decision without a column where the dates do not tell."""
    candidates = date_columns(plan.snapshot, table)
    own_dates = [
        column
        for column in candidates
        if column not in table.dropped and not _NOT_AN_EVENT.search(plain(column))
    ]
    if not candidates:
        return None
    column, reason = _date_of_event(plan, table, own_dates)
    if column is None:
        others = ", ".join(candidates)
        reason = f"{reason}: {others}"
    elif len(candidates) > 1:
        others = ", ".join(other for other in candidates if other != column)
        reason = f"{reason}; not {others}"
    return TimeDecision(column, (), "found", reason, candidates=tuple(candidates))


def _date_of_event(plan: Plan, table: Table, dates: list[str]) -> tuple[str | None, str]:
    """The date of a row's own, of several, and why."""
    if not dates:
        return None, "no date tells when a row came to be"
    if len(dates) == 1:
        return dates[0], "it is the only date of the event"
    always_filled = [column for column in dates if _is_filled(plan, table, column)]
    if len(always_filled) == 1:
        return always_filled[0], "it is the only date of the event that nearly every row has"
    if always_filled:
        dates = always_filled
    by_name = {plain(column): column for column in reversed(dates)}
    for name in _USUAL_NAMES:
        if name in by_name:
            return by_name[name], "it is called as times are"
    for name in singulars(table.name):
        for ending in _ENDINGS:
            if f"{name}{ending}" in by_name:
                return by_name[f"{name}{ending}"], "it is called after the table"
    created = [column for name, column in by_name.items() if _CREATED.fullmatch(name)]
    if len(created) == 1:
        return created[0], "its name says when the row was made"
    for column in dates:
        if _is_earliest(plan, table, column, [other for other in dates if other != column]):
            return column, "it is the earliest date of nearly every row"
    return None, "several dates, of which none is clearly the row's own"


def _is_filled(plan: Plan, table: Table, column: str) -> bool:
    """Whether nearly every row has a date; dates of what may still happen, such as a return, are empty in some."""
    query = f"SELECT count({quoted(column)}) / count(*) FROM {table.sql}"
    return plan.snapshot.share(query) >= LEAST_SHARE_FILLED


def _is_earliest(plan: Plan, table: Table, column: str, others: list[str]) -> bool:
    """Whether a date is there and no later than the others in nearly every row."""
    time = microseconds(table, column, "", "t")
    conditions = [f"{time} IS NOT NULL"]
    for other in others:
        conditions.append(f"coalesce({time} <= {microseconds(table, other, '', 't')}, true)")
    is_earliest = " AND ".join(conditions)
    share = plan.snapshot.share(
        f"SELECT count(*) FILTER ({is_earliest}) / count(*) FROM {table.sql} AS t"
    )
    return share >= LEAST_SHARE_EARLIER


def _inherit(plan: Plan) -> None:
    """Give facts without a date the times of the rows that they refer to."""
    for _ in range(MOST_INHERITED):
        timed = with_times(plan)
        for table in plan.types.values():
            keys = tuple(
                key for key in plan.keys(table) if key.table in timed and key.table != table.name
            )
            known = plan.times.get(table.name)
            is_open = known is None or (known.origin == "found" and not known.exists)
            if is_open and plan.role(table.name) == "facts" and keys:
                owners = " and ".join(dict.fromkeys(key.table for key in keys))
                reason = f"it has no date of its own, and is as old as its {owners}"
                candidates = () if known is None else known.candidates
                plan.times[table.name] = TimeDecision(
                    None, keys, "found", reason, candidates=candidates
                )


# Times in SQL


def moment(plan: Plan, table: Table, joins: list[str], alias: str = "t") -> str:
    """The time of a row in SQL, in microseconds since 1970; ``joins`` gets the tables that it needs."""
    time = plan.times[table.name]
    if time.column is not None:
        return microseconds(table, time.column, time.unit, alias)
    moments = []
    for key in time.keys:
        other = plan.tables[key.table]
        other_alias = f"w{len(joins)}"
        condition = joined(table, key, other, other_alias, alias)
        joins.append(f"LEFT JOIN {other.sql} AS {other_alias} ON {condition}")
        moments.append(moment(plan, other, joins, other_alias))
    return f"greatest({', '.join(moments)})" if len(moments) > 1 else moments[0]


def microseconds(table: Table, column: str, unit: str, alias: str) -> str:
    """A cell in SQL, in microseconds since 1970: text in UTC unless it says otherwise; NULL for what is no time.

    A part of a microsecond is left out, as in the times of questions.
    """
    cell = f"{alias}.{quoted(column)}"
    if unit == "years":
        year = f"TRY_CAST({cell} AS INTEGER)"
        is_year = f"{year} BETWEEN {_YEARS[0]} AND {_YEARS[1]}"
        return f"CASE WHEN {is_year} THEN epoch_us(make_date({year}, 1, 1)::TIMESTAMP) END"
    if unit == "nanoseconds":
        return _whole_thousands(f"TRY_CAST({cell} AS HUGEINT)")
    if unit:
        factor = 1_000_000 // _UNITS[unit]
        if "INT" in table.columns[column]:
            return f"TRY_CAST(CAST({cell} AS HUGEINT) * {factor} AS BIGINT)"
        return f"TRY_CAST(TRY_CAST({cell} AS DOUBLE) * {factor} AS BIGINT)"
    column_type = table.columns[column]
    if column_type == "TIMESTAMP_NS":
        return _whole_thousands(f"epoch_ns({cell})")
    if column_type.startswith("TIMESTAMP"):
        return f"epoch_us({table.cell(column, alias)})"
    if table.is_text_column(column):
        cell = f"regexp_replace({cell}::VARCHAR, '(\\.\\d{{6}})\\d+', '\\1')"
        return f"epoch_us(TRY_CAST({cell} AS TIMESTAMPTZ))"
    return f"epoch_us(TRY_CAST({table.cell(column, alias)} AS TIMESTAMPTZ))"


def _whole_thousands(nanoseconds: str) -> str:
    """Microseconds of nanoseconds in SQL, the earlier one of what lies between two, before 1970 as well."""
    part = f"(({nanoseconds} % 1000 + 1000) % 1000)"
    return f"TRY_CAST(({nanoseconds} - {part}) // 1000 AS BIGINT)"


def _unit(plan: Plan, table: Table, column: str) -> str:
    """The unit of a column of numbers, one for all its cells; "" for a column of dates."""
    number = f"TRY_CAST({quoted(column)} AS DOUBLE)"
    if table.is_text_column(column):
        is_number = f"{number} IS NOT NULL"
        if share_of_sample(plan.snapshot, table, column, is_number) < LEAST_SHARE_DATED:
            return ""
    elif not table.is_number(column):
        return ""
    is_year = f"{number} BETWEEN {_YEARS[0]} AND {_YEARS[1]} AND {number} = floor({number})"
    if share_of_sample(plan.snapshot, table, column, is_year) >= LEAST_SHARE_DATED:
        return "years"
    # Milliseconds of 2024 are microseconds of January 1970: the first unit in which most cells are likely is taken.
    for unit, per_second in _UNITS.items():
        is_likely = f"{number} / {per_second} BETWEEN {_YEAR_1900} AND {_YEAR_2100}"
        query = f"SELECT count(*) FILTER ({is_likely}) / count({number}) FROM {table.sql}"
        if plan.snapshot.share(query) >= 0.5:
            return unit
    return "seconds"


def _check_cells(plan: Plan, table: Table, time: TimeDecision) -> None:
    """Refuse a column of times without one; tell of cells that are none, since rows without a time are always there."""
    column = str(time.column)
    cell = f"t.{quoted(column)}"
    moment = microseconds(table, column, time.unit, "t")
    is_time = f"{moment} IS NOT NULL"
    if time.unit == "seconds":
        is_time = f"abs({moment}) >= {LEAST_SECONDS * 1_000_000}"
    # As text: DuckDB makes a time with its zone for Python only where pytz is installed.
    other = f"(any_value({cell}) FILTER ({moment} IS NULL))::VARCHAR"
    is_far = f"{moment} NOT BETWEEN {_YEAR_1900} * 1000000 AND {_YEAR_2100} * 1000000"
    far = f"(any_value({cell}) FILTER ({is_far}))::VARCHAR, count(*) FILTER ({is_far})"
    query = (
        f"SELECT count(*), count(*) FILTER ({is_time}), {other}, any_value({cell})::VARCHAR, {far}"
    )
    filled, times, other_cell, some_cell, far_cell, far_count = plan.snapshot.rows(
        f"{query} FROM {table.sql} AS t WHERE {cell} IS NOT NULL"
    )[0]
    location = f"{plan.snapshot.location}, table {table.name}, column {column}"
    if filled and not times:
        expected = "years, or seconds since 1970" if table.is_number(column) else WRITTEN
        raise InputError(location, expected, shorten(str(some_cell)))
    if other_cell is not None and times < filled:
        lost = f"{format_count(filled - times, 'cell')} of {filled:,}, such as {shorten(str(other_cell))}"
        warn(f"{location}: no time in {lost}. Rows without a time are always there, as of any day.")
    if time.unit and time.unit != "years" and far_count:
        cells = f"{format_count(far_count, 'cell')} of {filled:,}, such as {shorten(str(far_cell))}"
        warn(f"{location}: read as {time.unit} since 1970; before 1900 or after 2100 in {cells}.")
