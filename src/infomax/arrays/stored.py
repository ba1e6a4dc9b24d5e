"""Parts of a graph that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax import machine
from infomax.errors import InputError

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
    def weighted(self) -> bool:
        """Whether any entry has a weight other than 1; else there is no file of weights."""
        return self.values is not None

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

    def part(self, rows: NDArray[np.int64]) -> sparse.csr_array:
        """The matrix ``[n, n]`` among some rows, ascending, in memory; the others are not read."""
        place = np.full(self.shape[0], -1, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        counts = np.cumsum(self.indptr[rows + 1] - self.indptr[rows])
        step, found = BLOCK_BYTES // 8, []
        for block in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(counts // step)) + 1):
            owner, columns, values = entries(self, rows[block])
            kept = place[columns] >= 0
            found.append((values[kept], block[owner[kept]], place[columns[kept]]))
        values, owner, columns = map(np.concatenate, zip(*found, strict=True))
        ends = (owner, columns) if self.format == "csr" else (columns, owner)
        matrix = sparse.csr_array((values, ends), shape=(len(rows), len(rows)))
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


def entries(matrix: Any, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """The entries of some rows of the arrays: the place of their row among ``nodes``, column and value."""
    first = matrix.indptr[nodes].astype(np.int64)
    count = matrix.indptr[nodes + 1] - first
    owner = np.repeat(np.arange(len(nodes)), count)
    at = np.arange(len(owner)) + np.repeat(first - (np.cumsum(count) - count), count)
    return owner, matrix.indices[at].astype(np.int64), matrix.data[at]


def require_memory(use: str, nodes: int, width: int, ends: int, remedy: str = "") -> None:
    """Refuse to read more of a graph folder into memory than fits there: nodes, features per node, ends of edges."""
    needed, free = (100 + 4 * width) * nodes + 20 * ends, machine.free_bytes()
    if needed > free:
        expected = f"{machine.size(needed)} free, to {use}"
        remedy = remedy or "Use --preset batches, which reads a graph folder row by row; or allow more memory."
        raise InputError("graph folder", expected, machine.size(free), remedy)


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
