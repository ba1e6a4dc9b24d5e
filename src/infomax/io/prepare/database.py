"""The database that sorts and joins on disk, and remembers which stages are done."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io.parquet import need_pyarrow

SHARE = 0.6
"""The part of the memory that DuckDB's buffers get; it needs more beside them, and so does Python."""
THREADS = 4
BATCH = 1 << 18


class Database:
    """A DuckDB file in which each stage of a preparation is one transaction.

    Statements have one operator each that must hold all of its input (a sort, a join, a group): DuckDB can run out of
    memory where several of them share a statement.
    """

    def __init__(self, folder: Path, memory: int) -> None:
        try:
            import duckdb
        except ImportError:
            remedy = "Install it: pip install 'infomax[big]'."
            raise InputError("infomax prepare", "duckdb, which sorts on disk", "none installed", remedy) from None
        need_pyarrow(folder)
        self.folder, self.failure = folder, duckdb.Error
        settings: dict[str, Any] = {
            "memory_limit": f"{max(int(SHARE * memory), 1 << 26)}B",
            "threads": min(THREADS, os.cpu_count() or 1),
            "preserve_insertion_order": False,
            "temp_directory": str(folder / "spill"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        try:
            self.connection = duckdb.connect(str(folder / "work.duckdb"), config=settings)
            self.connection.execute("CREATE TABLE IF NOT EXISTS done (stage VARCHAR, note VARCHAR)")
        except duckdb.Error as error:
            raise self.explained(error) from error

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def note(self, stage: str) -> str | None:
        """What a stage that is done left for later ones; None where it is not done."""
        row = self.connection.execute("SELECT note FROM done WHERE stage = ?", [stage]).fetchone()
        return None if row is None else str(row[0])

    def stage(self, name: str, work: Callable[[], str]) -> str:
        """Do a stage unless it is done; either all that it changes in the database stays, or nothing. Its note."""
        known = self.note(name)
        if known is not None:
            return known
        try:
            self.execute("BEGIN")
            note = work()
            self.execute("INSERT INTO done VALUES (?, ?)", [name, note])
            self.execute("COMMIT")
            self.execute("CHECKPOINT")
        except self.failure as error:
            raise self.explained(error) from error
        return note

    def execute(self, statement: str, values: Any = None) -> Any:
        """Run a statement."""
        return self.connection.execute(statement, values)

    def insert(self, table: str, **columns: Any) -> None:
        """Add rows to a table; each column is a pyarrow or NumPy array ``[n]``."""
        import pyarrow as pa

        self.connection.register("batch", pa.table(columns))
        self.execute(f"INSERT INTO {table} SELECT * FROM batch")  # noqa: S608  names of our own
        self.connection.unregister("batch")

    def stream(self, query: str) -> Iterator[Any]:
        """The rows of a query as record batches. It sees what committed stages wrote; others may write meanwhile."""
        cursor = self.connection.cursor()
        try:
            reader = cursor.sql(query).to_arrow_reader(BATCH)
            yield from reader
        finally:
            cursor.close()

    def explained(self, error: Exception) -> InputError:
        """An error of DuckDB in plain words."""
        message = re.sub(r"\s+", " ", str(error)).strip()
        where = str(self.folder.parent)
        if re.search(
            "no space left|disk full|could not write|not enough (disk )?space|max_temp_directory", message, re.I
        ):
            remedy = "Make room there, or choose another place; the same command goes on where it stopped."
            return InputError(where, "a disk with room for the graph and for sorting it", message, remedy)
        if "out of memory" in message.lower():
            remedy = "Raise --memory; the same command goes on where it stopped."
            return InputError(where, "memory to sort and join the tables", message, remedy)
        return InputError(where, "tables that DuckDB can sort and join", message)
