"""Small graphs for the tests."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse

from infomax import Graph
from infomax.arrays.relations import Relation
from infomax.arrays.scaling import Scaler
from infomax.io.nodes import Nodes
from infomax.parts.encoders import Encoder
from infomax.training.embed import Embedder
from infomax.training.recipe import Recipe
from infomax.views import WholeView


def random_graph(
    n: int = 40,
    f: int = 12,
    seed: int = 0,
    *,
    weighted: bool = False,
    directed: bool = False,
    dense: bool = False,
) -> Graph:
    """A graph with an isolated node (the last) and an all-zero row of features (the first)."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, (2, 3 * n))
    features = rng.random((n, f)) * (rng.random((n, f)) < 0.3)
    features[0] = 0
    return Graph.from_arrays(
        edges,
        features if dense else sparse.csr_array(features),
        weight=rng.random(3 * n) + 0.1 if weighted else None,
        directed=directed,
        labels={"class": rng.integers(0, 3, n)},
    )


SIZES = {"author": 17, "paper": 40, "subject": 4}


def typed_graph(seed: int = 0, *, dense: bool = True, weighted: bool = False) -> Graph:
    """Papers by authors on subjects; papers cite papers. Some papers have no author."""
    draw = np.random.default_rng(seed)
    widths = {"author": 5, "paper": 7, "subject": 3}

    def nodes(kind: str) -> Nodes:
        x = draw.normal(size=(SIZES[kind], widths[kind])).astype(np.float32)
        return Nodes.of(SIZES[kind], x if dense else sparse.csr_array(np.where(x > 1, x, 0)))

    def relation(source: str, name: str, target: str, share: float) -> Relation:
        there = draw.random((SIZES[source], SIZES[target])) < share
        values = there * (draw.integers(1, 4, there.shape) if weighted else 1)
        values = np.triu(values, 1) + np.triu(values, 1).T if source == target else values
        return Relation.of(source, name, target, sparse.csr_array(values.astype(np.float32)))

    relations = (
        relation("paper", "by", "author", 0.1),
        relation("paper", "on", "subject", 0.3),
        relation("paper", "cites", "paper", 0.1),
    )
    return Graph({kind: nodes(kind) for kind in ("author", "subject", "paper")}, relations, "paper")


def embed(encoder: Encoder, view: WholeView, block: int | None = None) -> torch.Tensor:
    """H of every node ``[N, d]`` of a whole view, computed in blocks of so many nodes."""
    recipe = Recipe(encoder, Scaler("none"))
    engine = Embedder(recipe, view, np.empty((view.n, 0)), nodes_per_block=block)
    return torch.from_numpy(engine.all())
