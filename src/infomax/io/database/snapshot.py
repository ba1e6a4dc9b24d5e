"""All tables of a database as they were at one moment, in a DuckDB database of their own, in a temporary folder."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from infomax.errors import InputError, one_line, shorten
from infomax.io.database.schema import Table, quoted
from infomax.io.prepare.database import FULL, Database

MEMORY = 10**9
"""Bytes that DuckDB works in, about; more than that lies in the folder."""


class Snapshot:
    """Tables by name; ``where`` names the database in messages, ``stamp`` is equal where nothing can have changed."""

    def __init__(
        self, where: str, stamp: Any = None, said: Mapping[str, str] | None = None
    ) -> None:
        self.where, self.stamp = where, stamp
        self.tables: dict[str, Table] = {}
        self.said: dict[str, str] = dict(said or {})
        """The roles of tables that a person named."""
        self.left_out: set[str] = set()
        """The tables that a person does not want."""
        self._folder = TemporaryDirectory(prefix="infomax-")
        self.database = Database(Path(self._folder.name), MEMORY)
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
        self.refuse_twice(table.name)
        table.sql = f"t{len(self.tables)}"
        try:
            table.rows = self.database.create(
                table.sql, map(dict, batches), f"{self.where}, table {table.name}"
            )
        except self.failure as error:
            raise self.refused(error) from None
        if not table.rows:
            columns = ", ".join(f"{quoted(name)} VARCHAR" for name in names)
            self.database.execute(f"CREATE TABLE {table.sql} ({columns})")
        table.columns = self.types(table.sql)
        self.tables[table.name] = table

    def copy_view(self, table: Table) -> None:
        """Copy the rows of a view, which have no numbers and may change."""
        name = f"v{list(self.tables).index(table.name)}"
        self.rows(f"CREATE TABLE {name} AS SELECT * FROM {table.sql}")
        table.sql, table.rows = name, self.number(f"SELECT count(*) FROM {name}")

    def types(self, sql: str) -> dict[str, str]:
        """The columns of a table or a query, and their types."""
        return {str(row[0]): str(row[1]) for row in self.rows(f"DESCRIBE SELECT * FROM {sql}")}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        try:
            found: list[tuple[Any, ...]] = self.database.execute(query).fetchall()
        except self.failure as error:
            raise self.refused(error) from None
        return found

    def refused(
        self, error: Exception, where: str = "", expected: str = "tables that can be read"
    ) -> InputError:
        """DuckDB's error in plain words, about what it reads, or about the disk that the copy fills."""
        message = one_line(error)
        if not FULL.search(message):
            return InputError(where or self.where, expected, message)
        remedy = "Make room there, or name another folder: TMPDIR=FOLDER. Nothing was written."
        return InputError(
            str(Path(self._folder.name).parent), "room for a copy of all tables", message, remedy
        )

    def number(self, query: str) -> int:
        """The one number that a query gives."""
        return int(self.rows(query)[0][0] or 0)

    def is_left_out(self, name: str, schema: str = "") -> bool:
        """Whether a person does not want a table."""
        unwanted = {table.lower() for table, role in self.said.items() if role == "ignore"}
        return not unwanted.isdisjoint((name.lower(), f"{schema}.{name}".lower()))

    def wants(self, name: str, is_view: bool = False, schema: str = "") -> bool:
        """Whether a table is to be read; else notes it. A view, which may take long or fail, is not unless named."""
        roles = {one: self.said[one] for one in (name, f"{schema}.{name}") if one in self.said}
        if "ignore" in roles.values():
            self.left_out |= {one for one, role in roles.items() if role == "ignore"}
            return False
        if is_view and not roles:
            self.refuse_twice(name)
            self.tables[name] = Table(name, "", {}, is_view=True)
            return False
        return True

    def are_vectors(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether a table is one of vectors, as `writing` makes them: noted, and not read unless a person named it."""
        ours = not table.keys and [*columns] == [*table.primary, "vector"]
        if not (ours and table.primary) or table.name in self.said:
            return False
        self.refuse_twice(table.name)
        self.tables[table.name] = Table(table.name, "", dict.fromkeys(columns, ""), is_view=True)
        return True

    def refuse_twice(self, name: str) -> None:
        """Refuse a second table of a name, from another schema."""
        if name in self.tables:
            remedy = f"Leave one out: --table SCHEMA.{name}=ignore."
            raise InputError(
                self.where, "one table of each name", f"{shorten(name)} in two schemas", remedy
            )


class Query:
    """The rows of a query, to be read as those of a pyarrow table are.

    ``columns`` are expressions of SQL by the names of columns, ``rest`` is the query from FROM on.
    """

    def __init__(
        self, snapshot: Snapshot, columns: Mapping[str, str], rest: str, num_rows: int
    ) -> None:
        self.snapshot, self.columns, self.rest, self.num_rows = snapshot, columns, rest, num_rows
        self.stamp = snapshot.stamp

    @property
    def nbytes(self) -> int:
        """About as many bytes as its cells take."""
        return 8 * self.num_rows * len(self.columns)

    @property
    def schema(self) -> Any:
        """The types of the columns, those of pyarrow."""
        reader = self.snapshot.database.connection.sql(f"{self._sql} LIMIT 0").to_arrow_reader(1)
        return reader.schema

    def select(self, names: Sequence[str]) -> Query:
        """The same rows of some columns."""
        return Query(
            self.snapshot, {name: self.columns[name] for name in names}, self.rest, self.num_rows
        )

    def to_batches(self, max_chunksize: int) -> Iterator[Any]:
        """The rows as record batches of at most so many."""
        for batch in self.snapshot.database.stream(self._sql):
            for first in range(0, len(batch), max_chunksize):
                yield batch.slice(first, max_chunksize)

    @property
    def _sql(self) -> str:
        chosen = ", ".join(f"{cell} AS {quoted(name)}" for name, cell in self.columns.items())
        return f"SELECT {chosen} {self.rest}"


def _close(database: Database, folder: TemporaryDirectory[str]) -> None:
    database.close()
    folder.cleanup()
