"""Keys of tables: declared by the database, named by a person, or found.

A key is found where the name of a column says which table it refers to, and the column's values are
nearly all there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from infomax.errors import InputError, format_count, shorten, suggest
from infomax.io.column_names import format_list, plain, singulars
from infomax.io.database.snapshot import Key, Snapshot, Table, joined, quoted
from infomax.io.schema.schema import Schema

LEAST_SHARE_FOUND = 0.95
"""The share of the values of a column that must be there in a table for the column to be a key."""
MOST_KEY_COLUMNS = 4
"""Columns of a key of several that is looked for."""
NO_TABLE = "none"
"""In place of a table: the column is no key."""
_VAGUE_KEY_NAMES = {"id", "key", "code", "name", "no", "nr", "number", "index", "uuid", "guid"}
"""Names of primary keys that do not tell the table."""
_ID_NAME = re.compile(r"(^|[\W_]|[a-z0-9])(id|ID|Id|key|Key|code|Code)$")

NamedKeys: TypeAlias = Mapping[tuple[str, tuple[str, ...]], Key | None]
"""The keys that a person names, by the table and its columns; None: they are no key."""


def find_keys(
    snapshot: Snapshot, key_options: Sequence[str] = (), primary_key_options: Sequence[str] = ()
) -> None:
    """Complete the keys of all tables: declared, named and found; count their values."""
    # Other tables' keys refer to primary keys, so these come first.
    for option in primary_key_options:
        table, columns = _named_primary_key(snapshot, option)
        table.set_primary_key(columns, "said", f"--pk {option}")
    _find_primary_keys(snapshot)

    named_keys = dict(_named_key(snapshot, option) for option in key_options)
    for table in snapshot.tables.values():
        _complete(snapshot, table, named_keys)
    _find_keys_of_several_columns(snapshot, named_keys)
    for table in snapshot.tables.values():
        table.keys = [_counted(snapshot, table, key) for key in table.keys]
        _sort(table)
    _note_integers(snapshot)


def take_keys(snapshot: Snapshot, schema: Schema) -> None:
    """Give the tables the keys of a schema: nothing is searched, but values are counted again."""
    for name, table in snapshot.tables.items():
        known_table = schema.tables.get(name)
        table.keys = []
        if known_table is None:
            continue
        table.decide(id=known_table.id)
        for known_key in known_table.keys:
            # A later database may lack a column, or a table, that an earlier one had.
            other = snapshot.tables.get(known_key.table)
            if other is None or not other.columns.keys() >= {*known_key.target}:
                continue
            if not table.columns.keys() >= {*known_key.columns}:
                continue
            # Whether integers are written as 12.0 depends on the rows, so that is found again.
            key = Key(
                known_key.columns,
                known_key.table,
                known_key.target,
                origin=known_key.origin,
                reason=known_key.reason,
            )
            table.keys.append(_with_counts(snapshot, table, key))
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


# Keys that a person names


def _named_key(snapshot: Snapshot, option: str) -> tuple[tuple[str, tuple[str, ...]], Key | None]:
    """A key as a person writes it, with its table and columns.

    It is written ``results.driverId=drivers``, or with the column ``=drivers.driverId``; columns
    are joined by +.
    """
    reference, _, target_name = option.partition("=")
    table = _table_at_start(snapshot, reference)
    if table is None or not target_name:
        expected = "TABLE.COLUMN=TABLE, as in results.driverId=drivers"
        remedy = f"The tables are {format_list(list(snapshot.tables))}."
        raise InputError("--key", expected, shorten(option), remedy)
    columns = _named_columns("--key", table, reference[len(table.name) + 1 :])
    if target_name == NO_TABLE:
        return (table.name, columns), None

    other = snapshot.tables.get(target_name) or _table_at_start(snapshot, target_name)
    if other is None:
        expected = f"a table ({format_list(list(snapshot.tables))})"
        remedy = suggest(target_name, snapshot.tables)
        raise InputError(f"--key {option}", expected, shorten(target_name), remedy)
    target: tuple[str, ...] = ()
    if target_name != other.name:
        target = _named_columns("--key", other, target_name[len(other.name) + 1 :])
    key = Key(columns, other.name, target, origin="said", reason=f"--key {option}")
    return (table.name, columns), _targeted(snapshot, table, key)


def _named_primary_key(snapshot: Snapshot, option: str) -> tuple[Table, tuple[str, ...]]:
    """A primary key as a person writes it: Teams.yearID+lgID+teamID."""
    table = _table_at_start(snapshot, option)
    if table is None:
        expected = "TABLE.COLUMN, or of several columns TABLE.COLUMN+COLUMN"
        remedy = f"The tables are {format_list(list(snapshot.tables))}."
        raise InputError("--pk", expected, shorten(option), remedy)
    columns = _named_columns("--pk", table, option[len(table.name) + 1 :])
    if not _is_unique(snapshot, table, columns):
        location = f"{snapshot.location}, table {table.name}"
        found = f"the same values twice in {'+'.join(columns)}"
        raise InputError(location, "a primary key, which tells the rows apart", found, "See --pk.")
    return table, columns


def _table_at_start(snapshot: Snapshot, qualified_name: str) -> Table | None:
    """The table of a name such as results.driverId; names of tables may hold dots."""
    names = [name for name in snapshot.tables if qualified_name.startswith(f"{name}.")]
    return snapshot.tables[max(names, key=len)] if names else None


def _named_columns(option_name: str, table: Table, text: str) -> tuple[str, ...]:
    """The columns that a text names: one, or several joined by +."""
    names = (text,) if text in table.columns else tuple(text.split("+"))
    for name in names:
        if name not in table.columns:
            expected = f"a column of {table.name} ({format_list(list(table.columns))})"
            raise InputError(option_name, expected, shorten(name), suggest(name, table.columns))
    return names


# Targets and counts of keys that are declared or named


def _complete(snapshot: Snapshot, table: Table, named_keys: NamedKeys) -> None:
    """The keys of one table: declared, named and found; a named key replaces a declared one."""
    named = {columns: key for (name, columns), key in named_keys.items() if name == table.name}
    declared = [_targeted(snapshot, table, key) for key in table.keys if key.columns not in named]
    table.keys = [*declared, *(key for key in named.values() if key is not None)]
    if table.is_view:
        return
    taken_columns = {column for columns in named for column in columns}
    taken_columns |= {column for key in table.keys for column in key.columns}
    table.keys += _keys_by_names(snapshot, table, taken_columns)


def _targeted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with the names of the table and the columns that it refers to.

    A table without a primary key gets that to which the key refers.
    """
    location = f"{snapshot.location}, table {table.name}"
    without_key = f"--key {table.name}.{key.name}={NO_TABLE} leaves it out."
    other = _table_in_any_case(snapshot, key.table)
    if other is None:
        found = f"{key.name} refers to {shorten(key.table)}, which is not there"
        raise InputError(location, "keys that refer to a table", found, without_key)

    target = key.target or other.primary
    if not target:  # columns of the same names are meant, as of Teams in yearID+teamID=Teams
        target = _columns_called_alike(other, key.columns)
    if len(target) != len(key.columns):
        column_count = format_count(len(key.columns), "column")
        expected = f"a key of {column_count} for {key.name}"
        found = f"{other.name}, which has no primary key"
        if target:
            target_count = format_count(len(target), "column")
            found = f"{other.name}, whose primary key has {target_count}"
        target_names = "+".join(["COLUMN"] * len(key.columns))
        example = f"--key {table.name}.{key.name}={other.name}.{target_names}"
        noun = "the column" if len(key.columns) == 1 else "the columns"
        raise InputError(location, expected, found, f"Name {noun}: {example}. {without_key}")

    # SQL does not tell cases apart, so a declaration may spell a column otherwise than its table.
    target = _spelled_as_in(other, target)
    columns = _spelled_as_in(table, key.columns)
    for owner, names in ((other, target), (table, columns)):
        missing = [name for name in names if name not in owner.columns]
        if missing:
            found = f"{key.name} refers to {owner.name}.{missing[0]}, which is not there"
            raise InputError(location, "keys that refer to columns", found, without_key)

    if target != other.primary and not _is_unique(snapshot, other, target):
        found = f"the same value twice in {other.name}.{'+'.join(target)}"
        raise InputError(location, "a key that refers to one row", found, without_key)
    if not other.primary and not other.is_view:
        other.set_primary_key(target, key.origin, f"{table.name}.{key.name} refers to it")
    return replace(key, columns=columns, table=other.name, target=target)


