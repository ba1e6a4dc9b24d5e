"""Keys of tables: those that are declared, those that a person said, and those that names and values tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from infomax.errors import InputError, format_count, shorten, suggest
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.decisions import Decisions, Key, PrimaryKey
from infomax.io.database.snapshot import Snapshot
from infomax.io.database.tables import Table, joined, quoted

LEAST_SHARE_FOUND = 0.95
"""The share of the values of a column that must be there in a table for the column to be a key."""
MOST_KEY_COLUMNS = 4
"""Columns of a key of several that is looked for."""
NO_TABLE = "none"
"""In place of a table: the column is no key."""
_VAGUE_KEY_NAMES = {"id", "key", "code", "name", "no", "nr", "number", "index", "uuid", "guid"}
"""Names of primary keys that do not tell the table."""
_ID_NAME = re.compile(r"(^|[\W_]|[a-z0-9])(id|ID|Id|key|Key|code|Code)$")

SaidKeys: TypeAlias = Mapping[tuple[str, tuple[str, ...]], Key | None]
"""What a person said of columns of a table: the key that they are; None: that they are none."""


def find_keys(
    snapshot: Snapshot, said: Sequence[str] = (), said_primary: Sequence[str] = ()
) -> None:
    """Complete the keys of all tables: those that are declared, said, and found; count their values."""
    for word in said_primary:
        table, columns = _said_primary_key(snapshot, word)
        table.primary_key = PrimaryKey(columns, "said", f"--pk {word}")
    _find_primary_keys(snapshot)
    said_keys = dict(_said_key(snapshot, word) for word in said)
    for table in snapshot.tables.values():
        _complete(snapshot, table, said_keys)
    _find_keys_of_several_columns(snapshot, said_keys)
    for table in snapshot.tables.values():
        table.keys = [_counted(snapshot, table, key) for key in table.keys]
        _sort(table)
    _note_integers(snapshot)


def take_keys(snapshot: Snapshot, decisions: Decisions) -> None:
    """Give the tables the keys that were decided earlier; nothing is searched, values are counted again."""
    for name, table in snapshot.tables.items():
        decision = decisions.get(name)
        table.keys = []
        if decision is None:
            continue
        table.primary_key = decision.primary_key
        for key in decision.keys:
            other = snapshot.tables.get(key.table)
            is_there = table.columns.keys() >= {*key.columns} and other is not None
            if is_there and other is not None and other.columns.keys() >= {*key.target}:
                table.keys.append(_with_counts(snapshot, table, replace(key, is_float=False)))
    _note_integers(snapshot)


def _sort(table: Table) -> None:
    """Put the keys of a table in the order of their columns."""
    columns = list(table.columns)
    table.keys.sort(key=lambda key: columns.index(key.columns[0]))


def _note_integers(snapshot: Snapshot) -> None:
    """Note the columns of text that belong to keys and hold integers only."""
    for table in snapshot.tables.values():
        if table.is_text:
            key_columns = {column for key in table.keys for column in key.columns}
            table.integer_columns = frozenset(
                column
                for column in key_columns.union(table.primary)
                if _holds_integers(snapshot, table, column)
            )


# What a person says


def _said_key(snapshot: Snapshot, said: str) -> tuple[tuple[str, tuple[str, ...]], Key | None]:
    """A key as a person writes it: results.driverId=drivers, or with the column =drivers.driverId; several by +."""
    left, _, right = said.partition("=")
    table = _table_of(snapshot, left)
    if table is None or not right:
        expected = "TABLE.COLUMN=TABLE, as in results.driverId=drivers"
        remedy = f"The tables are {format_list(list(snapshot.tables))}."
        raise InputError("--key", expected, shorten(said), remedy)
    columns = _said_columns("--key", table, left[len(table.name) + 1 :])
    if right == NO_TABLE:
        return (table.name, columns), None

    other = snapshot.tables.get(right) or _table_of(snapshot, right)
    if other is None:
        expected = f"a table ({format_list(list(snapshot.tables))})"
        remedy = suggest(right, snapshot.tables)
        raise InputError(f"--key {said}", expected, shorten(right), remedy)
    target: tuple[str, ...] = ()
    if right != other.name:
        target = _said_columns("--key", other, right[len(other.name) + 1 :])
    key = Key(columns, other.name, target, "said", f"--key {said}")
    return (table.name, columns), _targeted(snapshot, table, key)


def _said_primary_key(snapshot: Snapshot, said: str) -> tuple[Table, tuple[str, ...]]:
    """A primary key as a person writes it: Teams.yearID+lgID+teamID."""
    table = _table_of(snapshot, said)
    if table is None:
        expected = "TABLE.COLUMN, or of several columns TABLE.COLUMN+COLUMN"
        remedy = f"The tables are {format_list(list(snapshot.tables))}."
        raise InputError("--pk", expected, shorten(said), remedy)
    columns = _said_columns("--pk", table, said[len(table.name) + 1 :])
    if not _is_unique(snapshot, table, columns):
        location = f"{snapshot.location}, table {table.name}"
        found = f"the same values twice in {'+'.join(columns)}"
        raise InputError(location, "a primary key, which tells the rows apart", found, "See --pk.")
    return table, columns


def _table_of(snapshot: Snapshot, word: str) -> Table | None:
    """The table that a word such as results.driverId begins with; names of tables may hold dots."""
    names = [name for name in snapshot.tables if word.startswith(f"{name}.")]
    return snapshot.tables[max(names, key=len)] if names else None


def _said_columns(option: str, table: Table, word: str) -> tuple[str, ...]:
    """The columns that a word names: one, or several joined by +."""
    names = (word,) if word in table.columns else tuple(word.split("+"))
    for name in names:
        if name not in table.columns:
            expected = f"a column of {table.name} ({format_list(list(table.columns))})"
            raise InputError(option, expected, shorten(name), suggest(name, table.columns))
    return names


# Keys that are declared or said: their targets and counts


def _complete(snapshot: Snapshot, table: Table, said_keys: SaidKeys) -> None:
    """The keys of one table: declared ones but for columns of which a person said otherwise, said ones, found ones."""
    said = {columns: key for (name, columns), key in said_keys.items() if name == table.name}
    declared = [_targeted(snapshot, table, key) for key in table.keys if key.columns not in said]
    table.keys = [*declared, *(key for key in said.values() if key is not None)]
    if table.is_view:
        return
    taken = {column for columns in said for column in columns}
    taken |= {column for key in table.keys for column in key.columns}
    table.keys += _found_keys(snapshot, table, taken)


def _targeted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with the names of the table and the columns that it refers to; refused where there are none.

    A table without a primary key gets that to which the key refers.
    """
    location = f"{snapshot.location}, table {table.name}"
    without_key = f"--key {table.name}.{key.name}={NO_TABLE} leaves it out."
    other = _table_called(snapshot, key.table)
    if other is None:
        found = f"{key.name} refers to {shorten(key.table)}, which is not there"
        raise InputError(location, "keys that refer to a table", found, without_key)

    target = key.target or other.primary
    if len(target) != len(key.columns):
        expected = f"a key of {format_count(len(key.columns), 'column')} for {key.name}"
        found = f"{other.name}, whose primary key has {format_count(len(target), 'column')}"
        example = f"--key {table.name}.{key.name}={other.name}.COLUMN"
        raise InputError(location, expected, found, f"Name the column: {example}. {without_key}")
    spelling = {name.lower(): name for name in other.columns}
    target = tuple(spelling.get(name.lower(), name) for name in target)
    columns = {name.lower(): name for name in table.columns}
    own_columns = tuple(columns.get(name.lower(), name) for name in key.columns)
    for owner, names in ((other, target), (table, own_columns)):
        if missing := [name for name in names if name not in owner.columns]:
            found = f"{key.name} refers to {owner.name}.{missing[0]}, which is not there"
            raise InputError(location, "keys that refer to columns", found, without_key)

    if target != other.primary and not _is_unique(snapshot, other, target):
        found = f"the same value twice in {other.name}.{'+'.join(target)}"
        raise InputError(location, "a key that refers to one row", found, without_key)
    if not other.primary and not other.is_view:
        reason = f"{table.name}.{key.name} refers to it"
        other.primary_key = PrimaryKey(target, key.origin, reason)
    return replace(key, columns=own_columns, table=other.name, target=target)


