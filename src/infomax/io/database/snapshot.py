"""All tables of a database as they were at one moment, in a DuckDB database of their own, in a temporary folder."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infomax.errors import InputError, one_line, shorten
from infomax.io.column_names import check_column_names
from infomax.io.database.tables import Table, quoted
from infomax.io.prepare.database import FULL, Database

WORKING_MEMORY = 10**9
"""Bytes that DuckDB works in, about; more than that lies in the folder."""


class Snapshot:
    """Tables by name, and the DuckDB database that holds them.

    Attributes:
        location: names the database in messages.
        stamp: is equal where nothing can have changed.
        said_roles: the roles of tables that a person named.
        left_out: the tables that a person does not want.
    """

    def __init__(
        self, location: str, stamp: Any = None, said_roles: Mapping[str, str] | None = None
    ) -> None:
        self.location = location
        self.stamp = stamp
        self.tables: dict[str, Table] = {}
        self.said_roles: dict[str, str] = dict(said_roles or {})
        self.left_out: set[str] = set()
        self._folder = TemporaryDirectory(prefix="infomax-")
        self.database = Database(Path(self._folder.name), WORKING_MEMORY)
        self.failure = self.database.failure
        # One thread and joins in the order in which they are written keep rows in the order of their table.
        for setting in ("threads = 1", "preserve_insertion_order = true", "TimeZone = 'UTC'"):
            self.database.execute(f"SET {setting}")
        self.database.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        weakref.finalize(self, _close, self.database, self._folder)

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
        """Give the rows of tables without a primary key numbers from 1 on, where DuckDB's do not count them so.

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
            number_column = "row"
            while number_column in names:
                number_column += "_"
            sql = f"n{index}"
            query = f"SELECT row_number() OVER () AS {quoted(number_column)}, * FROM {table.sql}"
            self.rows(f"CREATE TABLE {sql} AS {query}")
            table.sql = sql
            table.columns[number_column] = "BIGINT"
            table.number_column = number_column

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

    def refused(
        self, error: Exception, location: str = "", expected: str = "tables that can be read"
    ) -> InputError:
        """DuckDB's error in plain words, about what it reads, or about the disk that the copy fills."""
        message = one_line(error)
        if not FULL.search(message):
            return InputError(location or self.location, expected, message)
        remedy = "Make room there, or name another folder: TMPDIR=FOLDER. Nothing was written."
        folder = str(Path(self._folder.name).parent)
        return InputError(folder, "room for a copy of all tables", message, remedy)

    def is_left_out(self, name: str, schema: str = "") -> bool:
        """Whether a person does not want a table."""
        unwanted = {table.lower() for table, role in self.said_roles.items() if role == "ignore"}
        return not unwanted.isdisjoint((name.lower(), f"{schema}.{name}".lower()))

    def wants(self, name: str, is_view: bool = False, schema: str = "") -> bool:
        """Whether a table is to be read; else notes it. A view, which may take long or fail, is not unless named."""
        roles = {
            said: self.said_roles[said]
            for said in (name, f"{schema}.{name}")
            if said in self.said_roles
        }
        if "ignore" in roles.values():
            self.left_out |= {said for said, role in roles.items() if role == "ignore"}
            return False
        if is_view and not roles:
            self.refuse_second_table(name)
            self.tables[name] = Table(name, "", {}, is_view=True)
            return False
        return True

    def are_vectors(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether a table is one of vectors, as `writing` makes them: noted, and not read unless a person named it."""
        is_ours = not table.keys and [*columns] == [*table.primary, "vector"]
        if not is_ours or not table.primary or table.name in self.said_roles:
            return False
        self.refuse_second_table(table.name)
        self.tables[table.name] = Table(table.name, "", dict.fromkeys(columns, ""), is_view=True)
        return True

    def refuse_second_table(self, name: str) -> None:
        """Refuse a second table of a name, from another schema."""
        if name in self.tables:
            remedy = f"Leave one out: --table SCHEMA.{name}=ignore."
            found = f"{shorten(name)} in two schemas"
            raise InputError(self.location, "one table of each name", found, remedy)


def refuse_same_names(location: str, names: Sequence[str]) -> None:
    """Refuse two columns of one name, in any case: SQL does not tell them apart."""
    check_column_names(location, names)
    folded, count = Counter(name.lower() for name in names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        same = [shorten(name) for name in names if name.lower() == folded]
        found = f"{' and '.join(same)}"
        raise InputError(
            location, "each column name once, in any case", found, "Rename one of them."
        )


class Query:
    """The rows of a query, to be read as those of a pyarrow table are.

    ``columns`` are expressions of SQL by the names of columns, ``rest`` is the query from FROM on.
    """

    def __init__(
        self, snapshot: Snapshot, columns: Mapping[str, str], rest: str, num_rows: int
    ) -> None:
        self.snapshot = snapshot
        self.columns = columns
        self.rest = rest
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
        return Query(self.snapshot, columns, self.rest, self.num_rows)

    def to_batches(self, max_chunksize: int) -> Iterator[Any]:
        """The rows as record batches of at most so many."""
        for batch in self.snapshot.database.stream(self._sql):
            for first in range(0, len(batch), max_chunksize):
                yield batch.slice(first, max_chunksize)

    @property
    def _sql(self) -> str:
        cells = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in self.columns.items())
        return f"SELECT {cells} {self.rest}"


def _close(database: Database, folder: TemporaryDirectory[str]) -> None:
    database.close()
    folder.cleanup()
