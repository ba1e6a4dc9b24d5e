"""Propagation of messages along edges, with self-loops and normalisation."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.kernels import Backend, Place
from infomax.views.operands import SparseOperand, csr, keyed

Rule = Literal["symmetric", "mean"]


class Messages:
    """The edges of a view with self-loops, normalised by a rule.

    With A_ij the weight of the message that node i receives from node j, ``Â = A + I`` and ``D_ii = sum_j Â_ij``:

    - ``symmetric``: ``D^-1/2 Â D^-1/2``, the GCN's;
    - ``mean``: ``D^-1 Â``, mean pooling.

    In a directed graph messages follow the edges, so A is the transpose of the graph's adjacency matrix.

    Shapes:
        keys: ``[E]`` i * N + j, ascending, no self-loops
        weights: ``[E]``
    """

    def __init__(self, keys: Tensor, weights: Tensor, n: int, rule: Rule, backend: Backend, *, directed: bool) -> None:
        if rule not in get_args(Rule):
            raise InputError("rule of the encoder", " or ".join(get_args(Rule)), repr(rule))
        self.keys, self.weights, self.n, self.rule, self.directed = keys, weights, n, rule, directed
        self.backend = backend

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        raise NotImplementedError


class Propagation(Messages):
    """Propagation as one sparse matrix ``[N, N]``."""

    def __init__(self, keys: Tensor, weights: Tensor, n: int, rule: Rule, backend: Backend, *, directed: bool) -> None:
        super().__init__(keys, weights, n, rule, backend, directed=directed)
        rows, columns = keys // n, keys % n
        degree = torch.ones(n, dtype=weights.dtype, device=keys.device).index_add_(0, rows, weights)
        if rule == "symmetric":
            scale = degree.rsqrt()
            values, diagonal = scale[rows] * weights * scale[columns], scale * scale
        else:
            values, diagonal = weights / degree[rows], 1 / degree
        loops = torch.arange(n, device=keys.device) * (n + 1)
        merged, order = torch.sort(torch.cat([keys, loops]))
        symmetric = rule == "symmetric" and not directed
        matrix = csr(merged, torch.cat([values, diagonal])[order], (n, n))
        self.operand = SparseOperand(matrix, backend, symmetric=symmetric)

    @classmethod
    def of(cls, graph: Graph, rule: Rule, place: Place, dtype: torch.dtype = torch.float32) -> Propagation:
        """Build the propagation of a graph on the device."""
        backend = Backend.of(place)
        received = graph.adjacency.T.tocsr() if graph.directed else graph.adjacency
        keys, weights = keyed(received, backend.device)
        return cls(keys, weights.to(dtype), graph.num_nodes, rule, backend, directed=graph.directed)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        return self.operand @ y
