"""The edges of a graph: in memory, mapped from disk, or either with the edges of new nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES, require_room

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
_NEAR = 16
"""Bits of the number of a row that rows beside each other differ in: what is written to these stays in the cache."""


class Senders(NamedTuple):
    """Who sends to each node: node i receives from ``indices[indptr[i] : indptr[i + 1]]``.

    Shapes:
        indptr: ``[N + 1]``
        indices: ``[E]``
        data: ``[E]`` float32; None where all are 1
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[np.float32] | None

    @classmethod
    def of_matrix(cls, received: sparse.csr_array) -> Senders:
        """Those of a matrix with a row per node that receives."""
        return cls(received.indptr, received.indices, received.data if (received.data != 1).any() else None)

    def loaded(self) -> Senders:
        """The same in memory."""
        parts: Any = (np.array(part) if isinstance(part, np.memmap) else part for part in self)
        return Senders(*parts)

    def matrix(self, width: int) -> sparse.csr_array:
        """The matrix ``[N, width]`` of them, in memory."""
        data = np.ones(len(self.indices), np.float32) if self.data is None else self.data
        return sparse.csr_array((data, self.indices, self.indptr), shape=(len(self.indptr) - 1, width))

    def sums(self) -> NDArray[np.float64]:
        """The sum of the weights that each node receives, ``[N]``."""
        counts = np.diff(self.indptr).astype(np.int64, copy=False)
        if self.data is None:
            return counts.astype(np.float64)
        out, step = np.zeros(len(counts)), BLOCK_BYTES // 8
        for first in range(0, len(counts), step):
            last = min(first + step, len(counts))
            owner = np.repeat(np.arange(last - first), counts[first:last])
            out[first:last] = np.bincount(owner, self.data[self.indptr[first] : self.indptr[last]], last - first)
        return out

    def of(self, nodes: NDArray[np.int64]) -> Entries:
        """The entries of some nodes: the place of each among ``nodes``, the sender, and the weight."""
        first = self.indptr[nodes].astype(np.int64)
        owner, at = spans(first, self.indptr[nodes + 1] - first)
        weights = np.ones(len(at), np.float32) if self.data is None else self.data[at]
        return owner, self.indices[at].astype(np.int64), weights


