"""Columns that become no feature, and columns that name the rows.

No feature are columns without values, dates that tell when a row was written, and what a person
ignores.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from infomax.errors import InputError, shorten, suggest
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.snapshot import (
    LEAST_SHARE_OF_SAMPLE,
    Snapshot,
    Table,
    quoted,
    sample_of,
)
from infomax.io.schema.schema import Use

LEAST_ROWS_OF_CONSTANT = 10
"""In fewer rows a column may hold one value by chance."""
LEAST_SHARE_OF_STAMP = 0.95
"""A date that so many of the rows share tells when the table was written."""
_AUDIT_NAME = re.compile(
    "updat|modif|lastchange|changedat|lastedit|editedat|sync|rowversion|loadedat"
)
"""Plain names of dates at which a row was last written."""
_FIRST_NAMES = ("firstname", "namefirst", "forename", "givenname", "namegiven")
_LAST_NAMES = ("lastname", "namelast", "surname", "familyname")


# Columns that become no features


def leave_out_columns(snapshot: Snapshot, used_columns: Collection[tuple[str, str]]) -> None:
    """Leave out the columns that tell nothing about a row, but for those that a person uses."""
    for table in snapshot.tables.values():
        if not table.row_count:
            continue
        for column in table.columns:
            if not table.is_readable(column) and not table.is_of_a_key(column):
                table.leave_out(column, unreadable_type(table.columns[column]))

        empty_columns = _empty_columns(snapshot, table)
        stamp_reasons = {
            column: _why_stamp(snapshot, table, column) for column in snapshot.date_columns(table)
        }
        for column in table.data_columns:
            if (table.name, column) in used_columns:
                continue
            if column in empty_columns:
                table.leave_out(column, "it is empty in every row")
            elif stamp_reasons.get(column):
                table.leave_out(column, stamp_reasons[column])
            elif plain(column) in singulars(table.name):
                owner = _table_whose_rows_are_numbered(snapshot, table, column)
                if owner:
                    table.leave_out(column, f"it numbers the rows of each row of {owner}")


def unreadable_type(column_type: str) -> str:
    """The reason of a column that is left out for its type."""
    return f"no features are made of columns of type {column_type}"


def ignore_columns(snapshot: Snapshot, ignored_columns: Collection[str]) -> None:
    """Leave out the columns that a person ignores, and the keys that they are of; ids stay."""
    for table in snapshot.tables.values():
        for column in table.columns:
            if not table.is_named(column, ignored_columns):
                continue
            is_key = any(column in key.columns for key in table.keys)
            table.keys = [key for key in table.keys if column not in key.columns]
            if is_key or column not in table.primary:
                table.leave_out(column, f"--ignore {column}", origin="said")
            elif f"{table.name}.{column}" in ignored_columns:
                expected = "a column that does not tell the rows apart"
                found = f"{table.name}.{column}, the primary key"
                remedy = f"To leave the table out: --table {table.name}=ignore."
                raise InputError("--ignore", expected, found, remedy)


def columns_of_no_table(snapshot: Snapshot, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a person named and no table has: values of lookups may be called so."""
    names_of_tables = {
        name
        for name in names
        for table in snapshot.tables.values()
        for column in table.columns
        if table.is_named(column, (name,))
    }
    return tuple(name for name in names if name not in names_of_tables)


def leave_out_constants(
    snapshot: Snapshot, table: Table, used_columns: Collection[tuple[str, str]]
) -> None:
    """Leave out the columns of a table of two keys where each holds one value."""
    columns = table.data_columns
    if table.row_count < LEAST_ROWS_OF_CONSTANT:
        return
    if any((table.name, column) in used_columns for column in columns):
        return
    if all(_is_constant(snapshot, table, column) for column in columns):
        for column in columns:
            table.leave_out(column, "it is the same in every row")


