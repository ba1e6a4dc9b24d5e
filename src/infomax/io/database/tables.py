"""The tables of a database: their columns and keys, and how SQL names their cells, ids and joins."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from infomax.errors import InputError
from infomax.io.database.decisions import DroppedColumn, Key, PrimaryKey

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_NUMBERS = (*_INTEGERS, "FLOAT", "DOUBLE")
_KEY_TYPES = {
    name: name for name in ("SMALLINT", "INTEGER", "BIGINT", "DATE", "TIMESTAMP", "UUID")
} | {
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
}
"""Types of DuckDB as all databases know them; columns of other types are compared as text."""
_UNREADABLE = re.compile(
    r"(BLOB|BIT|STRUCT|MAP|UNION|GEOMETRY|VARIANT|JSON|NULL)\b"
    r"|(DATE|TIME|INTERVAL|UUID|BLOB|BIT)[^']*\]$|[^']*\]\["
)
"""Types of which no features are made, by their beginnings: a value of an ENUM may hold any of these words."""
_DATES = ("DATE", "TIMESTAMP")


@dataclass
class Table:
    """One table, in the snapshot of a database."""

    name: str
    sql: str
    """What queries call it."""
    columns: dict[str, str]
    """The type of each column, as DuckDB names it."""
    primary_key: PrimaryKey = field(default_factory=PrimaryKey)
    keys: list[Key] = field(default_factory=list)
    dropped: dict[str, DroppedColumn] = field(default_factory=dict)
    """The columns that become no features although they could be read, and those that could not."""
    row_count: int = 0
    is_view: bool = False
    is_text: bool = False
    """Whether it comes from a text file, in which keys have no type."""
    integer_columns: frozenset[str] = frozenset()
    """Of those columns of text that are keys, those that hold integers only."""
    original_types: dict[str, str] = field(default_factory=dict)
    """The types of columns that are copied as text: UUID."""
    number_column: str = ""
    """The column that holds the numbers of rows, where DuckDB's own do not count them from 1 on."""

    @property
    def primary(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return self.primary_key.columns

    @property
    def data_columns(self) -> list[str]:
        """The columns that can be read, belong to no key, and were not dropped."""
        key_columns = {column for key in self.keys for column in key.columns}.union(self.primary)
        return [
            column
            for column in self.columns
            if column not in key_columns
            and column not in self.dropped
            and column != self.number_column
            and self.is_readable(column)
        ]

    @property
    def key_types(self) -> dict[str, str]:
        """The columns of the primary key, and their types in words that all databases know."""
        integers = dict.fromkeys(self.integer_columns, "BIGINT")
        types = {**self.columns, **integers, **self.original_types}
        return {column: _KEY_TYPES.get(types[column], "VARCHAR") for column in self.primary}

    def is_named(self, column: str, words: Collection[str]) -> bool:
        """Whether a person named a column, as COLUMN, as TABLE.COLUMN or as TYPE.COLUMN."""
        owners = ("", f"{self.name}.", f"{type_name(self.name)}.")
        return any(f"{owner}{column}" in words for owner in owners)

    def is_readable(self, column: str) -> bool:
        """Whether features can be made of a column of this type."""
        return not _UNREADABLE.match(self.columns[column])

    def row_id(self, alias: str = "t") -> str:
        """The id of a row in SQL: an integer or text, of several columns joined by ``|``, or else its number."""
        if not self.primary:
            if self.number_column:
                return f"{alias}.{quoted(self.number_column)}"
            return f"{alias}.rowid + 1"
        if len(self.primary) > 1:
            parts = ", ".join(self._key_cell(column, alias) for column in self.primary)
            return f"concat_ws('|', {parts})"
        (column,) = self.primary
        column_type = self.columns[column]
        cell = self._key_cell(column, alias)
        if column in self.integer_columns:
            return f"CAST({cell} AS BIGINT)"
        if column_type in _INTEGERS or column_type == "VARCHAR":
            return cell
        return f"CAST({cell} AS VARCHAR)"

    def referred_id(self, key: Key, other: Table, alias: str = "t") -> str:
        """The id in SQL of the row that a row refers to, by the cells of its key alone."""
        if key.target != other.primary:
            expected = f"a key of {self.name} that refers to the ids of {other.name}"
            found = f"{key.name}, which refers to {'+'.join(key.target)}"
            raise InputError(f"table {self.name}", expected, found)
        if len(key.columns) == 1 and other.columns[key.target[0]] in _INTEGERS:
            return f"TRY_CAST({self._key_cell(key.columns[0], alias)} AS BIGINT)"
        parts = []
        for column in key.columns:
            cell = f"CAST({self._key_cell(column, alias)} AS VARCHAR)"
            if self.columns[column] in ("FLOAT", "DOUBLE"):  # as pandas writes integers beside gaps
                cell = f"regexp_replace({cell}, '\\.0$', '')"
            parts.append(cell)
        return " || '|' || ".join(parts)

    def refers(self, key: Key, alias: str = "t") -> str:
        """The condition in SQL under which a row has values in all columns of a key."""
        return " AND ".join(f"{alias}.{quoted(column)} IS NOT NULL" for column in key.columns)

    def _key_cell(self, column: str, alias: str) -> str:
        """A cell of a key in SQL; bytes as hexadecimal digits."""
        cell = f"{alias}.{quoted(column)}"
        return f"lower(hex({cell}))" if self.columns[column] == "BLOB" else cell

    def cell(self, column: str, alias: str = "t") -> str:
        """A cell in SQL, as a type that becomes features."""
        column_type = self.columns[column]
        cell = f"{alias}.{quoted(column)}"
        if column_type.startswith(_DATES):  # infinity, and what is read of it, are no dates
            return f"CASE WHEN year({cell}) BETWEEN 1 AND 9999 THEN {cell} END"
        if column_type == "INTERVAL":
            return f"epoch({cell})"
        if column_type.startswith("ENUM"):
            return f"CAST({cell} AS VARCHAR{'[]' if column_type.endswith(']') else ''})"
        if "HUGEINT" in column_type:
            return f"CAST({cell} AS DOUBLE{'[]' if column_type.endswith(']') else ''})"
        is_number = "INT" in column_type or column_type.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
        is_kept = column_type in ("VARCHAR", "BOOLEAN", "TIME") or column_type.endswith("]")
        return cell if is_number or is_kept else f"CAST({cell} AS VARCHAR)"

    def is_date(self, column: str) -> bool:
        """Whether a column has the type of dates or times of a day."""
        return self.columns[column].startswith(_DATES) and self.is_readable(column)

    def is_number(self, column: str) -> bool:
        """Whether a column has a type of numbers."""
        column_type = self.columns[column]
        is_integer = "INT" in column_type and not column_type.startswith(("ENUM", "INTERVAL"))
        starts_so = column_type.startswith(("DOUBLE", "FLOAT", "DECIMAL"))
        return (is_integer or starts_so) and not column_type.endswith("]")

    def is_text_column(self, column: str) -> bool:
        """Whether a column has the type of text."""
        column_type = self.columns[column]
        return column_type == "VARCHAR" or (
            column_type.startswith("ENUM") and not column_type.endswith("]")
        )


def type_name(table: str) -> str:
    """The type of nodes that the rows of a table are; some signs have a meaning in names of types."""
    return re.sub(r"[-.:\[\]/\\\0]", "_", table.strip())


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_string(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def joined(table: Table, key: Key, other: Table, alias: str = "r", row: str = "t") -> str:
    """The condition in SQL under which a row refers to a row ``alias`` of the other table by a key."""
    conditions = []
    for column, target in zip(key.columns, key.target, strict=True):
        value = f"{row}.{quoted(column)}"
        target_value = f"{alias}.{quoted(target)}"
        if key.is_float:
            value = f"regexp_replace({value}, '\\.0$', '')"
        types = {table.columns[column], other.columns[target]}
        are_comparable = len(types) == 1 or types.issubset(_NUMBERS)
        if not are_comparable:
            value = f"CAST({value} AS VARCHAR)"
            target_value = f"CAST({target_value} AS VARCHAR)"
        conditions.append(f"{value} = {target_value}")
    return " AND ".join(conditions)