def _table_called(snapshot: Snapshot, name: str) -> Table | None:
    """The table of a name; in another case where there is none spelt so."""
    if name in snapshot.tables:
        return snapshot.tables[name]
    same = [table for other, table in snapshot.tables.items() if other.lower() == name.lower()]
    return same[0] if same else None


def _counted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with its numbers of values; refused where it has some, and no row of the other table has any of them."""
    if key.origin == "found" or table.is_view:
        return key
    key = _with_counts(snapshot, table, key)
    if key.filled and key.lost == key.filled:
        values = format_count(key.filled, "value")
        found = f"none of {values} of {key.name} among those of {'+'.join(key.target)}"
        example = f"--key {table.name}.{key.name}"
        remedy = f"Name another: {example}=TABLE.COLUMN; or none: ={NO_TABLE}."
        location = f"{snapshot.location}, table {table.name}"
        raise InputError(location, f"values of the key of {key.table}", found, remedy)
    return key


def _with_counts(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with the number of its values, and of those that the other table does not have."""
    other = snapshot.tables[key.table]
    is_filled = " AND ".join(f"t.{quoted(column)} IS NOT NULL" for column in key.columns)
    is_there = f"EXISTS (SELECT 1 FROM {other.sql} AS r WHERE {joined(table, key, other)})"
    query = f"SELECT count(*) FROM {table.sql} AS t WHERE {is_filled}"
    filled = snapshot.number(query)
    lost = snapshot.number(f"{query} AND NOT {is_there}") if filled else 0
    key = replace(key, filled=filled, lost=lost)
    if table.is_text and filled and lost == filled and not key.is_float:
        as_integers = _with_counts(snapshot, table, replace(key, is_float=True))
        return as_integers if as_integers.lost < key.lost else key
    return key


