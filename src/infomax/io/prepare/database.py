"""The database that sorts and joins, in memory or on disk."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from infomax.errors import InputError, one_line

T = TypeVar("T")

FULL = re.compile("no space|disk full|could not write|not enough|max_temp_directory", re.IGNORECASE)
"""What DuckDB says of a disk that is full."""
_NUMBERS = count()
"""Of the databases in memory, by which they are named."""

SHARE = 0.6
"""The part of the memory that DuckDB's buffers get; it needs more beside them, and so does Python."""
THREADS = 4
BATCH = 1 << 18
SECONDS = 0.1
"""Seconds between two looks at whether a query has ended."""


def _batch(columns: dict[str, Any]) -> Any:
    """Columns as a batch of pyarrow; `pyarrow.array` of numbers would load pandas, where it is installed."""
    import pyarrow as pa

    def arrow(cells: Any) -> Any:
        if not isinstance(cells, np.ndarray):
            return cells
        if cells.dtype in (bool, object):
            return pa.array(cells, pa.bool_() if cells.dtype == bool else pa.large_string())
        cells = np.ascontiguousarray(cells)
        return pa.Array.from_buffers(
            pa.from_numpy_dtype(cells.dtype), len(cells), [None, pa.py_buffer(cells)]
        )

    return pa.RecordBatch.from_arrays([arrow(cells) for cells in columns.values()], list(columns))


def _connect(file: str, spill: str, **limits: Any) -> Any:
    """An open file of DuckDB; without a folder to spill to, all is in memory."""
    import duckdb

    settings: dict[str, Any] = {
        "threads": min(THREADS, os.cpu_count() or 1),
        "preserve_insertion_order": False,
        "temp_directory": spill,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **limits,
    }
    connection = duckdb.connect(file, config=settings)
    connection.execute("SET enable_progress_bar_print = false")  # ours is drawn
    return connection


@cache
def _instance(process: int) -> Any:
    """DuckDB in memory, once in each process: to open it takes longer than to read a small table."""
    return _connect(":memory:", "")


