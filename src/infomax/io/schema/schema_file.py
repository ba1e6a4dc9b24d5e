"""A schema as JSON: in a run, in a graph folder, and in a file that a person edits."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from infomax.errors import InputError, shorten, suggest
from infomax.io.atomic import write_text
from infomax.io.encoding.column_types import FEATURE_TYPES
from infomax.io.schema.edits import checksums, with_changes_said
from infomax.io.schema.schema import (
    COLUMN_ROLES,
    ORIGINS,
    REASON_OF_TYPE,
    TABLE_ROLES,
    ColumnSchema,
    KeySchema,
    Schema,
    TableSchema,
    TimeUse,
    TypeColumns,
    Use,
)

T = TypeVar("T")

FORMAT = 1
TOP_KEYS = {"format", "is_database", "type_columns", "tables", "checksums"}
JsonPath = tuple[str, ...]
"""The keys that lead to a value of a JSON text."""


def to_json(schema: Schema) -> dict[str, Any]:
    """A schema as plain JSON; fields that equal their default are not written."""
    plain: dict[str, Any] = {"format": FORMAT}
    if schema.is_database:
        plain["is_database"] = True
    type_columns = _to_plain(schema.type_columns)
    if type_columns:
        plain["type_columns"] = type_columns
    plain["tables"] = {name: table_to_json(table) for name, table in schema.tables.items()}
    return plain


def table_to_json(table: TableSchema) -> dict[str, Any]:
    """One table as plain JSON."""
    columns = {name: _to_plain(column, "role") for name, column in table.columns.items()}
    return {**_to_plain(table, "role"), "columns": columns}


def _to_plain(value: Any, *required_names: str) -> dict[str, Any]:
    """The fields of a plain object as JSON.

    Fields that equal their default are not written, except ``origin`` and the required ones.
    """
    plain: dict[str, Any] = {}
    for field in _stored_fields(type(value)):
        content = getattr(value, field.name)
        if field.name == "columns" and isinstance(content, Mapping):
            continue  # `table_to_json` writes the columns of a table, after its other fields
        is_default = field.default is not MISSING and content == field.default
        if is_default and field.name not in ("origin", *required_names):
            continue
        if isinstance(content, Use | TimeUse):
            content = _to_plain(content)
        elif field.name == "keys":
            content = [
                _to_plain(key) if isinstance(key, KeySchema) else list(key) for key in content
            ]
        elif isinstance(content, tuple):
            content = list(content)
        plain["from" if field.name == "origin" else field.name] = content
    return plain


def _stored_fields(plain_class: Any) -> tuple[Field[Any], ...]:
    """The fields of a plain class that JSON holds."""
    stored = [field for field in fields(plain_class) if field.metadata.get("is_stored", True)]
    return tuple(stored)


def to_text(schema: Schema) -> str:
    """A schema as text for a person: each column, key and use of a column has a line of its own."""
    plain = {**to_json(schema), "checksums": checksums(schema)}
    return _written(plain, "") + "\n"


def _written(value: Any, indent: str) -> str:
    """A JSON value whose innermost objects, and lists, take one line each."""
    inner = f"{indent}  "
    if isinstance(value, dict) and any(_is_deep(content) for content in value.values()):
        lines = [f"{inner}{json.dumps(key)}: {_written(value[key], inner)}" for key in value]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(content, dict) for content in value):
        lines = [inner + json.dumps(content) for content in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    return json.dumps(value)


def _is_deep(value: Any) -> bool:
    """Whether a value takes lines of its own within an object."""
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(isinstance(content, dict) for content in value)


def write_schema(schema: Schema, path: Path) -> None:
    """Write a schema to a file, which appears whole or not at all."""
    write_text(path, to_text(schema))


def read_schema(path: str | Path) -> Schema:
    """The schema of a file; what is wrong in it is refused with its line."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(str(path), "a schema that can be read", str(error)) from None
    remedy = "infomax info GRAPH --schema FILE writes one."
    try:
        values = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), "a schema, which is JSON", str(error), remedy) from None
    return from_json(values, partial(location_in, path))


_REASON_OF_CATEGORIES = re.compile(
    "[0-9,]+ different values|codes|the values of the lookup .*|each row is a value .*"
)
"""Why a column is found to be a category, or to be one in place of a key."""


