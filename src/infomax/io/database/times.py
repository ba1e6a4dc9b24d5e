"""When rows came to be: by a column of times, or by the rows that they refer to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from infomax.arrays.times import WRITTEN
from infomax.errors import InputError, format_count, shorten, suggest, warn
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.snapshot import (
    LEAST_SHARE_OF_SAMPLE,
    Snapshot,
    Table,
    joined,
    quoted,
)
from infomax.io.schema.schema import Schema, TimeUse

MOST_INHERITED = 3
"""Keys that are followed to a row that has a time."""
NO_TIME = "none"
"""In place of a column: the rows have no time."""
LEAST_SHARE_FILLED = 0.95
"""A date that fewer rows have is not that of the event where another one has more."""
LEAST_SHARE_EARLIER = 0.95
"""A date is that of the event where it is no later than the others in this share of the rows."""
LEAST_SECONDS = 10**8
"""March 1973: a column of smaller numbers of seconds alone holds counts."""
_USUAL_NAMES = ("date", "datetime", "timestamp", "time", "day")
_ENDINGS = ("date", "datetime", "timestamp", "time", "day", "at", "on", "ts", "dt")
_CREATED = re.compile(
    "(row|record)?"
    "(creat|insert|add|enter|register|sign(ed)?up|join)"
    "(ed|ion)?(date|time|at|on|day|ts)*"
)
_NOT_AN_EVENT = re.compile("birth|born|dob$|death|died|deceased|expir|(^|[^a-z])due|deadline")
"""Dates of a row that are not when it came to be."""
_DATE_FORMATS = ("%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%d.%m.%Y")
"""Days beside those of ISO 8601, which can be read in one way only."""
_YEARS = (1000, 2999)
_UNITS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 10**9}
"""Units of numbers by how many make a second."""
_YEAR_1980, _YEAR_2050 = 315_532_800, 2_524_608_000
_YEAR_1900, _YEAR_2100 = -2_208_988_800, 4_102_444_800
"""In seconds since 1970."""


def find_times(snapshot: Snapshot, time_options: Sequence[str] = ()) -> None:
    """The time of each table that has one.

    A row that refers to others is an event, with the date that is its own; a fact without a date is
    as old as the latest of the rows that it refers to.

    Args:
        snapshot: the tables, whose roles are known.
        time_options: columns that a person names, TABLE.COLUMN; with =none, or as TABLE=none, rows
            have no time.
    """
    for option in time_options:
        table, column = _named_column(snapshot, option)
        candidates = tuple(snapshot.date_columns(table))
        unit = _unit(snapshot, table, column) if column else ""
        time = TimeUse(column, (), unit, candidates, "said", f"--time {option}")
        table.decide(time=time)
    for table in snapshot.node_tables.values():
        if table.schema.time is None and table.keys:
            table.decide(time=_event_time(snapshot, table))
    _inherit(snapshot)
    _check_all(snapshot)


def take_times(snapshot: Snapshot, schema: Schema) -> None:
    """Give the tables the times of a schema."""
    for name, table in snapshot.tables.items():
        known = schema.tables.get(name)
        time = None if known is None else known.time
        if time is None or (time.column and time.column not in table.columns):
            continue
        table.decide(time=time)

    # A later database may lack a key, or a column of times, by which an earlier one told times.
    for _ in range(MOST_INHERITED):
        timed_tables = snapshot.timed_tables
        for table in snapshot.tables.values():
            time = table.schema.time
            if time is not None and time.keys:
                keys = tuple(key.columns for key in table.time_keys if key.table in timed_tables)
                table.decide(time=replace(time, keys=keys))
    _check_all(snapshot)


def time_candidates(snapshot: Snapshot) -> list[str]:
    """All columns that may be times, TABLE.COLUMN, for a message: those of dates first."""
    date_columns = []
    other_columns = []
    for table in snapshot.node_tables.values():
        dates = snapshot.date_columns(table)
        date_columns += [f"{table.name}.{column}" for column in dates]
        other_columns += [
            f"{table.name}.{column}"
            for column in table.data_columns
            if column not in dates and _may_be_times(snapshot, table, column)
        ]
    return [*date_columns, *other_columns]


def _may_be_times(snapshot: Snapshot, table: Table, column: str) -> bool:
    """Whether a column holds seconds since 1970, or parts of them, or days as 31-Dec-2024."""
    cell = quoted(column)
    if table.is_number(column):
        conditions = [
            f"{cell} / {per_second} BETWEEN {_YEAR_1980} AND {_YEAR_2050}"
            for per_second in _UNITS.values()
        ]
        condition = " OR ".join(conditions)
    elif table.is_text_column(column):
        condition = f"{_written_moment(f'{cell}::VARCHAR')} IS NOT NULL"
    else:
        return False
    return snapshot.share_of_sample(table, column, condition) >= LEAST_SHARE_OF_SAMPLE


def _named_column(snapshot: Snapshot, option: str) -> tuple[Table, str]:
    """The table and the column that an option names; the column "": rows have no time."""
    name, _, choice = option.rpartition("=")
    has_no_time = choice == NO_TIME and bool(name)
    if not has_no_time:
        name = option
    if has_no_time and name in snapshot.tables:
        return snapshot.tables[name], ""

    # Names of tables may hold dots: the longest that fits is meant.
    owners = [table_name for table_name in snapshot.tables if name.startswith(f"{table_name}.")]
    owner = max(owners, key=len, default="")
    column = name[len(owner) + 1 :]
    if not owner or column not in snapshot.tables[owner].columns:
        candidates = time_candidates(snapshot)
        expected = f"TABLE.COLUMN, such as {format_list(candidates)}"
        raise InputError("--time", expected, shorten(option), suggest(option, candidates))
    return snapshot.tables[owner], "" if has_no_time else column


# The date of an event


def _event_time(snapshot: Snapshot, table: Table) -> TimeUse | None:
    """The date of the event that a row is; no column if no date tells; None without dates."""
    candidates = snapshot.date_columns(table)
    if not candidates:
        return None
    left_out = table.left_out
    event_dates = [
        column
        for column in candidates
        if column not in left_out and not _NOT_AN_EVENT.search(plain(column))
    ]
    column, reason = _date_of_event(snapshot, table, event_dates)
    if not column:
        reason = f"{reason}: {', '.join(candidates)}"
    elif len(candidates) > 1:
        other_dates = ", ".join(date for date in candidates if date != column)
        reason = f"{reason}; not {other_dates}"
    return TimeUse(column, candidates=tuple(candidates), reason=reason)


def _date_of_event(snapshot: Snapshot, table: Table, dates: list[str]) -> tuple[str, str]:
    """Which of several dates is that of the event, "" for none, and why."""
    if not dates:
        return "", "no date tells when a row came to be"
    if len(dates) == 1:
        return dates[0], "it is the only date of the event"

    # Dates of what may still happen, such as a return, are empty in some rows.
    filled_dates = [column for column in dates if _is_filled(snapshot, table, column)]
    if len(filled_dates) == 1:
        return filled_dates[0], "it is the only date of the event that nearly every row has"
    dates = filled_dates or dates

    by_name = {plain(column): column for column in reversed(dates)}
    for name in _USUAL_NAMES:
        if name in by_name:
            return by_name[name], "it is called as times are"
    for name in singulars(table.name):
        for ending in _ENDINGS:
            if f"{name}{ending}" in by_name:
                return by_name[f"{name}{ending}"], "it is called after the table"
    created_dates = [column for name, column in by_name.items() if _CREATED.fullmatch(name)]
    if len(created_dates) == 1:
        return created_dates[0], "its name says when the row was made"
    for column in dates:
        other_dates = [date for date in dates if date != column]
        if _is_earliest(snapshot, table, column, other_dates):
            return column, "it is the earliest date of nearly every row"
    return "", "several dates, of which none is clearly the row's own"


def _is_filled(snapshot: Snapshot, table: Table, column: str) -> bool:
    """Whether nearly every row has a date."""
    query = f"SELECT count({quoted(column)}) / count(*) FROM {table.sql}"
    return snapshot.share(query) >= LEAST_SHARE_FILLED


def _is_earliest(snapshot: Snapshot, table: Table, column: str, other_dates: list[str]) -> bool:
    """Whether a date is there and no later than the others in nearly every row."""
    time = microseconds(table, column, "", "t")
    conditions = [f"{time} IS NOT NULL"]
    for date in other_dates:
        conditions.append(f"coalesce({time} <= {microseconds(table, date, '', 't')}, true)")
    is_earliest = " AND ".join(conditions)
    share = snapshot.share(
        f"SELECT count(*) FILTER ({is_earliest}) / count(*) FROM {table.sql} AS t"
    )
    return share >= LEAST_SHARE_EARLIER


def _inherit(snapshot: Snapshot) -> None:
    """Give facts without a date the times of the rows that they refer to."""
    # A fact may inherit from a fact that has inherited: one more step in each round.
    for _ in range(MOST_INHERITED):
        timed_tables = snapshot.timed_tables
        for table in snapshot.node_tables.values():
            keys = [
                key
                for key in snapshot.keys_to(table)
                if key.table in timed_tables and key.table != table.name
            ]
            time = table.schema.time
            is_open = time is None or (time.origin == "found" and not table.schema.has_times)
            if not is_open or table.role != "facts" or not keys:
                continue
            owners = " and ".join(dict.fromkeys(key.table for key in keys))
            inherited = TimeUse(
                keys=tuple(key.columns for key in keys),
                candidates=() if time is None else time.candidates,
                reason=f"it has no date of its own, and is as old as its {owners}",
            )
            table.decide(time=inherited)


# Times in SQL


def moment(snapshot: Snapshot, table: Table, joins: list[str], alias: str = "t") -> str:
    """The time of a row in SQL, in microseconds since 1970; ``joins`` gets the tables it needs."""
    time = table.schema.time
    if time is not None and time.column:
        return microseconds(table, time.column, time.unit, alias)
    moments = []
    for key in table.time_keys:
        other = snapshot.tables[key.table]
        other_alias = f"w{len(joins)}"
        condition = joined(table, key, other, other_alias, alias)
        joins.append(f"LEFT JOIN {other.sql} AS {other_alias} ON {condition}")
        moments.append(moment(snapshot, other, joins, other_alias))
    return f"greatest({', '.join(moments)})" if len(moments) > 1 else moments[0]


def microseconds(table: Table, column: str, unit: str, alias: str) -> str:
    """A cell in SQL, in microseconds since 1970, in UTC unless it says otherwise; NULL: no time.

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
        return f"epoch_us({_written_moment(f'{cell}::VARCHAR')})"
    return f"epoch_us(TRY_CAST({table.cell(column, alias)} AS TIMESTAMPTZ))"


