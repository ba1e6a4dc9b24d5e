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
from infomax.io.subgraphs import part_of
from infomax.kernels import Backend
from infomax.kernels.plain import linear
from infomax.kernels.ranks import Portion
from infomax.views.operands import TENSOR_CORE_MULTIPLE, multiply
from infomax.views.propagation import Propagation, Rule
from infomax.views.view import AllNodes, Corruption, View, Views
from infomax.views.whole import WholeGraph, WholeView

MOST_PADDED_NODES = 4096
"""Graphs are padded only if the largest has at most so many nodes."""
MOST_TIMES_THE_MEAN = 4
"""Graphs are padded only if the largest has at most so many times as many nodes as the mean."""
EXTRA_NUMBERS = 8
"""Numbers by which each matrix of a padded pair is longer: tensor cores require aligned rows."""


class ManyGraphs(Views):
    """Pairs of one graph and a corruption of another; one summary per graph.

    The negative is a corruption of another graph, drawn at random. If there is only one graph, it
    is a corruption of that graph, as in `WholeGraph`.

    Args:
        graph: the graphs as one, with ``groups``.
        rule: the normalisation that the encoder asks for.
        corruption: makes the negative of a graph.
        backend: the kernels, and the device.
        most_padded_nodes: see `MOST_PADDED_NODES`.
    """

    corruptions = WholeGraph.corruptions
    pools_along_paths = False

    def __init__(
        self,
        graph: Record,
        rule: Rule,
        corruption: Corruption,
        backend: Backend,
        *,
        most_padded_nodes: int = MOST_PADDED_NODES,
    ) -> None:
        groups = np.zeros(graph.num_nodes) if graph.groups is None else graph.groups
        masks = [groups == group for group in np.unique(groups)]
        self.members = [np.flatnonzero(mask) for mask in masks]
        self.views = [WholeView.of(part_of(graph, mask), rule, backend) for mask in masks]
        self.corruption = corruption
        self.steps = len(self.views)
        self.most_padded_nodes = most_padded_nodes
        self.padded: PaddedGraphs | None = None

    def pad(self) -> None:
        """Make all pairs equal in shape, so that a GPU can replay a recorded step.

        Graphs stay as they are where padding would take too much work.
        """
        sizes = [view.propagation.n for view in self.views]
        mean_size = sum(sizes) / len(sizes)
        most_nodes = min(self.most_padded_nodes, MOST_TIMES_THE_MEAN * mean_size)
        all_dense = all(isinstance(view.features, Tensor) for view in self.views)
        if all_dense and self.steps > 1 and max(sizes) <= most_nodes:
            self.uniform = True
            self.padded = PaddedGraphs(self.views)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every graph once, in random order, each paired with another: ``[2]`` per batch."""
        count = self.steps
        device = generator.device
        if count == 1:
            return [torch.zeros(2, dtype=torch.int64)]
        positives = torch.randperm(count, generator=generator, device=device)
        # A step of 1 to count - 1 never ends at the same graph.
        distances = torch.randint(1, count, (count,), generator=generator, device=device)
        negatives = (positives + distances) % count
        pairs = torch.stack([positives, negatives], dim=1)
        if self.padded is None:
            pairs = pairs.cpu()
        return pairs.unbind()

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The first graph of the batch, and a corruption of the second."""
        if self.padded is not None:
            positive, negative = self.padded.pair(batch)
            return positive, self.corruption(negative, generator)

        positive_index, negative_index = batch.tolist()
        view = self.views[positive_index].fresh()
        # Of one graph, both views share their products.
        source = view
        if negative_index != positive_index:
            source = self.views[negative_index].fresh()
        return view, self.corruption(source, generator)

    def nodes(self, batch: Tensor, positive: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes of both graphs."""
        positive_index, negative_index = batch.tolist()
        return self.members[positive_index], self.members[negative_index]


@dataclass(frozen=True, eq=False)
class PaddedView(AllNodes):
    """The view of a graph of a pair, or of both side by side, with padding.

    Padding is nodes without features and edges.

    Shapes:
        features: ``[G, N, F]``, of G = 1 or 2 graphs
        node_mask: ``[G, N]``, 1 for a node, 0 for padding, which counts nowhere
        matrices: ``[2, 2, N, N]``, the propagation of each graph of the pair, dense, and its
            transpose
        graphs: the graphs of the pair that the view shows
    """

    features: Tensor
    node_mask: Tensor
    matrices: Tensor
    graphs: slice
    backend: Backend
    portion: Portion | None = None

    def graphs_at(self, graphs: slice) -> PaddedView:
        """The view of some graphs of the pair."""
        return dataclasses.replace(
            self, features=self.features[graphs], node_mask=self.node_mask[graphs], graphs=graphs
        )

    def with_features(self, features: Tensor) -> PaddedView:
        """The same graphs with other features ``[G, N, F]``."""
        return dataclasses.replace(self, features=features)

    def shuffled(self, generator: torch.Generator) -> PaddedView:
        """The same graphs with the rows of X in random order; padding stays at the end."""
        keys = torch.rand(self.node_mask.shape, generator=generator, device=generator.device)
        # Keys of nodes are below 1, so those of padding come last.
        order = torch.where(self.node_mask > 0, keys, 2).argsort(dim=1, stable=True)
        return self.with_features(self.features.take_along_dim(order[..., None], dim=1))

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        if h is None:
            return multiply(self.features.flatten(0, 1), weight, self.backend)
        return h @ weight

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ; features are pooled before the product, so that the gradient needs no P."""
        matrices = self.matrices[self.graphs]
        if h is None:
            pooled_features = matrices[:, 0] @ self.features
            return multiply(pooled_features.flatten(0, 1), weight, self.backend)
        y = (h @ weight).unflatten(0, self.node_mask.shape)
        # A GPU multiplies by a transpose in memory faster than by the transpose of a matrix.
        propagation, transpose = matrices.unbind(1)
        propagated = linear(y, partial(_products, propagation), partial(_products, transpose))
        return propagated.flatten(0, 1)


def side_by_side(positive: View, negative: View) -> View | None:
    """Return one view of both graphs of a pair, which needs half as many operations.

    None where there is no such view.
    """
    if isinstance(positive, WholeView) and isinstance(negative, WholeView):
        return positive.as_pair_with(negative)
    if isinstance(positive, PaddedView) and isinstance(negative, PaddedView):
        features = torch.cat([positive.features, negative.features])
        node_mask = torch.cat([positive.node_mask, negative.node_mask])
        return PaddedView(features, node_mask, positive.matrices, slice(0, 2), positive.backend)
    return None


def _products(matrices: Tensor, y: Tensor) -> Tensor:
    """Multiply matrices ``[G, N, N]`` by ``[G, N, d]`` each, which is faster than all at once."""
    products = torch.empty_like(y)
    for matrix, factor, product in zip(matrices, y, products, strict=True):
        torch.mm(matrix, factor, out=product)
    return products


class PaddedGraphs:
    """G graphs with dense features, each padded to the nodes N and edges E of the largest.

    Shapes:
        features: ``[G, N, F]``
        node_mask: ``[G, N]``, 1 for a node, 0 for padding
        keys: ``[G, 2, E]``, row * N + column of the entries of the propagation matrix, and of its
            transpose; N * N is padding
        values: ``[G, 1, E]``, the entries
    """

    def __init__(self, views: Sequence[WholeView]) -> None:
        features = pad_sequence([cast(Tensor, view.features) for view in views], batch_first=True)
        # Nodes are the columns of the propagation matrices.
        extra_nodes = -features.shape[1] % TENSOR_CORE_MULTIPLE
        self.features = pad(features, (0, 0, 0, extra_nodes))
        self.node_mask = torch.zeros_like(self.features[..., 0])
        for mask_of_graph, view in zip(self.node_mask, views, strict=True):
            mask_of_graph[: view.propagation.n] = 1

        matrices = [
            cast(Propagation, view.propagation).operand.matrix.to_sparse_coo() for view in views
        ]
        n = self.node_mask.shape[1]
        # The key of an entry is row * n + column, that of the transpose column * n + row.
        strides = torch.tensor([[n, 1], [1, n]], device=self.node_mask.device)
        keys = [(strides[:, :, None] * matrix.indices()).sum(1).T for matrix in matrices]
        # The key n * n comes after all entries; `pair` cuts off what is scattered there.
        padded_keys = pad_sequence(keys, batch_first=True, padding_value=n * n)
        self.keys = padded_keys.mT.contiguous()
        values = [matrix.values() for matrix in matrices]
        self.values = pad_sequence(values, batch_first=True)[:, None]
        self.backend = views[0].backend

    def pair(self, batch: Tensor) -> tuple[PaddedView, PaddedView]:
        """Two of the graphs, by their numbers ``[2]`` on the device.

        The first one has the portion, which says which nodes of both count.
        """
        features = self.features[batch]
        node_mask = self.node_mask[batch]
        keys = self.keys[batch]
        n = node_mask.shape[1]

        # Padding entries have the key N * N, the first of the numbers that are cut off again.
        entries = features.new_zeros(2, 2, n * n + EXTRA_NUMBERS)
        entries.scatter_(2, keys, self.values[batch].expand_as(keys))
        matrices = entries[..., :-EXTRA_NUMBERS].unflatten(2, (n, n))
        portion = Portion(
            node_mask[0].sum(), node_mask.sum(), node_mask=(node_mask[0], node_mask[1])
        )
        both = PaddedView(features, node_mask, matrices, slice(0, 2), self.backend, portion)
        return both.graphs_at(slice(0, 1)), both.graphs_at(slice(1, 2))
