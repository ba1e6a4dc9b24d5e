"""Propagation of messages along edges, with self-loops and normalisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.views.operands import SparseOperand, csr, keyed


@dataclass(frozen=True)
class Normalisation:
    """How the messages to a node are weighted: ``P = D^-left Â D^-right``.

    A_ij is the weight of the message that node i receives from node j, ``Â = A + I``, or A without
    self-loops, and ``D_ii = sum_j Â_ij``.
    """

    loops: bool
    left: float
    right: float

    def factors(self, degree: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return ``D^-left`` and ``D^-right``, ``[N]``, from the diagonal of D.

        A node that receives nothing has 0.
        """
        left = _negative_power(degree, self.left, dtype)
        if self.left == self.right:
            return left, left
        return left, _negative_power(degree, self.right, dtype)


Rule = Normalisation | tuple[str, ...]
"""A normalisation; in a graph of several types, the names of paths, pooled by means of means."""

SYMMETRIC = Normalisation(loops=True, left=0.5, right=0.5)
"""The GCN's."""
MEAN = Normalisation(loops=True, left=1, right=0)
"""The mean over a node and its neighbours."""
NEIGHBOURS = Normalisation(loops=False, left=1, right=0)
"""The mean over the neighbours alone; zero for a node that has none."""


def _negative_power(degree: Tensor, power: float, dtype: torch.dtype) -> Tensor:
    """``degree^-power``; 0 where the degree is 0."""
    if power == 0:
        return torch.ones_like(degree, dtype=dtype)
    return degree.pow(-power).masked_fill_(degree == 0, 0).to(dtype)


@dataclass(eq=False)
class Messages:
    """The edges of a view, with a normalisation.

    In a directed graph messages follow the edges, so A is the transpose of the graph's adjacency
    matrix.

    Shapes:
        keys: ``[E]`` i * N + j of receiver i and sender j, ascending, no self-loops
        weights: ``[E]``
    """

    lists_edges: ClassVar[bool] = True
    """Whether ``keys`` are the edges. Flips that are drawn anew for each use list none of them."""
    keys: Tensor
    weights: Tensor
    n: int
    rule: Normalisation
    backend: Backend
    directed: bool = field(kw_only=True)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        raise NotImplementedError

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Rows start to stop of P."""
        raise NotImplementedError


@dataclass(eq=False)
class Propagation(Messages):
    """Propagation as one sparse matrix ``[N, N]``."""

    def __post_init__(self) -> None:
        keys = self.keys
        weights = self.weights
        rule = self.rule
        n = self.n
        receivers = keys // n
        senders = keys % n

        # The degree of a node counts its self-loop, which the keys do not hold.
        degree = weights.new_full((n,), float(rule.loops)).index_add_(0, receivers, weights)
        left, right = rule.factors(degree, weights.dtype)
        if (rule.left, rule.right) == (1, 0):
            # A mean is a quotient, which is rounded once.
            values = weights / degree[receivers]
        else:
            values = left[receivers] * weights * right[senders]

        # Self-loops have the keys i * n + i and weight 1; rows of a CSR matrix are sorted by key.
        if rule.loops:
            loop_keys = torch.arange(n, device=keys.device) * (n + 1)
            keys, order = torch.sort(torch.cat([keys, loop_keys]))
            values = torch.cat([values, left * right])[order]
        symmetric = rule.left == rule.right and not self.directed
        self.operand = SparseOperand(csr(keys, values, (n, n)), self.backend, symmetric=symmetric)

    @classmethod
    def of(
        cls,
        graph: Record,
        rule: Normalisation,
        backend: Backend,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Build the propagation of a graph on the device."""
        received = graph.edges.senders.matrix(graph.num_nodes)
        keys, weights = keyed(received, backend.device)
        return cls(keys, weights.to(dtype), graph.num_nodes, rule, backend, directed=graph.directed)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        return self.operand @ y

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Rows start to stop of P."""
        return self.operand.rows(start, stop)
