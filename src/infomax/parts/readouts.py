"""Readouts R: summarise the patch representations H of a graph in one vector s, step 4 of the
paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from infomax.errors import InputError, check_whole_number
from infomax.kernels.initialisation import glorot
from infomax.kernels.plain import column_sum
from infomax.views import View, WholeView


class SigmoidMean(nn.Module):
    """The paper's readout, ``s = sigmoid(mean_i h_i)``.

    Shapes:
        h: ``[N, d]``
        out: ``[d]``
    """

    def __init__(self, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()

    def forward(self, h: Tensor, view: View) -> Tensor:
        """Return the summary ``[d]``."""
        return torch.sigmoid(column_sum(h) / len(h))


class Set2Set(nn.Module):
    """Set2Set: attention over the nodes in a few LSTM steps (Vinyals et al., 2015), then a linear
    map and sigmoid.

    Shapes:
        h: ``[N, d]``
        out: ``[d]``
    """

    def __init__(
        self, dim: int, *, steps: int = 3, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.steps = check_whole_number("steps", steps, 1)

        # Made without weights: torch would draw them from its global state, not from the generator.
        cell_without_weights = nn.LSTMCell(2 * dim, dim, device="meta", dtype=torch.float32)
        self.cell = cell_without_weights.to_empty(device="cpu")
        bound = dim**-0.5
        for parameter in self.cell.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)
        self.weight = glorot((2 * dim, dim), generator=generator)

    def forward(self, h: Tensor, view: View) -> Tensor:
        """Return the summary ``[d]``."""
        query, memory = h.new_zeros(2, 1, h.shape[1])
        read = torch.cat([query, query], dim=1)
        for _ in range(self.steps):
            query, memory = self.cell(read, (query, memory))
            attention = torch.softmax(h @ query[0], dim=0)
            read = torch.cat([query, (attention @ h)[None]], dim=1)
        return torch.sigmoid(read[0] @ self.weight)


class DiffPool(nn.Module):
    """DiffPool: soft clusters of nodes, a convolution on the clusters, sigmoid of their mean (Ying
    et al., 2018).

    Shapes:
        h: ``[N, d]``; assignment ``[N, K]``; cluster_features ``[K, d]``; messages ``[K, K]``
        out: ``[d]``
    """

    def __init__(
        self, dim: int, *, clusters: int = 16, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        cluster_count = check_whole_number("clusters", clusters, 1)
        self.assign = glorot((dim, cluster_count), generator=generator)
        self.weight = glorot((dim, dim), generator=generator)

    def forward(self, h: Tensor, view: View) -> Tensor:
        """Return the summary ``[d]``."""
        if not isinstance(view, WholeView):
            raise InputError("DiffPool", "a whole graph", "patches", "Use SigmoidMean or Set2Set.")
        # A graph of clusters: their features, and how much its clusters send to each other.
        assignment = torch.softmax(view.propagation @ (h @ self.assign), dim=1)
        cluster_features = assignment.T @ h
        messages = assignment.T @ (view.propagation @ assignment)

        # A convolution on this graph; a cluster of many nodes is a sum of many rows.
        propagation = messages / messages.sum(1, keepdim=True)
        pooled = propagation @ (cluster_features @ self.weight)
        cluster_sizes = column_sum(assignment)[:, None]
        return torch.sigmoid(torch.relu(pooled / cluster_sizes).mean(0))
