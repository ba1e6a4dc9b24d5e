"""Average pooling with labels (Zhang et al., 2018): wide layers, each node beside the mean of its neighbourhood."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from infomax.baselines.inductive import classes, decide, generators, known, label_loss, standardised, training_codes
from infomax.embedding import embed
from infomax.encoders import SkipMeanPool
from infomax.graph import Graph
from infomax.initialisation import glorot
from infomax.views import Patches, View, WholeView


@dataclass(frozen=True)
class Settings:
    """One place for every number; a layer is 2 ``dim`` wide."""

    dim: int
    layers: int
    lr: float
    epochs: int
    batch: int = 512
    fan_out: tuple[int, ...] = (10, 25)


MANY_GRAPHS = Settings(dim=1024, layers=3, lr=1e-3, epochs=200)
"""PPI: a training graph a step."""
ONE_GRAPH = Settings(dim=256, layers=2, lr=1e-3, epochs=10)
"""Reddit: a batch of patches a step."""


class AveragePooling(SkipMeanPool):
    """DGI's encoder for large graphs, ``PReLU(X Θ' || D^-1 Â X Θ + b)``, with a linear map to C logits on top."""

    def __init__(self, in_dim: int, outputs: int, settings: Settings, generator: torch.Generator) -> None:
        super().__init__(in_dim, settings.dim, layers=settings.layers, generator=generator)
        self.head, self.offset = (
            glorot((self.out_dim, outputs), generator=generator),
            nn.Parameter(torch.zeros(outputs)),
        )

    def layer(self, k: int, view: View, h: Tensor | None) -> Tensor:
        """The encoder's; the last one's outcome as logits ``[N, C]``."""
        outcome = super().layer(k, view, h)
        return outcome if k < self.depth - 1 else outcome @ self.head + self.offset


Batches: TypeAlias = Callable[[torch.Generator], Iterator[tuple[View, Tensor]]]
"""An epoch: views, and the codes of the nodes they are views of, -1 where a node is not for training."""


def graph_by_graph(graph: Graph, codes: Tensor, device: torch.device) -> Batches:
    """Each of several graphs once, in random order."""
    masks = [graph.groups == group for group in np.unique(graph.groups)]  # type: ignore[arg-type]
    parts = [
        (WholeView.of(graph.part(mask), "mean", device), codes[torch.from_numpy(mask).to(device)]) for mask in masks
    ]

    def epoch(generator: torch.Generator) -> Iterator[tuple[View, Tensor]]:
        for one in torch.randperm(len(parts), generator=generator, device=generator.device).tolist():
            yield parts[one][0].fresh(), parts[one][1]

    return epoch


def patch_by_patch(graph: Graph, codes: Tensor, device: torch.device, settings: Settings) -> Batches:
    """Each labelled node once as the centre of a patch, in random order."""
    patches = Patches(graph, "mean", lambda view, _: view, device, fan_out=settings.fan_out, batch=settings.batch)
    labelled = known(codes)

    def epoch(generator: torch.Generator) -> Iterator[tuple[View, Tensor]]:
        order = torch.randperm(len(labelled), generator=generator, device=generator.device)
        for centres in labelled[order].split(settings.batch):
            yield patches.around(centres, generator), codes[centres]

    return epoch


def train(graph: Graph, codes: Tensor, settings: Settings, seed: int, device: torch.device) -> AveragePooling:
    """The model after its epochs on a graph; codes ``[n]`` or ``[n, C]``, -1 where a node is not for training."""
    first, draws = generators(seed, device)
    model = AveragePooling(graph.num_features, classes(codes), settings, first).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    if graph.groups is None:
        batches = patch_by_patch(graph, codes, device, settings)
    else:
        batches = graph_by_graph(graph, codes, device)
    for _ in range(settings.epochs):
        for view, targets in batches(draws):
            rows = known(targets)
            (logits,) = model(view)
            optimiser.zero_grad()
            label_loss(logits[rows], targets[rows]).backward()
            optimiser.step()
    return model


def average_pooling(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings | None = None
) -> NDArray[Any]:
    """Predictions for every node, shaped as the codes are; the trained layers run over the whole graph."""
    scaled, targets = standardised(graph), training_codes(graph, codes, device)
    settings = settings or (ONE_GRAPH if graph.groups is None else MANY_GRAPHS)
    model = train(scaled.seen(), targets, settings, seed, device)
    return decide(embed(model, WholeView.of(scaled, model.rule, device)), codes)
