"""The tables of a database: their columns, primary keys, and keys that refer to the rows of other tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
_UNREADABLE = re.compile(r"BLOB|BIT\b|STRUCT|MAP|UNION|GEOMETRY|VARIANT|JSON|\]\[")
_DATES = ("DATE", "TIMESTAMP")


@dataclass(frozen=True)
class Key:
    """Columns of a table whose values are those of ``target``, columns of another table or of the same."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]
    how: str = "declared"
    """Or "found", by name and values, or "said" by a person."""
    filled: int = 0
    """The number of rows that have a value."""
    lost: int = 0
    """The number of those whose value no row of the other table has."""
    is_float: bool = False
    """Whether its values are text such as 12.0, as pandas writes integers some of which are missing."""

    @property
    def name(self) -> str:
        """The columns as one word."""
        return "+".join(self.columns)


@dataclass
class Table:
    """One table, in the snapshot of a database."""

    name: str
    sql: str
    """What queries call it."""
    columns: dict[str, str]
    """The type of each column, as DuckDB names it."""
    primary: tuple[str, ...] = ()
    keys: list[Key] = field(default_factory=list)
    rows: int = 0
    is_view: bool = False
    is_text: bool = False
    """Whether it comes from a text file, in which keys have no type."""
    integers: frozenset[str] = frozenset()
    """Of those columns of text that are keys, those that hold integers only."""
    copied: dict[str, str] = field(default_factory=dict)
    """The types of columns that are copied as text: UUID."""

    @property
    def own(self) -> list[str]:
        """The columns that can be read and belong to no key."""
        of_keys = {column for key in self.keys for column in key.columns}.union(self.primary)
        return [
            name
            for name, kind in self.columns.items()
            if name not in of_keys and not _UNREADABLE.search(kind)
        ]

    @property
    def key_types(self) -> dict[str, str]:
        """The columns of the primary key, and their types in words that all databases know."""
        types = {**self.columns, **dict.fromkeys(self.integers, "BIGINT"), **self.copied}
        return {column: _KEY_TYPES.get(types[column], "VARCHAR") for column in self.primary}

    def id(self, alias: str = "t") -> str:
        """The id of a row in SQL: an integer or text, of several columns joined by ``|``, or else its number."""
        if not self.primary:
            return f"{alias}.rowid + 1"
        if len(self.primary) > 1:
            return f"concat_ws('|', {', '.join(f'{alias}.{quoted(column)}' for column in self.primary)})"
        (column,) = self.primary
        kind, cell = self.columns[column], f"{alias}.{quoted(column)}"
        if kind in _INTEGERS or (kind == "VARCHAR" and column not in self.integers):
            return cell
        return f"CAST({cell} AS {'BIGINT' if column in self.integers else 'VARCHAR'})"

    def cell(self, column: str, alias: str = "t") -> str:
        """A column in SQL, as a type that becomes features."""
        kind, cell = self.columns[column], f"{alias}.{quoted(column)}"
        if kind.startswith(_DATES):  # infinity, and what is read of it, are no dates
            return f"CASE WHEN year({cell}) BETWEEN 1 AND 9999 THEN {cell} END"
        if (
            "INT" in kind
            or kind in ("VARCHAR", "FLOAT", "DOUBLE", "BOOLEAN")
            or kind.startswith("DECIMAL")
        ):
            return f"CAST({cell} AS DOUBLE)" if "HUGEINT" in kind else cell
        return cell if kind.endswith("]") or kind == "TIME" else f"CAST({cell} AS VARCHAR)"

    def is_date(self, column: str) -> bool:
        """Whether a column has the type of dates or times of a day."""
        return self.columns[column].startswith(_DATES)

    def holds_text(self, column: str) -> bool:
        """Whether a column has the type of text."""
        return self.columns[column] == "VARCHAR" or self.columns[column].startswith("ENUM")


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def joined(own: Table, key: Key, other: Table, alias: str = "r", row: str = "t") -> str:
    """The condition in SQL under which a row refers to a row ``alias`` of the other table by a key."""
    pairs = []
    for column, target in zip(key.columns, key.target, strict=True):
        one, two = f"{row}.{quoted(column)}", f"{alias}.{quoted(target)}"
        one = f"regexp_replace({one}, '\\.0$', '')" if key.is_float else one
        kinds = {own.columns[column], other.columns[target]}
        alike = len(kinds) == 1 or kinds.issubset(_NUMBERS)
        pairs.append(
            f"{one} = {two}" if alike else f"CAST({one} AS VARCHAR) = CAST({two} AS VARCHAR)"
        )
    return " AND ".join(pairs)