def with_edits_said(schema: Schema) -> Schema:
    """A schema that a person gave, in which the person said what differs from what was found.

    An edited choice loses its reason. An edit shows where a choice is not the one that its reason
    is about.
    """
    tables: dict[str, TableSchema] = {}
    for table_name, table in schema.tables.items():
        columns = {
            name: replace(column, origin="said", reason="") if _is_edited_column(column) else column
            for name, column in table.columns.items()
        }
        uses: dict[str, Any] = {}
        for purpose in ("id", "name", "source", "target", "weight", "group", "relation"):
            use: Use = getattr(table, purpose)
            is_called_otherwise = use.reason.removeprefix("called ") != use.column
            if use.reason.startswith("called ") and is_called_otherwise:
                uses[purpose] = replace(use, origin="said", reason="")
        tables[table_name] = replace(table, columns=columns, **uses)
    return replace(schema, tables=tables)


def _is_edited_column(column: ColumnSchema) -> bool:
    """Whether the reason of a column is one of another choice."""
    if column.origin != "found" or not column.reason:
        return False
    reason_of_type = REASON_OF_TYPE.get(column.column_type, "")
    is_of_category = _REASON_OF_CATEGORIES.fullmatch(column.reason) is not None
    if column.role == "feature":
        is_of_type = column.column_type == "category" if is_of_category else False
        return not is_of_type and column.reason != reason_of_type
    is_of_feature = is_of_category or column.reason in {
        REASON_OF_TYPE[column_type]
        for column_type in FEATURE_TYPES
        if column_type in REASON_OF_TYPE
    }
    return column.role == "label" or bool(column.column_type) or is_of_feature


def location_in(path: Path | None, keys: JsonPath) -> str:
    """Where a value is in a schema, by the keys that lead to it; in its file also the line."""
    location = "schema"
    if path is not None:
        lines = JsonLines(path.read_text(encoding="utf-8"))
        location = f"{path}, line {lines.of(keys)}"
    return f"{location}, {dotted(keys)}" if keys else location


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some keys and values, each key once."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {shorten(key)} twice")
        values[key] = value
    return values


def dotted(keys: Sequence[str]) -> str:
    """``tables.orders.columns.price``: where a value is in a schema."""
    plain = re.compile(r"[\w ]+")
    return ".".join(key if plain.fullmatch(key) else json.dumps(key) for key in keys)


