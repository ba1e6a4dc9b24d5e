"""What every contender is given: the same graph, the same first weights, the same seed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.features import Scaler
from infomax.graph import Graph
from infomax.initialisation import glorot

LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Problem:
    """An undirected, unweighted graph to train on, and where to begin.

    Shapes:
        theta: ``[F, d]``, the first weights of the encoder
        bilinear: ``[d, d]``, those of the discriminator
    """

    graph: Graph
    theta: Tensor
    bilinear: Tensor
    device: torch.device

    @classmethod
    def of(cls, graph: Graph, dim: int, device: str) -> Problem:
        """The problem that a graph poses at this width; its features are scaled as training scales them."""
        scaled = Scaler.fit(graph.features).transform(graph.features)
        generator = torch.Generator().manual_seed(0)
        return cls(
            dataclasses.replace(graph, features=scaled),
            glorot((graph.num_features, dim), generator=generator).detach(),
            glorot((dim, dim), fans=(dim * dim, dim), generator=generator).detach(),
            torch.device(device),
        )

    @property
    def dim(self) -> int:
        """The width d."""
        return len(self.bilinear)

    def generator(self) -> torch.Generator:
        """The source of every corruption: equal for all contenders, so that all see the same negatives."""
        return torch.Generator(self.device).manual_seed(1)


def load(dataset: str) -> Graph:
    """A data set by its name, or ``generated:N``."""
    kind, _, size = dataset.partition(":")
    if kind == "generated":
        return generated(int(float(size)))
    from infomax.datasets import load_dataset

    return load_dataset(dataset)


def generated(n: int, *, degree: int = 10, words: int = 500, per_node: int = 20, seed: int = 0) -> Graph:
    """A random graph of n nodes with about ``degree`` neighbours and ``per_node`` of ``words`` binary features each."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(n, size=(2, n * degree // 2))
    columns = rng.integers(words, size=n * per_node)
    starts = np.arange(n + 1) * per_node
    bags = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(n, words))
    return Graph.from_arrays(edges, bags)
