"""Complete neighbourhoods of some nodes of a large graph, read from its adjacency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from infomax.kernels import Backend
from infomax.kernels.random import Permutation, uniform


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
        place = torch.arange(len(owner), device=nodes.device) - starts[owner] - int(self.loops)  # -1: the node itself
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
        offsets: Tensor,
        table: Tensor,
        permutation: Permutation | None,
        kept: KnownRows | None = None,
    ) -> Tensor:
        """Multiply rows of P by a constant table, ``[N, F] -> [B, F]``; node i has row ``permutation(i)``, or its own.

        The table may be in half precision, and for a GPU in page-locked host memory. What is ``kept`` of the products
        with the same table, without a permutation, is not computed again.
        """
        if kernels := self.backend.triton:
            return kernels.pool_rows(self, nodes, offsets, table, permutation)  # type: ignore[no-any-return]
        if self.backend.numba(self.entries(len(nodes)) * table.shape[1]):
            from infomax.kernels.cpu_neighbourhoods import pool_rows

            return pool_rows(self, nodes, offsets, table, permutation, kept)
        starts, senders, values = self.rows(nodes, offsets)
        if permutation is not None:
            senders = permutation(senders)
        rows = embedding_bag(
            senders, table, starts, mode="sum", per_sample_weights=values.to(table.dtype), include_last_offset=True
        )
        return rows.to(self.left.dtype)


def _look_up(column: Tensor, at: Tensor) -> Tensor:
    """Return entries of a column; zeros if the column is empty."""
    return column[at.clamp(max=len(column) - 1)] if len(column) else at.new_zeros(at.shape)
