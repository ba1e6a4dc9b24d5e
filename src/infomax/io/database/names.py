"""The columns that make the name of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from infomax.errors import InputError, shorten, suggest
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.decisions import NameDecision
from infomax.io.database.dropped import LEAST_SHARE_DATED, share_of_sample
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.tables import Table, quoted

if TYPE_CHECKING:
    from infomax.io.database.roles import Plan

_FIRST_NAMES = ("firstname", "namefirst", "forename", "givenname", "namegiven")
_LAST_NAMES = ("lastname", "namelast", "surname", "familyname")


def find_names(plan: Plan, said: Sequence[str] = ()) -> None:
    """The columns of the names of all types: as a person said, TABLE.COLUMN or TABLE.COLUMN+COLUMN, else found."""
    said_names = dict(_said_name(plan, word) for word in said)
    for table in plan.types.values():
        name = said_names.get(table.name) or _found_name(plan.snapshot, table)
        if name is not None:
            plan.names[table.name] = name


def _said_name(plan: Plan, word: str) -> tuple[str, NameDecision]:
    """The columns that a person named, of one of the types; the name of the table may have another case."""
    spellings: Mapping[str, Table] = {
        **{name.lower(): table for name, table in plan.types.items()},
        **{table.name.lower(): table for table in plan.types.values()},
    }
    owners = [name for name in spellings if word.lower().startswith(f"{name}.")]
    if owners:
        owner = max(owners, key=len)
        table = spellings[owner]
        columns = _columns_in_any_case(table, word[len(owner) + 1 :])
    else:
        table, columns = _only_table_with(plan, word)
    if not columns:
        candidates = [
            f"{table.name}.{column}" for table in plan.types.values() for column in table.columns
        ]
        expected = f"TABLE.COLUMN, or TABLE.COLUMN+COLUMN, of {format_list(list(plan.types))}"
        raise InputError("--name", expected, shorten(word), suggest(word, candidates))
    return table.name, NameDecision(columns, "said", f"--name {word}")


def _only_table_with(plan: Plan, word: str) -> tuple[Table, tuple[str, ...]]:
    """The only table of nodes that has the columns that a word names, and the columns; none where several have."""
    having = []
    for table in plan.types.values():
        columns = _columns_in_any_case(table, word)
        if columns:
            having.append((table, columns))
    return having[0] if len(having) == 1 else (Table("", "", {}), ())


def _columns_in_any_case(table: Table, word: str) -> tuple[str, ...]:
    """The columns that a word names, one or several joined by +; none where one is not there."""
    if word in table.columns:
        return (word,)
    by_name = {column.lower(): column for column in reversed(table.columns)}
    columns = tuple(by_name.get(part.strip().lower(), "") for part in word.split("+"))
    return columns if all(columns) else ()


def _found_name(snapshot: Snapshot, table: Table) -> NameDecision | None:
    """One column, or a first and a last name; the only one; or none."""
    texts = {
        plain(column): column
        for column in reversed(table.columns)
        if table.is_text_column(column) and column not in table.dropped
    }
    for spelling in column_spellings(table):
        if spelling in texts:
            return NameDecision((texts[spelling],), "found", "it is called a name")
    first = next((texts[spelling] for spelling in _FIRST_NAMES if spelling in texts), None)
    last = next((texts[spelling] for spelling in _LAST_NAMES if spelling in texts), None)
    if first is not None and last is not None:
        return NameDecision((first, last), "found", "they are called a first and a last name")
    if "title" in texts:
        return NameDecision((texts["title"],), "found", "it is called a title")
    words = only_words(snapshot, table)
    if words:
        return NameDecision((words[0],), "found", "it is the only column beside the keys")
    return None


def column_spellings(table: Table) -> tuple[str, ...]:
    """What a column of names is called, plain."""
    return "name", *(f"{one}name" for one in singulars(table.name)), "fullname", "displayname"


def only_words(snapshot: Snapshot, table: Table) -> list[str]:
    """The only column of data, if it is one of words rather than of dates, or of numbers in a file."""
    columns = table.data_columns
    if len(columns) != 1 or not table.is_text_column(columns[0]):
        return []
    cell = f"{quoted(columns[0])}::VARCHAR"
    is_word = f"TRY_CAST({cell} AS TIMESTAMP) IS NULL"
    if table.is_text:
        is_word += f" AND TRY_CAST({cell} AS DOUBLE) IS NULL"
    share = share_of_sample(snapshot, table, columns[0], is_word)
    return columns if share > 1 - LEAST_SHARE_DATED else []
