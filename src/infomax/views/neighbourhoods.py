"""Neighbourhoods of the nodes of a graph, read from its adjacency; and of a batch, hop by hop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import embedding_bag

from infomax.arrays.adjacency import Senders
from infomax.kernels import Backend
from infomax.kernels.random import Permutation, uniform
from infomax.kernels.transfer import to_device
from infomax.views.operands import SparseOperand, csr, tensors
from infomax.views.propagation import Normalisation

NODES_PER_SENDER = 16
"""Nodes per sender up to which a CPU marks senders among all nodes faster than it sorts them."""


class KnownRows(NamedTuple):
    """Rows of P X that are the same in every step, each computed when a batch first needs it.

    Shapes:
        rows: ``[N, F]``
        is_known: ``[N]``, whether each row is computed yet
    """

    rows: NDArray[np.float32]
    is_known: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int, width: int) -> KnownRows:
        """Memory for so many rows, none of which is known."""
        return cls(np.empty((n, width), np.float32), np.zeros(n, np.bool_))


@dataclass(frozen=True)
class Neighbourhoods:
    """Any rows of the normalised adjacency P = diag(l) (A + I) diag(r).

    The diagonals l and r are the receiver and the sender factors. Without self-loops P has A alone
    in place of A + I. Of a node with more than ``cap`` neighbours, ``cap`` are sampled, each with
    equal probability and none twice, and weighted by degree / cap: the expectation of P X is
    unchanged.

    Shapes:
        starts: ``[N + 1]``, node i receives from ``senders[starts[i] : starts[i + 1]]``
        senders: ``[E]`` int32 or int64
        weights: ``[E]``; None if all are 1
        receiver_factors: ``[N]``
        sender_factors: ``[M]``, of the nodes that may send; None if all are 1
    """

    starts: Tensor
    senders: Tensor
    weights: Tensor | None
    receiver_factors: Tensor
    sender_factors: Tensor | None
    cap: int
    capped: bool
    """Whether any node has more neighbours than the cap."""
    backend: Backend
    loops: bool
    """Whether a node sends to itself, too."""

    def entries(self, count: int) -> int:
        """Return about how many entries the rows of so many nodes have."""
        return count * (1 + min(len(self.senders) // len(self.receiver_factors), self.cap))

    def offsets(self, nodes: Tensor, seed: Tensor) -> Tensor:
        """Return a number from 0 to 1 for each node ``[B]``, by which `rows` samples.

        A node and a seed always give the same number.
        """
        if not self.capped:
            return torch.zeros(len(nodes), device=nodes.device)
        return uniform(nodes, seed)

    def rows(self, nodes: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of P: starts ``[B + 1]``, senders ``[e]`` and values ``[e]``.

        With self-loops the first entry of a row is the node itself.

        Args:
            nodes: ``[B]``.
            offsets: ``[B]``, from 0 to 1; they decide which neighbours are taken of too many.
        """
        device = nodes.device
        first_entries = self.starts[nodes]
        degrees = self.starts[nodes + 1] - first_entries
        taken_counts = degrees.clamp(max=self.cap)
        row_lengths = taken_counts + int(self.loops)
        starts = torch.cat([taken_counts.new_zeros(1), row_lengths.cumsum(0)])

        # For each entry of these rows: the row, and its number among the neighbours. With
        # self-loops -1 is the node itself.
        row_of_entry = torch.repeat_interleave(torch.arange(len(nodes), device=device), row_lengths)
        numbers = torch.arange(len(row_of_entry), device=device) - starts[row_of_entry]
        numbers = numbers - int(self.loops)
        is_itself = numbers < 0

        # Of a node with too many neighbours, one is taken from each of `cap` intervals of equal
        # length, all at the same offset.
        interval = (degrees.double() / taken_counts.clamp(min=1))[row_of_entry]
        sampled = ((offsets.double()[row_of_entry] + numbers) * interval).long()
        neighbour_numbers = torch.where(interval > 1, sampled, numbers)
        entries = first_entries[row_of_entry] + neighbour_numbers.clamp_(min=0)

        neighbours = _look_up(self.senders, entries).long()
        senders = torch.where(is_itself, nodes[row_of_entry], neighbours)
        weights = interval.to(self.receiver_factors.dtype)
        if self.weights is not None:
            weights = weights * _look_up(self.weights, entries)
        weights = torch.where(is_itself, 1, weights)
        values = self.receiver_factors[nodes][row_of_entry] * weights
        if self.sender_factors is not None:
            values = values * self.sender_factors[senders]
        return starts, senders, values

    def pool(
        self,
        nodes: Tensor,
        offsets: Tensor | None,
        table: Any,
        permutation: Permutation | None = None,
        known_rows: KnownRows | None = None,
    ) -> Tensor:
        """Multiply rows of P by a constant table, ``[N, F] -> [B, F]``.

        Args:
            nodes: ``[B]``, the rows of P.
            offsets: as in `rows`; None: the first neighbours are taken.
            table: ``[N, F]``; it may be on disk, in half precision, and for a GPU in page-locked
                host memory.
            permutation: node i has row ``permutation(i)`` of the table; None: its own.
            known_rows: products with the same table, without a permutation; those that are known
                are not computed again.
        """
        if offsets is None:
            offsets = torch.zeros(len(nodes), device=nodes.device)
        pooled: Tensor
        if not isinstance(table, Tensor):
            pooled = table.pool(self, nodes, offsets, permutation, known_rows)
            return pooled
        if self.backend.triton is not None:
            pooled = self.backend.triton.pool_rows(self, nodes, offsets, table, permutation)
            return pooled
        if self.backend.numba_for(self.entries(len(nodes)) * table.shape[1]):
            from infomax.kernels.cpu_neighbourhoods import pool_rows

            return pool_rows(self, nodes, offsets, table, permutation, known_rows)

        starts, senders, values = self.rows(nodes, offsets)
        if permutation is not None:
            senders = permutation(senders)
        pooled = embedding_bag(
            senders,
            table,
            starts,
            mode="sum",
            per_sample_weights=values.to(table.dtype),
            include_last_offset=True,
        )
        return pooled.to(self.receiver_factors.dtype)


