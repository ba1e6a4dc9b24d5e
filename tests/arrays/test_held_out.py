"""Edges set aside: what training never sees."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax import DGI, Graph
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.npz import read_npz, write_npz


def entries(graph):
    links = graph.adjacency.tocoo()
    return {
        (u, v): w
        for u, v, w in zip(links.row.tolist(), links.col.tolist(), links.data.tolist(), strict=True)
    }


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_each_edge_is_kept_with_its_weight_or_held_out(directed, weighted):
    graph = random_graph(directed=directed, weighted=weighted)
    remaining_graph = graph.hold_out_edges(0.3, seed=2)
    held_out = {frozenset(pair) for pair in remaining_graph.held_out.T.tolist()}
    pairs = {frozenset(pair) for pair in entries(graph)}
    assert len(held_out) == round(0.3 * len(pairs)) == remaining_graph.held_out.shape[1]
    assert held_out <= pairs
    assert entries(remaining_graph) == {
        pair: w for pair, w in entries(graph).items() if frozenset(pair) not in held_out
    }
    assert remaining_graph.adjacency.has_sorted_indices
    assert remaining_graph.adjacency.dtype == np.float32
    assert (remaining_graph.directed, remaining_graph.weighted) == (directed, weighted)
    assert remaining_graph.features is graph.features


def test_the_seed_decides_which():
    first, same, other = (
        random_graph().hold_out_edges(0.3, seed=seed).held_out for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("structural_features", ["positions", "degrees"])
def test_features_made_of_edges_do_not_give_them_away(structural_features):
    graph = Graph.from_scipy(random_graph().adjacency, structural_features)
    remaining_graph = graph.hold_out_edges(0.5)
    np.testing.assert_array_equal(
        dense(remaining_graph.features),
        dense(Graph.from_scipy(remaining_graph.adjacency, structural_features).features),
    )
    assert not np.allclose(dense(remaining_graph.features), dense(graph.features))
    assert remaining_graph.feature_names == graph.feature_names


@pytest.mark.parametrize("share", [-0.1, 0, 1, 1.5, 1e-9, 0.9999, float("nan"), float("inf")])
def test_a_silly_share_is_refused(share):
    with pytest.raises(
        InputError, match=r"share of edges to hold out: expected a share between 0 and 1 .*0\.1"
    ):
        random_graph().hold_out_edges(share)


def test_edges_are_held_out_once():
    with pytest.raises(InputError, match="has edges held out already"):
        random_graph().hold_out_edges(0.1).hold_out_edges(0.1)


def test_a_part_keeps_those_among_its_nodes():
    remaining_graph = random_graph().hold_out_edges(0.5)
    mask = np.random.default_rng(0).random(remaining_graph.num_nodes) < 0.6
    part = remaining_graph.part(mask)
    expected = {(u, v) for u, v in remaining_graph.held_out.T.tolist() if mask[u] and mask[v]}
    assert expected
    assert {(u, v) for u, v in part.ids[part.held_out].T.tolist()} == expected


def test_they_are_written_and_read(tmp_path):
    remaining_graph = random_graph().hold_out_edges(0.2)
    write_npz(remaining_graph, tmp_path / "graph.npz")
    np.testing.assert_array_equal(
        read_npz(tmp_path / "graph.npz").held_out, remaining_graph.held_out
    )


@pytest.mark.parametrize(
    ("held_out", "message"),
    [
        ([[0], [1]], "the edge 0 -> 1"),
        ([[1], [0]], "the edge 1 -> 0"),
        ([[0], [9]], "rows outside"),
        ([[0], [-1]], "rows outside"),
        ([0, 1], "shape"),
        ([[0.5], [1]], "float64"),
    ],
    ids=str,
)
@pytest.mark.parametrize("directed", [False, True])
def test_what_cannot_have_been_held_out_is_refused(held_out, message, directed):
    with pytest.raises(InputError, match=f"held_out: .*{message}"):
        Graph.from_arrays([[0], [1]], np.eye(3), held_out=held_out, directed=directed)


def test_a_run_keeps_them_and_trains_without_them(tmp_path):
    remaining_graph = random_graph(n=60).hold_out_edges(0.2)
    entries_left = remaining_graph.adjacency.tocoo()
    graph_alone = Graph.from_arrays(np.stack(entries_left.coords), remaining_graph.features)
    model = DGI(4, epochs=5).fit(remaining_graph, run=tmp_path / "run")
    expected = DGI(4, epochs=5).fit(graph_alone).transform(graph_alone).vectors
    loaded = DGI.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.graph_.held_out, remaining_graph.held_out)
    for embeddings in (model.transform(remaining_graph), loaded.transform(loaded.graph_)):
        np.testing.assert_array_equal(embeddings.vectors, expected)
