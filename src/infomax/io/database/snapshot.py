"""All tables of a database as they were at one moment, in a DuckDB database of their own.

What is decided about a table is its `TableSchema`, in `Table.schema`: every step of `decide`
replaces some of its fields, and everything after reads them there.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infomax.errors import InputError, one_line, shorten
from infomax.io.column_names import check_column_names
from infomax.io.prepare.database import FULL, Database
from infomax.io.schema.schema import (
    ColumnSchema,
    KeySchema,
    Origin,
    Schema,
    TableRole,
    TableSchema,
    Use,
)

WORKING_MEMORY = 10**9
"""Bytes that DuckDB works in, about; more than that lies in the folder."""
ROWS_OF_SAMPLE = 1000
"""Rows that are looked at to tell whether a column of text holds dates, or numbers."""
LEAST_SHARE_OF_SAMPLE = 0.95
"""A column of text is one of dates, or of numbers, where this share of the sample is."""
NODE_ROLES: tuple[TableRole, ...] = ("nodes", "facts")
DECLARED = "the database declares it"
"""The reason of what needs no other reason."""
NUMBERED_ROWS = Use(reason="no column tells the rows apart: their ids are their numbers")
"""The ids of a table without a primary key."""
EMPTY_KEY = "it is empty in every row"
"""The reason of a column of a key that has no values."""

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_NUMBERS = (*_INTEGERS, "FLOAT", "DOUBLE")
_KEY_TYPES = {
    **{name: name for name in ("SMALLINT", "INTEGER", "BIGINT", "DATE", "TIMESTAMP", "UUID")},
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
"""Types of which no features are made, by how they begin: an ENUM may hold these words."""
_DATES = ("DATE", "TIMESTAMP")
_DAY = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?$"


@dataclass(frozen=True)
class Key(KeySchema):
    """A key of a table, and how many of the table's rows have one."""

    filled: int = 0
    """The number of rows that have a value in all columns."""
    lost: int = 0
    """The number of those whose value no row of the other table has."""

    @property
    def name(self) -> str:
        """The columns, joined by +."""
        return "+".join(self.columns)

    @property
    def schema(self) -> KeySchema:
        """The key without the numbers of its rows, which differ from one database to the next."""
        return KeySchema(
            self.columns, self.table, self.target, self.is_float, self.origin, self.reason
        )


def declared_key(columns: Sequence[str], table: str, target: Sequence[str]) -> Key:
    """A key that a database declares; without a ``target`` it refers to the primary key."""
    return Key(tuple(columns), table, tuple(target), origin="declared", reason=DECLARED)