def _written_moment(text: str) -> str:
    """A moment that is written as 2024-12-31, or such as 31-Dec-2024 and 31.12.2024, in SQL."""
    # DuckDB reads no more than six digits of a second.
    iso_text = f"regexp_replace({text}, '(\\.\\d{{6}})\\d+', '\\1')"
    formats = ", ".join(f"'{date_format}'" for date_format in _DATE_FORMATS)
    written_day = f"try_strptime({text}, [{formats}])::TIMESTAMPTZ"
    return f"coalesce(TRY_CAST({iso_text} AS TIMESTAMPTZ), {written_day})"


def _whole_thousands(nanoseconds: str) -> str:
    """Microseconds of nanoseconds in SQL, rounded down, before 1970 as well."""
    remainder = f"(({nanoseconds} % 1000 + 1000) % 1000)"
    return f"TRY_CAST(({nanoseconds} - {remainder}) // 1000 AS BIGINT)"


def _unit(snapshot: Snapshot, table: Table, column: str) -> str:
    """The unit of a column of numbers, one for all its cells; "" for a column of dates."""
    number = f"TRY_CAST({quoted(column)} AS DOUBLE)"
    if table.is_text_column(column):
        share = snapshot.share_of_sample(table, column, f"{number} IS NOT NULL")
        if share < LEAST_SHARE_OF_SAMPLE:
            return ""
    elif not table.is_number(column):
        return ""
    is_year = f"{number} BETWEEN {_YEARS[0]} AND {_YEARS[1]} AND {number} = floor({number})"
    if snapshot.share_of_sample(table, column, is_year) >= LEAST_SHARE_OF_SAMPLE:
        return "years"

    # Milliseconds of 2024 are microseconds of January 1970: the first unit in which most cells are
    # likely is taken.
    for unit, per_second in _UNITS.items():
        is_likely = f"{number} / {per_second} BETWEEN {_YEAR_1900} AND {_YEAR_2100}"
        query = f"SELECT count(*) FILTER ({is_likely}) / count({number}) FROM {table.sql}"
        if snapshot.share(query) >= 0.5:
            return unit
    return "seconds"


