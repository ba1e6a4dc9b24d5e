"""Supervised average pooling (Zhang et al., 2018): each layer combines a node with the mean of its
neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from infomax.evaluation.probes import Score
from infomax.evaluation.splits import is_labelled
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import generators, glorot
from infomax.views.propagation import NEIGHBOURS, Propagation
from infomax_paper.baselines import shared
from infomax_paper.patches import Neighbours, by_level, sample_patches


@dataclass(frozen=True)
class Settings:
    """The hyperparameters: those of the authors' program, except for ``epochs``."""

    hidden: int
    lr: float
    """Falls linearly to a tenth. The authors halve theirs, down to a tenth, when the validation
    score stalls."""
    epochs: int
    """How long to train. As in the authors' program, the weights with the best validation score are
    kept."""
    looks: int
    """How many times the validation score is computed."""
    dim: int = 128
    layers: int = 2
    dropout: float = 0.1
    batch: int = 512
    fan_out: tuple[int, ...] = (10, 25)


MANY_GRAPHS = Settings(hidden=512, lr=1e-2, epochs=500, looks=50)
"""PPI: one training graph per step. The authors take 512 nodes of any graph per step, and all their
neighbours."""
ONE_GRAPH = Settings(hidden=1024, lr=1e-3, epochs=10, looks=10)
"""Reddit: one batch of patches per step."""


class Layer(nn.Module):
    """``σ(M Θ' + H Θ'' + b)`` for nodes ``[m, d]``, M being the mean of the messages ``σ(H Θ +
    c)``; σ: leaky ReLU."""

    def __init__(self, in_dim: int, settings: Settings, generator: torch.Generator) -> None:
        super().__init__()
        hidden, dim = settings.hidden, settings.dim
        self.message_weight = glorot((in_dim, hidden), generator=generator)
        self.mean_weight = glorot((hidden, dim), generator=generator)
        self.own_weight = glorot((in_dim, dim), generator=generator)
        self.message_bias = nn.Parameter(torch.zeros(hidden))
        self.bias = nn.Parameter(torch.zeros(dim))

    def messages(self, h: Tensor) -> Tensor:
        """The messages ``[n, hidden]`` that nodes ``[n, d]`` send."""
        return leaky_relu(h @ self.message_weight + self.message_bias, 0.1)

    def forward(self, nodes: Tensor, mean: Tensor) -> Tensor:
        """From nodes ``[m, d]`` and the mean of their neighbours' messages ``[m, hidden]`` to ``[m,
        dim]``."""
        z = mean @ self.mean_weight + nodes @ self.own_weight + self.bias
        return leaky_relu(z, 0.1)


class AveragePooling(nn.Module):
    """Layers with dropout after each, then a linear map to C logits."""

    def __init__(
        self, in_dim: int, outputs: int, settings: Settings, generator: torch.Generator
    ) -> None:
        super().__init__()
        widths = [in_dim] + [settings.dim] * (settings.layers - 1)
        self.layers: Any = nn.ModuleList(Layer(width, settings, generator) for width in widths)
        self.head = glorot((settings.dim, outputs), generator=generator)
        self.offset = nn.Parameter(torch.zeros(outputs))

    def over_graph(self, h: Tensor, mean: Propagation, drop: shared.Drop) -> Tensor:
        """Logits ``[N, C]`` from features ``[N, F]`` and the matrix ``[N, N]`` that averages over
        neighbours."""
        for layer in self.layers:
            h = drop(layer(h, mean @ layer.messages(h)))
        return h @ self.head + self.offset

    def over_patches(self, levels: list[Tensor], drop: shared.Drop) -> Tensor:
        """Logits ``[B, C]`` of the centres of patches, from the features of each level (see
        `by_level`)."""
        for layer in self.layers:
            next_levels = []
            for nodes, neighbours in pairwise(levels):
                messages = layer.messages(neighbours).unflatten(0, (len(nodes), -1))
                next_levels.append(drop(layer(nodes, messages.mean(1))))
            levels = next_levels
        return levels[0] @ self.head + self.offset


Batches: TypeAlias = Callable[
    [AveragePooling, shared.Drop, torch.Generator], Iterator[tuple[Tensor, Tensor]]
]
"""One epoch: yields the logits of some labelled nodes and their codes."""


