"""The edges of a graph: in memory, mapped from disk, or either with the edges of new nodes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES, require_room

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


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
        return cls(
            received.indptr, received.indices, received.data if (received.data != 1).any() else None
        )

    def matrix(self, width: int) -> sparse.csr_array:
        """The matrix ``[N, width]`` of them, in memory."""
        data = np.ones(len(self.indices), np.float32) if self.data is None else self.data
        return sparse.csr_array(
            (data, self.indices, self.indptr), shape=(len(self.indptr) - 1, width)
        )

    def sums(self) -> NDArray[np.float64]:
        """The sum of the weights that each node receives, ``[N]``."""
        counts = np.diff(self.indptr).astype(np.int64, copy=False)
        if self.data is None:
            return counts.astype(np.float64)
        out, step = np.zeros(len(counts)), BLOCK_BYTES // 8
        for first in range(0, len(counts), step):
            last = min(first + step, len(counts))
            owner = np.repeat(np.arange(last - first), counts[first:last])
            out[first:last] = np.bincount(
                owner, self.data[self.indptr[first] : self.indptr[last]], last - first
            )
        return out

    def of(self, nodes: NDArray[np.int64]) -> Entries:
        """The entries of some nodes: the place of each among ``nodes``, the sender, and the weight."""
        first = self.indptr[nodes].astype(np.int64)
        owner, at = spans(first, self.indptr[nodes + 1] - first)
        weights = np.ones(len(at), np.float32) if self.data is None else self.data[at]
        return owner, self.indices[at].astype(np.int64), weights


def spans(
    first: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    def senders(self) -> Senders:
        """Who sends to each of the T nodes, in memory or mapped."""
        return Senders.of_matrix(sparse.csr_array(self.values.T) if self.directed else self.values)

    @cached_property
    def receivers(self) -> Senders:
        """Whom each of the S nodes sends to; the same as ``senders`` where edges have no directions."""
        return Senders.of_matrix(self.matrix()) if self.directed else self.senders

    @property
    def shape(self) -> tuple[int, int]:
        """``(S, T)``."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    @property
    def n(self) -> int:
        """T, the number of nodes that may receive."""
        return self.shape[1]

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
        return self.senders.data is not None

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes: the place of each among ``nodes``, the sender, and the weight."""
        return self.senders.of(nodes)

    def sent(self, nodes: NDArray[np.int64]) -> Entries:
        """Whom some of the S nodes send to: the place of each among ``nodes``, the receiver, and the weight."""
        return self.receivers.of(nodes)

    def strength(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of the weights that some nodes receive, ``[n]``."""
        if self.senders.data is None:
            return np.asarray(self.senders.indptr[nodes + 1] - self.senders.indptr[nodes]).astype(
                np.float64
            )
        place, _, weights = self.received(nodes)
        return np.bincount(place, weights, len(nodes)).astype(np.float64)

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node, ``[N]``; in a directed graph outgoing and incoming edges both count."""
        degrees = np.diff(self.senders.indptr).astype(np.int64)
        if self.directed:
            for first in range(0, self.nnz, 1 << 24):
                degrees += np.bincount(
                    self.senders.indices[first : first + (1 << 24)], minlength=len(degrees)
                )
        return degrees

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
        if rows is None:
            return 20 * self.nnz
        return 40 * int(
            (self.senders.indptr[rows + 1].astype(np.int64) - self.senders.indptr[rows]).sum()
        )

    def loaded(self) -> Adjacency:
        """The same edges in memory."""
        return self if self.in_memory else Adjacency(self.matrix(), self.directed)


class MappedAdjacency(Adjacency):
    """Edges in mapped files of the arrays of `Senders`; an undirected edge is there twice."""

    in_memory = False

    def __init__(
        self, senders: Senders, directed: bool = False, receivers: Senders | None = None
    ) -> None:
        self.senders, self.directed = senders, directed
        if receivers is not None:
            self.receivers = receivers

    @property
    def shape(self) -> tuple[int, int]:
        """``(S, T)``."""
        known = self.receivers if "receivers" in vars(self) else self.senders
        return len(known.indptr) - 1, len(self.senders.indptr) - 1

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.senders.indices)

    def matrix(self) -> sparse.csr_array:
        """A, read into memory."""
        require_room(self.to_read(), "read all of its edges")
        if "receivers" in vars(self):
            return sparse.csr_array(self.receivers.matrix(self.n), copy=True)
        received = self.senders.matrix(self.n)
        matrix = sparse.csr_array(received.T if self.directed else received, copy=True)
        matrix.sort_indices()
        return matrix

    def part(self, rows: NDArray[np.int64]) -> Adjacency:
        """The edges among some nodes, read in blocks."""
        place = np.full(self.n, -1, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        counts = np.cumsum(self.senders.indptr[rows + 1] - self.senders.indptr[rows])
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


class Grown(Adjacency):
    """Known edges ``[S, T]`` and further ones in memory, of which some have new nodes at their ends.

    What is known is read where `received` or `sent` ask for it; all is put together in memory when its arrays are asked
    for. An edge that is in both has the sum of its weights; `received` lists it twice.

    Args:
        known: the known edges.
        new: a clean matrix ``[S + s, T + t]``.
        binary: whether an edge in both counts as 1.
    """

    in_memory = False

    def __init__(self, known: Adjacency, new: sparse.coo_array, binary: bool) -> None:
        sources, targets = (rows.astype(np.int64) for rows in new.coords)
        old = np.flatnonzero((sources < known.shape[0]) & (targets < known.shape[1]))
        nodes, at = np.unique(targets[old], return_inverse=True)
        place, senders, _ = known.received(nodes)
        twice = np.zeros(len(sources), bool)
        twice[old] = np.isin(at * known.shape[0] + sources[old], place * known.shape[0] + senders)
        kept = np.flatnonzero(~twice) if binary else np.arange(len(twice))
        self.known, self.directed = known, known.directed
        self.size: tuple[int, int] = new.shape
        self.sources, self.targets, self.weights = sources[kept], targets[kept], new.data[kept]
        self.duplicates = int(twice.sum())
        """How many of the new entries were known."""
        self.added = len(twice) - self.duplicates

    @cached_property
    def values(self) -> sparse.csr_array:
        """A, read into memory and put together."""
        known = self.known.matrix()
        starts = np.append(known.indptr, np.full(self.shape[0] - known.shape[0], known.indptr[-1]))
        known = sparse.csr_array((known.data, known.indices, starts), shape=self.shape)
        new = sparse.csr_array((self.weights, (self.sources, self.targets)), shape=self.shape)
        return sparse.csr_array(known + new)

    @property
    def shape(self) -> tuple[int, int]:
        """``(S + s, T + t)``."""
        return self.size

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.known.nnz + self.added

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return self.known.weighted or bool((self.weights != 1).any())

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes; an edge in both is listed twice."""
        old = np.flatnonzero(nodes < self.known.shape[1])
        return _joined(
            old,
            self.known.received(nodes[old]),
            _at(self.targets, self.sources, self.weights, nodes),
        )

    def sent(self, nodes: NDArray[np.int64]) -> Entries:
        """Whom some nodes send to; an edge in both is listed twice."""
        old = np.flatnonzero(nodes < self.known.shape[0])
        return _joined(
            old, self.known.sent(nodes[old]), _at(self.sources, self.targets, self.weights, nodes)
        )

    def strength(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of the weights that some nodes receive."""
        old = np.flatnonzero(nodes < self.known.shape[1])
        place, _, weights = _at(self.targets, self.sources, self.weights, nodes)
        total = np.bincount(place, weights, len(nodes)).astype(np.float64)
        total[old] += self.known.strength(nodes[old])
        return total


def _at(
    ends: NDArray[np.int64], others: NDArray[np.int64], weights: NDArray[np.float32], nodes: Any
) -> Entries:
    """The edges ``[E]`` that have some nodes at one end: the place of each node, the other end, and the weight."""
    order = np.argsort(ends, kind="stable")
    first, last = (np.searchsorted(ends[order], nodes, side) for side in ("left", "right"))
    place, at = spans(first, last - first)
    return place, others[order][at], weights[order][at]


def _joined(old: NDArray[np.int64], known: Entries, new: Entries) -> Entries:
    """The entries of some nodes that are known, which are the ``old`` ones among all, and of all that are new."""
    place, others, weights = known
    return (
        np.concatenate([old[place], new[0]]),
        np.concatenate([others, new[1]]),
        np.concatenate([weights, new[2]]),
    )
