"""Columns that become no features: those without values, and dates that tell when a row was written."""

from __future__ import annotations

import re
from collections.abc import Collection

from infomax.errors import InputError
from infomax.io.column_names import plain
from infomax.io.database.decisions import DroppedColumn
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.tables import Table, quoted

SAMPLE_ROWS = 1000
LEAST_SHARE_DATED = 0.95
"""A column of text is one of dates, or of numbers, where this share of so many of its values are."""
LEAST_ROWS_OF_CONSTANT = 10
"""In fewer rows a column may hold one value by chance."""
LEAST_SHARE_OF_STAMP = 0.95
"""A date that this share of the rows has tells when the table was written, not what happened to the row."""
_AUDIT_NAME = re.compile(
    "updat|modif|lastchange|changedat|lastedit|editedat|sync|rowversion|loadedat"
)
"""Plain names of dates at which a row was last written."""
_DAY = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"


def drop_columns(snapshot: Snapshot, kept: Collection[tuple[str, str]]) -> None:
    """Drop the columns of all tables that tell nothing about a row, but for those that a person named."""
    for table in snapshot.tables.values():
        if not table.row_count:
            continue
        for column in table.columns:
            if not table.is_readable(column) and not is_of_a_key(table, column):
                column_type = table.columns[column]
                _drop(table, column, f"no features are made of columns of type {column_type}")
        empty = _empty_columns(snapshot, table)
        stamps = {
            column: _why_stamp(snapshot, table, column) for column in date_columns(snapshot, table)
        }
        for column in table.data_columns:
            if (table.name, column) in kept:
                continue
            if column in empty:
                _drop(table, column, "it is empty in every row")
            elif stamps.get(column):
                _drop(table, column, stamps[column])


def ignore_columns(snapshot: Snapshot, words: Collection[str]) -> None:
    """Drop the columns that a person does not want, and the keys that they are of; a primary key stays, as ids."""
    for table in snapshot.tables.values():
        for column in table.columns:
            if not table.is_named(column, words):
                continue
            is_key = any(column in key.columns for key in table.keys)
            table.keys = [key for key in table.keys if column not in key.columns]
            if is_key or column not in table.primary:
                table.dropped[column] = DroppedColumn(column, "said", f"--ignore {column}")
            elif f"{table.name}.{column}" in words:
                expected = "a column that does not tell the rows apart"
                found = f"{table.name}.{column}, the primary key"
                remedy = f"To leave the table out: --table {table.name}=ignore."
                raise InputError("--ignore", expected, found, remedy)


def unknown_columns(snapshot: Snapshot, words: Collection[str]) -> tuple[str, ...]:
    """Of columns that a person named those that no table has: they may be made of lookups."""
    known = {
        word
        for word in words
        for table in snapshot.tables.values()
        for column in table.columns
        if table.is_named(column, (word,))
    }
    return tuple(word for word in words if word not in known)


def drop_constants_beside_keys(
    snapshot: Snapshot, table: Table, kept: Collection[tuple[str, str]]
) -> None:
    """Drop the columns of a table of two keys where all of them hold one value: it is one of edges then."""
    columns = table.data_columns
    if table.row_count < LEAST_ROWS_OF_CONSTANT or any(
        (table.name, column) in kept for column in columns
    ):
        return
    if all(_is_constant(snapshot, table, column) for column in columns):
        for column in columns:
            _drop(table, column, "it is the same in every row")


def is_of_a_key(table: Table, column: str) -> bool:
    """Whether a column belongs to the primary key or to another key of a table."""
    return column in table.primary or any(column in key.columns for key in table.keys)


def date_columns(snapshot: Snapshot, table: Table) -> list[str]:
    """The columns of a table that hold dates, by their type or as text, and belong to no key."""
    columns = []
    for column in table.columns:
        if is_of_a_key(table, column) or not table.is_readable(column):
            continue
        dropped = table.dropped.get(column)
        if dropped is not None and dropped.origin == "said":
            continue
        if table.is_date(column):
            columns.append(column)
        elif table.is_text_column(column):
            is_day = f"regexp_matches({quoted(column)}::VARCHAR, '{_DAY}')"
            if share_of_sample(snapshot, table, column, is_day) >= LEAST_SHARE_DATED:
                columns.append(column)
    return columns


def share_of_sample(snapshot: Snapshot, table: Table, column: str, condition: str) -> float:
    """The share of the first filled cells of a column for which a condition in SQL holds."""
    cell = quoted(column)
    sample = f"(SELECT {cell} FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {SAMPLE_ROWS})"
    return snapshot.share(f"SELECT count(*) FILTER ({condition}) / count(*) FROM {sample}")


def is_called_audit(column: str) -> bool:
    """Whether a date is called as one at which a row was last written: last_update, ModifiedDate."""
    return bool(_AUDIT_NAME.search(plain(column)))


def _why_stamp(snapshot: Snapshot, table: Table, column: str) -> str:
    """Why a column of dates tells only when the row was written; "" where it does not."""
    if is_called_audit(column):
        return "its name says when the row was last written"
    if table.row_count < LEAST_ROWS_OF_CONSTANT:
        return ""
    cell = quoted(column)
    sample = f"(SELECT {cell} FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {SAMPLE_ROWS})"
    usual = f"(SELECT mode({cell}) FROM {sample})"
    share = snapshot.share(
        f"SELECT count(*) FILTER ({cell} = {usual}) / count({cell}) FROM {table.sql}"
    )
    if share < LEAST_SHARE_OF_STAMP:
        return ""
    rows = "every row" if share == 1 else f"{100 * share:.0f} % of the rows"
    return f"it is the same moment in {rows}, that at which they were written"


def _empty_columns(snapshot: Snapshot, table: Table) -> set[str]:
    """The columns of a table that have a value in no row."""
    columns = list(table.columns)
    cells = [quoted(column) for column in columns]
    for index, column in enumerate(columns):
        if table.columns[column] == "VARCHAR":  # text without a sign is no value, as in a file
            cells[index] = f"nullif(trim({cells[index]}), '')"
    counts = ", ".join(f"count({cell})" for cell in cells)
    (filled,) = snapshot.rows(f"SELECT {counts} FROM {table.sql}")
    return {column for column, count in zip(columns, filled, strict=True) if not count}


def _is_constant(snapshot: Snapshot, table: Table, column: str) -> bool:
    cell = quoted(column)
    first = f"(SELECT {cell} FROM {table.sql} LIMIT 1)"
    query = f"SELECT count(*) FROM {table.sql} WHERE {cell} IS DISTINCT FROM {first}"
    return not snapshot.number(query)


def _drop(table: Table, column: str, reason: str) -> None:
    table.dropped[column] = DroppedColumn(column, "found", reason)