def _why_stamp(snapshot: Snapshot, table: Table, column: str) -> str:
    """Why a column of dates tells only when the row was written; "" where it does not."""
    if _AUDIT_NAME.search(plain(column)):  # last_update, ModifiedDate
        return "its name says when the row was last written"
    if table.row_count < LEAST_ROWS_OF_CONSTANT:
        return ""
    cell = quoted(column)
    usual_moment = f"(SELECT mode({cell}) FROM {sample_of(table, column)})"
    share = snapshot.share(
        f"SELECT count(*) FILTER ({cell} = {usual_moment}) / count({cell}) FROM {table.sql}"
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
    (filled_counts,) = snapshot.rows(f"SELECT {counts} FROM {table.sql}")
    return {column for column, count in zip(columns, filled_counts, strict=True) if not count}


def _table_whose_rows_are_numbered(snapshot: Snapshot, table: Table, column: str) -> str:
    """The table for each of whose rows a column counts 1, 2, 3 ...; "" for none.

    Such is the line of the lines of orders. The rating of ratings is a value.
    """
    number = f"TRY_CAST({quoted(column)} AS BIGINT)"
    for key in table.keys:
        key_columns = ", ".join(map(quoted, key.columns))
        groups = (
            f"SELECT count(*) AS row_count, min({number}) AS first, max({number}) AS last, "
            f"count(DISTINCT {number}) AS number_count FROM {table.sql} GROUP BY {key_columns}"
        )
        is_numbered = "first = 1 AND last = row_count AND number_count = row_count"
        query = f"SELECT count(*) FROM ({groups}) WHERE NOT coalesce({is_numbered}, false)"
        if not snapshot.number(query):
            return key.table
    return ""


def _is_constant(snapshot: Snapshot, table: Table, column: str) -> bool:
    cell = quoted(column)
    first_value = f"(SELECT {cell} FROM {table.sql} LIMIT 1)"
    query = f"SELECT count(*) FROM {table.sql} WHERE {cell} IS DISTINCT FROM {first_value}"
    return not snapshot.number(query)


# Columns that name the rows


def find_names(snapshot: Snapshot, name_options: Sequence[str] = ()) -> None:
    """The columns of the names of all types: as a person says, TABLE.COLUMN+COLUMN, else found."""
    named = dict(_named_columns(snapshot, option) for option in name_options)
    for table in snapshot.node_tables.values():
        table.decide(name=named.get(table.name) or _found_name(snapshot, table))


def _named_columns(snapshot: Snapshot, option: str) -> tuple[str, Use]:
    """The table of one of the types, and the columns that a person named as its names."""
    node_tables = snapshot.node_tables
    tables_by_name: Mapping[str, Table] = {
        **{name.lower(): table for name, table in node_tables.items()},
        **{table.name.lower(): table for table in node_tables.values()},
    }
    owners = [name for name in tables_by_name if option.lower().startswith(f"{name}.")]
    candidates: list[tuple[Table, tuple[str, ...]]]
    if owners:
        owner = max(owners, key=len)  # names of tables may hold dots
        table = tables_by_name[owner]
        candidates = [(table, _columns_in_any_case(table, option[len(owner) + 1 :]))]
    else:
        candidates = [
            (table, _columns_in_any_case(table, option)) for table in node_tables.values()
        ]
    fitting = [(table, columns) for table, columns in candidates if columns]
    if len(fitting) != 1:
        all_columns = [
            f"{table.name}.{column}" for table in node_tables.values() for column in table.columns
        ]
        expected = f"TABLE.COLUMN, or TABLE.COLUMN+COLUMN, of {format_list(list(node_tables))}"
        raise InputError("--name", expected, shorten(option), suggest(option, all_columns))
    table, columns = fitting[0]
    return table.name, Use(columns, "said", f"--name {option}")


def _columns_in_any_case(table: Table, text: str) -> tuple[str, ...]:
    """The columns that a text names, one or several joined by +; none where one is not there."""
    if text in table.columns:
        return (text,)
    by_name = {column.lower(): column for column in reversed(table.columns)}
    columns = tuple(by_name.get(part.strip().lower(), "") for part in text.split("+"))
    return columns if all(columns) else ()


def _found_name(snapshot: Snapshot, table: Table) -> Use:
    """One column, or a first and a last name; the only one; or none."""
    left_out = table.left_out
    texts = {
        plain(column): column
        for column in reversed(table.columns)
        if table.is_text_column(column) and column not in left_out
    }
    for spelling in name_spellings(table):
        if spelling in texts:
            return Use((texts[spelling],), reason="it is called a name")
    first_name = next((texts[spelling] for spelling in _FIRST_NAMES if spelling in texts), None)
    last_name = next((texts[spelling] for spelling in _LAST_NAMES if spelling in texts), None)
    if first_name is not None and last_name is not None:
        return Use((first_name, last_name), reason="they are called a first and a last name")
    if "title" in texts:
        return Use((texts["title"],), reason="it is called a title")
    only_column = only_text_column(snapshot, table)
    if only_column is not None:
        return Use((only_column,), reason="it is the only column beside the keys")
    return Use()


def name_spellings(table: Table) -> tuple[str, ...]:
    """What a column of names is called, plain."""
    after_table = (f"{singular}name" for singular in singulars(table.name))
    return "name", *after_table, "fullname", "displayname"


def only_text_column(snapshot: Snapshot, table: Table) -> str | None:
    """The only column of data, if its cells are words rather than dates, or numbers in a file."""
    columns = table.data_columns
    if len(columns) != 1 or not table.is_text_column(columns[0]):
        return None
    cell = f"{quoted(columns[0])}::VARCHAR"
    is_word = f"TRY_CAST({cell} AS TIMESTAMP) IS NULL"
    if table.is_text:
        is_word += f" AND TRY_CAST({cell} AS DOUBLE) IS NULL"
    share = snapshot.share_of_sample(table, columns[0], is_word)
    return columns[0] if share > 1 - LEAST_SHARE_OF_SAMPLE else None
