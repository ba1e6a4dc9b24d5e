"""Many graphs: one graph against another, the paper's regime for PPI."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.plain import linear
from infomax.kernels.ranks import Portion
from infomax.views.operands import multiply
from infomax.views.propagation import Propagation, Rule
from infomax.views.view import AllNodes, Corruption, View, Views
from infomax.views.whole import WholeGraph, WholeView

LARGEST, UNEVEN = 4096, 4
"""Graphs are padded if the largest has at most so many nodes, and at most so many times as many as the mean."""


class ManyGraphs(Views):
    """Pairs of one graph and a corruption of another; one summary per graph.

    The negative is a corruption of another graph, drawn at random. If there is only one graph, it is a corruption of
    that graph, as in `WholeGraph`.
    """

    corruptions = WholeGraph.corruptions
    pools_along_paths = False

    def __init__(self, graph: Record, rule: Rule, corruption: Corruption, backend: Backend) -> None:
        groups = np.zeros(graph.num_nodes) if graph.groups is None else graph.groups
        masks = [groups == group for group in np.unique(groups)]
        self.members = [np.flatnonzero(mask) for mask in masks]
        self.views = [WholeView.of(graph.part(mask), rule, backend) for mask in masks]
        self.corruption, self.steps = corruption, len(self.views)
        self.padded: PaddedGraphs | None = None

    def pad(self) -> None:
        """Make all pairs equal in shape, so that a GPU can replay a recorded step; not if that takes too much work."""
        sizes = [view.propagation.n for view in self.views]
        dense = all(isinstance(view.features, Tensor) for view in self.views)
        if (
            dense
            and self.steps > 1
            and max(sizes) <= min(LARGEST, UNEVEN * sum(sizes) / len(sizes))
        ):
            self.uniform = True
            self.padded = PaddedGraphs(self.views)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every graph once, in random order, each paired with another: ``[2]`` per batch."""
        count, device = self.steps, generator.device
        if count == 1:
            return [torch.zeros(2, dtype=torch.int64)]
        order = torch.randperm(count, generator=generator, device=device)
        others = (
            order + torch.randint(1, count, (count,), generator=generator, device=device)
        ) % count
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

    def nodes(self, batch: Tensor, positive: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes of both graphs."""
        one, other = batch.tolist()
        return self.members[one], self.members[other]


@dataclass(frozen=True, eq=False)
class PaddedView(AllNodes):
    """The view of a graph of a pair, or of both side by side, with padding: nodes without features and edges.

    Shapes:
        features: ``[G, N, F]``, of G = 1 or 2 graphs
        real: ``[G, N]``, 1 for a node, 0 for padding, which counts nowhere
        matrices: ``[2, 2, N, N]``, the propagation of each graph of the pair, dense, and its transpose
        which: the graphs of the view
    """

    features: Tensor
    real: Tensor
    matrices: Tensor
    which: slice
    backend: Backend
    portion: Portion | None = None

    def part(self, which: slice) -> PaddedView:
        """The view of one of the graphs."""
        return dataclasses.replace(
            self, features=self.features[which], real=self.real[which], which=which
        )

    def with_features(self, features: Tensor) -> PaddedView:
        """The same graphs with other features ``[G, N, F]``."""
        return dataclasses.replace(self, features=features)

    def shuffled(self, generator: torch.Generator) -> PaddedView:
        """The same graphs with the rows of X in random order; padding stays in its place."""
        keys = torch.rand(self.real.shape, generator=generator, device=generator.device)
        order = torch.where(self.real > 0, keys, 2).argsort(dim=1, stable=True)
        return self.with_features(self.features.take_along_dim(order[..., None], dim=1))

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return (
            multiply(self.features.flatten(0, 1), weight, self.backend) if h is None else h @ weight
        )

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ; features are pooled before the product, so that the gradient needs no P."""
        matrices = self.matrices[self.which]
        if h is None:
            return multiply((matrices[:, 0] @ self.features).flatten(0, 1), weight, self.backend)
        y = (h @ weight).unflatten(0, self.real.shape)
        # A GPU multiplies by a transpose in memory faster than by the transpose of a matrix.
        return linear(y, *(partial(_products, one) for one in matrices.unbind(1))).flatten(0, 1)


def side_by_side(positive: View, negative: View) -> View | None:
    """Return one view of both graphs of a pair, which needs half as many operations; None where there is none."""
    if isinstance(positive, WholeView) and isinstance(negative, WholeView):
        return positive.beside(negative)
    if not (isinstance(positive, PaddedView) and isinstance(negative, PaddedView)):
        return None
    features = torch.cat([positive.features, negative.features])
    real = torch.cat([positive.real, negative.real])
    return PaddedView(features, real, positive.matrices, slice(0, 2), positive.backend)


def _products(matrices: Tensor, y: Tensor) -> Tensor:
    """Multiply matrices ``[G, N, N]`` by ``[G, N, d]`` one by one, which is faster than all at once."""
    out = torch.empty_like(y)
    for matrix, factor, place in zip(matrices, y, out, strict=True):
        torch.mm(matrix, factor, out=place)
    return out


class PaddedGraphs:
    """G graphs with dense features, each padded to the nodes N and edges E of the largest.

    Shapes:
        features: ``[G, N, F]``; real: ``[G, N]``, 1 for a node, 0 for padding
        places: ``[G, 2, E]``, of the entries of the propagation matrix, row * N + column, and of its transpose; N * N
            is padding
        values: ``[G, 1, E]``, the entries
    """

    def __init__(self, views: Sequence[WholeView]) -> None:
        features = pad_sequence([cast(Tensor, view.features) for view in views], batch_first=True)
        self.features = pad(features, (0, 0, 0, -features.shape[1] % 8))  # as tensor cores require
        self.real = real = torch.zeros_like(self.features[..., 0])
        for row, view in zip(real, views, strict=True):
            row[: view.propagation.n] = 1
        matrices = [
            cast(Propagation, view.propagation).operand.matrix.to_sparse_coo() for view in views
        ]
        step = torch.tensor([[real.shape[1], 1], [1, real.shape[1]]], device=real.device)
        places = [(step[:, :, None] * matrix.indices()).sum(1).T for matrix in matrices]
        values = [matrix.values() for matrix in matrices]
        self.places = pad_sequence(
            places, batch_first=True, padding_value=real.shape[1] ** 2
        ).mT.contiguous()
        self.values = pad_sequence(values, batch_first=True)[:, None]
        self.backend = views[0].backend

    def pair(self, batch: Tensor) -> tuple[PaddedView, PaddedView]:
        """Two of the graphs, by their numbers ``[2]`` on the device; the first says which nodes of both count."""
        features, real = self.features[batch], self.real[batch]
        n, places = real.shape[1], self.places[batch]
        cells = features.new_zeros(
            2, 2, n * n + 8
        )  # 8, for the alignment that tensor cores require
        cells.scatter_(2, places, self.values[batch].expand_as(places))
        portion = Portion(real[0].sum(), real.sum(), real=(real[0], real[1]))
        matrices = cells[..., :-8].unflatten(2, (n, n))
        both = PaddedView(features, real, matrices, slice(0, 2), self.backend, portion)
        return both.part(slice(0, 1)), both.part(slice(1, 2))