def _look_up(column: Tensor, entries: Tensor) -> Tensor:
    """Return entries of a column; zeros if the column is empty."""
    if len(column) == 0:
        return entries.new_zeros(entries.shape)
    return column[entries.clamp(max=len(column) - 1)]


def neighbourhoods(
    senders: Senders, rule: Normalisation, backend: Backend, cap: int
) -> Neighbourhoods:
    """Put the senders of each of N nodes on the device.

    Args:
        senders: the senders by receiver; they are nodes of the receivers' type, or of another.
        rule: the normalisation of the messages.
        backend: the kernels, and the device.
        cap: how many neighbours of a node are drawn where it has more.
    """
    device = backend.device
    # `asanyarray`, so that a mapped array stays mapped.
    starts = to_device(np.asanyarray(senders.indptr, dtype=np.int64), device)
    counts = starts.diff()
    weights: Tensor | None = None
    received_sums = counts.double()
    if senders.data is not None:
        weights = to_device(senders.data, device)
        received_sums = torch.from_numpy(senders.sums()).to(device)
    left, right = rule.factors(int(rule.loops) + received_sums, torch.float32)
    return Neighbourhoods(
        starts,
        to_device(senders.indices, device),
        weights,
        left,
        right if rule.right else None,
        cap,
        capped=bool((counts > cap).any()),
        backend=backend,
        loops=rule.loops,
    )


