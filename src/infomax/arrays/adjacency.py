"""The edges of a graph: in memory, mapped from disk, or either with the edges of new nodes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES, require_room

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Edges of some nodes, ``[E]`` each.

These are the position of the node among those that were asked for, the node at the other end, and
the weight.
"""

ENTRIES_PER_BLOCK = 1 << 24
"""Entries of a mapped file that are counted at a time."""
BYTES_PER_ENTRY = 20
BYTES_PER_SELECTED_ENTRY = 40
"""Bytes per entry that it takes to load all edges, and to load those of some nodes."""


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
        """The senders of a matrix with a row per node that receives."""
        is_weighted = (received.data != 1).any()
        weights = received.data if is_weighted else None
        return cls(received.indptr, received.indices, weights)

    def matrix(self, width: int) -> sparse.csr_array:
        """The weights as a matrix ``[N, width]`` in memory, with a column per possible sender."""
        weights = np.ones(len(self.indices), np.float32) if self.data is None else self.data
        shape = (len(self.indptr) - 1, width)
        return sparse.csr_array((weights, self.indices, self.indptr), shape=shape)

    def sums(self, bytes_per_block: int = BLOCK_BYTES) -> NDArray[np.float64]:
        """The sum of the weights that each node receives, ``[N]``.

        The nodes of a block take so many bytes of memory for their sums.
        """
        counts = np.diff(self.indptr).astype(np.int64, copy=False)
        if self.data is None:
            return counts.astype(np.float64)
        sums = np.zeros(len(counts))
        nodes_per_block = bytes_per_block // 8
        for first in range(0, len(counts), nodes_per_block):
            last = min(first + nodes_per_block, len(counts))
            receivers = np.repeat(np.arange(last - first), counts[first:last])
            weights = self.data[self.indptr[first] : self.indptr[last]]
            sums[first:last] = np.bincount(receivers, weights, last - first)
        return sums

    def of(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes."""
        first_entries = self.indptr[nodes].astype(np.int64)
        positions, entries = spans(first_entries, self.indptr[nodes + 1] - first_entries)
        if self.data is None:
            weights = np.ones(len(entries), np.float32)
        else:
            weights = self.data[entries]
        return positions, self.indices[entries].astype(np.int64), weights


def spans(
    first: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the integers of n spans, one span after the other.

    Args:
        first: ``[n]``, the first integer of each span.
        count: ``[n]``, how many integers each span has.

    Returns:
        The number of its span, and the integer itself, ``[E]`` each.
    """
    span_numbers = np.repeat(np.arange(len(first)), count)
    starts_in_list = np.cumsum(count) - count
    offsets = np.repeat(first - starts_in_list, count)
    return span_numbers, np.arange(len(span_numbers)) + offsets


class Adjacency:
    """The edges of one relation, from S nodes to T nodes: a CSR matrix A ``[S, T]`` of float32.

    Among N nodes of one type A is ``[N, N]``, without self-loops, and symmetric unless
    ``directed``; edges between two types are always ``directed``. There are no zero weights and no
    duplicates.
    """

    in_memory = True

    def __init__(self, values: sparse.csr_array, directed: bool = False) -> None:
        self.values = values
        self.directed = directed

    @cached_property
    def senders(self) -> Senders:
        """Who sends to each of the T nodes, in memory or mapped."""
        # A has a row per sender, and a symmetric A is its own transpose.
        received = sparse.csr_array(self.values.T) if self.directed else self.values
        return Senders.of_matrix(received)

    @cached_property
    def receivers(self) -> Senders:
        """Whom each of the S nodes sends to; without directions the same as ``senders``."""
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
    def num_edges(self) -> int:
        """The number of edges; an undirected edge counts once."""
        return self.nnz if self.directed else self.nnz // 2

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return self.senders.data is not None

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes."""
        return self.senders.of(nodes)

    def sent(self, nodes: NDArray[np.int64]) -> Entries:
        """Whom some of the S nodes send to."""
        return self.receivers.of(nodes)

    def strength(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of the weights that some nodes receive, ``[n]``."""
        # Without weights nothing but the starts is read from a file.
        if self.senders.data is None:
            counts = self.senders.indptr[nodes + 1] - self.senders.indptr[nodes]
            return np.asarray(counts).astype(np.float64)
        positions, _, weights = self.received(nodes)
        return np.bincount(positions, weights, len(nodes)).astype(np.float64)

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node, ``[N]``; outgoing and incoming edges both count."""
        degrees = np.diff(self.senders.indptr).astype(np.int64)
        # Without directions an edge is stored at both of its ends already.
        if self.directed:
            for first in range(0, self.nnz, ENTRIES_PER_BLOCK):
                senders = self.senders.indices[first : first + ENTRIES_PER_BLOCK]
                degrees += np.bincount(senders, minlength=len(degrees))
        return degrees

    def matrix(self) -> sparse.csr_array:
        """A ``[N, N]`` in memory; ``A[i, j]`` is the weight of the edge i -> j."""
        return self.values

    def part(self, rows: NDArray[np.int64]) -> Adjacency:
        """The edges among some nodes of one type, ascending, in memory."""
        return Adjacency(self.matrix()[rows][:, rows], self.directed)

    def bytes_to_load(self, rows: NDArray[np.int64] | None = None) -> int:
        """The bytes that loading the edges of some nodes, or all, takes; 0 if they are loaded."""
        if self.in_memory:
            return 0
        if rows is None:
            return BYTES_PER_ENTRY * self.nnz
        first_entries = self.senders.indptr[rows].astype(np.int64)
        num_entries = int((self.senders.indptr[rows + 1] - first_entries).sum())
        return BYTES_PER_SELECTED_ENTRY * num_entries

    def loaded(self) -> Adjacency:
        """The same edges in memory."""
        return self if self.in_memory else Adjacency(self.matrix(), self.directed)


class MappedAdjacency(Adjacency):
    """Edges in mapped files that hold the arrays of `Senders`, an undirected edge twice."""

    in_memory = False

    def __init__(
        self, senders: Senders, directed: bool = False, receivers: Senders | None = None
    ) -> None:
        # Both take the place of what `Adjacency` computes at first use.
        self.senders = senders
        self.directed = directed
        self.mapped_receivers = receivers
        if receivers is not None:
            self.receivers = receivers

    @property
    def shape(self) -> tuple[int, int]:
        """``(S, T)``."""
        num_receivers = len(self.senders.indptr) - 1
        if self.mapped_receivers is None:
            return num_receivers, num_receivers
        return len(self.mapped_receivers.indptr) - 1, num_receivers

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return len(self.senders.indices)

    def matrix(self) -> sparse.csr_array:
        """A, read into memory."""
        require_room(self.bytes_to_load(), "read all of its edges")
        if self.mapped_receivers is not None:
            return sparse.csr_array(self.mapped_receivers.matrix(self.n), copy=True)
        received = self.senders.matrix(self.n)
        matrix = sparse.csr_array(received.T if self.directed else received, copy=True)
        matrix.sort_indices()
        return matrix

    def part(self, rows: NDArray[np.int64]) -> Adjacency:
        """The edges among some nodes, read in blocks."""
        # -1 for nodes that are not kept.
        new_row_of_node = np.full(self.n, -1, np.int32)
        new_row_of_node[rows] = np.arange(len(rows), dtype=np.int32)

        # Blocks of rows with about as many entries each, whatever the degrees.
        entries_before = np.cumsum(self.senders.indptr[rows + 1] - self.senders.indptr[rows])
        block_of_row = entries_before // (BLOCK_BYTES // 8)
        block_bounds = np.flatnonzero(np.diff(block_of_row)) + 1
        parts = []
        for block in np.split(np.arange(len(rows)), block_bounds):
            positions, senders, weights = self.received(rows[block])
            is_kept = new_row_of_node[senders] >= 0
            new_receivers = block[positions[is_kept]]
            new_senders = new_row_of_node[senders[is_kept]]
            parts.append((weights[is_kept], new_receivers, new_senders))
        weights, new_receivers, new_senders = map(np.concatenate, zip(*parts, strict=True))

        # A has a row per sender; without directions both ways are the same.
        ends = [new_receivers, new_senders]
        if self.directed:
            ends.reverse()
        matrix = sparse.csr_array((weights, tuple(ends)), shape=(len(rows), len(rows)))
        matrix.sort_indices()
        return Adjacency(matrix, self.directed)


class GrownAdjacency(Adjacency):
    """Known edges ``[S, T]``, and new edges in memory, some of which end at new nodes.

    Known edges are read where `received` or `sent` ask for them; all edges are put together in
    memory when ``values`` are asked for. An edge that is in both has the sum of its weights;
    `received` lists it twice.

    Args:
        known: the known edges.
        new: a clean matrix ``[S + s, T + t]``.
        binary: whether an edge in both counts as 1.
    """

    in_memory = False

    def __init__(self, known: Adjacency, new: sparse.coo_array, binary: bool) -> None:
        num_known_sources, num_known_targets = known.shape
        sources, targets = (rows.astype(np.int64) for rows in new.coords)

        # Which of the new edges are among the known ones.
        joins_known = (sources < num_known_sources) & (targets < num_known_targets)
        joining = np.flatnonzero(joins_known)
        nodes, node_positions = np.unique(targets[joining], return_inverse=True)
        known_positions, known_senders, _ = known.received(nodes)
        keys = node_positions * num_known_sources + sources[joining]
        known_keys = known_positions * num_known_sources + known_senders
        is_duplicate = np.zeros(len(sources), bool)
        is_duplicate[joining] = np.isin(keys, known_keys)

        self.known = known
        self.directed = known.directed
        self.size: tuple[int, int] = new.shape
        kept = np.flatnonzero(~is_duplicate) if binary else np.arange(len(sources))
        self.sources = sources[kept]
        self.targets = targets[kept]
        self.weights = new.data[kept]
        self.duplicates = int(is_duplicate.sum())
        """How many of the new entries were known."""
        self.added = len(sources) - self.duplicates

    @cached_property
    def values(self) -> sparse.csr_array:
        """A, read into memory and put together."""
        known = self.known.matrix()

        # New rows have no known entries, so they begin where the last known one ends.
        starts_of_new_rows = np.full(self.shape[0] - known.shape[0], known.indptr[-1])
        starts = np.append(known.indptr, starts_of_new_rows)
        widened = sparse.csr_array((known.data, known.indices, starts), shape=self.shape)
        new = sparse.csr_array((self.weights, (self.sources, self.targets)), shape=self.shape)
        return sparse.csr_array(widened + new)

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
        known_positions = np.flatnonzero(nodes < self.known.shape[1])
        known_entries = self.known.received(nodes[known_positions])
        new_entries = _edges_at(nodes, self.targets, self.sources, self.weights)
        return _concatenated(known_positions, known_entries, new_entries)

    def sent(self, nodes: NDArray[np.int64]) -> Entries:
        """Whom some nodes send to; an edge in both is listed twice."""
        known_positions = np.flatnonzero(nodes < self.known.shape[0])
        known_entries = self.known.sent(nodes[known_positions])
        new_entries = _edges_at(nodes, self.sources, self.targets, self.weights)
        return _concatenated(known_positions, known_entries, new_entries)

    def strength(self, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum of the weights that some nodes receive."""
        positions, _, weights = _edges_at(nodes, self.targets, self.sources, self.weights)
        strength = np.bincount(positions, weights, len(nodes)).astype(np.float64)
        known_positions = np.flatnonzero(nodes < self.known.shape[1])
        strength[known_positions] += self.known.strength(nodes[known_positions])
        return strength


def _edges_at(
    nodes: NDArray[np.int64],
    ends: NDArray[np.int64],
    other_ends: NDArray[np.int64],
    weights: NDArray[np.float32],
) -> Entries:
    """Those of some edges ``[E]`` whose ``ends`` are among the nodes."""
    # Edges sorted by their ends, so that those of a node follow each other.
    order = np.argsort(ends, kind="stable")
    sorted_ends = ends[order]
    first = np.searchsorted(sorted_ends, nodes, "left")
    last = np.searchsorted(sorted_ends, nodes, "right")
    positions, sorted_edges = spans(first, last - first)
    edges = order[sorted_edges]
    return positions, other_ends[edges], weights[edges]


def _concatenated(
    known_positions: NDArray[np.int64], known_entries: Entries, new_entries: Entries
) -> Entries:
    """Known entries, then new ones.

    Args:
        known_positions: the positions of the known nodes among those that were asked for.
        known_entries: entries whose positions count the known nodes alone.
        new_entries: entries whose positions count all nodes that were asked for.
    """
    positions, other_ends, weights = known_entries
    new_positions, new_other_ends, new_weights = new_entries
    return (
        np.concatenate([known_positions[positions], new_positions]),
        np.concatenate([other_ends, new_other_ends]),
        np.concatenate([weights, new_weights]),
    )