def _spelled_as_in(table: Table, columns: Sequence[str]) -> tuple[str, ...]:
    """The names of columns as a table spells them; a name that it does not have stays."""
    spelling = {name.lower(): name for name in table.columns}
    return tuple(spelling.get(name.lower(), name) for name in columns)


def _table_in_any_case(snapshot: Snapshot, name: str) -> Table | None:
    """The table of a name; in another case where there is none spelt so."""
    if name in snapshot.tables:
        return snapshot.tables[name]
    for other_name, table in snapshot.tables.items():
        if other_name.lower() == name.lower():
            return table
    return None


def _counted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with its counts; refused where none of its values is in the other table."""
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
    has_row = f"EXISTS (SELECT 1 FROM {other.sql} AS r WHERE {joined(table, key, other)})"
    query = f"SELECT count(*) FROM {table.sql} AS t WHERE {table.refers(key)}"
    filled = snapshot.number(query)
    lost = snapshot.number(f"{query} AND NOT {has_row}") if filled else 0
    key = replace(key, filled=filled, lost=lost)

    # In a text file pandas writes integers as 12.0 where others are missing: then none of them
    # fits.
    if table.is_text and filled and lost == filled and not key.is_float:
        float_key = _with_counts(snapshot, table, replace(key, is_float=True))
        return float_key if float_key.lost < key.lost else key
    return key


# Keys that are found


def _find_primary_keys(snapshot: Snapshot) -> None:
    """Find the primary keys of tables that declare none."""
    tables = [
        table for table in snapshot.tables.values() if not table.primary and not table.is_view
    ]
    for table in tables:
        column = _column_called_as_key(snapshot, table)
        if column is not None:
            reason = "it is called as the key of the table, and its values all differ"
            table.set_primary_key((column,), "found", reason)
    # Whether a first column belongs to another table is known only once the others have their keys.
    for table in tables:
        if not table.primary and _is_first_column_key(snapshot, table):
            reason = "it is the first column, called as a key, and its values all differ"
            table.set_primary_key((next(iter(table.columns)),), "found", reason)


def _keys_by_names(snapshot: Snapshot, table: Table, taken_columns: set[str]) -> Iterator[Key]:
    """The columns called after another table's key, nearly all of whose values are there."""
    own_key = table.primary if len(table.primary) == 1 else ()
    for column in table.columns:
        if column in taken_columns or column in own_key:
            continue
        candidates = []
        for other in snapshot.tables.values():
            if _is_called_after(column, other, table):
                key = Key((column,), other.name, other.primary)
                key = _with_counts(snapshot, table, key)
                if _fits(key):
                    candidates.append(_with_reason(key, f"{column} is called after {other.name}"))
        if candidates:
            # Of two tables such as Tag and tag the one that is spelt like the column comes first.
            yield min(candidates, key=lambda key: (key.lost, key.table not in column))


