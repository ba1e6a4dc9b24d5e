"""The DuckDB database that sorts and joins the tables of a graph, in memory or on disk."""

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

Result = TypeVar("Result")

FULL = re.compile("no space|disk full|could not write|not enough|max_temp_directory", re.IGNORECASE)
"""What DuckDB says of a disk that is full."""
SHARE_OF_MEMORY = 0.6
"""The part of the memory that DuckDB's buffers get: it needs more, and so does Python."""
LEAST_MEMORY = 1 << 26
"""Bytes that DuckDB's buffers get at least."""
MOST_THREADS = 4
ROWS_PER_BATCH = 1 << 18
SECONDS_BETWEEN_LOOKS = 0.1
"""Seconds between two looks at whether a query has ended."""
_database_numbers = count()
"""Of the databases in memory, by which they are named."""


class Database:
    """A DuckDB database, in memory or a file, in which each stage is one transaction.

    Statements have one operator each that must hold all of its input (a sort, a join, a group):
    DuckDB can run out of memory where several of them share a statement.
    """

    def __init__(self, folder: Path | None = None, memory: int = 0) -> None:
        """A database in a folder that works in about so many bytes of memory; None: in memory."""
        import duckdb

        # DuckDB may take a relative path for an address, as md:x is one.
        self.folder = None if folder is None else folder.resolve()
        self.failure = duckdb.Error
        self.thread = ThreadPoolExecutor(1)
        self.thread.submit(int).result()  # so that it has begun before a signal can come
        self.name = f"tables{next(_database_numbers)}"
        try:
            if self.folder is None:
                self.connection = _instance(os.getpid()).cursor()
                self.connection.execute(f"ATTACH ':memory:' AS {self.name}")
                self.connection.execute(f"USE {self.name}")
            else:
                limit = max(int(SHARE_OF_MEMORY * memory), LEAST_MEMORY)
                file = str(self.folder / "work.duckdb")
                spill_folder = str(self.folder / "spill")
                self.connection = _connect(file, spill_folder, memory_limit=f"{limit}B")
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

    def stage(self, work: Callable[[], Result]) -> Result:
        """Do a stage, on disk as one transaction; returns what the work returns."""
        try:
            if self.folder is None:
                return work()
            self.execute("BEGIN")
            try:
                result = work()
            except InputError:
                self.execute("ROLLBACK")
                raise
            self.execute("COMMIT")
            self.execute("CHECKPOINT")
        except self.failure as error:
            raise self.explained(error) from error
        return result

    def execute(self, statement: str, values: Any = None) -> Any:
        """Run a statement."""
        return self._heeding_signals(
            lambda: self.connection.execute(statement, values), self.connection.interrupt
        )

    def rows(self, query: str, values: Any = None) -> list[Any]:
        """All rows of a query; one of which some rows are not fetched would keep the connection."""
        return list(self.execute(query, values).fetchall())

    def row(self, query: str, values: Any = None) -> Any:
        """The only row of a query; None where there is none."""
        return next(iter(self.rows(query, values)), None)

    def create(
        self, table: str, batches: Iterator[dict[str, Any]], location: str = "", condition: str = ""
    ) -> int:
        """Create a table from batches of columns, and return the number of rows.

        One statement reads all batches: DuckDB keeps the rows of many statements in memory,
        whatever its limit is. Without a batch there is no table.

        Args:
            table: the name of the table.
            batches: columns by name, each a pyarrow or NumPy array ``[n]``.
            location: names the table where its text is not UTF-8, as in some parquet files.
            condition: in SQL, begins with WHERE; other rows are not kept.
        """
        import pyarrow as pa

        first_columns = next(batches, None)
        if first_columns is None:
            return 0
        schema = _record_batch(first_columns).schema
        row_count = 0
        errors_of_reading: list[BaseException] = []

        def record_batches() -> Iterator[Any]:
            nonlocal row_count
            try:
                for columns in chain([first_columns], batches):
                    batch = _record_batch(columns).cast(schema)
                    row_count += len(batch)
                    yield batch
            except BaseException as error:
                errors_of_reading.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, record_batches())
        self.connection.register("batches", reader)
        try:
            self.execute(f"CREATE TABLE {table} AS SELECT * FROM batches {condition}")
        except self.failure as error:
            if errors_of_reading:
                raise errors_of_reading[0] from None  # DuckDB's error only quotes it
            if "unicode" in str(error).lower():
                remedy = "Write the file again, in UTF-8."
                raise InputError(location, "text in UTF-8", "other bytes", remedy) from None
            raise
        self.connection.unregister("batches")
        return row_count

    def stream(self, query: str) -> Iterator[Any]:
        """The rows of a query as record batches.

        The query sees what committed stages wrote; others may write meanwhile.
        """
        cursor = self.connection.cursor()
        if self.folder is None:
            cursor.execute(f"USE {self.name}")
        try:
            reader = self._heeding_signals(
                lambda: cursor.sql(query).to_arrow_reader(ROWS_PER_BATCH), cursor.interrupt
            )
            while True:
                batch = self._heeding_signals(lambda: next(reader, None), cursor.interrupt)
                if batch is None:
                    return
                yield batch
        finally:
            cursor.close()

    def explained(self, error: Exception) -> InputError:
        """An error of DuckDB in plain words."""
        message = one_line(error)
        is_out_of_memory = "out of memory" in message.lower()
        remedy = ""
        if self.folder is None:
            if is_out_of_memory:
                remedy = "Make a graph folder of them, which needs less memory: infomax prepare."
            return InputError("tables", "what DuckDB can read and join in memory", message, remedy)
        if is_out_of_memory or FULL.search(message):
            remedy = "Raise --memory, or make room on the disk."
        expected = "tables and work files that DuckDB can read, sort and join"
        return InputError(str(self.folder.parent), expected, message, remedy)

    def _heeding_signals(self, work: Callable[[], Result], interrupt: Callable[[], None]) -> Result:
        """Have another thread do the work, so that a signal ends it at once.

        In the main thread DuckDB heeds a signal when a piece of work is done, which can take half a
        minute, and raises an error of its own.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()  # signals are the main thread's
        try:
            future = self.thread.submit(work)
            while wait([future], SECONDS_BETWEEN_LOOKS).not_done:
                pass  # a signal that comes as the wait begins is heard at its end
            return future.result()
        except BaseException:
            # The next in the queue ends after the work. A query that begins only now has not heard
            # the first interrupt, so it is repeated.
            next_in_queue = self.thread.submit(int)
            while wait([next_in_queue], SECONDS_BETWEEN_LOOKS).not_done:
                interrupt()
            raise


def _record_batch(columns: dict[str, Any]) -> Any:
    """Columns as a batch of pyarrow."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([_array(cells) for cells in columns.values()], list(columns))


def _array(cells: Any) -> Any:
    """Cells as an array of pyarrow; `pyarrow.array` of numbers would load pandas."""
    import pyarrow as pa

    if not isinstance(cells, np.ndarray):
        return cells
    if cells.dtype in (bool, object):
        return pa.array(cells, pa.bool_() if cells.dtype == bool else pa.large_string())
    cells = np.ascontiguousarray(cells)
    buffers = [None, pa.py_buffer(cells)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(cells.dtype), len(cells), buffers)


def _connect(file: str, spill_folder: str, **limits: Any) -> Any:
    """An open file of DuckDB; without a folder to spill to, all is in memory."""
    import duckdb

    settings: dict[str, Any] = {
        "threads": min(MOST_THREADS, os.cpu_count() or 1),
        "preserve_insertion_order": False,
        "temp_directory": spill_folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **limits,
    }
    connection = duckdb.connect(file, config=settings)
    connection.execute("SET enable_progress_bar_print = false")  # ours is drawn
    return connection


@cache
def _instance(process_id: int) -> Any:
    """DuckDB in memory, once per process: to open it takes longer than to read a small table."""
    return _connect(":memory:", "")
