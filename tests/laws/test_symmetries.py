"""Relabelling nodes permutes the embeddings; edge order changes nothing; a duplicate counts once unless weighted."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_graphs import random_graph

from infomax import DGI, Graph

MODELS = [
    DGI(dim=6, epochs=2, seed=0).fit(random_graph(20, directed=directed))
    for directed in (False, True)
]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31), st.booleans(), st.booleans())
def test_relabelling_permutes(seed, directed, weighted):
    graph = random_graph(20, seed=seed, directed=directed, weighted=weighted)
    order = np.random.default_rng(seed).permutation(20)
    relabelled = Graph.from_scipy(
        graph.adjacency[order][:, order],
        graph.features[order],
        ids=graph.ids[order],
        directed=directed,
    )
    before, after = MODELS[directed].transform(graph), MODELS[directed].transform(relabelled)
    np.testing.assert_allclose(after.vectors, before.vectors[order], rtol=1e-6, atol=1e-6)
    assert after.ids.tolist() == before.ids[order].tolist()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31))
def test_edge_order_direction_and_repetition_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    edges, features = rng.integers(0, 20, (2, 50)), rng.random((20, 12))
    shuffled = np.concatenate([edges, edges[:, :9], edges[::-1, 9:18]], axis=1)[
        :, rng.permutation(68)
    ]
    one, other = Graph.from_arrays(edges, features), Graph.from_arrays(shuffled, features)
    assert (one.adjacency != other.adjacency).nnz == 0
    assert set(other.adjacency.data) <= {1.0}


def test_weighted_duplicates_add_up_and_both_directions_are_one_edge():
    graph = Graph.from_arrays([[0, 0, 1, 2], [1, 1, 0, 1]], np.eye(3), weight=[1, 2, 2.5, 4])
    assert graph.adjacency.toarray().tolist() == [[0, 3, 0], [3, 0, 4], [0, 4, 0]]
    directed = Graph.from_arrays(
        [[0, 0, 1, 2], [1, 1, 0, 1]], np.eye(3), weight=[1, 2, 2.5, 4], directed=True
    )
    assert directed.adjacency.toarray().tolist() == [[0, 3, 0], [2.5, 0, 0], [0, 4, 0]]


def test_weights_matter():
    light, heavy = (Graph.from_arrays([[0], [1]], np.eye(2), weight=[w]) for w in (0.1, 9.0))
    model = DGI(dim=4, epochs=1, scale="none").fit(light)
    assert not np.allclose(model.transform(light).vectors, model.transform(heavy).vectors)