class JsonLines:
    """The line of each key in a JSON text, by the keys that lead to it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line_ends = [match.end() for match in re.finditer("\n", text)]
        self._lines: dict[JsonPath, int] = {(): 1}
        self._decoder = json.JSONDecoder()
        self._scan(self._next(0), ())

    def of(self, keys: JsonPath) -> int:
        """The line of a key, or of the nearest one above it that the text has."""
        while keys not in self._lines:
            keys = keys[:-1]
        return self._lines[keys]

    def _next(self, position: int) -> int:
        """The position of the next character that is no space."""
        while position < len(self._text) and self._text[position] in " \t\r\n":
            position += 1
        return position

    def _scan(self, position: int, keys: JsonPath) -> int:
        """Note the lines of the keys in the value at a position; returns where the value ends."""
        opened = self._text[position]
        if opened not in "{[":
            return self._decoder.raw_decode(self._text, position)[1]
        position = self._next(position + 1)
        count = 0
        while self._text[position] not in "}]":
            key = str(count)
            line = 1 + bisect_right(self._line_ends, position)
            if opened == "{":
                key, position = self._decoder.raw_decode(self._text, position)
                position = self._next(self._next(position) + 1)
            self._lines[(*keys, key)] = line
            position = self._next(self._scan(position, (*keys, key)))
            count += 1
            if self._text[position] == ",":
                position = self._next(position + 1)
        return position + 1


def from_json(values: Any, location: Callable[[JsonPath], str] | None = None) -> Schema:
    """The schema that `to_json` wrote, or a person edited.

    Args:
        values: the JSON.
        location: names the place of a value, by the keys that lead to it, in a message.
    """
    location = location or partial(location_in, None)
    reader = _Reader(location)
    top = reader.object(values, (), TOP_KEYS)
    if top.get("format") != FORMAT:
        raise InputError(location(("format",)), f"the format {FORMAT}", repr(top.get("format")))
    tables = {
        name: reader.table(table, ("tables", name))
        for name, table in reader.object(top.get("tables", {}), ("tables",)).items()
    }
    type_columns = reader.plain(TypeColumns, top.get("type_columns", {}), ("type_columns",))
    is_database = reader.checked(top.get("is_database", False), bool, ("is_database",))
    schema = Schema(tables, type_columns, is_database)
    if "checksums" not in top:
        return schema
    written_checksums = {
        name: reader.object(of_table, ("checksums", name))
        for name, of_table in reader.object(top["checksums"], ("checksums",)).items()
    }
    return with_changes_said(schema, written_checksums)


def table_from_json(values: Any) -> TableSchema:
    """The table that `table_to_json` wrote."""
    return _Reader(partial(location_in, None)).table(values, ())


class _Reader:
    """Makes plain objects of JSON, and refuses what they cannot hold.

    Each method takes a value and the keys that lead to it, by which a message says where it is.
    """

    def __init__(self, location: Callable[[JsonPath], str]) -> None:
        self.location = location

    def table(self, values: Any, keys: JsonPath) -> TableSchema:
        """A table, with the roles and the types of its columns."""
        table = self.plain(TableSchema, values, keys)
        self.require_one_of(TABLE_ROLES, table.role, (*keys, "role"))
        ends: tuple[str, ...] = table.ends or ("", "", "")
        if len(ends) != 3:
            expected = "a type, the name of a relation, and a type"
            raise InputError(self.location((*keys, "ends")), expected, f"{len(ends)} words")
        for name, column in table.columns.items():
            column_keys = (*keys, "columns", name)
            self.require_one_of(COLUMN_ROLES, column.role, (*column_keys, "role"))
            if column.role == "feature" and column.column_type:
                type_keys = (*column_keys, "column_type")
                self.require_one_of(FEATURE_TYPES, column.column_type, type_keys)
        return table

    def plain(self, plain_class: Callable[..., T], values: Any, keys: JsonPath) -> T:
        """An object of a class of `infomax.io.schema.schema`, field by field."""
        # A field cannot be called "from", which reads better in a file.
        field_of_key = {
            "from" if field.name == "origin" else field.name: field
            for field in _stored_fields(plain_class)
        }
        arguments: dict[str, Any] = {}
        for key, value in self.object(values, keys, {*field_of_key}).items():
            field = field_of_key[key]
            arguments[field.name] = self.field(plain_class, field, value, (*keys, key))
        for field in field_of_key.values():
            has_default = field.default is not MISSING or field.default_factory is not MISSING
            if field.name not in arguments and not has_default:
                raise InputError(self.location(keys), f"a value for {field.name}", "none")
        return plain_class(**arguments)

    def field(
        self, plain_class: Callable[..., Any], field: Field[Any], value: Any, keys: JsonPath
    ) -> Any:
        """The value of a field of a plain class."""
        if field.name == "origin":
            origin = self.checked(value, str, keys)
            self.require_one_of(ORIGINS, origin, keys)
            return origin
        if field.name == "columns" and plain_class is TableSchema:
            return {
                column: self.plain(ColumnSchema, column_values, (*keys, column))
                for column, column_values in self.object(value, keys).items()
            }
        if field.name == "keys":
            # The keys of a table are objects; those of a time are lists of columns.
            items = enumerate(self.checked(value, list, keys))
            if plain_class is TableSchema:
                return tuple(self.plain(KeySchema, key, (*keys, str(n))) for n, key in items)
            return tuple(self.names(columns, (*keys, str(n))) for n, columns in items)
        if field.name == "time":
            return None if value is None else self.plain(TimeUse, value, keys)
        if isinstance(field.default, Use):
            return self.plain(Use, value, keys)
        if isinstance(field.default, bool):
            return self.checked(value, bool, keys)
        # The types of fields are text, since annotations are not evaluated.
        if str(field.type).startswith(("tuple", "Ends")):
            return self.names(value, keys)
        text = self.checked(value, str, keys)
        # The options say ignore, a schema says ignored: each is understood by both.
        if field.name == "role" and text == "ignore":
            return "ignored"
        return text

    def object(
        self, value: Any, keys: JsonPath, allowed_keys: set[str] | None = None
    ) -> dict[str, Any]:
        """A JSON object, with no other keys than the allowed ones; None: with any keys."""
        values: dict[str, Any] = self.checked(value, dict, keys)
        for key in values:
            if allowed_keys is not None and key not in allowed_keys:
                expected = f"one of {', '.join(sorted(allowed_keys))}"
                location = self.location((*keys, key))
                raise InputError(location, expected, shorten(key), suggest(key, allowed_keys))
        return values

    def names(self, value: Any, keys: JsonPath) -> tuple[str, ...]:
        """A list of names; one name stands for a list of one."""
        names = [value] if isinstance(value, str) else self.checked(value, list, keys)
        return tuple(
            self.checked(name, str, (*keys, str(number))) for number, name in enumerate(names)
        )

    def checked(self, value: Any, json_type: type[T], keys: JsonPath) -> T:
        """A JSON value of a type."""
        if not isinstance(value, json_type):
            type_names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
            found = shorten(json.dumps(value))
            raise InputError(self.location(keys), type_names[json_type], found)
        return value

    def require_one_of(self, allowed: Sequence[str], value: str, keys: JsonPath) -> None:
        """Refuse a value that is none of the allowed ones."""
        if value not in allowed:
            expected = f"one of {', '.join(allowed)}"
            remedy = suggest(value, allowed)
            raise InputError(self.location(keys), expected, shorten(value), remedy)
