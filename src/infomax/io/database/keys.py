"""Keys of tables: those that are declared, those that a person said, and those that names and values tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from infomax.errors import InputError, meant, number_of, shorten
from infomax.io.column_names import listed, plain, singulars
from infomax.io.database.schema import Key, Table, joined, quoted
from infomax.io.database.snapshot import Snapshot

FOUND = 0.95
"""The share of the values of a column that must be there in a table for the column to be a key."""
NONE = "none"
"""In place of a table: the column is no key."""
_VAGUE = {"id", "key", "code", "name", "no", "nr", "number", "index", "uuid", "guid"}
"""Names of primary keys that do not tell the table."""


def find_keys(snapshot: Snapshot, said: Sequence[str]) -> None:
    """Complete the keys of all tables; count the values of each that no row has."""
    bare = [table for table in snapshot.tables.values() if not table.primary and not table.is_view]
    for find in (_called_as_key, _first):
        for table in bare:
            if not table.primary:
                table.primary = find(snapshot, table)
    chosen = dict(_read(snapshot, one) for one in said)
    for table in snapshot.tables.values():
        own = {columns: key for (name, columns), key in chosen.items() if name == table.name}
        declared = [_targeted(snapshot, table, key) for key in table.keys if key.columns not in own]
        table.keys = [*declared, *(key for key in own.values() if key is not None)]
        taken = {
            column for columns in [*own, *(key.columns for key in table.keys)] for column in columns
        }
        if not table.is_view:
            table.keys += _found(snapshot, table, taken)
        places = list(table.columns)
        table.keys.sort(key=lambda key: places.index(key.columns[0]))
    for table in snapshot.tables.values():
        table.keys = [_counted(snapshot, table, key) for key in table.keys]
        used = {column for key in table.keys for column in key.columns}.union(table.primary)
        if table.is_text:
            table.integers = frozenset(
                column for column in used if _holds_integers(snapshot, table, column)
            )


def _read(snapshot: Snapshot, said: str) -> tuple[tuple[str, tuple[str, ...]], Key | None]:
    """A key as a person writes it: results.driverId=drivers, or with the column =drivers.driverId; several by +."""
    left, _, right = said.partition("=")
    name = max((one for one in snapshot.tables if left.startswith(f"{one}.")), key=len, default="")
    if not name or not right:
        remedy = f"The tables are {listed(list(snapshot.tables))}."
        raise InputError(
            "--key", "TABLE.COLUMN=TABLE, as in results.driverId=drivers", shorten(said), remedy
        )
    table = snapshot.tables[name]
    columns = _columns(table, left[len(name) + 1 :])
    if right == NONE:
        return (name, columns), None
    other = right if right in snapshot.tables else right.rpartition(".")[0]
    if other not in snapshot.tables:
        remedy = meant(right, snapshot.tables)
        raise InputError(
            f"--key {said}", f"a table ({listed(list(snapshot.tables))})", shorten(right), remedy
        )
    target = _columns(snapshot.tables[other], right[len(other) + 1 :]) if right != other else ()
    key = _targeted(snapshot, table, Key(columns, other, target, "said"))
    return (name, columns), key


def _columns(table: Table, words: str) -> tuple[str, ...]:
    """The columns that a word names: one, or several joined by +."""
    names = (words,) if words in table.columns else tuple(words.split("+"))
    for name in names:
        if name not in table.columns:
            expected = f"a column of {table.name} ({listed(list(table.columns))})"
            raise InputError("--key", expected, shorten(name), meant(name, table.columns))
    return names


def _targeted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with the names of the table and the columns that it refers to; refused where there are none."""
    by_case = {name.lower(): name for name in snapshot.tables}
    where, left_out = (
        f"{snapshot.where}, table {table.name}",
        f"--key {table.name}.{key.name}={NONE} leaves it out.",
    )
    if key.table.lower() not in by_case:
        found = f"{key.name} refers to {shorten(key.table)}, which is not there"
        raise InputError(where, "keys that refer to a table", found, left_out)
    other = snapshot.tables[by_case[key.table.lower()]]
    target = key.target or other.primary
    if len(target) != len(key.columns):
        found = f"{other.name}, whose primary key has {number_of(len(target), 'column')}"
        remedy = f"Name the column: --key {table.name}.{key.name}={other.name}.COLUMN. {left_out}"
        raise InputError(
            where, f"a key of {number_of(len(key.columns), 'column')} for {key.name}", found, remedy
        )
    columns = {name.lower(): name for name in other.columns}
    target = tuple(columns.get(name.lower(), name) for name in target)
    if missing := [name for name in target if name not in other.columns]:
        found = f"{key.name} refers to {other.name}.{missing[0]}, which is not there"
        raise InputError(where, "keys that refer to columns", found, left_out)
    if target != other.primary and not _is_unique(snapshot, other, target):
        found = f"the same value twice in {other.name}.{'+'.join(target)}"
        raise InputError(where, "a key that refers to one row", found, left_out)
    return replace(key, table=other.name, target=target)


