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

PER_SENDER = 16
"""Nodes per sender up to which it is faster on a CPU to mark the senders among all nodes than to sort them."""


class KnownRows(NamedTuple):
    """Rows of P X ``[N, F]`` that are the same in every step, and whether each is known yet, ``[N]``."""

    rows: NDArray[np.float32]
    known: NDArray[np.bool_]

    @classmethod
    def none(cls, n: int, width: int) -> KnownRows:
        """Memory for so many rows, none of which is known."""
        return cls(np.empty((n, width), np.float32), np.zeros(n, np.bool_))


@dataclass(frozen=True)
class Neighbourhoods:
    """Any rows of the normalised adjacency P = diag(left) (A + I) diag(right), or with A alone, without self-loops.

    Of a node with more than ``cap`` neighbours, ``cap`` are sampled, each with equal probability and none twice, and
    weighted by degree / cap: the expectation of P X is unchanged.

    Shapes:
        starts: ``[N + 1]``, node i receives from ``senders[starts[i] : starts[i + 1]]``
        senders: ``[E]`` int32 or int64
        weights: ``[E]``; None if all are 1
        left, right: ``[N]``; no right one if all are 1
    """

    starts: Tensor
    senders: Tensor
    weights: Tensor | None
    left: Tensor
    right: Tensor | None
    cap: int
    capped: bool
    """Whether any node has more neighbours than the cap."""
    backend: Backend
    loops: bool
    """Whether a node sends to itself, too."""

    def entries(self, count: int) -> int:
        """Return about how many entries the rows of so many nodes have."""
        return count * (1 + min(len(self.senders) // len(self.left), self.cap))

    def offsets(self, nodes: Tensor, seed: Tensor) -> Tensor:
        """Return a number from 0 to 1 for each node ``[B]``, by which `rows` samples: always the same for a seed."""
        return uniform(nodes, seed) if self.capped else torch.zeros(len(nodes), device=nodes.device)

    def rows(self, nodes: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of P, a node itself first: starts ``[B + 1]``, senders ``[e]`` and values ``[e]``.

        Shapes:
            nodes, offsets: ``[B]``; an offset from 0 to 1 decides which neighbours are taken if there are too many.
        """
        first = self.starts[nodes]
        degree = self.starts[nodes + 1] - first
        count = degree.clamp(max=self.cap)
        entries = count + int(self.loops)
        starts = torch.cat([count.new_zeros(1), entries.cumsum(0)])
        owner = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), entries)
        place = (
            torch.arange(len(owner), device=nodes.device) - starts[owner] - int(self.loops)
        )  # -1: the node itself
        stretch = (degree.double() / count.clamp(min=1))[owner]
        # One neighbour from each of `cap` intervals of equal length, all at the same offset.
        at = torch.where(stretch > 1, ((offsets.double()[owner] + place) * stretch).long(), place)
        at = first[owner] + at.clamp_(min=0)
        itself = place < 0
        senders = torch.where(itself, nodes[owner], _look_up(self.senders, at).long())
        weight = stretch.to(self.left.dtype)
        if self.weights is not None:
            weight = weight * _look_up(self.weights, at)
        weight = torch.where(itself, 1, weight)
        values = self.left[nodes][owner] * weight
        return starts, senders, values if self.right is None else values * self.right[senders]

    def pool(
        self,
        nodes: Tensor,
        offsets: Tensor | None,
        table: Any,
        permutation: Permutation | None = None,
        kept: KnownRows | None = None,
    ) -> Tensor:
        """Multiply rows of P by a constant table, ``[N, F] -> [B, F]``; node i has row ``permutation(i)``, or its own.

        The table may be on disk, in half precision, and for a GPU in page-locked host memory. Without offsets the first
        neighbours are taken. What is ``kept`` of the products with the same table, without a permutation, is not
        computed again.
        """
        offsets = torch.zeros(len(nodes), device=nodes.device) if offsets is None else offsets
        if not isinstance(table, Tensor):
            return table.pool(self, nodes, offsets, permutation, kept)  # type: ignore[no-any-return]
        if kernels := self.backend.triton:
            return kernels.pool_rows(self, nodes, offsets, table, permutation)  # type: ignore[no-any-return]
        if self.backend.numba(self.entries(len(nodes)) * table.shape[1]):
            from infomax.kernels.cpu_neighbourhoods import pool_rows

            return pool_rows(self, nodes, offsets, table, permutation, kept)
        starts, senders, values = self.rows(nodes, offsets)
        if permutation is not None:
            senders = permutation(senders)
        rows = embedding_bag(
            senders,
            table,
            starts,
            mode="sum",
            per_sample_weights=values.to(table.dtype),
            include_last_offset=True,
        )
        return rows.to(self.left.dtype)


def _look_up(column: Tensor, at: Tensor) -> Tensor:
    """Return entries of a column; zeros if the column is empty."""
    return column[at.clamp(max=len(column) - 1)] if len(column) else at.new_zeros(at.shape)


def neighbourhoods(
    senders: Senders, rule: Normalisation, backend: Backend, cap: int
) -> Neighbourhoods:
    """Put the senders of each of N nodes on the device: some of these nodes, or nodes of another type."""
    device = backend.device
    starts = to_device(np.asanyarray(senders.indptr, dtype=np.int64), device)  # mapped where it is
    counts = starts.diff()
    received = (
        counts.double() if senders.data is None else torch.from_numpy(senders.sums()).to(device)
    )
    left, right = rule.factors(int(rule.loops) + received, torch.float32)
    return Neighbourhoods(
        starts,
        to_device(senders.indices, device),
        None if senders.data is None else to_device(senders.data, device),
        left,
        right if rule.right else None,
        cap,
        capped=bool((counts > cap).any()),
        backend=backend,
        loops=rule.loops,
    )


@dataclass(frozen=True, eq=False)
class Hops:
    """The neighbourhoods of one batch, hop by hop, and along paths; a view and its negative share them.

    Hop 0 is the batch itself; hop l + 1 has every node that sends to hop l or is in it. A layer computes a hop from
    the next one. Among several types there is hop 0 only, and paths from it.
    """

    chains: Mapping[str, Sequence[Neighbourhoods]]
    """By path, the neighbourhoods of each step; that of the paper's graph has no name."""
    nodes: Tensor
    depth: int
    seed: Tensor
    """Decides which neighbours are sampled for a node with more than the cap, in all hops the same."""
    _rows: dict[tuple[str, int], tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    _along: dict[tuple[str, int], tuple[list[SparseOperand], Tensor]] = field(default_factory=dict)
    _matrices: dict[int, SparseOperand] = field(default_factory=dict)

    @cached_property
    def levels(self) -> list[Tensor]:
        """The nodes of each hop that a layer computes, the batch first; the outermost hop is not included."""
        levels = [self.nodes]
        for level in range(self.depth - 1):
            (hoods,), inner = self.chains[""], levels[-1]
            _, senders, _ = self._read("", level, inner)
            levels.append(torch.unique(senders if hoods.loops else torch.cat([inner, senders])))
        return levels

    def along(self, path: str, level: int) -> tuple[list[SparseOperand], Tensor]:
        """All factors of a path from a hop but the last one, and the nodes before its last step."""
        if (path, level) not in self._along:
            factors, nodes = [], self.levels[level]
            for hoods, following in pairwise(self.chains[path]):
                starts, senders, values = hoods.rows(nodes, hoods.offsets(nodes, self.seed))
                nodes, places = distinct(senders, len(following.left))
                factors.append(as_matrix(starts, places, values, len(nodes), hoods.backend))
            self._along[path, level] = factors, nodes
        return self._along[path, level]

    def rows(self, level: int, path: str = "") -> tuple[Tensor, Tensor, Tensor]:
        """The rows of P of the last step of a path from a hop; see `Neighbourhoods.rows`."""
        return self._read(path, level, self.along(path, level)[1])

    def _read(self, path: str, level: int, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if (path, level) not in self._rows:
            hoods = self.chains[path][-1]
            self._rows[path, level] = hoods.rows(nodes, hoods.offsets(nodes, self.seed))
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
    """Return which of n nodes send, ascending, and the place of each of the ``senders`` ``[e]`` among them."""
    if senders.is_cuda or n > PER_SENDER * len(senders):
        return torch.unique(senders, return_inverse=True)  # type: ignore[no-any-return]
    found = np.zeros(n, np.bool_)
    found[senders.numpy()] = True
    places = np.cumsum(found)[senders.numpy()] - 1
    return torch.from_numpy(np.flatnonzero(found)), torch.from_numpy(places)


def as_matrix(
    starts: Tensor, senders: Tensor, values: Tensor, among: Tensor | int, backend: Backend
) -> SparseOperand:
    """Build rows of P as a matrix ``[n, m]`` whose columns are the nodes ``among``, ascending, or 0 to m - 1."""
    n, m = len(starts) - 1, among if isinstance(among, int) else len(among)
    columns = senders if isinstance(among, int) else torch.searchsorted(among, senders)
    if starts.is_cuda:
        owner = torch.repeat_interleave(torch.arange(n, device=starts.device), starts.diff())
        keys, order = torch.sort(owner * m + columns)
        return SparseOperand(csr(keys, values[order], (n, m)), backend)
    rows = sparse.csr_array(
        (values.numpy(), columns.numpy(), starts.numpy()), shape=(n, m), copy=True
    )
    rows.sort_indices()
    return SparseOperand.of_rows(*tensors(rows), m, backend)