def _check_all(snapshot: Snapshot) -> None:
    for table in snapshot.tables.values():
        if table.schema.time is not None and table.schema.time.column:
            _check_cells(snapshot, table, table.schema.time)


def _check_cells(snapshot: Snapshot, table: Table, time: TimeUse) -> None:
    """Refuse a column without a time; tell of cells that are none: their rows are always there."""
    cell = f"t.{quoted(time.column)}"
    moment_of_cell = microseconds(table, time.column, time.unit, "t")
    is_time = f"{moment_of_cell} IS NOT NULL"
    if time.unit == "seconds":
        is_time = f"abs({moment_of_cell}) >= {LEAST_SECONDS * 1_000_000}"
    is_far = f"{moment_of_cell} NOT BETWEEN {_YEAR_1900} * 1000000 AND {_YEAR_2100} * 1000000"
    # As text: DuckDB makes a time with its zone for Python only where pytz is installed.
    expressions = (
        "count(*)",
        f"count(*) FILTER ({is_time})",
        f"(any_value({cell}) FILTER ({moment_of_cell} IS NULL))::VARCHAR",
        f"any_value({cell})::VARCHAR",
        f"(any_value({cell}) FILTER ({is_far}))::VARCHAR",
        f"count(*) FILTER ({is_far})",
    )
    query = f"SELECT {', '.join(expressions)} FROM {table.sql} AS t WHERE {cell} IS NOT NULL"
    filled, times, wrong_cell, any_cell, far_cell, far_count = snapshot.rows(query)[0]

    location = f"{snapshot.location}, table {table.name}, column {time.column}"
    if filled and not times:
        expected = WRITTEN
        if table.is_number(time.column):
            expected = "years, or seconds since 1970"
        raise InputError(location, expected, shorten(str(any_cell)))
    if wrong_cell is not None and times < filled:
        wrong_count = format_count(filled - times, "cell")
        warn(
            f"{location}: no time in {wrong_count} of {filled:,}, "
            f"such as {shorten(str(wrong_cell))}. "
            "Rows without a time are always there, as of any day."
        )
    if time.unit and time.unit != "years" and far_count:
        cells = f"{format_count(far_count, 'cell')} of {filled:,}, such as {shorten(str(far_cell))}"
        warn(f"{location}: read as {time.unit} since 1970; before 1900 or after 2100 in {cells}.")