@dataclass
class Table:
    """One table of a snapshot: what it holds, how SQL names that, and what was decided about it."""

    name: str
    sql: str = ""
    """What queries call it."""
    columns: dict[str, str] = field(default_factory=dict)
    """The type of each column, as DuckDB names it."""
    schema: TableSchema = field(default_factory=lambda: TableSchema(id=NUMBERED_ROWS))
    """What was decided; `Snapshot.schema` adds the keys, which have their counts in ``keys``."""
    keys: list[Key] = field(default_factory=list)
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

    # What was decided

    def decide(self, **fields: Any) -> None:
        """Replace some fields of what was decided."""
        self.schema = replace(self.schema, **fields)

    def set_primary_key(self, columns: Sequence[str], origin: Origin, reason: str) -> None:
        """Decide which columns tell the rows apart."""
        self.decide(id=Use(tuple(columns), origin, reason))

    def leave_out(self, column: str, reason: str, origin: Origin = "found") -> None:
        """Decide that a column becomes no feature."""
        ignored = ColumnSchema("ignored", origin=origin, reason=reason)
        self.decide(columns={**self.schema.columns, column: ignored})

    @property
    def role(self) -> TableRole:
        """What the table becomes."""
        return self.schema.role

    @property
    def primary(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return self.schema.id.columns

    @property
    def left_out(self) -> list[str]:
        """The columns that become no features."""
        return self.schema.with_role("ignored")

    @property
    def category_name(self) -> str:
        """The column of names that is a feature as well; "" for none."""
        name = self.schema.name.column
        if name is None or name not in self.schema.columns:
            return ""
        return name if self.schema.columns[name].column_type == "category" else ""

    @property
    def time_keys(self) -> list[Key]:
        """The keys to the rows whose times the rows of this table have."""
        time = self.schema.time
        return [] if time is None else [key for key in self.keys if key.columns in time.keys]

    # Its columns

    def is_of_a_key(self, column: str) -> bool:
        """Whether a column belongs to the primary key or to another key."""
        return column in self.primary or any(column in key.columns for key in self.keys)

    @property
    def data_columns(self) -> list[str]:
        """The columns that can be read, belong to no key, and were not left out."""
        left_out = {*self.left_out, self.number_column}
        return [
            column
            for column in self.columns
            if column not in left_out and self.is_readable(column) and not self.is_of_a_key(column)
        ]

    @property
    def key_types(self) -> dict[str, str]:
        """The columns of the primary key, and their types in words that all databases know."""
        integers = dict.fromkeys(self.integer_columns, "BIGINT")
        types = {**self.columns, **integers, **self.original_types}
        return {column: _KEY_TYPES.get(types[column], "VARCHAR") for column in self.primary}

    def is_named(self, column: str, names: Collection[str]) -> bool:
        """Whether a person named a column, as COLUMN, as TABLE.COLUMN or as TYPE.COLUMN."""
        owners = ("", f"{self.name}.", f"{type_name(self.name)}.")
        return any(f"{owner}{column}" in names for owner in owners)

    def is_readable(self, column: str) -> bool:
        """Whether features can be made of a column of this type."""
        return not _UNREADABLE.match(self.columns[column])

    def is_date(self, column: str) -> bool:
        """Whether a column has the type of dates or of times of a day."""
        return self.columns[column].startswith(_DATES) and self.is_readable(column)

    def is_number(self, column: str) -> bool:
        """Whether a column has a type of numbers."""
        column_type = self.columns[column]
        if column_type.endswith("]"):
            return False
        if column_type.startswith(("DOUBLE", "FLOAT", "DECIMAL")):
            return True
        return "INT" in column_type and not column_type.startswith(("ENUM", "INTERVAL"))

    def is_text_column(self, column: str) -> bool:
        """Whether a column has the type of text."""
        column_type = self.columns[column]
        is_enum = column_type.startswith("ENUM") and not column_type.endswith("]")
        return column_type == "VARCHAR" or is_enum

    # Its cells and ids in SQL

    def cell(self, column: str, alias: str = "t") -> str:
        """A cell in SQL, as a type that becomes features."""
        column_type = self.columns[column]
        cell = f"{alias}.{quoted(column)}"
        list_mark = "[]" if column_type.endswith("]") else ""
        if column_type.startswith(_DATES):  # infinity, and what is read of it, are no dates
            return f"CASE WHEN year({cell}) BETWEEN 1 AND 9999 THEN {cell} END"
        if column_type == "INTERVAL":
            return f"epoch({cell})"
        if column_type.startswith("ENUM"):
            return f"CAST({cell} AS VARCHAR{list_mark})"
        if "HUGEINT" in column_type:
            return f"CAST({cell} AS DOUBLE{list_mark})"
        is_number = "INT" in column_type or column_type.startswith(("FLOAT", "DOUBLE", "DECIMAL"))
        if is_number or list_mark or column_type in ("VARCHAR", "BOOLEAN", "TIME"):
            return cell
        return f"CAST({cell} AS VARCHAR)"

    def row_id(self, alias: str = "t") -> str:
        """The id of a row in SQL: an integer or text, several joined by ``|``, or its number."""
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


class Snapshot:
    """Tables by name, and the DuckDB database that holds them.

    Attributes:
        location: names the database in messages.
        stamp: is equal where nothing can have changed.
        role_options: the roles of tables that a person named, as ``--table`` has them.
        left_out: the tables that a person does not want, which are not read.
    """

    def __init__(
        self, location: str, stamp: Any = None, role_options: Mapping[str, str] | None = None
    ) -> None:
        self.location = location
        self.stamp = stamp
        self.tables: dict[str, Table] = {}
        self.role_options: dict[str, str] = dict(role_options or {})
        self.left_out: set[str] = set()
        self._folder = TemporaryDirectory(prefix="infomax-")
        self.database = Database(Path(self._folder.name), WORKING_MEMORY)
        self.failure = self.database.failure
        # One thread and joins in the order in which they are written keep rows in the order of
        # their table.
        for setting in ("threads = 1", "preserve_insertion_order = true", "TimeZone = 'UTC'"):
            self.database.execute(f"SET {setting}")
        self.database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        weakref.finalize(self, _close, self.database, self._folder)

    # Reading tables

    def is_left_out(self, table_name: str, schema_name: str = "") -> bool:
        """Whether a person does not want a table."""
        unwanted = {name.lower() for name, role in self.role_options.items() if role == "ignore"}
        qualified_name = f"{schema_name}.{table_name}"
        return not unwanted.isdisjoint((table_name.lower(), qualified_name.lower()))

    def wants(self, table_name: str, is_view: bool = False, schema_name: str = "") -> bool:
        """Whether a table is to be read; one that is not is noted.

        A view is read only where a person names it: its query may take long, or fail.
        """
        names = [
            name
            for name in (table_name, f"{schema_name}.{table_name}")
            if name in self.role_options
        ]
        ignored_names = [name for name in names if self.role_options[name] == "ignore"]
        if ignored_names:
            self.left_out.update(ignored_names)
            return False
        if is_view and not names:
            self.refuse_second_table(table_name)
            self.tables[table_name] = Table(table_name, is_view=True)
            return False
        return True

    def are_vectors(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether a table is one of vectors, as `writing` makes them, which no person names."""
        has_our_columns = [*columns] == [*table.primary, "vector"]
        if not has_our_columns or not table.primary or table.keys:
            return False
        if table.name in self.role_options:
            return False
        self.refuse_second_table(table.name)
        self.tables[table.name] = Table(
            table.name, columns=dict.fromkeys(columns, ""), is_view=True
        )
        return True

    def copy(
        self, table: Table, batches: Iterator[Mapping[str, Any]], *, names: Sequence[str]
    ) -> None:
        """Copy the rows of a table, in batches of Arrow columns; there may be none."""
        self.refuse_second_table(table.name)
        location = f"{self.location}, table {table.name}"
        refuse_same_names(location, names)
        table.sql = f"t{len(self.tables)}"
        try:
            table.row_count = self.database.create(table.sql, map(dict, batches), location)
        except self.failure as error:
            raise self.refused(error) from None
        if not table.row_count:
            columns = ", ".join(f"{quoted(name)} VARCHAR" for name in names)
            self.database.execute(f"CREATE TABLE {table.sql} ({columns})")
        table.columns = self.column_types(table.sql)
        self.tables[table.name] = table

    def copy_view(self, table: Table) -> None:
        """Copy the rows of a view, which have no numbers and may change."""
        name = f"v{list(self.tables).index(table.name)}"
        self.rows(f"CREATE TABLE {name} AS SELECT * FROM {table.sql}")
        table.sql = name
        table.row_count = self.number(f"SELECT count(*) FROM {name}")

    def number_rows(self) -> None:
        """Give rows without a primary key numbers from 1 on, where DuckDB's do not count them so.

        DuckDB keeps the numbers of rows that were deleted, and a column may itself be called rowid.
        """
        for index, table in enumerate(list(self.tables.values())):
            if table.primary or not table.row_count:
                continue
            names = {column.lower() for column in table.columns}
            if "rowid" not in names:
                last = self.number(f"SELECT max(rowid) FROM {table.sql}")
                if last + 1 == table.row_count:
                    continue
            self.add_numbers(table, f"n{index}", "row_number() OVER ()")

    def add_numbers(self, table: Table, sql: str, number: str) -> None:
        """Copy a table with a column of the numbers of its rows, which are an expression of SQL."""
        names = {column.lower() for column in table.columns}
        number_column = "row"
        while number_column in names:
            number_column += "_"
        cells = f"{number} AS {quoted(number_column)}, *"
        self.rows(f"CREATE TABLE {sql} AS SELECT {cells} FROM {table.sql}")
        table.sql = sql
        table.columns[number_column] = "BIGINT"
        table.number_column = number_column

    def refuse_second_table(self, name: str) -> None:
        """Refuse a second table of a name, from another schema."""
        if name in self.tables:
            remedy = f"Leave one out: --table SCHEMA.{name}=ignore."
            found = f"{shorten(name)} in two schemas"
            raise InputError(self.location, "one table of each name", found, remedy)

    # Asking what tables hold

    def column_types(self, sql: str) -> dict[str, str]:
        """The columns of a table or a query, and their types."""
        return {str(row[0]): str(row[1]) for row in self.rows(f"DESCRIBE SELECT * FROM {sql}")}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            rows: list[tuple[Any, ...]] = self.database.execute(query).fetchall()
        except self.failure as error:
            raise self.refused(error) from None
        return rows

    def number(self, query: str) -> int:
        """The one number that a query gives."""
        return int(self.rows(query)[0][0] or 0)

    def share(self, query: str) -> float:
        """The one share, from 0 to 1, that a query gives; 0 for that of no rows."""
        return float(self.rows(query)[0][0] or 0)

    def share_of_sample(self, table: Table, column: str, condition: str) -> float:
        """The share of the first filled cells of a column for which a condition in SQL holds."""
        sample = sample_of(table, column)
        return self.share(f"SELECT count(*) FILTER ({condition}) / count(*) FROM {sample}")

    def date_columns(self, table: Table) -> list[str]:
        """The columns of a table that hold dates, by type or as text, and belong to no key."""
        columns = []
        for column in table.columns:
            if table.is_of_a_key(column) or not table.is_readable(column):
                continue
            # A date that was found to be no feature may still be the time of a row.
            decided = table.schema.columns.get(column)
            if decided is not None and decided.role == "ignored" and decided.origin == "said":
                continue
            if table.is_date(column):
                columns.append(column)
            elif table.is_text_column(column):
                is_day = f"regexp_matches({quoted(column)}::VARCHAR, '{_DAY}')"
                if self.share_of_sample(table, column, is_day) >= LEAST_SHARE_OF_SAMPLE:
                    columns.append(column)
        return columns

    def refused(
        self, error: Exception, location: str = "", expected: str = "tables that can be read"
    ) -> InputError:
        """DuckDB's error in plain words, about what it reads or about a full disk."""
        message = one_line(error)
        if not FULL.search(message):
            return InputError(location or self.location, expected, message)
        remedy = "Make room there, or name another folder: TMPDIR=FOLDER. Nothing was written."
        folder = str(Path(self._folder.name).parent)
        return InputError(folder, "room for a copy of all tables", message, remedy)

    # What was decided

    @property
    def node_tables(self) -> dict[str, Table]:
        """The tables whose rows are nodes, by the names of the types."""
        return {
            type_name(name): table
            for name, table in self.tables.items()
            if table.role in NODE_ROLES
        }

    @property
    def timed_tables(self) -> list[str]:
        """The tables whose rows have a time."""
        return [name for name, table in self.tables.items() if table.schema.has_times]

    def keys_to(self, table: Table, *roles: TableRole) -> list[Key]:
        """The keys of a table to tables of these roles, by default to nodes."""
        return [key for key in table.keys if self.tables[key.table].role in (roles or NODE_ROLES)]

    def referring(self, name: str) -> list[tuple[Table, Key]]:
        """The tables that refer to a table, and their keys."""
        return [
            (table, key)
            for table in self.tables.values()
            for key in table.keys
            if key.table == name
        ]

    def schema(self, known: Schema | None = None) -> Schema:
        """All that was decided; columns that become features are added once they have been read.

        Tables that are left out are not looked at: what was ``known`` of them stays.
        """
        tables: dict[str, TableSchema] = {}
        for name, table in self.tables.items():
            key_columns = {
                column: ColumnSchema("key", origin=key.origin, reason=_reason_of_key(key))
                for key in table.keys
                for column in key.columns
            }
            left_out = {column: table.schema.columns[column] for column in table.left_out}
            is_node = table.role in NODE_ROLES
            tables[name] = replace(
                table.schema,
                node_type=type_name(name) if is_node else "",
                id_types=tuple(table.key_types.values()) if is_node else (),
                keys=tuple(key.schema for key in table.keys),
                columns={**key_columns, **left_out},
            )
        known_tables = {} if known is None else known.tables
        for name in sorted(self.left_out):
            tables[name] = known_tables.get(name, TableSchema("ignored", origin="said"))
        return Schema(tables, is_database=True)


def _reason_of_key(key: Key) -> str:
    """What a column of a key is; a key without values leads to no edges and to no category."""
    return f"it refers to {key.table}" if key.filled else EMPTY_KEY


def _close(database: Database, folder: TemporaryDirectory[str]) -> None:
    database.close()
    folder.cleanup()


def refuse_same_names(location: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name, in any case: SQL does not tell them apart."""
    check_column_names(location, names)
    if not names:
        return
    lower_name, count = Counter(name.lower() for name in names).most_common(1)[0]
    if count > 1:
        spellings = [shorten(name) for name in names if name.lower() == lower_name]
        expected = "each column name once, in any case"
        raise InputError(location, expected, " and ".join(spellings), "Rename one of them.")


class Query:
    """The rows of a query, to be read as those of a pyarrow table are.

    ``columns`` are expressions of SQL by the names of columns, ``source`` is the query from FROM
    on.
    """

    def __init__(
        self, snapshot: Snapshot, columns: Mapping[str, str], source: str, num_rows: int
    ) -> None:
        self.snapshot = snapshot
        self.columns = columns
        self.source = source
        self.num_rows = num_rows
        self.stamp = snapshot.stamp

    @property
    def nbytes(self) -> int:
        """About as many bytes as its cells take."""
        return 8 * self.num_rows * len(self.columns)

    @property
    def schema(self) -> Any:
        """The types of the columns, those of pyarrow."""
        relation = self.snapshot.database.connection.sql(f"{self._sql} LIMIT 0")
        return relation.to_arrow_reader(1).schema

    def select(self, names: Sequence[str]) -> Query:
        """The same rows of some columns."""
        columns = {name: self.columns[name] for name in names}
        return Query(self.snapshot, columns, self.source, self.num_rows)

    def to_batches(self, max_chunksize: int) -> Iterator[Any]:
        """The rows as record batches of at most so many."""
        for batch in self.snapshot.database.stream(self._sql):
            for first in range(0, len(batch), max_chunksize):
                yield batch.slice(first, max_chunksize)

    @property
    def _sql(self) -> str:
        cells = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in self.columns.items())
        return f"SELECT {cells} {self.source}"


# Names and conditions in SQL


def type_name(table_name: str) -> str:
    """The type of nodes that rows of a table are, without signs that mean something in types."""
    return re.sub(r"[-.:\[\]/\\\0]", "_", table_name.strip())


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_string(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def sample_of(table: Table, column: str) -> str:
    """The first filled cells of a column in SQL, as a query in brackets."""
    cell = quoted(column)
    return f"(SELECT {cell} FROM {table.sql} WHERE {cell} IS NOT NULL LIMIT {ROWS_OF_SAMPLE})"


def joined(
    table: Table, key: Key, other: Table, other_alias: str = "r", row_alias: str = "t"
) -> str:
    """The condition in SQL under which a row refers to a row of the other table by a key."""
    conditions = []
    for column, target in zip(key.columns, key.target, strict=True):
        value = f"{row_alias}.{quoted(column)}"
        target_value = f"{other_alias}.{quoted(target)}"
        if key.is_float:
            value = f"regexp_replace({value}, '\\.0$', '')"
        types = {table.columns[column], other.columns[target]}
        are_comparable = len(types) == 1 or types.issubset(_NUMBERS)
        if not are_comparable:
            value = f"CAST({value} AS VARCHAR)"
            target_value = f"CAST({target_value} AS VARCHAR)"
        conditions.append(f"{value} = {target_value}")
    return " AND ".join(conditions)
