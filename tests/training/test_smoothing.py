"""Smoothed vectors: H + P^k H with rows of length 1."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI, InputError
from infomax.training import embed as engine
from infomax.views import MEAN


@pytest.mark.parametrize("preset", ["whole-graph", "mean-pool", "batches", "patches"])
@pytest.mark.parametrize("block", [64, 3])
def test_smoothed_vectors_are_what_the_formula_says(preset, block, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", {"cpu": block})
    graph = random_graph(40, dense=True)
    model = DGI(7, preset=preset, epochs=2, device="cpu").fit(graph)
    hat = graph.adjacency.toarray().astype(np.float64) + np.eye(40)
    degree = hat.sum(1)
    p = hat / degree[:, None] if model.model_.encoder.rule == MEAN else hat / np.sqrt(np.outer(degree, degree))
    h = model.transform(graph).vectors.astype(np.float64)
    expected = h + np.linalg.matrix_power(p, 5) @ h
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(graph, smooth=5).vectors, expected, atol=1e-5)


def test_a_run_keeps_its_smoothing(tmp_path):
    graph = random_graph(40)
    model = DGI(8, epochs=2, smooth=3).fit(graph, run=tmp_path / "run")
    vectors = model.transform(graph).vectors
    np.testing.assert_array_equal(DGI.load(tmp_path / "run").transform(graph).vectors, vectors)
    assert not np.allclose(model.transform(graph, smooth=0).vectors, vectors)


def test_a_node_without_features_or_neighbours_stays_at_zero():
    graph = random_graph(40, dense=True)
    graph.features[3] = 0
    graph.adjacency[3, :] = 0
    graph.adjacency[:, 3] = 0
    graph.adjacency.eliminate_zeros()
    vectors = DGI(8, epochs=0).fit(graph).transform(graph, smooth=2).vectors
    assert not vectors[3].any()
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("hops", [-1, 1.5])
def test_hops_are_counted(hops):
    graph = random_graph(10)
    with pytest.raises(InputError, match="smooth"):
        DGI(4, epochs=0).fit(graph).transform(graph, smooth=hops)
