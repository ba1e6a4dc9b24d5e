"""Columns of parquet files that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import BLOCK_BYTES
from infomax.errors import InputError

ID_ROWS = 1 << 18
"""Ids that are read at once."""
_AGAIN = "Restore a copy, or write it again: infomax embed for parts, infomax prepare for a graph folder."
_CHECKED = {"memory_map": True, "page_checksum_verification": True}


class StoredRows:
    """A column of parquet files that continue each other; indexing reads rows into memory."""

    def __init__(self, *paths: Path, column: str) -> None:
        self.paths, self.column = paths, column

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
        return [(at, group) for at, file in enumerate(self._files) for group in range(file.metadata.num_row_groups)]

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

    def __len__(self) -> int:
        return int(self._starts[-1])

    def arrow(self, start: int, stop: int) -> Any:
        """The values of some rows as a pyarrow array."""
        import pyarrow as pa
        from pyarrow import parquet

        first, last = np.searchsorted(self._starts, [start, max(stop - 1, start)], side="right") - 1
        chunks = []
        for at, groups in groupby(self._groups[first : last + 1], itemgetter(0)):
            with readable(self.paths[at], remedy=_AGAIN):
                # A reader of its own, since several threads may read at a time.
                reader = parquet.ParquetFile(self.paths[at], metadata=self._files[at].metadata, **_CHECKED)
                table = reader.read_row_groups([group for _, group in groups], columns=[self.column])
                chunks += table[self.column].chunks
        return pa.chunked_array(chunks, self.type).slice(start - self._starts[first], stop - start).combine_chunks()

    def batches(self, rows: int) -> Iterator[Any]:
        """All values as pyarrow arrays of at most so many rows; a long row group is not read at once."""
        for at, group in self._groups:  # one by one: a reader of all groups would keep what it has read
            with readable(self.paths[at], remedy=_AGAIN):
                for batch in self._files[at].iter_batches(rows, row_groups=[group], columns=[self.column]):
                    yield batch.column(0)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return _as_array(self.arrow(start, stop) if stop > start else self.arrow(0, 0))[::step]
        if isinstance(rows, int | np.integer):
            return self[int(rows) : int(rows) + 1][0]
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        out = self[:0]
        out = np.empty((len(rows), *out.shape[1:]), out.dtype)
        group = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(group):
            chosen = group == number
            values = self[int(self._starts[number]) : int(self._starts[number + 1])]
            out[chosen] = values[rows[chosen] - self._starts[number]]
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


class StoredIds(StoredRows):
    """The ids ``[N]`` of parquet files. Indexing gives an array of int64 or of str objects."""

    def __init__(self, *paths: Path) -> None:
        super().__init__(*paths, column="id")

    @property
    def shape(self) -> tuple[int]:
        """``(N,)``."""
        return (len(self),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Int64, or object for text."""
        return np.dtype(np.int64 if str(self.type) == "int64" else object)

    def __iter__(self) -> Iterator[Any]:
        for ids in self.batches(ID_ROWS):
            yield from _as_array(ids).tolist()

    def tolist(self) -> list[Any]:
        """All ids, in memory."""
        return list(self)

    def find(self, wanted: Iterable[object]) -> dict[str, int]:
        """The rows of those ids that there are, by their text; only some of the ids are in memory at a time."""
        import pyarrow as pa
        from pyarrow import compute

        texts = pa.array(dict.fromkeys(map(str, wanted)), pa.large_string())
        found: dict[str, int] = {}
        first = 0
        for ids in self.batches(ID_ROWS):
            which = compute.index_in(ids.cast(pa.large_string()), texts)
            for row in np.flatnonzero(which.is_valid().to_numpy(zero_copy_only=False)):
                found.setdefault(texts[which[row].as_py()].as_py(), first + int(row))
            first += len(ids)
        return found


def find_ids(ids: Any, wanted: Iterable[object]) -> dict[str, int]:
    """The rows of those ids that are among ids ``[N]``, in memory or stored, by their text."""
    if isinstance(ids, StoredIds):
        return ids.find(wanted)
    texts = set(map(str, wanted))
    return {text: row for row, text in enumerate(map(str, ids.tolist())) if text in texts}


class StoredVectors(StoredRows):
    """The vectors ``[N, d]`` of parquet files. Indexing gives rows as float32."""

    def __init__(self, *paths: Path) -> None:
        super().__init__(*paths, column="vector")

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, d)``."""
        return len(self), self.type.list_size

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return np.asarray(super().__getitem__(rows), np.float32)

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """All rows in order, some at a time."""
        rows = max(1, BLOCK_BYTES // (4 * self.shape[1]))
        return (_as_array(batch).astype(np.float32, copy=False) for batch in self.batches(rows))


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


@contextmanager
def readable(path: Path, expected: str = "a parquet file that can be read", remedy: str = "") -> Iterator[None]:
    """Raise an InputError for what pyarrow, or a conversion after it, cannot do with the data."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(
            str(path), "text in UTF-8", "other bytes", remedy or "Write the file again, in UTF-8."
        ) from None
    except Exception as error:  # a damaged file makes pyarrow and the conversions after it raise almost anything
        told = ": ".join(map(str, error.args[::-1])) if all(isinstance(one, str) for one in error.args) else str(error)
        reason = (told.splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(str(path), expected, reason, remedy) from error


def _as_array(column: Any) -> NDArray[Any]:
    """A pyarrow array as an array; equal strings are one object."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        words: NDArray[Any] = np.array([*column.dictionary.to_pylist(), ""], dtype=object)
        return words[:-1][column.indices.to_numpy(zero_copy_only=False)]  # type: ignore[no-any-return]
    if types.is_fixed_size_list(column.type):
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(-1, column.type.list_size)
    return np.asarray(column.to_numpy(zero_copy_only=False))
