"""Propagation of messages along edges, with self-loops and normalisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from infomax.arrays.adjacency import transposed
from infomax.errors import InputError
from infomax.io.record import Record
from infomax.kernels import Backend, Place
from infomax.views.operands import SparseOperand, csr, keyed


@dataclass(frozen=True)
class Normalisation:
    """How the messages to a node are weighted: ``P = D^-left Â D^-right``, with ``Â = A + I``, or A without self-loops.

    A_ij is the weight of the message that node i receives from node j, and ``D_ii = sum_j Â_ij``.
    """

    loops: bool
    left: float
    right: float

    @classmethod
    def of(cls, rule: Rule) -> Normalisation:
        """Return the normalisation itself, or one by its name."""
        found = rule if isinstance(rule, cls) else NAMED.get(rule) if isinstance(rule, str) else None
        if found is None:
            raise InputError("rule of the encoder", f"{' or '.join(NAMED)}, or a Normalisation", repr(rule))
        return found

    def factors(self, degree: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return ``D^-left`` and ``D^-right``, ``[N]``, from the diagonal of D; 0 for a node that receives nothing."""
        left = _power(degree, self.left, dtype)
        return left, left if self.left == self.right else _power(degree, self.right, dtype)


Rule = Normalisation | Literal["symmetric", "mean"] | tuple[str, ...]
"""A normalisation, or the name of one; in a graph of several types, the names of paths, pooled by means of means."""

SYMMETRIC = Normalisation(loops=True, left=0.5, right=0.5)
"""The GCN's."""
MEAN = Normalisation(loops=True, left=1, right=0)
"""The mean over a node and its neighbours."""
NEIGHBOURS = Normalisation(loops=False, left=1, right=0)
"""The mean over the neighbours alone; zero for a node that has none."""
NAMED = {"symmetric": SYMMETRIC, "mean": MEAN}


def _power(degree: Tensor, power: float, dtype: torch.dtype) -> Tensor:
    if power == 0:
        return torch.ones_like(degree, dtype=dtype)
    return degree.pow(-power).masked_fill_(degree == 0, 0).to(dtype)


class Messages:
    """The edges of a view, with a normalisation.

    In a directed graph messages follow the edges, so A is the transpose of the graph's adjacency matrix.

    Shapes:
        keys: ``[E]`` i * N + j, ascending, no self-loops
        weights: ``[E]``
    """

    def __init__(self, keys: Tensor, weights: Tensor, n: int, rule: Rule, backend: Backend, *, directed: bool) -> None:
        self.keys, self.weights, self.n, self.rule, self.directed = keys, weights, n, Normalisation.of(rule), directed
        self.backend = backend

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        raise NotImplementedError

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Rows start to stop of P."""
        raise NotImplementedError


class Propagation(Messages):
    """Propagation as one sparse matrix ``[N, N]``."""

    def __init__(self, keys: Tensor, weights: Tensor, n: int, rule: Rule, backend: Backend, *, directed: bool) -> None:
        super().__init__(keys, weights, n, rule, backend, directed=directed)
        rule, rows = self.rule, keys // n
        degree = weights.new_full((n,), float(rule.loops)).index_add_(0, rows, weights)
        left, right = rule.factors(degree, weights.dtype)
        if (rule.left, rule.right) == (1, 0):
            values = weights / degree[rows]  # a quotient is rounded once
        else:
            values = left[rows] * weights * right[keys % n]
        if rule.loops:
            loops = torch.arange(n, device=keys.device) * (n + 1)
            keys, order = torch.sort(torch.cat([keys, loops]))
            values = torch.cat([values, left * right])[order]
        symmetric = rule.left == rule.right and not directed
        self.operand = SparseOperand(csr(keys, values, (n, n)), backend, symmetric=symmetric)

    @classmethod
    def of(cls, graph: Record, rule: Rule, place: Place, dtype: torch.dtype = torch.float32) -> Propagation:
        """Build the propagation of a graph on the device."""
        backend = Backend.of(place)
        received = transposed(graph.adjacency) if graph.directed else graph.adjacency
        keys, weights = keyed(received, backend.device)
        return cls(keys, weights.to(dtype), graph.num_nodes, rule, backend, directed=graph.directed)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        return self.operand @ y

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Rows start to stop of P."""
        return self.operand.rows(start, stop)
