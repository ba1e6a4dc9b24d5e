"""Which choices of a schema a person changed, told by checksums that its file keeps of them.

The reason of a choice tells too little: an edit may leave it, and not every choice has one. So a
file holds a checksum of each choice as it was written, and a choice that differs from its checksum
is the person's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

from infomax.io.schema.schema import Schema, TableSchema, Use

USES = ("id", "name", "source", "target", "weight", "group", "relation")
"""The fields of a table that are a `Use`."""
Checksums = dict[str, dict[str, str]]
"""By table, then by choice: ``role``, ``time``, ``keys.station_id``, ``columns.price``, ..."""


def checksums(schema: Schema) -> Checksums:
    """The checksum of every choice, without who made it and why; none of a use without columns."""
    checksums_by_table: Checksums = {}
    for table_name, table in schema.tables.items():
        checksums_by_table[table_name] = {
            choice: _checksum(content)
            for choice, (content, _) in _choices(table).items()
            if content
        }
    return checksums_by_table


def with_changes_said(schema: Schema, written_checksums: Mapping[str, Any]) -> Schema:
    """A schema in which choices that differ from their checksums are said, without a reason."""
    tables: dict[str, TableSchema] = {}
    for table_name, table in schema.tables.items():
        checksums_of_table = written_checksums.get(table_name, {})
        changed_choices = {
            choice
            for choice, (content, _) in _choices(table).items()
            if checksums_of_table.get(choice, _NO_COLUMNS) != _checksum(content)
        }
        tables[table_name] = _with_said(table, changed_choices)
    return replace(schema, tables=tables)


def choices_of_person(schema: Schema) -> list[str]:
    """The choices that a person made, as ``rentals.time ended_at`` and ``districts.role nodes``."""
    return [
        f"{choice} {content_text}".rstrip()
        for choice, content_text, origin in _choices_in_words(schema)
        if origin == "said"
    ]


def choices_in_words(schema: Schema) -> dict[str, str]:
    """All choices, as ``{"rentals.time": "ended_at"}``; none of a use without columns."""
    return {
        choice: content_text
        for choice, content_text, _ in _choices_in_words(schema)
        if content_text
    }


def _choices_in_words(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """The name of each choice, its content in words, and its origin."""
    for table_name, table in schema.tables.items():
        for choice, (content, origin) in _choices(table).items():
            name = f"{table_name}.{choice.removeprefix('columns.')}"
            yield name, _in_words(content), origin


def _in_words(content: Any) -> str:
    """The content of a choice in words: names joined by +, without what is empty."""
    if isinstance(content, str):
        return content
    parts = [_in_words(part) for part in content]
    return "+".join(part for part in parts if part)


def _checksum(content: Any) -> str:
    return f"{crc32(json.dumps(content).encode()):08x}"


_NO_COLUMNS = _checksum(())
"""The checksum of a use that a table does not have, which a file leaves out."""


def _choices(table: TableSchema) -> dict[str, tuple[Any, str]]:
    """The content and the origin of every choice of a table.

    Keys go by their columns, not by their number: where one is removed, the others are unchanged.
    """
    choices: dict[str, tuple[Any, str]] = {"role": (table.role, table.origin)}
    for purpose in USES:
        use: Use = getattr(table, purpose)
        choices[purpose] = (use.columns, use.origin)
    if table.time is not None:
        time = table.time
        choices["time"] = ((time.column, time.keys, time.unit), time.origin)
    for key in table.keys:
        choice = f"keys.{'+'.join(key.columns)}"
        choices[choice] = ((key.columns, key.table, key.target), key.origin)
    for name, column in table.columns.items():
        # Of other roles a type that an edit has left behind says nothing.
        column_type = column.column_type if column.role == "feature" else ""
        choices[f"columns.{name}"] = ((column.role, column_type), column.origin)
    return choices


def _with_said(table: TableSchema, changed_choices: set[str]) -> TableSchema:
    """A table whose changed choices are said; a choice loses the reason of the earlier one."""
    changes: dict[str, Any] = {}
    if "role" in changed_choices:
        changes |= {"origin": "said", "reason": ""}
    for purpose in USES:
        if purpose in changed_choices:
            changes[purpose] = replace(getattr(table, purpose), origin="said", reason="")
    if "time" in changed_choices and table.time is not None:
        changes["time"] = replace(table.time, origin="said", reason="")

    keys = []
    for key in table.keys:
        is_changed = f"keys.{'+'.join(key.columns)}" in changed_choices
        keys.append(replace(key, origin="said", reason="") if is_changed else key)
    columns = dict(table.columns)
    for name, column in table.columns.items():
        if f"columns.{name}" in changed_choices:
            columns[name] = replace(column, origin="said", reason="")
    return replace(table, keys=tuple(keys), columns=columns, **changes)
