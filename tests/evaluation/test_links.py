"""Laws of the score that needs no labels: edges against random pairs of nodes."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph
from scipy import sparse

from infomax.errors import InputError
from infomax.evaluation.links import common_neighbours, cosines, draw_pairs, regression, score
from infomax.graphs.graph import Graph

SCORES = {"cosine": cosines, "regression": regression}


@pytest.fixture(scope="module")
def cliques():
    """Thirty cliques of six nodes each, and the number of each node's clique."""
    codes = np.arange(180) // 6
    return sparse.csr_array(
        (codes[:, None] == codes).astype(np.float32) - np.eye(180, dtype=np.float32)
    ), codes


@pytest.fixture(scope="module")
def communities():
    """A graph of four communities, and vectors ``[N, 16]`` that tell a little of them."""
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=400)
    u, v = rng.integers(400, size=(2, 12_000))
    kept = rng.random(12_000) < np.where(codes[u] == codes[v], 0.5, 0.1)
    vectors = rng.normal(size=(400, 16)) + np.eye(4, 16)[codes] * 4
    return Graph.from_arrays(np.stack([u, v])[:, kept], vectors), vectors.astype(np.float32)


@pytest.mark.parametrize("name", SCORES)
def test_perfect_vectors_score_1(cliques, name):
    adjacency, codes = cliques
    pairs = draw_pairs(adjacency)
    for vectors in (
        np.eye(30, dtype=np.float32)[codes],
        sparse.csr_array(np.eye(30, dtype=np.float32)[codes]),
    ):
        found = score(pairs, SCORES[name](vectors, pairs))
        assert found == pytest.approx({"auc": 1, "average_precision": 1})


def test_neighbours_in_cliques_score_1(cliques):
    pairs = draw_pairs(cliques[0])
    assert score(pairs, common_neighbours(cliques[0], pairs))["auc"] == 1


@pytest.mark.parametrize("name", SCORES)
def test_random_vectors_score_a_half(communities, name):
    graph, _ = communities
    pairs = draw_pairs(graph.adjacency)
    found = score(pairs, SCORES[name](np.random.default_rng(1).normal(size=(400, 16)), pairs))
    assert found == pytest.approx({"auc": 0.5, "average_precision": 0.5}, abs=0.06)


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("scale", [1e-25, 1e-6, 1e6, 1e25])
def test_the_scale_of_the_vectors_does_not_matter(communities, name, scale):
    graph, vectors = communities
    pairs = draw_pairs(graph.adjacency)
    expected = score(pairs, SCORES[name](vectors, pairs))
    found = score(pairs, SCORES[name](vectors * np.float32(scale), pairs))
    assert expected["auc"] > 0.6
    assert found == pytest.approx(expected, abs=1e-3)


def test_the_strength_is_chosen_on_pairs_that_were_not_fitted(communities):
    """Of vectors with many columns of noise, the weakest regularisation fits best and predicts worst."""
    graph, vectors = communities
    rng = np.random.default_rng(3)
    noisy = np.concatenate([vectors, rng.normal(size=(400, 600)) / 5], axis=1)
    pairs = draw_pairs(graph.adjacency)
    chosen_auc = score(pairs, regression(noisy, pairs, costs=(1e-2, 1e3)))["auc"]
    weakest_auc = score(pairs, regression(noisy, pairs, costs=(1e3,)))["auc"]
    assert chosen_auc > weakest_auc + 0.05


def test_cosines_do_not_depend_on_the_axes(communities):
    graph, vectors = communities
    pairs = draw_pairs(graph.adjacency)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(16, 16)))[0]
    np.testing.assert_allclose(
        cosines(vectors @ rotation, pairs), cosines(vectors, pairs), atol=1e-6
    )


