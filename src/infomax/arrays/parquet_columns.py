"""Columns of parquet files that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import BLOCK_BYTES
from infomax.errors import readable

IDS_PER_BLOCK = 1 << 18
"""Ids that are read at once."""
_AGAIN = (
    "Restore a copy, or write it again: infomax embed for parts, "
    "infomax prepare for a graph folder."
)
_CHECKED = {"memory_map": True, "page_checksum_verification": True}


class StoredRows:
    """A column ``[N]`` or ``[N, d]`` of parquet files; indexing reads rows into memory.

    Text becomes str objects.

    Args:
        paths: the files, each of which continues the one before.
        column: the name of the column.
        dtype: the type of numbers; None: as they are stored.
    """

    def __init__(self, *paths: Path, column: str, dtype: Any = None) -> None:
        self.paths = paths
        self.column = column
        self.requested_dtype = dtype

    @cached_property
    def _files(self) -> list[Any]:
        from pyarrow import parquet

        files = []
        for path in self.paths:
            with readable(path, remedy=_AGAIN):
                files.append(parquet.ParquetFile(path.absolute(), **_CHECKED))
        return files

    @cached_property
    def _row_groups(self) -> list[tuple[int, int]]:
        """The index of the file of each row group, and its number in that file."""
        return [
            (file_index, group)
            for file_index, file in enumerate(self._files)
            for group in range(file.metadata.num_row_groups)
        ]

    @cached_property
    def _group_starts(self) -> NDArray[np.int64]:
        """The first row of each row group, and the number of all rows."""
        sizes = [
            self._files[file_index].metadata.row_group(group).num_rows
            for file_index, group in self._row_groups
        ]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def names(self) -> list[str]:
        """The names of all columns of the files."""
        files = self._files
        with readable(self.paths[0], remedy=_AGAIN):
            return list(files[0].schema_arrow.names)

    @property
    def type(self) -> Any:
        """The type of the column, of pyarrow."""
        return self._files[0].schema_arrow.field(self.column).type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that indexing gives."""
        dtype: np.dtype[Any] = self[:0].dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)`` or ``(N, d)``."""
        return len(self), *self[:0].shape[1:]

    def __len__(self) -> int:
        return int(self._group_starts[-1])

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches(IDS_PER_BLOCK):
            yield from self._array(batch).tolist()

    def tolist(self) -> list[Any]:
        """All rows, in memory."""
        return list(self)

    def arrow(self, start: int, stop: int) -> Any:
        """The values of some rows as a pyarrow array."""
        import pyarrow as pa
        from pyarrow import parquet

        if stop <= start:
            return pa.array([], self.type)
        ends = np.searchsorted(self._group_starts, [start, stop - 1], side="right") - 1
        first_group, last_group = ends
        row_groups = self._row_groups[first_group : last_group + 1]
        chunks = []
        for file_index, groups_of_file in groupby(row_groups, itemgetter(0)):
            path = self.paths[file_index]
            with readable(path, remedy=_AGAIN):
                # Each call has its own reader, since several threads may read at a time.
                metadata = self._files[file_index].metadata
                reader = parquet.ParquetFile(path, metadata=metadata, **_CHECKED)
                groups = [group for _, group in groups_of_file]
                chunks += reader.read_row_groups(groups, columns=[self.column])[self.column].chunks
        # Whole row groups were read; what was asked for is a part of them.
        values = pa.chunked_array(chunks, self.type)
        first_row = self._group_starts[first_group]
        return values.slice(start - first_row, stop - start).combine_chunks()

    def batches(self, num_rows: int) -> Iterator[Any]:
        """All values as pyarrow arrays of at most so many rows; a long row group is cut."""
        # Group by group: a reader of all groups would keep what it has read.
        for file_index, group in self._row_groups:
            file = self._files[file_index]
            with readable(self.paths[file_index], remedy=_AGAIN):
                batches = file.iter_batches(num_rows, row_groups=[group], columns=[self.column])
                for batch in batches:
                    yield batch.column(0)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows ``[N, d]`` in order, some at a time."""
        rows_per_block = max(1, BLOCK_BYTES // (4 * self.shape[1]))
        return map(self._array, self.batches(rows_per_block))

    def _array(self, values: Any) -> NDArray[Any]:
        array = _as_array(values)
        if self.requested_dtype is None:
            return array
        return array.astype(self.requested_dtype, copy=False)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self._array(self.arrow(start, stop))[::step]
        if isinstance(rows, int | np.integer):
            return self[int(rows) : int(rows) + 1][0]
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)

        # Each row group is read once, whatever the order of the rows.
        values = np.empty((len(rows), *self.shape[1:]), self.dtype)
        group_of_row = np.searchsorted(self._group_starts, rows, side="right") - 1
        for group in np.unique(group_of_row):
            is_in_group = group_of_row == group
            first_row = int(self._group_starts[group])
            values_of_group = self[first_row : int(self._group_starts[group + 1])]
            values[is_in_group] = values_of_group[rows[is_in_group] - first_row]
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


def stored_ids(*paths: Path) -> StoredRows:
    """The ids ``[N]`` of parquet files: int64 or str objects."""
    return StoredRows(*paths, column="id")


def stored_vectors(*paths: Path) -> StoredRows:
    """The vectors ``[N, d]`` of parquet files, float32."""
    return StoredRows(*paths, column="vector", dtype=np.float32)


def find_ids(ids: Any, wanted: Iterable[object]) -> dict[str, int]:
    """The rows of wanted ids among ids ``[N]``, by their text; ids that are not there are left out.

    Stored ids are read some at a time.
    """
    if not isinstance(ids, StoredRows):
        wanted_texts = set(map(str, wanted))
        texts_by_row = enumerate(map(str, ids.tolist()))
        return {text: row for row, text in texts_by_row if text in wanted_texts}

    import pyarrow as pa
    from pyarrow import compute

    texts = pa.array(dict.fromkeys(map(str, wanted)), pa.large_string())
    row_by_text: dict[str, int] = {}
    first_row = 0
    for batch in ids.batches(IDS_PER_BLOCK):
        text_numbers = compute.index_in(batch.cast(pa.large_string()), texts)
        is_wanted = text_numbers.is_valid().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(is_wanted):
            text = texts[text_numbers[row].as_py()].as_py()
            row_by_text.setdefault(text, first_row + int(row))
        first_row += len(batch)
    return row_by_text


class StoredColumns(Mapping[str, Any]):
    """Columns ``[N]`` or ``[N, C]`` of a parquet file, each read when it is asked for.

    Args:
        path: the file.
        prefix: what the names of the columns begin with in the file.
        names: their names without the prefix.
    """

    def __init__(self, path: Path, prefix: str, names: tuple[str, ...]) -> None:
        self.path = path
        self.prefix = prefix
        self.names = names

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise KeyError(name)
        column: NDArray[Any] = StoredRows(self.path, column=f"{self.prefix}{name}")[:]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _as_array(values: Any) -> NDArray[Any]:
    """A pyarrow array as an array; equal strings are one object."""
    from pyarrow import types

    if types.is_dictionary(values.type):
        # The empty string at the end makes an array of objects also where there are no words.
        words = np.array([*values.dictionary.to_pylist(), ""], dtype=object)[:-1]
        indices = values.indices.to_numpy(zero_copy_only=False)
        return words[indices]  # type: ignore[no-any-return]
    if types.is_fixed_size_list(values.type):
        numbers = np.asarray(values.flatten().to_numpy(zero_copy_only=False))
        return numbers.reshape(-1, values.type.list_size)
    return np.asarray(values.to_numpy(zero_copy_only=False))