def _counted(snapshot: Snapshot, table: Table, key: Key) -> Key:
    """The key with its numbers of values; refused where it has some, and no row of the other table has any of them."""
    if key.how == "found" or table.is_view:
        return key
    key = _with_counts(snapshot, table, key)
    if key.filled and key.lost == key.filled:
        found = f"none of {number_of(key.filled, 'value')} of {key.name} among those of {'+'.join(key.target)}"
        remedy = f"Name another: --key {table.name}.{key.name}=TABLE.COLUMN; or none: ={NONE}."
        raise InputError(
            f"{snapshot.where}, table {table.name}",
            f"values of the key of {key.table}",
            found,
            remedy,
        )
    return key


def _with_counts(snapshot: Snapshot, table: Table, key: Key) -> Key:
    other = snapshot.tables[key.table]
    filled = " AND ".join(f"t.{quoted(column)} IS NOT NULL" for column in key.columns)
    there = f"SELECT 1 FROM {other.sql} AS r WHERE {joined(table, key, other)}"
    query = f"SELECT count(*) FROM {table.sql} AS t WHERE {filled}"
    key = replace(
        key,
        filled=snapshot.number(query),
        lost=snapshot.number(f"{query} AND NOT EXISTS ({there})"),
    )
    if table.is_text and key.lost == key.filled and not key.is_float:
        as_integers = _with_counts(snapshot, table, replace(key, is_float=True))
        return as_integers if as_integers.lost < key.lost else key
    return key


def _found(snapshot: Snapshot, table: Table, taken: set[str]) -> Iterator[Key]:
    """Columns that are called after the key of another table, and whose values are nearly all found there."""
    own = table.primary if len(table.primary) == 1 else ()
    for column in table.columns:
        if column in taken or column in own:
            continue
        named = [other for other in snapshot.tables.values() if _is_called(column, other, table)]
        keys = [
            _with_counts(snapshot, table, Key((column,), other.name, other.primary, "found"))
            for other in named
        ]
        keys = [key for key in keys if key.filled and key.filled - key.lost >= FOUND * key.filled]
        if keys:
            yield min(keys, key=lambda key: key.lost)


def _is_called(column: str, other: Table, table: Table) -> bool:
    """Whether a column of a table is called after the key of another: driverId, home_driver_id, id_driver, driver."""
    if len(other.primary) != 1 or other.is_view:
        return False
    word = plain(column)
    if other is table:
        return word in ("parent", "parentid", "idparent")
    names = singulars(other.name)
    key = plain(other.primary[0])
    known = {spelling for name in names for spelling in (name, f"{name}id", f"id{name}")}
    if word in known or (word == key and key not in _VAGUE):
        return True
    words = [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", column)]
    ends = {"".join(words[at:]) for at in range(1, len(words))}
    return words[-1:] == ["id"] and any(f"{name}id" in ends for name in names)


def _called_as_key(snapshot: Snapshot, table: Table) -> tuple[str, ...]:
    """The column that is called as the key of a table is, and whose values all differ: id, driverId, id_driver."""
    names = singulars(table.name)
    spelt = [
        "id",
        *(spelling for name in names for spelling in (f"{name}id", f"id{name}", f"{name}key")),
    ]
    by_name = {plain(column): column for column in reversed(table.columns)}
    likely = [by_name[word] for word in spelt if word in by_name]
    return next(((column,) for column in likely if _is_unique(snapshot, table, (column,))), ())


def _first(snapshot: Snapshot, table: Table) -> tuple[str, ...]:
    """The first column, where it is called an id of no other table, and its values all differ."""
    first = next(iter(table.columns), "")
    is_id = re.search(r"(^|[\W_]|[a-z0-9])(id|ID|Id|key|Key|code|Code)$", first)
    others = any(_is_called(first, other, table) for other in snapshot.tables.values())
    named = len(table.columns) > 1 and plain(first) in singulars(table.name)
    likely = (is_id and not others) or named
    return (first,) if likely and _is_unique(snapshot, table, (first,)) else ()


def _is_unique(snapshot: Snapshot, table: Table, columns: Sequence[str]) -> bool:
    cells = ", ".join(map(quoted, columns))
    cell = cells if len(columns) == 1 else f"({cells})"
    query = f"SELECT count(*) - count(DISTINCT {cell}) FROM {table.sql}"
    return table.rows > 0 and not snapshot.number(query)


def _holds_integers(snapshot: Snapshot, table: Table, column: str) -> bool:
    """Whether all cells of a column of text are written as integers are."""
    cell = quoted(column)
    other = f"TRY_CAST({cell} AS BIGINT)::VARCHAR IS DISTINCT FROM {cell} AND {cell} IS NOT NULL"
    return not snapshot.number(f"SELECT count(*) FROM {table.sql} WHERE {other}")


def written(tables: Mapping[str, Table]) -> list[str]:
    """All keys as a person would say them, so that a later database is read with the same ones."""
    keys = ((table.name, key) for table in tables.values() for key in table.keys)
    return [f"{name}.{key.name}={key.table}.{'+'.join(key.target)}" for name, key in keys]
