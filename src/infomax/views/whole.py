"""The whole graph and a corruption of it, the paper's regime for citation graphs; and blocks of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor

from infomax.errors import InputError
from infomax.io.record import Record
from infomax.kernels import Backend, Place
from infomax.kernels.plain import permute
from infomax.views.operands import Operand, Products, multiply, to_multiply
from infomax.views.paths import PathView
from infomax.views.propagation import Messages, Propagation, Rule
from infomax.views.view import AllNodes, Corruption, View, Views


@dataclass(frozen=True, eq=False)
class WholeView(AllNodes):
    """The view of a whole graph.

    Shapes:
        features: ``[N, F]``
        propagation: ``[N, N]``
        rows: ``[N]``, a permutation: the row of the features for each node; None: its own
    """

    products: Products
    propagation: Messages
    rows: Tensor | None = None

    @classmethod
    def of(cls, graph: Record, rule: Rule, place: Place) -> WholeView:
        """Build the view of a graph on the device."""
        backend = Backend.of(place)
        return cls(Products(to_multiply(graph.table, backend)), Propagation.of(graph, rule, backend))

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return self.propagation.backend

    @property
    def features(self) -> Operand:
        """X, before any shuffle."""
        return self.products.features

    @property
    def edges(self) -> Tensor:
        """The senders and the receivers of messages, ``[2, E]``, without self-loops; an undirected edge is two."""
        return torch.stack([self.propagation.keys % self.n, self.propagation.keys // self.n])

    def fresh(self) -> WholeView:
        """The same view without cached products, for a step with other weights."""
        return self.with_features(self.features)

    def with_features(self, features: Operand) -> WholeView:
        """The same graph with other features ``[N, F]``."""
        expected, found = (f"{one.dtype} features of shape {list(one.shape)}" for one in (self.features, features))
        if expected != found:
            raise InputError("corruption", expected, found)
        return dataclasses.replace(self, products=Products(features))

    def shuffled(self, generator: torch.Generator) -> WholeView:
        """The same graph with the rows of X in random order."""
        rows = self.backend.permutation(self.propagation.n, generator)
        return dataclasses.replace(self, rows=rows if self.rows is None else self.rows[rows])

    @property
    def n(self) -> int:
        """N."""
        return self.propagation.n

    def blocks(self) -> Callable[[int, int], BlockView]:
        """A function of (start, stop) that returns the view of these nodes; all share their products."""
        return partial(BlockView, self.fresh())

    def pool(self, h: Tensor, start: int, stop: int) -> Tensor:
        """Rows start to stop of P H, of H ``[N, d]``."""
        return cast(Propagation, self.propagation).operand.rows(start, stop) @ h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        if h is not None:
            return h @ weight
        y = self.products.of(None, weight, self.backend)
        return y if self.rows is None else permute(y, self.rows)

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ."""
        return self.propagation @ self.own(h, weight)


def shuffle_of(positive: View, negative: View) -> tuple[Propagation, Tensor] | None:
    """Return propagation and permutation if the negative is only the positive with shuffled features, else None."""
    if not (isinstance(positive, WholeView) and isinstance(negative, WholeView)):
        return None
    p, rows = positive.propagation, negative.rows
    alike = negative.products is positive.products and negative.propagation is p and positive.rows is None
    return (p, rows) if alike and rows is not None and isinstance(p, Propagation) else None


@dataclass(frozen=True)
class BlockView:
    """Nodes start to stop of a whole view: a layer is computed for these only, which bounds the memory."""

    view: WholeView
    start: int
    stop: int

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return self.view.backend

    def carry(self, h: Tensor) -> Tensor:
        """The rows of H of these nodes."""
        return h[self.start : self.stop]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        if h is not None:
            return self.carry(h) @ weight
        x = self.view.features
        return multiply(self.carry(x) if isinstance(x, Tensor) else x.rows(self.start, self.stop), weight, self.backend)

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ of these nodes; H Θ is computed once for all blocks."""
        return self.view.pool(self.view.products.of(h, weight, self.backend), self.start, self.stop)


def whole_view(graph: Record, rule: Rule, place: Place) -> WholeView | PathView:
    """Build the view of a graph, or of the nodes of one of its types, on the device."""
    return PathView.of(graph, rule, place) if graph.kind else WholeView.of(graph, rule, place)


class WholeGraph(Views):
    """Pairs of the graph and a corruption of it; one step per epoch."""

    steps = 1
    uniform = True
    corruptions = ("shuffle_features", "flip_edges", "flip_and_shuffle", "drop_features")

    def __init__(self, graph: Record, rule: Rule, corruption: Corruption, place: Place) -> None:
        self.view, self.corruption = whole_view(graph, rule, place), corruption
        self.turn = torch.zeros(1, dtype=torch.int64, device=self.view.backend.device)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch: the graph."""
        return [self.turn]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The graph, and a new corruption of it."""
        view = self.view.fresh()
        return view, self.corruption(view, generator)
