"""Resemblance: a label-free figure for how much neighbours have in common."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph
from scipy import sparse

from infomax import DGI, Graph
from infomax.arrays import resemblance as module
from infomax.arrays.resemblance import in_words, resemblance

KIND = np.arange(300) % 3
RNG = np.random.default_rng(0)
FEATURES = (RNG.random((300, 12)) < 0.1 + 0.6 * np.repeat(np.eye(3), 4, axis=1)[KIND]).astype(
    np.float32
)
ENDS = RNG.integers(300, size=(2, 6000))
ALIKE = ENDS[:, KIND[ENDS[0]] == KIND[ENDS[1]]]
DIFFER = ENDS[:, KIND[ENDS[0]] != KIND[ENDS[1]]]


def of(graph: Graph, seed: int = 0, **options: tuple[int, int]) -> float:
    value = resemblance(graph.table, graph.edges, graph.scaler(), seed, **options)
    assert value is not None
    return value


def by_pairs(graph: Graph) -> float:
    """The definition, pair by pair: every edge, and every end of an edge with every other."""
    x = graph.scaler().transform(graph.features)
    x = (x.toarray() if sparse.issparse(x) else x).astype(np.float64)
    x -= x.mean(0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    receivers, senders = graph.adjacency.T.nonzero()
    cosines = x @ x.T
    return float(cosines[receivers, senders].mean() - cosines[np.ix_(receivers, senders)].mean())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_it_is_the_difference_of_two_means_over_pairs(make, directed):
    graph = Graph.from_arrays(ALIKE[:, :400], make(FEATURES), directed=directed)
    assert of(graph) == pytest.approx(by_pairs(graph), abs=1e-6)


def test_it_tells_neighbours_that_are_alike_from_those_that_differ_and_from_random_ones():
    alike, random, differ = (
        of(Graph.from_arrays(ends, FEATURES)) for ends in (ALIKE, ENDS, DIFFER)
    )
    assert alike > 0.2
    assert abs(random) < 0.01
    assert differ < -0.05
    texts = [in_words(value) for value in (alike, 0.02, 0.005, differ, None)]
    expected_texts = (
        "neighbours resemble",
        "hardly",
        "do not resemble",
        "do not resemble",
        "no edges",
    )
    assert all(part in text for part, text in zip(expected_texts, texts, strict=True))


def test_a_sample_of_the_edges_is_seeded_and_near_the_whole():
    graph = Graph.from_arrays(ALIKE, FEATURES)
    of_all_edges = of(graph)
    other_graph = Graph.from_arrays(ALIKE, FEATURES)  # another object, so that it is computed again
    in_sample = {seed: of(graph, seed, sample_sizes=(500, 500)) for seed in (1, 2)}
    assert in_sample[1] == of(other_graph, 1, sample_sizes=(500, 500)) != in_sample[2]
    assert in_sample[1] == pytest.approx(of_all_edges, abs=0.06)


def test_few_edges_tell_that_neighbours_are_alike_and_more_that_they_are_not():
    for ends, expected_sizes in ((ALIKE, (500, 500)), (ENDS, (900, 900)), (DIFFER, (900, 900))):
        graph = Graph.from_arrays(ends, FEATURES)
        assert of(graph, sample_sizes=(500, 900)) == of(graph, sample_sizes=expected_sizes)
        assert of(graph, sample_sizes=(500, 500)) != of(graph, sample_sizes=(900, 900))


def test_a_graph_folder_has_that_of_the_graph_in_memory(tmp_path):
    graph = random_graph(60, weighted=True, directed=True)
    graph.save(tmp_path / "g.graph")
    in_blocks = of(Graph.open(tmp_path / "g.graph"), cells_per_block=100)
    assert in_blocks == pytest.approx(of(graph), abs=1e-6)


def test_wide_sparse_features_are_not_read_a_few_edges_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    ends = rng.integers(300, size=6000), rng.integers(200_000, size=6000)
    graph, calls = (
        Graph.from_arrays(ALIKE, sparse.csr_array((np.ones(6000), ends), shape=(300, 200_000))),
        [],
    )
    scale = module.Scaler.transform
    monkeypatch.setattr(
        module.Scaler, "transform", lambda *arguments: calls.append(0) or scale(*arguments)
    )
    assert of(graph) == pytest.approx(0, abs=0.02)
    assert len(calls) < 10


def test_constant_features_and_no_edges_give_no_number_to_trust():
    assert of(Graph.from_arrays(ALIKE, np.ones((300, 3)))) == 0
    alone = Graph.from_arrays(np.empty((2, 0), int), FEATURES)
    assert resemblance(alone.table, alone.edges, alone.scaler()) is None


def test_a_training_computes_it_once_and_another_scale_anew(monkeypatch):
    graph, computed = Graph.from_arrays(ALIKE, FEATURES), []
    monkeypatch.setattr(
        "infomax.estimator.training_record.resemblance",
        lambda *of: computed.append(of[2].scale) or resemblance(*of),
    )
    reports = [
        DGI(4, epochs=0, scale=scale).fit(graph).health_["resemblance"]
        for scale in ("rows", "columns")
    ]
    assert computed == ["rows", "columns"]
    assert reports == [
        resemblance(graph.table, graph.edges, graph.scaler(scale)) for scale in ("rows", "columns")
    ]
    assert of(Graph.from_arrays(DIFFER, FEATURES)) < 0 < reports[0] != reports[1]


@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
def test_nodes_of_whom_nothing_is_known_say_nothing(make):
    silent = np.zeros((200, 12), np.float32)
    features = np.concatenate([FEATURES, silent])
    to_silent = np.stack([np.arange(300), 300 + np.arange(300) % 200])
    both = Graph.from_arrays(np.concatenate([ALIKE, to_silent], axis=1), make(features))
    assert of(both) > 0.2
    graph_of_silent_nodes = Graph.from_arrays(to_silent, make(features))
    assert (
        resemblance(
            graph_of_silent_nodes.table, graph_of_silent_nodes.edges, graph_of_silent_nodes.scaler()
        )
        is None
    )
