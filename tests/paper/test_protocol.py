"""DGI beside Random-Init and raw features: the rows differ only in what their names say."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import DGI, Graph
from infomax.evaluation.probes import PROBES, Score
from infomax.reports.compared_vectors import vectors_beside
from infomax.reports.comparison import compare
from infomax_paper import protocol, table
from infomax_paper.baselines import deepwalk
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.protocol import score_dataset

CPU = torch.device("cpu")
WALK = deepwalk.Settings(dim=4, walks=1, length=5, window=2, batch=20, drawn=8)


class Spy:
    """A probe that keeps the vectors and the seeds it is given."""

    def __init__(self) -> None:
        self.vectors: list[Any] = []
        self.seeds: list[int] = []

    def __call__(
        self, vectors: Any, codes: Any, splits: Any, *, seed: int = 0, device: Any = "cpu"
    ) -> Score:
        self.vectors.append(vectors)
        self.seeds.append(seed)
        return Score("accuracy", np.ones(1), codes[None])


@pytest.fixture
def small() -> Graph:
    graph, part = random_graph(dense=True), np.arange(40) % 4
    splits = {name: part == number for number, name in enumerate(("train", "validation", "test"))}
    return graph.replace(splits={**splits, "seen": part < 3})


def row_of_raw_features(graph: Graph) -> Any:
    model = DGI(4, scale="columns", epochs=0).fit(graph)
    return {row.name: row.vectors for row in vectors_beside(model)}["Raw features"]


SCALED = {
    "scaler": lambda graph: graph.scaler("columns").transform(graph.features),
    "comparison": row_of_raw_features,
    "table": partial(table.raw_features, codes=None, seed=0, device=CPU, scale="columns"),
    "walks and features": partial(
        deepwalk.with_features, codes=None, seed=0, device=CPU, scale="columns", settings=WALK
    ),
    "DGI": lambda graph: (
        DGI(4, scale="columns", epochs=1).fit(graph).transform(graph.seen()).vectors
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_scaling_never_looks_at_unseen_nodes(name, small):
    """Huge features at all unseen nodes leave the scaled features of the seen nodes unchanged, bit
    for bit."""
    seen, features = small.splits["seen"], small.features.copy()
    features[~seen] = 1e6
    whole, poisoned = (SCALED[name](graph) for graph in (small, small.replace(features=features)))
    rows = slice(None) if len(whole) < len(seen) else seen
    np.testing.assert_array_equal(poisoned[rows], whole[rows])


def test_random_init_is_the_encoder_that_dgi_began_with(small):
    model, spy = DGI(4, epochs=2, seed=7).fit(small), Spy()
    rows = compare(model, small.labels["class"], [small.splits], spy)
    vectors = dict(zip([row.method for row in rows], spy.vectors, strict=False))
    trained, untrained = vectors["DGI"], vectors["Random-Init"]
    np.testing.assert_array_equal(
        untrained, DGI(4, epochs=0, seed=7, vectors="paper").fit_transform(small).vectors
    )
    np.testing.assert_array_equal(trained, model.transform(small).vectors)
    assert not np.array_equal(trained, untrained)


def test_every_run_has_a_seed_of_its_own_for_the_encoder_and_the_probe(small, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(protocol, "load_dataset", lambda name: small)
    monkeypatch.setitem(
        EXPERIMENTS,
        "cora",
        dataclasses.replace(EXPERIMENTS["cora"], arguments={"dim": 4, "epochs": 1}),
    )
    monkeypatch.setitem(PROBES, "paper", spy)
    score_dataset("cora", runs=3, device="cpu")
    assert spy.seeds == [0, 1, 2, 0, 1, 2, 0]
    for seed, vectors in enumerate(spy.vectors[3:6]):
        np.testing.assert_array_equal(
            vectors, DGI(4, epochs=0, vectors="paper", seed=seed).fit_transform(small).vectors
        )
