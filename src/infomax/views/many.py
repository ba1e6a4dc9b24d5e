"""Many graphs: one graph against another, the paper's regime for PPI."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from infomax.graphs.graph import Graph
from infomax.kernels.ranks import Portion
from infomax.views.operands import multiply
from infomax.views.propagation import Propagation, Rule
from infomax.views.view import Corruption, View
from infomax.views.whole import WholeView

LARGEST, UNEVEN = 4096, 4
"""Graphs are padded if the largest has at most so many nodes, and at most so many times as many as the mean."""


class ManyGraphs:
    """Pairs of one graph and a corruption of another; one summary per graph.

    The negative is a corruption of another graph, drawn at random. If there is only one graph, it is a corruption of
    that graph, as in `WholeGraph`.
    """

    uniform = False

    def __init__(self, graph: Graph, rule: Rule, corruption: Corruption, device: torch.device) -> None:
        groups = np.zeros(graph.num_nodes) if graph.groups is None else graph.groups
        parts = (graph.part(groups == group) for group in np.unique(groups))
        self.views = [WholeView.of(part, rule, device) for part in parts]
        self.corruption, self.steps = corruption, len(self.views)
        self.padded: PaddedGraphs | None = None

    def pad(self) -> None:
        """Make all pairs equal in shape, so that a GPU can replay a recorded step; not if that takes too much work."""
        sizes = [view.propagation.n for view in self.views]
        dense = all(isinstance(view.features, Tensor) for view in self.views)
        if dense and self.steps > 1 and max(sizes) <= min(LARGEST, UNEVEN * sum(sizes) / len(sizes)):
            self.uniform, self.padded = True, PaddedGraphs.of(self.views)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every graph once, in random order, each paired with another: ``[2]`` per batch."""
        count, device = self.steps, generator.device
        if count == 1:
            return [torch.zeros(2, dtype=torch.int64)]
        order = torch.randperm(count, generator=generator, device=device)
        others = (order + torch.randint(1, count, (count,), generator=generator, device=device)) % count
        pairs = torch.stack([order, others], dim=1)
        return (pairs if self.padded else pairs.cpu()).unbind()

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The first graph of the batch, and a corruption of the second."""
        if self.padded:
            positive, negative = self.padded.pair(batch)
            return positive, self.corruption(negative, generator)
        one, other = batch.tolist()
        view = self.views[one].fresh()
        return view, self.corruption(view if one == other else self.views[other].fresh(), generator)


@dataclass(frozen=True, eq=False)
class PaddedView:
    """The view of a graph with padding: nodes without features and edges, which count nowhere.

    Shapes:
        features: ``[N, F]``; matrix, transpose: ``[N, N]``, the propagation, dense
        real: ``[N]``, 1 for a node, 0 for padding
    """

    features: Tensor
    matrix: Tensor
    transpose: Tensor
    real: Tensor
    portion: Portion | None = None

    def with_features(self, features: Tensor) -> PaddedView:
        """The same graph with other features ``[N, F]``."""
        return dataclasses.replace(self, features=features)

    def shuffled(self, generator: torch.Generator) -> PaddedView:
        """The same graph with the rows of X in random order; padding stays in its place."""
        keys = torch.rand(self.real.shape, generator=generator, device=generator.device)
        return self.with_features(self.features[torch.where(self.real > 0, keys, 2).argsort(stable=True)])

    def carry(self, h: Tensor) -> Tensor:
        """All of H."""
        return h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return multiply(self.features, weight) if h is None else h @ weight

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ; features are pooled before the product, so that the gradient needs no P."""
        if h is None:
            return multiply(self.matrix @ self.features, weight)
        return _Product.apply(h @ weight, self.matrix, self.transpose)  # type: ignore[no-any-return, no-untyped-call]


class _Product(torch.autograd.Function):
    """P Y; a GPU multiplies by a transpose in memory faster than by the transpose of a matrix."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, matrix: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return matrix @ y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ grads[0], None, None


@dataclass(frozen=True, eq=False)
class PaddedGraphs:
    """G graphs, each padded to the nodes N and edges E of the largest.

    Shapes:
        features: ``[G, N, F]``; real: ``[G, N]``, 1 for a node, 0 for padding
        places: ``[G, 2, E]``, of the entries of the propagation matrix, row * N + column, and of its transpose; N * N
            is padding
        values: ``[G, 1, E]``, the entries
    """

    features: Tensor
    real: Tensor
    places: Tensor
    values: Tensor

    @classmethod
    def of(cls, views: Sequence[WholeView]) -> PaddedGraphs:
        """Pad the graphs of views with dense features."""
        features = pad_sequence([cast(Tensor, view.features) for view in views], batch_first=True)
        features = pad(features, (0, 0, 0, -features.shape[1] % 8))  # as tensor cores require
        real = torch.zeros_like(features[..., 0])
        for row, view in zip(real, views, strict=True):
            row[: view.propagation.n] = 1
        matrices = [cast(Propagation, view.propagation).operand.matrix.to_sparse_coo() for view in views]
        step = torch.tensor([[real.shape[1], 1], [1, real.shape[1]]], device=real.device)
        places = [(step[:, :, None] * matrix.indices()).sum(1).T for matrix in matrices]
        values = [matrix.values() for matrix in matrices]
        places_of_all = pad_sequence(places, batch_first=True, padding_value=real.shape[1] ** 2).mT.contiguous()
        return cls(features, real, places_of_all, pad_sequence(values, batch_first=True)[:, None])

    def pair(self, batch: Tensor) -> tuple[PaddedView, PaddedView]:
        """Two of the graphs, by their numbers ``[2]`` on the device; the first says which nodes of both count."""
        features, real = self.features[batch], self.real[batch]
        n, places = real.shape[1], self.places[batch]
        cells = features.new_zeros(2, 2, n * n + 8)  # 8, for the alignment that tensor cores require
        cells.scatter_(2, places, self.values[batch].expand_as(places))
        matrices = cells[..., :-8].unflatten(2, (n, n))
        portion = Portion(real[0].sum(), real.sum(), real=(real[0], real[1]))
        positive = PaddedView(features[0], matrices[0, 0], matrices[0, 1], real[0], portion)
        return positive, PaddedView(features[1], matrices[1, 0], matrices[1, 1], real[1])