# Keys that names and values tell


def _find_primary_keys(snapshot: Snapshot) -> None:
    """Find the primary keys of tables that declare none."""
    bare = [table for table in snapshot.tables.values() if not table.primary and not table.is_view]
    for table in bare:
        column = _column_called_as_key(snapshot, table)
        if column is not None:
            reason = "it is called as the key of the table, and its values all differ"
            table.primary_key = PrimaryKey((column,), "found", reason)
    for table in bare:
        if not table.primary and _is_first_column_key(snapshot, table):
            reason = "it is the first column, called as a key, and its values all differ"
            table.primary_key = PrimaryKey((next(iter(table.columns)),), "found", reason)


def _found_keys(snapshot: Snapshot, table: Table, taken: set[str]) -> Iterator[Key]:
    """Columns that are called after the key of another table, and whose values are nearly all found there."""
    own_key = table.primary if len(table.primary) == 1 else ()
    for column in table.columns:
        if column in taken or column in own_key:
            continue
        candidates = []
        for other in snapshot.tables.values():
            if _is_called_after(column, other, table):
                key = Key((column,), other.name, other.primary, "found")
                key = _with_counts(snapshot, table, key)
                if _fits(key):
                    candidates.append(_with_reason(key, f"{column} is called after {other.name}"))
        if candidates:
            # Of two tables such as Tag and tag the one that is spelt like the column comes first.
            yield min(candidates, key=lambda key: (key.lost, key.table not in column))


def _fits(key: Key) -> bool:
    """Whether nearly all values are those of the other table."""
    return key.filled > 0 and key.filled - key.lost >= LEAST_SHARE_FOUND * key.filled


def _with_reason(key: Key, why: str) -> Key:
    share = (key.filled - key.lost) / key.filled
    found = "all" if not key.lost else f"{100 * share:.1f} %"
    return replace(key, reason=f"{why}, and {found} of its values are there")


def _find_keys_of_several_columns(snapshot: Snapshot, said_keys: SaidKeys) -> None:
    """Find columns that have the names and values of the key of several columns of another table.

    A table without a primary key has such a key, too, where its first columns are called ids and tell its rows apart.
    Columns that are keys by themselves are left alone: ratings and tags of users and movies do not refer to each other.
    """
    for other in snapshot.tables.values():
        if other.is_view or not other.row_count:
            continue
        for target in _key_candidates(other):
            referring = _tables_with_columns(snapshot, other, target, said_keys)
            if not referring or not _is_unique(snapshot, other, target):
                continue
            has_keys = False
            for table, columns in referring:
                key = Key(columns, other.name, target, "found")
                key = _with_counts(snapshot, table, key)
                if _fits(key):
                    why = f"its columns are called as those of {other.name}"
                    table.keys.append(_with_reason(key, why))
                    has_keys = True
            if has_keys:
                if not other.primary:
                    reason = "its first columns are called ids, and tell the rows apart"
                    other.primary_key = PrimaryKey(target, "found", reason)
                break