class Database:
    """A DuckDB database, in memory or a file, in which each stage of a preparation is one transaction.

    Statements have one operator each that must hold all of its input (a sort, a join, a group): DuckDB can run out of
    memory where several of them share a statement.
    """

    def __init__(self, folder: Path | None = None, memory: int = 0) -> None:
        """A database in a folder that works in some bytes of memory, about; None: it is in memory."""
        import duckdb

        self.folder = (
            folder and folder.resolve()
        )  # a relative path may look like an address, as md:x does
        self.failure = duckdb.Error
        self.thread = ThreadPoolExecutor(1)
        self.thread.submit(int).result()  # so that it has begun
        self.name = f"tables{next(_NUMBERS)}"
        try:
            if self.folder is None:
                self.connection = _instance(os.getpid()).cursor()
                self.connection.execute(f"ATTACH ':memory:' AS {self.name}")
                self.connection.execute(f"USE {self.name}")
            else:
                limit = {"memory_limit": f"{max(int(SHARE * memory), 1 << 26)}B"}
                self.connection = _connect(
                    str(self.folder / "work.duckdb"), str(self.folder / "spill"), **limit
                )
        except duckdb.Error as error:
            raise self.explained(error) from error

    def close(self) -> None:
        """Close the file, or free the memory."""
        if self.folder is None:
            try:
                self.connection.execute("USE memory")
                self.connection.execute(f"DETACH {self.name}")
            except self.failure:  # it has ended by an error: the next table is read by another
                _instance.cache_clear()
        self.connection.close()
        self.thread.shutdown()

    def stage(self, work: Callable[[], T]) -> T:
        """Do a stage, on disk as one transaction; returns its note."""
        try:
            if self.folder is None:
                return work()
            self.execute("BEGIN")
            try:
                note = work()
            except InputError:
                self.execute("ROLLBACK")
                raise
            self.execute("COMMIT")
            self.execute("CHECKPOINT")
        except self.failure as error:
            raise self.explained(error) from error
        return note

    def execute(self, statement: str, values: Any = None) -> Any:
        """Run a statement."""
        return self._heeding_signals(
            lambda: self.connection.execute(statement, values), self.connection.interrupt
        )

    def rows(self, query: str, values: Any = None) -> list[Any]:
        """All rows of a query; one of which some rows are left would keep the connection."""
        return list(self.execute(query, values).fetchall())

    def row(self, query: str, values: Any = None) -> Any:
        """The only row of a query; None where there is none."""
        return next(iter(self.rows(query, values)), None)

    def create(
        self, table: str, batches: Iterator[dict[str, Any]], where: str = "", condition: str = ""
    ) -> int:
        """Create a table from batches of columns, each a pyarrow or NumPy array ``[n]``; returns the number of rows.

        ``where`` they are from is told where text is not UTF-8, as in some parquet files. Only rows of a ``condition``,
        in SQL, are kept.

        One statement reads all batches: DuckDB keeps the rows of many statements in memory, whatever its limit is.
        Without a batch there is no table.
        """
        import pyarrow as pa

        first, rows, raised = next(batches, None), 0, list[BaseException]()
        if first is None:
            return 0
        schema = _batch(first).schema

        def read() -> Iterator[Any]:
            nonlocal rows
            try:
                for columns in chain([first], batches):
                    batch = _batch(columns).cast(schema)
                    rows += len(batch)
                    yield batch
            except BaseException as error:
                raised.append(error)
                raise

        self.connection.register("batches", pa.RecordBatchReader.from_batches(schema, read()))
        try:
            self.execute(f"CREATE TABLE {table} AS SELECT * FROM batches {condition}")
        except self.failure as error:
            if raised:
                raise raised[0] from None  # DuckDB's error only quotes it
            if "unicode" in str(error).lower():
                raise InputError(
                    where, "text in UTF-8", "other bytes", "Write the file again, in UTF-8."
                ) from None
            raise
        self.connection.unregister("batches")
        return rows

    def stream(self, query: str) -> Iterator[Any]:
        """The rows of a query as record batches. It sees what committed stages wrote; others may write meanwhile."""
        cursor = self.connection.cursor()
        if self.folder is None:
            cursor.execute(f"USE {self.name}")
        try:
            reader = self._heeding_signals(
                lambda: cursor.sql(query).to_arrow_reader(BATCH), cursor.interrupt
            )
            while (
                batch := self._heeding_signals(lambda: next(reader, None), cursor.interrupt)
            ) is not None:
                yield batch
        finally:
            cursor.close()

    def explained(self, error: Exception) -> InputError:
        """An error of DuckDB in plain words."""
        message = one_line(error)
        memory = "out of memory" in message.lower()
        remedy = ""
        if self.folder is None:
            if memory:
                remedy = "Make a graph folder of them, which needs less memory: infomax prepare."
            return InputError("tables", "what DuckDB can read and join in memory", message, remedy)
        if memory or FULL.search(message):
            remedy = "Raise --memory, or make room on the disk."
        expected = "tables and work files that DuckDB can read, sort and join"
        return InputError(str(self.folder.parent), expected, message, remedy)

    def _heeding_signals(self, work: Callable[[], T], interrupt: Callable[[], None]) -> T:
        """Have another thread do the work, so that a signal ends it at once, as what its handler raises.

        In the main thread DuckDB heeds a signal when a piece of work is done, which can take half a minute, and raises
        an error of its own.
        """
        if (
            threading.current_thread() is not threading.main_thread()
        ):  # signals are the main thread's
            return work()
        try:
            future = self.thread.submit(work)
            while wait([future], SECONDS).not_done:
                pass  # a signal that comes as the wait begins is heard at its end
            return future.result()
        except BaseException:
            after = self.thread.submit(int)  # next in the queue
            while wait(
                [after], SECONDS
            ).not_done:  # again: a query that begins only now has not heard it
                interrupt()
            raise