def test_cosines_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 5))
    vectors -= vectors.mean(axis=0)
    vectors[3] = 0
    pairs = draw_pairs(random_graph().adjacency)
    elsewhere = np.array([3, 0, -7, 0, 0]) + vectors
    vectors = vectors - vectors.mean(axis=0)
    length = np.linalg.norm(vectors, axis=1)
    u, v = pairs.ends
    expected = (vectors[u] * vectors[v]).sum(1) / (length[u] * length[v])
    np.testing.assert_allclose(cosines(elsewhere, pairs), expected, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_pairs_are_edges_and_others_each_once(directed, weighted):
    graph = random_graph(directed=directed, weighted=weighted)
    linked = (graph.adjacency.toarray() > 0) | (graph.adjacency.toarray().T > 0)
    pairs = draw_pairs(graph.adjacency)
    u, v = pairs.ends
    np.testing.assert_array_equal(linked[u, v], pairs.joined)
    assert (u < v).all()
    assert len(set(zip(u.tolist(), v.tolist(), strict=True))) == len(u)
    assert pairs.joined.sum() * 2 == len(u)
    assert pairs.joined.sum() == np.triu(linked).sum()
    for part in (pairs.fitted, ~pairs.fitted):
        assert pairs.joined[part].mean() == 0.5
    counts = common_neighbours(graph.adjacency, pairs, directed=directed)
    np.testing.assert_array_equal(counts, (linked[u] & linked[v]).sum(axis=1))


def test_pairs_in_blocks_score_the_same(communities):
    graph, vectors = communities
    pairs = draw_pairs(graph.adjacency)
    np.testing.assert_allclose(
        common_neighbours(graph.adjacency, pairs, numbers_per_block=1000),
        common_neighbours(graph.adjacency, pairs),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        cosines(vectors, pairs, numbers_per_block=1000), cosines(vectors, pairs), atol=1e-6
    )
    np.testing.assert_allclose(
        regression(vectors, pairs, numbers_per_block=1000), regression(vectors, pairs), atol=1e-6
    )


def test_the_seed_decides_the_pairs_and_their_number_is_limited(communities):
    adjacency = communities[0].adjacency
    first, same, other = (draw_pairs(adjacency, seed=seed, most_edges=50) for seed in (0, 0, 1))
    assert first.ends.shape == (2, 100)
    np.testing.assert_array_equal(first.ends, same.ends)
    assert (first.ends != other.ends).any()


@pytest.mark.parametrize("directed", [False, True])
def test_held_out_edges_are_the_ones_scored_and_nobody_else_sees_them(directed):
    graph = random_graph(n=100, directed=directed)
    known = graph.hold_out_edges(0.2, seed=1)
    pairs = draw_pairs(known.adjacency, known.held_out)
    linked = (graph.adjacency.toarray() > 0) | (graph.adjacency.toarray().T > 0)
    u, v = pairs.ends
    np.testing.assert_array_equal(linked[u, v], pairs.joined)
    assert {*zip(*pairs.ends[:, pairs.joined].tolist(), strict=True)} == {
        *zip(*known.held_out.tolist(), strict=True)
    }
    seen = (known.adjacency.toarray() > 0) | (known.adjacency.toarray().T > 0)
    assert not seen[u, v].any()
    counts = common_neighbours(known.adjacency, pairs, directed=directed)
    np.testing.assert_array_equal(counts, (seen[u] & seen[v]).sum(axis=1))


def test_held_out_edges_are_never_taken_for_pairs_without_an_edge():
    """Where most pairs are joined and half of the edges are held out, a careless draw would meet them at once."""
    linked = np.triu(np.random.default_rng(0).random((40, 40)) < 0.6, 1)
    known = Graph.from_arrays(np.argwhere(linked).T, np.ones((40, 1))).hold_out_edges(0.5)
    pairs = draw_pairs(known.adjacency, known.held_out)
    np.testing.assert_array_equal(linked[tuple(pairs.ends)], pairs.joined)
    assert pairs.joined.sum() > 100


def test_pairs_stay_within_a_group():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat([7, 3, 5], [20, 60, 20]))
    u, v = rng.integers(100, size=(2, 400))
    inside = groups[u] == groups[v]
    graph = Graph.from_arrays(np.stack([u, v])[:, inside], np.eye(100), groups=groups)
    ends = draw_pairs(graph.adjacency, groups=groups).ends
    np.testing.assert_array_equal(groups[ends[0]], groups[ends[1]])


@pytest.mark.parametrize("n", [1, 3, 12])
def test_too_few_pairs_are_refused(n):
    full = sparse.csr_array(np.ones((n, n), dtype=np.float32) - np.eye(n, dtype=np.float32))
    with pytest.raises(
        InputError, match="at least 10 edges, and as many pairs of nodes without one"
    ):
        draw_pairs(full)
    with pytest.raises(InputError, match="found 0 and 0"):
        draw_pairs(sparse.csr_array((n, n), dtype=np.float32))