def _key_candidates(table: Table) -> list[tuple[str, ...]]:
    """The columns of several that may be the key of a table: the primary key, or the first columns called ids."""
    if table.primary:
        candidates = [table.primary] if len(table.primary) > 1 else []
    else:
        first = []
        for column in table.columns:
            if not _ID_NAME.search(column):
                break
            first.append(column)
        counts = range(2, min(len(first), MOST_KEY_COLUMNS) + 1)
        candidates = [tuple(first[:count]) for count in counts]
    single_keys = {key.columns[0] for key in table.keys if len(key.columns) == 1}
    return [columns for columns in candidates if single_keys.isdisjoint(columns)]


def _tables_with_columns(
    snapshot: Snapshot, other: Table, target: tuple[str, ...], said_keys: SaidKeys
) -> list[tuple[Table, tuple[str, ...]]]:
    """The tables that have columns called as these of another table, and belong to no key yet; and the columns."""
    tables = []
    for table in snapshot.tables.values():
        if table is other or table.is_view or not table.row_count:
            continue
        by_name = {plain(column): column for column in reversed(table.columns)}
        columns = tuple(by_name.get(plain(column), "") for column in target)
        is_taken = any({*key.columns} & {*columns} for key in table.keys)
        if all(columns) and not is_taken and (table.name, columns) not in said_keys:
            tables.append((table, columns))
    return tables


def _is_called_after(column: str, other: Table, table: Table) -> bool:
    """Whether a column of a table is called after the key of another: driverId, home_driver_id, id_driver, driver."""
    if len(other.primary) != 1 or other.is_view:
        return False
    word = plain(column)
    if other is table:
        return word in ("parent", "parentid", "idparent")
    names = singulars(other.name)
    key_name = plain(other.primary[0])
    spellings = {spelling for name in names for spelling in (name, f"{name}id", f"id{name}")}
    if word in spellings or (word == key_name and key_name not in _VAGUE_KEY_NAMES):
        return True
    # home_driver_id ends as driver_id does
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", column)]
    ends = {"".join(parts[first:]) for first in range(1, len(parts))}
    return parts[-1:] == ["id"] and any(f"{name}id" in ends for name in names)


def _column_called_as_key(snapshot: Snapshot, table: Table) -> str | None:
    """The column that is called as the key of a table is, and whose values all differ: id, driverId, id_driver."""
    spellings = ["id"]
    for name in singulars(table.name):
        spellings += [f"{name}id", f"id{name}", f"{name}key"]
    by_name = {plain(column): column for column in reversed(table.columns)}
    likely = [by_name[spelling] for spelling in spellings if spelling in by_name]
    return next((column for column in likely if _is_unique(snapshot, table, (column,))), None)


def _is_first_column_key(snapshot: Snapshot, table: Table) -> bool:
    """Whether the first column is called an id of no other table, or as the table is, and its values all differ."""
    first = next(iter(table.columns), "")
    is_of_another = any(_is_called_after(first, other, table) for other in snapshot.tables.values())
    is_id = bool(_ID_NAME.search(first)) and not is_of_another
    is_called_as_table = len(table.columns) > 1 and plain(first) in singulars(table.name)
    return (is_id or is_called_as_table) and _is_unique(snapshot, table, (first,))


def _is_unique(snapshot: Snapshot, table: Table, columns: Sequence[str]) -> bool:
    """Whether no two rows of a table have the same values in some columns."""
    cells = ", ".join(map(quoted, columns))
    cell = cells if len(columns) == 1 else f"({cells})"
    query = f"SELECT count(*) - count(DISTINCT {cell}) FROM {table.sql}"
    return table.row_count > 0 and not snapshot.number(query)


def _holds_integers(snapshot: Snapshot, table: Table, column: str) -> bool:
    """Whether all cells of a column of text are written as integers are."""
    cell = quoted(column)
    is_other = f"TRY_CAST({cell} AS BIGINT)::VARCHAR IS DISTINCT FROM {cell}"
    query = f"SELECT count(*) FROM {table.sql} WHERE {is_other} AND {cell} IS NOT NULL"
    return not snapshot.number(query)