def _fits(key: Key) -> bool:
    """Whether nearly all values are those of the other table."""
    return key.filled > 0 and key.filled - key.lost >= LEAST_SHARE_FOUND * key.filled


def _with_reason(key: Key, reason: str) -> Key:
    """The key with a reason, to which the share of its values is added."""
    share = (key.filled - key.lost) / key.filled
    amount = f"{100 * share:.1f} %" if key.lost else "all"
    return replace(key, reason=f"{reason}, and {amount} of its values are there")


def _find_keys_of_several_columns(snapshot: Snapshot, named_keys: NamedKeys) -> None:
    """Find columns that have the names and values of the key of several columns of another table.

    A table without a primary key has such a key, too, where its first columns are called ids and
    tell its rows apart. Columns that are keys by themselves are left alone: ratings and tags of
    users and movies do not refer to each other.
    """
    for other in snapshot.tables.values():
        if other.is_view or not other.row_count:
            continue
        for target in _key_candidates(other):
            referring = _tables_with_columns(snapshot, other, target, named_keys)
            if not referring or not _is_unique(snapshot, other, target):
                continue
            fitting_keys = []
            for table, columns in referring:
                key = _with_counts(snapshot, table, Key(columns, other.name, target))
                if _fits(key):
                    reason = f"its columns are called as those of {other.name}"
                    fitting_keys.append((table, _with_reason(key, reason)))
            if not fitting_keys:
                continue
            for table, key in fitting_keys:
                table.keys.append(key)
            if not other.primary:
                reason = "its first columns are called ids, and tell the rows apart"
                other.set_primary_key(target, "found", reason)
            break


