"""Unsupervised GraphSAGE (Hamilton et al., 2017): aggregators over sampled neighbours, trained on
random walks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from infomax.graphs.graph import Graph
from infomax.kernels.initialisation import generators, glorot
from infomax_paper.baselines import shared
from infomax_paper.baselines.deepwalk import random_walks
from infomax_paper.patches import Neighbours, by_level, sample_patches


@dataclass(frozen=True)
class Settings:
    """The hyperparameters: the authors', except for ``steps`` and ``lr``."""

    steps: int = 1000
    lr: float = 1e-4
    """Chosen on validation graphs. On PPI the authors take 17 times as many steps, at 2e-6 and
    less."""
    batch: int = 512
    negatives: int = 20
    walk: int = 4
    """The largest distance of a pair, in steps: the authors' walks have five nodes."""
    fan_out: tuple[int, ...] = (10, 25)
    dim: int = 128
    """The width of the node's part and of its neighbours' part; vectors are twice as wide."""


SETTINGS = Settings()


class Aggregator(nn.Module):
    """A layer: the node beside a digest of its neighbours, ``W x || W' digest``. Subclasses define
    the digest.

    Shapes:
        in: nodes ``[n, d]``, and k neighbours of each, ``[n, k, d]``
        out: ``[n, 2 dim]``
    """

    def __init__(
        self, in_dim: int, dim: int, generator: torch.Generator, digest_dim: int | None = None
    ) -> None:
        super().__init__()
        self.own_weight = glorot((in_dim, dim), generator=generator)
        self.digest_weight = glorot((digest_dim or in_dim, dim), generator=generator)

    def digest(self, neighbours: Tensor) -> Tensor:
        """Aggregate neighbours ``[n, k, d]`` to ``[n, digest_dim]``."""
        raise NotImplementedError

    def forward(self, nodes: Tensor, neighbours: Tensor) -> Tensor:
        """Concatenate the node's part and its neighbours' part."""
        own_part = nodes @ self.own_weight
        neighbour_part = self.digest(neighbours) @ self.digest_weight
        return torch.cat([own_part, neighbour_part], dim=1)


class Mean(Aggregator):
    """The digest is the mean of the neighbours."""

    def digest(self, neighbours: Tensor) -> Tensor:
        """The mean, ``[n, d]``."""
        return neighbours.mean(1)


class Pool(Aggregator):
    """Each neighbour passes one hidden layer of width 4 dim; the digest is the elementwise
    maximum."""

    def __init__(self, in_dim: int, dim: int, generator: torch.Generator) -> None:
        super().__init__(in_dim, dim, generator, 4 * dim)
        self.hidden = glorot((in_dim, 4 * dim), generator=generator)
        self.bias = nn.Parameter(torch.zeros(4 * dim))

    def digest(self, neighbours: Tensor) -> Tensor:
        """The maximum, ``[n, 4 dim]``; taken before bias and ReLU, which do not change the
        order."""
        return ((neighbours @ self.hidden).amax(1) + self.bias).relu()


class LSTM(Aggregator):
    """The digest is the last state of an LSTM over the neighbours, which are in random order, as
    they were drawn."""

    def __init__(self, in_dim: int, dim: int, generator: torch.Generator) -> None:
        super().__init__(in_dim, dim, generator, dim)
        # Made without weights, which torch would draw from its global state.
        self.lstm = nn.LSTM(in_dim, dim, batch_first=True, device="meta").to_empty(device="cpu")
        bound = dim**-0.5
        for parameter in self.lstm.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def digest(self, neighbours: Tensor) -> Tensor:
        """The last state, ``[n, dim]``."""
        _, (last_states, _) = self.lstm(neighbours)
        last_state: Tensor = last_states[0]
        return last_state


