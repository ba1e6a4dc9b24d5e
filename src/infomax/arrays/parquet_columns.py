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

ID_ROWS = 1 << 18
"""Ids that are read at once."""
_AGAIN = "Restore a copy, or write it again: infomax embed for parts, infomax prepare for a graph folder."
_CHECKED = {"memory_map": True, "page_checksum_verification": True}


class StoredRows:
    """A column ``[N]`` of parquet files that continue each other, or ``[N, d]``; indexing reads rows into memory.

    Text becomes str objects; numbers become those of a ``dtype``, where one is given.
    """

    def __init__(self, *paths: Path, column: str, dtype: Any = None) -> None:
        self.paths = paths
        self.column = column
        self.as_dtype = dtype

    @cached_property
    def _files(self) -> list[Any]:
        from pyarrow import parquet

        files = []
        for path in self.paths:
            with readable(path, remedy=_AGAIN):
                files.append(parquet.ParquetFile(path.absolute(), **_CHECKED))
        return files

    @cached_property
    def _groups(self) -> list[tuple[int, int]]:
        """The file and the number of each row group."""
        return [
            (at, group)
            for at, file in enumerate(self._files)
            for group in range(file.metadata.num_row_groups)
        ]

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first row of each row group, and the number of all rows."""
        sizes = [self._files[at].metadata.row_group(group).num_rows for at, group in self._groups]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        files = self._files
        with readable(self.paths[0], remedy=_AGAIN):
            return list(files[0].schema_arrow.names)

    @property
    def type(self) -> Any:
        """The type of the column, of pyarrow."""
        return self._files[0].schema_arrow.field(self.column).type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows that are read."""
        dtype: np.dtype[Any] = self[:0].dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N,)`` or ``(N, d)``."""
        return len(self), *self[:0].shape[1:]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __iter__(self) -> Iterator[Any]:
        for rows in self.batches(ID_ROWS):
            yield from self._array(rows).tolist()

    def tolist(self) -> list[Any]:
        """All rows, in memory."""
        return list(self)

    def arrow(self, start: int, stop: int) -> Any:
        """The values of some rows as a pyarrow array."""
        import pyarrow as pa
        from pyarrow import parquet

        if stop <= start:
            return pa.array([], self.type)
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        chunks = []
        for at, groups in groupby(self._groups[first : last + 1], itemgetter(0)):
            with readable(self.paths[at], remedy=_AGAIN):
                # A reader of its own, since several threads may read at a time.
                reader = parquet.ParquetFile(
                    self.paths[at], metadata=self._files[at].metadata, **_CHECKED
                )
                table = reader.read_row_groups(
                    [group for _, group in groups], columns=[self.column]
                )
                chunks += table[self.column].chunks
        return (
            pa.chunked_array(chunks, self.type)
            .slice(start - self._starts[first], stop - start)
            .combine_chunks()
        )

    def batches(self, rows: int) -> Iterator[Any]:
        """All values as pyarrow arrays of at most so many rows; a long row group is not read at once."""
        for (
            at,
            group,
        ) in self._groups:  # one by one: a reader of all groups would keep what it has read
            with readable(self.paths[at], remedy=_AGAIN):
                for batch in self._files[at].iter_batches(
                    rows, row_groups=[group], columns=[self.column]
                ):
                    yield batch.column(0)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows in order, some at a time."""
        rows = max(1, BLOCK_BYTES // (4 * self.shape[1]))
        return map(self._array, self.batches(rows))

    def _array(self, column: Any) -> NDArray[Any]:
        found = _as_array(column)
        return found if self.as_dtype is None else found.astype(self.as_dtype, copy=False)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self._array(self.arrow(start, stop))[::step]
        if isinstance(rows, int | np.integer):
            return self[int(rows) : int(rows) + 1][0]
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        out = np.empty((len(rows), *self.shape[1:]), self.dtype)
        group = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(group):
            chosen = group == number
            values = self[int(self._starts[number]) : int(self._starts[number + 1])]
            out[chosen] = values[rows[chosen] - self._starts[number]]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


def stored_ids(*paths: Path) -> StoredRows:
    """The ids ``[N]`` of parquet files: int64 or str objects."""
    return StoredRows(*paths, column="id")


def stored_vectors(*paths: Path) -> StoredRows:
    """The vectors ``[N, d]`` of parquet files, float32."""
    return StoredRows(*paths, column="vector", dtype=np.float32)


def find_ids(ids: Any, wanted: Iterable[object]) -> dict[str, int]:
    """The rows of those ids that are among ids ``[N]``, by their text; stored ids are read some at a time."""
    if not isinstance(ids, StoredRows):
        known = set(map(str, wanted))
        return {text: row for row, text in enumerate(map(str, ids.tolist())) if text in known}
    import pyarrow as pa
    from pyarrow import compute

    texts = pa.array(dict.fromkeys(map(str, wanted)), pa.large_string())
    found: dict[str, int] = {}
    first = 0
    for part in ids.batches(ID_ROWS):
        which = compute.index_in(part.cast(pa.large_string()), texts)
        for row in np.flatnonzero(which.is_valid().to_numpy(zero_copy_only=False)):
            found.setdefault(texts[which[row].as_py()].as_py(), first + int(row))
        first += len(part)
    return found


class StoredColumns(Mapping[str, Any]):
    """Columns ``[N]`` or ``[N, C]`` of a parquet file, each read when it is asked for."""

    def __init__(self, path: Path, prefix: str, names: tuple[str, ...]) -> None:
        self.path, self.prefix, self.names = path, prefix, names

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self.names:
            raise KeyError(name)
        column: NDArray[Any] = StoredRows(self.path, column=f"{self.prefix}{name}")[:]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _as_array(column: Any) -> NDArray[Any]:
    """A pyarrow array as an array; equal strings are one object."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        words: NDArray[Any] = np.array([*column.dictionary.to_pylist(), ""], dtype=object)
        return words[:-1][column.indices.to_numpy(zero_copy_only=False)]  # type: ignore[no-any-return]
    if types.is_fixed_size_list(column.type):
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(
            -1, column.type.list_size
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))
