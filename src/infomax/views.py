"""Where the pairs come from: each regime is an iterator of (positive, negative) views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from infomax.graph import Graph
from infomax.propagation import Operand, Propagation, Rule, operand


@dataclass(frozen=True)
class View:
    """What an encoder sees.

    Shapes:
        features: ``[T, F]``, a table of feature rows
        propagation: ``[N, N]``
        rows: ``[N]``, the row of the table that each node carries; None: node i carries row i (then T = N)
    """

    features: Operand
    propagation: Propagation
    rows: Tensor | None = None


Corruption = Callable[[View, torch.Generator], View]


class Views(Protocol):
    """A regime: what one epoch trains on."""

    steps: int
    """Pairs an epoch."""

    def epoch(self, generator: torch.Generator) -> Iterator[tuple[View, View]]:
        """The epoch's (positive, negative) pairs."""


def whole_view(graph: Graph, rule: Rule, device: torch.device) -> View:
    """All of a graph, on the device."""
    return View(operand(graph.features, device), Propagation.of(graph, rule, device))


class WholeGraph:
    """The graph itself, against a corruption of it; one pair an epoch."""

    steps = 1

    def __init__(self, graph: Graph, rule: Rule, corruption: Corruption, device: torch.device) -> None:
        self.view, self.corruption = whole_view(graph, rule, device), corruption

    def epoch(self, generator: torch.Generator) -> Iterator[tuple[View, View]]:
        """One pair: the graph, and a fresh corruption."""
        yield self.view, self.corruption(self.view, generator)