def spans(first: NDArray[np.int64], count: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of n spans, each so many from a first one on: the number of the span, and the place ``[E]``."""
    owner = np.repeat(np.arange(len(first)), count)
    return owner, np.arange(len(owner)) + np.repeat(first - (np.cumsum(count) - count), count)


class Adjacency:
    """The edges of one relation in a CSR matrix A ``[S, T]`` of float32, from S nodes to T others or the same.

    Among N nodes of one type A is ``[N, N]``, without self-loops and symmetric unless ``directed``; edges between two
    types are always ``directed``. No zero weights, no duplicates.
    """

    in_memory = True

    def __init__(self, values: sparse.csr_array, directed: bool = False) -> None:
        self.values, self.directed = values, directed

    @cached_property
    def senders(self) -> Senders | None:
        """Who sends to each of the T nodes, in memory or mapped; None where there are no arrays, only `received`."""
        return Senders.of_matrix(transposed(self.values) if self.directed else self.values)

    @cached_property
    def receivers(self) -> Senders:
        """Whom each of the S nodes sends to; the same as ``senders`` where edges have no directions."""
        return Senders.of_matrix(self.matrix()) if self.directed else self.arrays

    @property
    def arrays(self) -> Senders:
        """The same, of edges that have such arrays."""
        assert self.senders is not None  # noqa: S101  a class without them defines what asks for them
        return self.senders

    @property
    def n(self) -> int:
        """T, the number of nodes that may receive."""
        return int(self.values.shape[1])

    @property
    def nnz(self) -> int:
        """The number of entries; an undirected edge has two."""
        return int(self.values.nnz)

    @property
    def count(self) -> int:
        """The number of edges; an undirected edge counts once."""
        return self.nnz if self.directed else self.nnz // 2

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return self.arrays.data is not None

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes: the place of each among ``nodes``, the sender, and the weight."""
        return self.arrays.of(nodes)

    def counts(self) -> NDArray[np.int64]:
        """How many send to each node, ``[N]``."""
        return np.diff(self.arrays.indptr).astype(np.int64, copy=False)

    def sums(self) -> NDArray[np.float64]:
        """The sum of the weights that each node receives, ``[N]``."""
        return self.arrays.sums()

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node, ``[N]``; in a directed graph outgoing and incoming edges both count."""
        return count_ends(self.arrays, self.directed)

    def matrix(self) -> sparse.csr_array:
        """A ``[N, N]`` in memory; ``A[i, j]`` is the weight of the edge i -> j."""
        return self.values

    def part(self, rows: NDArray[np.int64]) -> Adjacency:
        """The edges among some nodes of one type, ascending, in memory."""
        return Adjacency(self.matrix()[rows][:, rows], self.directed)

    def to_read(self, rows: NDArray[np.int64] | None = None) -> int:
        """The bytes that it takes to have the edges of some nodes, or all, in memory; 0 where they are there."""
        if self.in_memory:
            return 0
        return 20 * (self.nnz if rows is None else 2 * int(self.counts()[rows].sum()))

    def loaded(self) -> Adjacency:
        """The same edges in memory."""
        return self if self.in_memory else Adjacency(self.matrix(), self.directed)


class MappedAdjacency(Adjacency):
    """Edges in mapped files of the arrays of `Senders`; an undirected edge is there twice."""

    in_memory = False

    def __init__(self, senders: Senders, directed: bool = False, receivers: Senders | None = None) -> None:
        self.senders, self.directed = senders, directed
        if receivers is not None:
            self.receivers = receivers

    @property
    def n(self) -> int:
        """T."""
        return len(self.arrays.indptr) - 1

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.arrays.indices)

    def matrix(self) -> sparse.csr_array:
        """A, read into memory."""
        require_room(self.to_read(), "read all of its edges")
        if "receivers" in vars(self):
            return sparse.csr_array(self.receivers.matrix(self.n), copy=True)
        received = self.arrays.matrix(self.n)
        matrix = sparse.csr_array(received.T if self.directed else received, copy=True)
        matrix.sort_indices()
        return matrix

    def part(self, rows: NDArray[np.int64]) -> Adjacency:
        """The edges among some nodes, read in blocks."""
        place = np.full(self.n, -1, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        counts = np.cumsum(self.arrays.indptr[rows + 1] - self.arrays.indptr[rows])
        step, found = BLOCK_BYTES // 8, []
        for block in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(counts // step)) + 1):
            owner, columns, values = self.received(rows[block])
            kept = place[columns] >= 0
            found.append((values[kept], block[owner[kept]], place[columns[kept]]))
        values, owner, columns = map(np.concatenate, zip(*found, strict=True))
        ends = (columns, owner) if self.directed else (owner, columns)
        matrix = sparse.csr_array((values, ends), shape=(len(rows), len(rows)))
        matrix.sort_indices()
        return Adjacency(matrix, self.directed)


@dataclass(frozen=True, eq=False)
class GrownAdjacency(Adjacency):
    """Known edges and further ones in memory, some of them of M new nodes; an edge in both has the sum of its weights.

    Shapes:
        known: ``[N, N]``
        extra: ``[N + M, N + M]``, a row per node that receives
        shared: those entries of ``extra`` that are known, too
    """

    known: Adjacency
    extra: sparse.csr_array
    shared: sparse.csr_array
    duplicates: int
    """How many of the new entries were known."""

    senders, in_memory = None, False

    @classmethod
    def of(cls, known: Adjacency, new: sparse.csr_array, *, binary: bool) -> GrownAdjacency:
        """Known edges and those of a clean matrix A ``[N + M, N + M]``; if ``binary``, an edge in both counts as 1."""
        extra = sparse.csr_array(new.T) if known.directed else new
        links, n = extra.tocoo(), extra.shape[0]
        nodes = np.unique(links.row[links.row < known.n]).astype(np.int64)
        owner, columns, _ = known.received(nodes)
        twice = np.isin(links.row.astype(np.int64) * n + links.col, nodes[owner] * n + columns)

        def entries(kept: NDArray[np.bool_]) -> sparse.csr_array:
            return sparse.csr_array((links.data[kept], (links.row[kept], links.col[kept])), shape=extra.shape)

        duplicates = int(twice.sum())
        if binary:
            return cls(known, entries(~twice), entries(np.zeros_like(twice)), duplicates)
        return cls(known, extra, entries(twice), duplicates)

    @property
    def directed(self) -> bool:  # type: ignore[override]
        """As the known edges."""
        return self.known.directed

    @property
    def n(self) -> int:
        """N + M."""
        return int(self.extra.shape[0])

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.known.nnz + int(self.extra.nnz) - int(self.shared.nnz)

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return self.known.weighted or bool((self.extra.data != 1).any())

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes; an edge in both is listed twice."""
        old = np.flatnonzero(nodes < self.known.n)
        place, columns, values = self.known.received(nodes[old])
        late, others, weights = Senders(self.extra.indptr, self.extra.indices, self.extra.data).of(nodes)
        places = np.concatenate([old[place], late])
        return places, np.concatenate([columns, others]), np.concatenate([values, weights])

    def counts(self) -> NDArray[np.int64]:
        """How many send to each node; an edge in both counts twice."""
        return self._added(np.diff(self.extra.indptr).astype(np.int64), self.known.counts())

    def sums(self) -> NDArray[np.float64]:
        """The sum of the weights that each node receives."""
        return self._added(np.asarray(self.extra.sum(axis=1, dtype=np.float64)), self.known.sums())

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node."""
        new = count_ends(self.extra, self.directed) - count_ends(self.shared, self.directed)
        return self._added(new, self.known.degrees())

    def matrix(self) -> sparse.csr_array:
        """A, in memory."""
        known = self.known.matrix().copy()
        known.resize((self.n, self.n))
        return sparse.csr_array(known + (self.extra.T if self.directed else self.extra))

    def _added(self, total: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
        total[: self.known.n] += known
        return total


def transposed(matrix: sparse.csr_array) -> sparse.csr_array:
    """The transpose ``[T, S]`` of a matrix ``[S, T]`` without duplicates, its columns ascending.

    Of a large one, entries are brought near their row first: scipy's own way waits for the memory at every entry.
    """
    if matrix.shape[1] <= 2 << _NEAR:
        return sparse.csr_array(matrix.T)
    near, shape = matrix.indices >> _NEAR, (matrix.shape[0], (matrix.shape[1] >> _NEAR) + 1)

    def brought(values: NDArray[Any]) -> sparse.csc_array:
        return sparse.csr_array((values, near, matrix.indptr), shape=shape).tocsc()

    rows = brought(matrix.indices)
    data = brought(matrix.data).data if (matrix.data != 1).any() else matrix.data
    return sparse.coo_array((data, (rows.data, rows.indices)), shape=matrix.shape[::-1]).tocsr()


def count_ends(matrix: Any, directed: bool) -> NDArray[np.int64]:
    """The entries in each row of a matrix in scipy's arrays, ``[N]``; if ``directed``, those in its column as well."""
    degrees: NDArray[np.int64] = np.diff(matrix.indptr).astype(np.int64)
    if directed:
        for first in range(0, len(matrix.indices), 1 << 24):
            degrees += np.bincount(matrix.indices[first : first + (1 << 24)], minlength=len(degrees))
    return degrees