class GCN(nn.Module):
    """One linear map of the mean over the node and its neighbours; as wide as the other layers."""

    def __init__(self, in_dim: int, dim: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = glorot((in_dim, 2 * dim), generator=generator)

    def forward(self, nodes: Tensor, neighbours: Tensor) -> Tensor:
        """The layer's output; shapes as in `Aggregator`."""
        mean = (nodes + neighbours.sum(1)) / (neighbours.shape[1] + 1)
        return mean @ self.weight


AGGREGATORS: dict[str, Any] = {"GCN": GCN, "mean": Mean, "LSTM": LSTM, "pool": Pool}


class GraphSage(nn.Module):
    """One layer per level of the patches; gives vectors ``[B, 2 dim]`` of length 1."""

    def __init__(
        self, aggregator: str, in_dim: int, settings: Settings, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.fan_out = settings.fan_out
        layer_class = AGGREGATORS[aggregator]
        widths = [in_dim] + [2 * settings.dim] * (len(self.fan_out) - 1)
        self.layers = nn.ModuleList(layer_class(width, settings.dim, generator) for width in widths)

    def forward(self, features: Tensor, rows: Tensor) -> Tensor:
        """Vectors of B nodes, from all features ``[N, F]`` and their patches ``[B, P]`` (see
        `sample_patches`)."""
        levels = [features[level] for level in by_level(rows, self.fan_out)]
        for layer in self.layers:
            # Each layer reads the nodes of a level beside those of the next, and drops the last.
            levels = [
                layer(nodes, neighbours.view(len(nodes), -1, neighbours.shape[1]))
                for nodes, neighbours in pairwise(levels)
            ]
            if len(levels) > 1:
                levels = [level.relu() for level in levels]
        return normalize(levels[0], dim=1)


def walk_pairs(
    neighbours: Neighbours, starts: Tensor, length: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Pair nodes ``[n]`` with a node on a random walk from each: ``[m]``, ``[m]``; none is paired
    with itself."""
    walks = random_walks(neighbours, starts, length + 1, generator)
    step = torch.randint(length, (len(starts), 1), generator=generator, device=starts.device)
    visited = walks.gather(1, step + 1)[:, 0]
    is_another = visited != starts
    return starts[is_another], visited[is_another]


def train(
    aggregator: str, graph: Graph, settings: Settings, seed: int, device: torch.device
) -> GraphSage:
    """Train on a graph, so that nodes on one walk become similar and nodes drawn at random do
    not."""
    weights_generator, draws = generators(seed, device)
    model = GraphSage(aggregator, graph.num_features, settings, weights_generator).to(device)
    features = torch.from_numpy(graph.features).to(device)
    neighbours = Neighbours.of(graph, device)
    negative_chance = neighbours.starts.diff().double() ** 0.75
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    for _ in range(settings.steps):
        starts = torch.randint(graph.num_nodes, (settings.batch,), generator=draws, device=device)
        nodes, visited = walk_pairs(neighbours, starts, settings.walk, draws)
        negatives = torch.multinomial(
            negative_chance, settings.negatives, replacement=True, generator=draws
        )
        all_nodes = torch.cat([nodes, visited, negatives])
        rows = sample_patches(neighbours, all_nodes, settings.fan_out, draws)
        sizes = [len(nodes), len(visited), len(negatives)]
        h, h_visited, h_negative = model(features, rows).split(sizes)
        loss = softplus(-(h * h_visited).sum(1)).sum() + softplus(h @ h_negative.T).sum()
        shared.descend(optimiser, loss / settings.batch)
    return model


@torch.no_grad()
def vectors(
    model: GraphSage, graph: Graph, settings: Settings, seed: int, device: torch.device
) -> NDArray[np.float32]:
    """The vectors ``[N, 2 dim]`` of all nodes, from neighbourhoods sampled as in training.

    They are scaled to length sqrt(2 dim): a probe of 100 steps needs entries of order 1.
    """
    _, draws = generators(seed, device)
    features = torch.from_numpy(graph.features).to(device)
    neighbours = Neighbours.of(graph, device)
    vectors_of_blocks = []
    for block in torch.arange(graph.num_nodes, device=device).split(settings.batch):
        rows = sample_patches(neighbours, block, settings.fan_out, draws)
        vectors_of_blocks.append(model(features, rows))
    return (torch.cat(vectors_of_blocks) * sqrt(2 * settings.dim)).cpu().numpy()


def graphsage(
    aggregator: str,
    graph: Graph,
    codes: NDArray[Any],
    seed: int,
    device: torch.device,
    settings: Settings = SETTINGS,
) -> NDArray[np.float32]:
    """Learn vectors ``[N, 2 dim]``; the codes are not used."""
    scaled_graph = graph.scaled(graph.scaler("columns"))
    model = train(aggregator, scaled_graph.seen(), settings, seed, device)
    return vectors(model, scaled_graph, settings, seed, device)


ROWS = {f"GraphSAGE-{aggregator}": partial(graphsage, aggregator) for aggregator in AGGREGATORS}
