"""Tables that are read by a schema which a person wrote: what it says is taken, and what it cannot mean is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from infomax.errors import InputError, shorten, suggest
from infomax.io.column_names import format_list
from infomax.io.schema.schema import Schema, TableSchema
from infomax.io.schema.schema_file import JsonPath, location_in

if TYPE_CHECKING:
    from infomax.io.columns import Columns

COUNT = "count"
_USES = ("id", "name", "source", "target", "weight", "group", "relation")


def schema_location(columns: Columns, *keys: str) -> str:
    """Where the schema says something of the known table: the file, the line and the keys."""
    schema = columns.schema or Schema()
    names = [name for name, table in schema.tables.items() if table is columns.known_table]
    return location_in(columns.schema_path, ("tables", *names, *keys))


def obeying(columns: Columns, path: Path, header: Sequence[str]) -> Columns:
    """The choices that a schema makes for a table with this header; without such a schema they stay as they are."""
    known = columns.known_table
    if not columns.obeys_schema:
        return columns
    if known is None:
        at = location_in(columns.schema_path, ("tables",))
        raise InputError(at, f"the table {path}", "none for it", "infomax info --schema writes it.")
    _refuse_missing(columns, known, path, header)

    of_uses = {name for purpose in _USES for name in getattr(known, purpose).columns}
    if known.time is not None:
        of_uses.add(known.time.column)
    features = known.with_role("feature")
    labels = known.with_role("label")
    kept = {*features, *labels, *known.with_role("split"), *of_uses, *_of_lookups(known)}
    # Names and times that a database puts together are no columns of a table.
    unused = [name for name in header if name not in kept and not name.startswith("node:")]
    if known.role == "edges":
        return columns
    column_types = {
        name: known.columns[name].column_type
        for name in features
        if name in header
        and known.columns[name].column_type not in ("", "numbers")
        and name not in columns.labels
    }
    new_labels = [label for label in labels if label not in columns.labels]
    taken = {*columns.labels, *columns.kinds}
    return replace(
        columns,
        labels=(*columns.labels, *new_labels),
        ignore=(*columns.ignore, *(name for name in unused if name not in taken)),
        kinds={**column_types, **columns.kinds},
        groups=columns.groups or known.group.column,
    )


def _of_lookups(table: TableSchema) -> set[str]:
    """What the values of lookups may be called that stand in place of the keys of a table."""
    return {name for key in table.keys for name in (key.table, "+".join(key.columns))}


def _refuse_missing(
    columns: Columns, known: TableSchema, path: Path, header: Sequence[str]
) -> None:
    """Refuse a schema that names columns which the table does not have."""
    wanted: list[tuple[JsonPath, str]] = []
    for purpose in _USES:
        names = getattr(known, purpose).columns
        wanted += [((purpose,), name) for name in names if (purpose, name) != ("weight", COUNT)]
    if known.time is not None and known.time.column:
        wanted.append((("time",), known.time.column))
    used = ("feature", "label", "split")
    wanted += [
        (("columns", name), name) for name, column in known.columns.items() if column.role in used
    ]
    for keys, name in wanted:
        if name not in header and not (keys[0] == "columns" and name in _of_lookups(known)):
            found = f"none among {format_list(list(header))}"
            expected = f"a column {shorten(name)} of {path}"
            where = schema_location(columns, *keys)
            raise InputError(where, expected, found, suggest(name, header))
    for name in known.with_role("split"):
        if not name.startswith("split:"):
            where = schema_location(columns, "columns", name)
            raise InputError(where, "a split to be called split:NAME", shorten(name))
