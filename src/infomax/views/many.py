"""Many graphs: one graph against another, the paper's regime for PPI."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from infomax.graphs.graph import Graph
from infomax.views.propagation import Rule
from infomax.views.view import Corruption, View
from infomax.views.whole import WholeView


class ManyGraphs:
    """Pairs of one graph and a corruption of another; one summary per graph.

    The negative is a corruption of another graph, drawn at random. If there is only one graph, it is a corruption of
    that graph, as in `WholeGraph`.
    """

    uniform = False

    def __init__(self, graph: Graph, rule: Rule, corruption: Corruption, device: torch.device) -> None:
        groups = np.zeros(graph.num_nodes) if graph.groups is None else graph.groups
        self.views = [WholeView.of(graph.part(groups == group), rule, device) for group in np.unique(groups)]
        self.corruption, self.steps = corruption, len(self.views)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Every graph once, in random order, each paired with another: ``[2]`` per batch."""
        count, device = self.steps, generator.device
        if count == 1:
            return [torch.zeros(2, dtype=torch.int64)]
        order = torch.randperm(count, generator=generator, device=device)
        others = (order + torch.randint(1, count, (count,), generator=generator, device=device)) % count
        return torch.stack([order, others], dim=1).cpu().unbind()

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The first graph of the batch, and a corruption of the second."""
        one, other = batch.tolist()
        positive = self.views[one].fresh()
        return positive, self.corruption(positive if one == other else self.views[other].fresh(), generator)