def graph_inputs(graph: Graph, device: torch.device) -> tuple[Tensor, Propagation]:
    """A graph's features ``[N, F]`` and the matrix ``[N, N]`` that averages over neighbours (0 if
    there are none)."""
    features = torch.from_numpy(graph.features).to(device)
    return features, Propagation.of(graph, NEIGHBOURS, Backend(device))


def graph_by_graph(graph: Graph, codes: Tensor, device: torch.device) -> Batches:
    """Epochs that visit each of several graphs once, in random order."""
    parts = []
    for group in np.unique(graph.groups):  # type: ignore[arg-type]
        is_member = graph.groups == group
        features, mean = graph_inputs(graph.part(is_member), device)
        codes_of_part = codes[torch.from_numpy(is_member).to(device)]
        labelled_rows = shared.known_rows(codes_of_part)
        parts.append((features, mean, labelled_rows, codes_of_part[labelled_rows]))

    def epoch(
        model: AveragePooling, drop: shared.Drop, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(parts), generator=generator, device=generator.device)
        for number in order.tolist():
            features, mean, labelled_rows, targets = parts[number]
            yield model.over_graph(features, mean, drop)[labelled_rows], targets

    return epoch


def patch_by_patch(
    graph: Graph, codes: Tensor, device: torch.device, settings: Settings
) -> Batches:
    """Epochs that visit each labelled node once, as the centre of a patch, in random order."""
    features = torch.from_numpy(graph.features).to(device)
    neighbours = Neighbours.of(graph, device)
    labelled = shared.known_rows(codes)

    def epoch(
        model: AveragePooling, drop: shared.Drop, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(labelled), generator=generator, device=generator.device)
        for centres in labelled[order].split(settings.batch):
            rows = sample_patches(neighbours, centres, settings.fan_out, generator)
            levels = [features[level] for level in by_level(rows, settings.fan_out)]
            yield model.over_patches(levels, drop), codes[centres]

    return epoch


def train(
    graph: Graph,
    codes: Tensor,
    settings: Settings,
    seed: int,
    device: torch.device,
    validation_score: Callable[[AveragePooling], float],
) -> AveragePooling:
    """Train on a graph and return the model with the highest ``validation_score``, the earliest
    among equals.

    Codes are ``[n]`` or ``[n, C]``, -1 for nodes that are not for training.
    """
    weights_generator, draws = generators(seed, device)
    model = AveragePooling(
        graph.num_features, shared.class_count(codes), settings, weights_generator
    ).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0.1, total_iters=settings.epochs)
    if graph.groups is None:
        batches_of_epoch = patch_by_patch(graph, codes, device, settings)
    else:
        batches_of_epoch = graph_by_graph(graph, codes, device)
    drop = shared.dropout(settings.dropout, draws)
    epochs_per_look = max(1, settings.epochs // settings.looks)

    highest_score, kept_weights = -1.0, model.state_dict()
    for epoch in range(1, settings.epochs + 1):
        for logits, targets in batches_of_epoch(model, drop, draws):
            shared.descend(optimiser, shared.label_loss(logits, targets))
        schedule.step()
        if epoch % epochs_per_look == 0 or epoch == settings.epochs:
            score = validation_score(model)
            if score > highest_score:
                highest_score = score
                kept_weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(kept_weights)
    return model


def average_pooling(
    graph: Graph,
    codes: NDArray[Any],
    seed: int,
    device: torch.device,
    settings: Settings | None = None,
) -> NDArray[Any]:
    """Predict all nodes, in the shape of the codes; the trained layers run over the whole graph."""
    if settings is None:
        settings = ONE_GRAPH if graph.groups is None else MANY_GRAPHS
    scaled_graph = graph.scaled(graph.scaler("columns"))
    training_codes = shared.training_codes(graph, codes, device)
    features, mean = graph_inputs(scaled_graph, device)
    is_validation = graph.splits["validation"] & is_labelled(codes)

    @torch.no_grad()
    def predict(model: AveragePooling) -> NDArray[Any]:
        return shared.decide(model.over_graph(features, mean, shared.keep), codes)

    def validation_score(model: AveragePooling) -> float:
        predictions = predict(model)[is_validation]
        return Score.of(predictions[None], codes[is_validation]).value

    seen = scaled_graph.seen()
    return predict(train(seen, training_codes, settings, seed, device, validation_score))
