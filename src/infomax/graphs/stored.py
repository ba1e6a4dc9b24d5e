"""Parts of a graph that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BLOCK_BYTES = 1 << 25
"""About as many bytes of features are read at once."""


@dataclass(frozen=True, eq=False)
class StoredAdjacency:
    """A sparse matrix ``[N, N]`` in mapped arrays, with scipy's names; scipy itself would copy them to one dtype.

    Shapes:
        indptr: ``[N + 1]`` int64
        indices: ``[E]`` int32
        values: ``[E]`` float32; None where all are 1
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None = None
    format: Literal["csr", "csc"] = "csr"

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, N)``."""
        return len(self.indptr) - 1, len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.indices)

    @property
    def data(self) -> NDArray[np.float32]:
        """The entries ``[E]``."""
        return np.broadcast_to(np.float32(1), self.nnz) if self.values is None else self.values

    @property
    def T(self) -> StoredAdjacency:  # noqa: N802  scipy's name
        """The transpose, which reads the same arrays."""
        turned: Literal["csr", "csc"] = "csc" if self.format == "csr" else "csr"
        return StoredAdjacency(self.indptr, self.indices, self.values, turned)

    def tocsr(self) -> Any:
        """The same matrix by rows: itself, or in memory where it is stored by columns."""
        return self if self.format == "csr" else self.loaded()

    def loaded(self) -> sparse.csr_array:
        """The same matrix in memory."""
        kind = sparse.csr_array if self.format == "csr" else sparse.csc_array
        matrix = sparse.csr_array(kind((self.data, self.indices, self.indptr), shape=self.shape, copy=True))
        matrix.sort_indices()
        return matrix

    def sums(self) -> NDArray[np.float64]:
        """The sum ``[N]`` of each row of a matrix by rows, or of each column of one by columns."""
        counts = np.diff(self.indptr)
        if self.values is None:
            return counts.astype(np.float64)
        out = np.zeros(len(counts))
        step = BLOCK_BYTES // 8
        for first in range(0, len(counts), step):
            last = min(first + step, len(counts))
            start, stop = self.indptr[first], self.indptr[last]
            owner = np.repeat(np.arange(last - first), counts[first:last])
            out[first:last] = np.bincount(owner, self.values[start:stop], last - first)
        return out


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Features ``[N, F]`` in a mapped array of float32 or float16, scaled row by row as they are read.

    Indexing gives rows ``[n, F]`` in memory, as float32.
    """

    array: NDArray[Any]
    statistics: Any = None
    """The `Statistics` of the features as they are; None: not known."""
    scaler: Any = None
    """A `Scaler`; None: the features as they are."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that are read."""
        return np.dtype(np.float32)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        block = np.asarray(self.array[rows], dtype=np.float32)
        scaled: NDArray[np.float32] = block if self.scaler is None else self.scaler.transform(block)
        return scaled

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)


def row_blocks(features: Any) -> Iterator[NDArray[Any]]:
    """Dense features ``[N, F]``, stored or not, some rows at a time."""
    step = max(1, BLOCK_BYTES // (4 * features.shape[1]))
    return (features[first : first + step] for first in range(0, features.shape[0], step))


class StoredIds:
    """The ids ``[N]`` of a parquet file. Indexing gives an array of int64 or of str objects."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _file(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self.path)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """The first row of each row group, and the number of all rows."""
        notes = self._file.metadata
        sizes = [notes.row_group(group).num_rows for group in range(notes.num_row_groups)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def shape(self) -> tuple[int]:
        """``(N,)``."""
        return (len(self),)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Int64, or object for text."""
        return np.dtype(np.int64 if str(self._file.schema_arrow.field("id").type) == "int64" else object)

    def arrow(self, start: int, stop: int) -> Any:
        """The ids of some rows as a pyarrow array."""
        from pyarrow import parquet

        first, last = np.searchsorted(self._starts, [start, max(stop - 1, start)], side="right") - 1
        groups = list(range(first, last + 1))
        # A reader of its own, since several threads may read at a time.
        reader = parquet.ParquetFile(self.path, metadata=self._file.metadata)
        table = reader.read_row_groups(groups, columns=["id"])
        return table["id"].slice(start - self._starts[first], stop - start).combine_chunks()

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return _as_array(self.arrow(start, stop) if stop > start else self.arrow(0, 0))[::step]
        if isinstance(rows, int | np.integer):
            return self[int(rows) : int(rows) + 1][0]
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        out = np.empty(len(rows), self.dtype)
        group = np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(group):
            chosen = group == number
            ids = self[int(self._starts[number]) : int(self._starts[number + 1])]
            out[chosen] = ids[rows[chosen] - self._starts[number]]
        return out

    def __iter__(self) -> Iterator[Any]:
        for start, stop in zip(self._starts, self._starts[1:], strict=False):
            yield from self[int(start) : int(stop)].tolist()

    def tolist(self) -> list[Any]:
        """All ids, in memory."""
        return list(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)

    def find(self, node_id: object) -> int | None:
        """The row of an id, by its text; None where there is none."""
        import pyarrow as pa
        from pyarrow import compute

        for start, stop in zip(self._starts, self._starts[1:], strict=False):
            ids = self.arrow(int(start), int(stop))
            at = compute.index(ids.cast(pa.large_string()), str(node_id)).as_py()
            if at >= 0:
                return int(start) + int(at)
        return None


class StoredColumns(Mapping[str, Any]):
    """Columns ``[N]`` or ``[N, C]`` of a parquet file, each read when it is asked for."""

    def __init__(self, path: Path, prefix: str, names: tuple[str, ...]) -> None:
        self.path, self.prefix, self.names = path, prefix, names

    def __getitem__(self, name: str) -> NDArray[Any]:
        from pyarrow import parquet

        if name not in self.names:
            raise KeyError(name)
        column = f"{self.prefix}{name}"
        return _as_array(parquet.read_table(self.path, columns=[column])[column].combine_chunks())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _as_array(column: Any) -> NDArray[Any]:
    """A pyarrow array as an array; equal strings are one object."""
    from pyarrow import types

    if hasattr(column, "chunks"):
        column = column.combine_chunks()
    if types.is_dictionary(column.type):
        words: NDArray[Any] = np.array([*column.dictionary.to_pylist(), ""], dtype=object)
        return words[:-1][column.indices.to_numpy(zero_copy_only=False)]  # type: ignore[no-any-return]
    if types.is_fixed_size_list(column.type):
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(-1, column.type.list_size)
    return np.asarray(column.to_numpy(zero_copy_only=False))