def _key_candidates(table: Table) -> list[tuple[str, ...]]:
    """Several columns that may be a key: the primary key, or the first columns called ids."""
    candidates: list[tuple[str, ...]] = []
    if len(table.primary) > 1:
        candidates = [table.primary]
    elif not table.primary:
        first_ids = []
        for column in table.columns:
            if not _ID_NAME.search(column):
                break
            first_ids.append(column)
        most_columns = min(len(first_ids), MOST_KEY_COLUMNS)
        candidates = [tuple(first_ids[:count]) for count in range(2, most_columns + 1)]
    single_keys = {key.columns[0] for key in table.keys if len(key.columns) == 1}
    return [columns for columns in candidates if single_keys.isdisjoint(columns)]


def _tables_with_columns(
    snapshot: Snapshot, other: Table, target: tuple[str, ...], named_keys: NamedKeys
) -> list[tuple[Table, tuple[str, ...]]]:
    """The tables with columns called as these of another table, which belong to no key yet."""
    tables = []
    for table in snapshot.tables.values():
        if table is other or table.is_view or not table.row_count:
            continue
        columns = _columns_called_alike(table, target)
        is_taken = any({*key.columns} & {*columns} for key in table.keys)
        if columns and not is_taken and (table.name, columns) not in named_keys:
            tables.append((table, columns))
    return tables


def _columns_called_alike(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are called so but for case and signs; none where one is not there."""
    by_name = {plain(column): column for column in reversed(table.columns)}
    columns = tuple(by_name.get(plain(name), "") for name in names)
    return columns if all(columns) else ()


def _is_called_after(column: str, other: Table, table: Table) -> bool:
    """Whether a column is called after another table's key: driverId, home_driver_id, driver."""
    if len(other.primary) != 1 or other.is_view:
        return False
    column_name = plain(column)
    if other is table:
        return column_name in ("parent", "parentid", "idparent")

    table_names = singulars(other.name)
    key_name = plain(other.primary[0])
    for name in table_names:
        if column_name in (name, f"{name}id", f"id{name}"):
            return True
    if column_name == key_name and key_name not in _VAGUE_KEY_NAMES:
        return True

    # home_driver_id ends as driver_id does
    parts = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", column)]
    if parts[-1:] != ["id"]:
        return False
    endings = {"".join(parts[first:]) for first in range(1, len(parts))}
    return any(f"{name}id" in endings for name in table_names)


def _column_called_as_key(snapshot: Snapshot, table: Table) -> str | None:
    """The column called as the table's key, whose values all differ: id, driverId, id_driver."""
    spellings = ["id"]
    for name in singulars(table.name):
        spellings += [f"{name}id", f"id{name}", f"{name}key"]
    by_name = {plain(column): column for column in reversed(table.columns)}
    for spelling in spellings:
        if spelling in by_name and _is_unique(snapshot, table, (by_name[spelling],)):
            return by_name[spelling]
    return None


def _is_first_column_key(snapshot: Snapshot, table: Table) -> bool:
    """Whether the first column is called an id, or as the table is, and its values differ."""
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