@dataclass(frozen=True, eq=False)
class Hops:
    """The neighbourhoods of one batch, hop by hop, and along paths.

    A view and its negative share them. Hop 0 is the batch itself; hop l + 1 has every node that
    sends to hop l or is in it. A layer computes a hop from the next one. Among several types there
    is hop 0 only, and paths from it.
    """

    chains: Mapping[str, Sequence[Neighbourhoods]]
    """By path, the neighbourhoods of each step; that of the paper's graph has no name."""
    nodes: Tensor
    depth: int
    seed: Tensor
    """Decides which neighbours are sampled of too many: in all hops the same."""
    _rows: dict[tuple[str, int], tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    _along: dict[tuple[str, int], tuple[list[SparseOperand], Tensor]] = field(default_factory=dict)
    _matrices: dict[int, SparseOperand] = field(default_factory=dict)

    @cached_property
    def levels(self) -> list[Tensor]:
        """The nodes of each hop that a layer computes, the batch first.

        The outermost hop is not included: no layer computes it.
        """
        levels = [self.nodes]
        for level in range(self.depth - 1):
            (neighbourhoods_of_step,) = self.chains[""]
            inner_nodes = levels[-1]
            _, senders, _ = self._read("", level, inner_nodes)
            if not neighbourhoods_of_step.loops:
                # A hop has the nodes of the one before also where they do not send to themselves.
                senders = torch.cat([inner_nodes, senders])
            levels.append(torch.unique(senders))
        return levels

    def along(self, path: str, level: int) -> tuple[list[SparseOperand], Tensor]:
        """All factors of a path from a hop but the last one, and the nodes before its last step."""
        if (path, level) not in self._along:
            factors: list[SparseOperand] = []
            nodes = self.levels[level]
            for step, next_step in pairwise(self.chains[path]):
                starts, senders, values = step.rows(nodes, step.offsets(nodes, self.seed))
                nodes, columns = distinct(senders, len(next_step.receiver_factors))
                factors.append(as_matrix(starts, columns, values, len(nodes), step.backend))
            self._along[path, level] = factors, nodes
        return self._along[path, level]

    def rows(self, level: int, path: str = "") -> tuple[Tensor, Tensor, Tensor]:
        """The rows of P of the last step of a path from a hop; see `Neighbourhoods.rows`."""
        _, nodes = self.along(path, level)
        return self._read(path, level, nodes)

    def _read(self, path: str, level: int, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if (path, level) not in self._rows:
            last_step = self.chains[path][-1]
            offsets = last_step.offsets(nodes, self.seed)
            self._rows[path, level] = last_step.rows(nodes, offsets)
        return self._rows[path, level]

    def matrix(self, level: int) -> SparseOperand:
        """The rows of P of a level, between its nodes and those of the next one."""
        if level not in self._matrices:
            backend = self.chains[""][0].backend
            self._matrices[level] = as_matrix(*self.rows(level), self.levels[level + 1], backend)
        return self._matrices[level]

    @cached_property
    def positions(self) -> list[Tensor]:
        """For each level, the positions of its nodes in the next one."""
        return [torch.searchsorted(outer, inner) for inner, outer in pairwise(self.levels)]


def distinct(senders: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return which of n nodes send, ascending, and each sender's position ``[e]`` among them."""
    if senders.is_cuda or n > NODES_PER_SENDER * len(senders):
        return torch.unique(senders, return_inverse=True)  # type: ignore[no-any-return]
    sends = np.zeros(n, np.bool_)
    sends[senders.numpy()] = True
    positions = np.cumsum(sends)[senders.numpy()] - 1
    return torch.from_numpy(np.flatnonzero(sends)), torch.from_numpy(positions)


def as_matrix(
    starts: Tensor, senders: Tensor, values: Tensor, column_nodes: Tensor | int, backend: Backend
) -> SparseOperand:
    """Build rows of P as a matrix ``[n, m]``.

    Args:
        starts: ``[n + 1]``.
        senders: ``[e]``.
        values: ``[e]``.
        column_nodes: the nodes of the columns, ascending; a number m: nodes 0 to m - 1.
        backend: the kernels.
    """
    row_count = len(starts) - 1
    if isinstance(column_nodes, int):
        width = column_nodes
        columns = senders
    else:
        width = len(column_nodes)
        columns = torch.searchsorted(column_nodes, senders)

    if starts.is_cuda:
        row_numbers = torch.arange(row_count, device=starts.device)
        rows = torch.repeat_interleave(row_numbers, starts.diff())
        keys, order = torch.sort(rows * width + columns)
        return SparseOperand(csr(keys, values[order], (row_count, width)), backend)

    # A copy, since sorting changes the arrays, which the view keeps.
    matrix = sparse.csr_array(
        (values.numpy(), columns.numpy(), starts.numpy()), shape=(row_count, width), copy=True
    )
    matrix.sort_indices()
    return SparseOperand.of_rows(*tensors(matrix), width, backend)
