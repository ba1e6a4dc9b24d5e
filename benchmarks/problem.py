"""The input of every contender: the same graph, initial weights and seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.arrays.scaling import Scaler
from infomax.estimator import build
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import glorot
from infomax.parts.methods import Model
from infomax.training.presets import Preset
from infomax.views import MEAN
from infomax_paper.patches import PATCHES, Patches

LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Problem:
    """An undirected, unweighted graph for whole-graph training, with initial weights.

    Shapes:
        theta: ``[F, d]``, the initial weights of the encoder
        bilinear: ``[d, d]``, the initial weights of the discriminator
    """

    graph: Graph
    theta: Tensor
    bilinear: Tensor
    device: torch.device
    seed: int = 0

    @classmethod
    def of(cls, graph: Graph, dim: int, device: str, seed: int = 0) -> Problem:
        """Make the problem of a graph and a width; features are scaled as in training."""
        generator = torch.Generator().manual_seed(seed)
        scaled = Scaler.fit(graph.features).transform(graph.features)
        return cls(
            graph.replace(features=scaled),
            glorot((graph.num_features, dim), generator=generator).detach(),
            glorot((dim, dim), fans=(dim * dim, dim), generator=generator).detach(),
            torch.device(device),
            seed,
        )

    @property
    def dim(self) -> int:
        """The width d."""
        return len(self.bilinear)

    def generator(self) -> torch.Generator:
        """Make the generator of the corruptions, with the same seed for all contenders."""
        return torch.Generator(self.device).manual_seed(self.seed + 1)


@dataclass(frozen=True)
class PatchProblem:
    """The seen part of a large graph, for the patches preset; ``views`` holds it on the device."""

    graph: Graph
    scaler: Scaler
    preset: Preset
    views: Patches
    device: torch.device

    @classmethod
    def of(
        cls, graph: Graph, dim: int, device: str, fan_out: Sequence[int] = (10, 10, 25)
    ) -> PatchProblem:
        """Make the problem of a graph: its seen part, with scaled features."""
        seen, place = graph.seen(), torch.device(device)
        scaler = Scaler.fit(seen.features)
        seen = seen.replace(features=scaler.transform(seen.features))
        views = partial(Patches, fan_out=tuple(fan_out), batch=min(256, seen.num_nodes))
        encoder = partial(PATCHES.encoder, layers=len(fan_out))
        preset = dataclasses.replace(PATCHES, views=views, encoder=encoder, dim=dim)
        return cls(
            seen, scaler, preset, preset.views(seen, MEAN, preset.corruption, Backend(place)), place
        )

    def model(self) -> Model:
        """Build a model with initial weights, the same at every call."""
        generator = torch.Generator().manual_seed(0)
        return build(self.preset, self.graph.num_features, generator).to(self.device)

    def generator(self) -> torch.Generator:
        """Make the generator of all draws, with the same seed for all contenders."""
        return torch.Generator(self.device).manual_seed(1)

    def batches(self, count: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Yield the centres ``[B]`` of ``count`` steps; no node occurs twice in a pass over the
        graph."""
        n, size = self.graph.num_nodes, self.views.batch
        for done in range(0, count, n // size):
            order = torch.randperm(n, generator=generator, device=self.device)
            yield from order.split(size)[: min(n // size, count - done)]

    @cached_property
    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Features ``[N, F]`` and neighbours as CSR, starts and senders, on the device, for the
        peers."""
        matrix = self.graph.adjacency
        arrays = (self.graph.features, matrix.indptr.astype(np.int64), matrix.indices)
        features, starts, senders = (torch.from_numpy(array).to(self.device) for array in arrays)
        return features, starts, senders


def load(dataset: str, **options: Any) -> Graph:
    """Load a data set by its name, or generate ``generated:N``."""
    kind, _, size = dataset.partition(":")
    if kind == "generated":
        return generated(int(float(size)))
    from infomax.datasets import load_dataset

    return load_dataset(dataset, **options)


def generated(
    n: int, *, degree: int = 10, words: int = 500, per_node: int = 20, seed: int = 0
) -> Graph:
    """Generate a random graph; a node has about ``degree`` neighbours and ``per_node`` of ``words``
    binary features."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(n, size=(2, n * degree // 2))
    columns = rng.integers(words, size=n * per_node)
    starts = np.arange(n + 1) * per_node
    bags = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=(n, words))
    return Graph.from_arrays(edges, bags)


def pages(
    n: int,
    *,
    topics: int = 40,
    degree: int = 15,
    words: int = 4714,
    per_node: int = 14,
    seed: int = 0,
) -> Graph:
    """Generate a graph as of web pages: topics that link and use words alike, four classes of
    topics, 4 % mislabelled.

    A word is drawn by Zipf's law, one in three from the topic's own order of words.
    """
    rng = np.random.default_rng(seed)
    topic = np.sort(rng.integers(topics, size=n))
    first, size = np.searchsorted(topic, np.arange(topics)), np.bincount(topic, minlength=topics)
    source = rng.integers(n, size=n * degree // 2)
    inside = first[topic[source]] + (rng.random(len(source)) * size[topic[source]]).astype(np.int64)
    target = np.where(rng.random(len(source)) < 0.8, inside, rng.integers(n, size=len(source)))
    rows = np.repeat(np.arange(n), per_node)
    rank = 1 / np.arange(10, 10 + words)
    drawn = rng.choice(words, len(rows), p=rank / rank.sum())
    own = np.stack([rng.permutation(words) for _ in range(topics)])[topic[rows], drawn]
    columns = np.where(rng.random(len(rows)) < 0.35, own, drawn)
    bags = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, words))
    label = np.where(rng.random(n) < 0.04, rng.integers(4, size=n), topic % 4)
    return Graph.from_arrays(np.stack([source, target]), bags, labels={"kind": label})
