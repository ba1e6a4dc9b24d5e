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
    known = graph.hold_out_edges(0.3, seed=2)
    held_out = {frozenset(pair) for pair in known.held_out.T.tolist()}
    pairs = {frozenset(pair) for pair in entries(graph)}
    assert len(held_out) == round(0.3 * len(pairs)) == known.held_out.shape[1]
    assert held_out <= pairs
    assert entries(known) == {
        pair: w for pair, w in entries(graph).items() if frozenset(pair) not in held_out
    }
    assert known.adjacency.has_sorted_indices
    assert known.adjacency.dtype == np.float32
    assert (known.directed, known.weighted) == (directed, weighted)
    assert known.features is graph.features


def test_the_seed_decides_which():
    first, same, other = (
        random_graph().hold_out_edges(0.3, seed=seed).held_out for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("kind", ["positions", "degrees"])
def test_features_made_of_edges_do_not_give_them_away(kind):
    graph = Graph.from_scipy(random_graph().adjacency, kind)
    known = graph.hold_out_edges(0.5)
    np.testing.assert_array_equal(
        dense(known.features), dense(Graph.from_scipy(known.adjacency, kind).features)
    )
    assert not np.allclose(dense(known.features), dense(graph.features))
    assert known.feature_names == graph.feature_names


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
    known = random_graph().hold_out_edges(0.5)
    mask = np.random.default_rng(0).random(known.num_nodes) < 0.6
    part = known.part(mask)
    expected = {(u, v) for u, v in known.held_out.T.tolist() if mask[u] and mask[v]}
    assert expected
    assert {(u, v) for u, v in part.ids[part.held_out].T.tolist()} == expected


def test_they_are_written_and_read(tmp_path):
    known = random_graph().hold_out_edges(0.2)
    write_npz(known, tmp_path / "graph.npz")
    np.testing.assert_array_equal(read_npz(tmp_path / "graph.npz").held_out, known.held_out)


@pytest.mark.parametrize(
    ("held_out", "found"),
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
def test_what_cannot_have_been_held_out_is_refused(held_out, found, directed):
    with pytest.raises(InputError, match=f"held_out: .*{found}"):
        Graph.from_arrays([[0], [1]], np.eye(3), held_out=held_out, directed=directed)


def test_a_run_keeps_them_and_trains_without_them(tmp_path):
    known = random_graph(n=60).hold_out_edges(0.2)
    links = known.adjacency.tocoo()
    alone = Graph.from_arrays(np.stack(links.coords), known.features)
    model = DGI(4, epochs=5).fit(known, run=tmp_path / "run")
    expected = DGI(4, epochs=5).fit(alone).transform(alone).vectors
    loaded = DGI.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.graph_.held_out, known.held_out)
    for found in (model.transform(known), loaded.transform(loaded.graph_)):
        np.testing.assert_array_equal(found.vectors, expected)
