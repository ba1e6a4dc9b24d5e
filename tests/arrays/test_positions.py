"""Positions in the graph: what describes nodes without features."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sample_graphs import random_graph
from scipy import sparse

from infomax import Graph, load_dataset, read_graph
from infomax.arrays.positions import (
    ATTACHING_ROUNDS,
    FIRST_HOP,
    LAST_HOP,
    POSITION_WIDTH,
    attached_positions,
    positions,
    signs,
    unit,
)
from infomax.evaluation.probes import paper_probe
from infomax.reports.comparison import labelled

needs_cora = pytest.mark.skipif(
    "INFOMAX_DATA" not in os.environ, reason="needs the Planetoid files: set INFOMAX_DATA"
)
SHAPES = pytest.mark.parametrize(
    "shape", [{}, {"weighted": True}, {"directed": True}, {"directed": True, "weighted": True}],
    ids=["plain", "weighted", "directed", "both"],
)  # fmt: skip


def by_hand(adjacency: np.ndarray, ids: np.ndarray, directed: bool) -> np.ndarray:
    """The formula, with dense matrices of float64."""
    both = adjacency + adjacency.T if directed else adjacency
    rows, total = signs(ids.tolist()).astype(np.float64), 0
    for hop in range(1, LAST_HOP + 1):
        rows = both @ rows / np.maximum(both.sum(axis=1, keepdims=True), 1e-9)
        total = total + (unit(rows) if hop >= FIRST_HOP else 0)
    return unit(total)


@SHAPES
def test_they_are_what_the_formula_says(shape):
    graph = random_graph(**shape)
    all_positions = positions(graph.edges, graph.ids)
    expected = by_hand(graph.adjacency.toarray().astype(np.float64), graph.ids, graph.directed)
    np.testing.assert_allclose(all_positions, expected, atol=1e-5)
    # The rows of receivers are cut into blocks.
    in_blocks = positions(graph.edges, graph.ids, edges_per_block=7)
    np.testing.assert_allclose(in_blocks, all_positions, atol=1e-5)


def test_an_id_decides_the_random_row_on_every_machine():
    rows = signs(["ann", 7, "7", "ünï"])
    assert rows.shape == (4, POSITION_WIDTH)
    assert {*rows.ravel().tolist()} == {-1.0, 1.0}
    np.testing.assert_array_equal(rows[1], rows[2])  # text files have no types
    # As b2sum of GNU tells: printf ann | b2sum -l 256
    bits = np.packbits(rows[:, :32] > 0, axis=1)
    assert [row.tobytes().hex() for row in bits] == ["62498115", "0a420b07", "0a420b07", "4f347f2a"]
    assert abs(signs(range(4096)).mean()) < 0.01


@SHAPES
def test_the_order_of_nodes_changes_nothing_else(shape):
    graph = random_graph(**shape)
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    moved = Graph.from_scipy(
        graph.adjacency[order][:, order], directed=graph.directed, ids=graph.ids[order]
    )
    np.testing.assert_allclose(moved.features, positions(graph.edges, graph.ids)[order], atol=1e-5)
    assert moved.feature_names[-1] == f"position {POSITION_WIDTH} of {POSITION_WIDTH}"


def test_rows_have_length_one_and_without_neighbours_zero():
    rows = Graph.from_arrays([[0, 1], [1, 2]], num_nodes=5).features
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 1, 0, 0], atol=1e-6)


@SHAPES
def test_seen_nodes_know_nothing_of_the_others(shape):
    """Those of seen nodes are those of the seen part alone; the others' are means of their neighbours'."""
    graph = random_graph(**shape)
    seen = np.arange(graph.num_nodes) % 3 > 0
    new_positions = Graph.from_scipy(
        graph.adjacency, directed=graph.directed, ids=graph.ids, splits={"seen": seen}
    ).features
    part = graph.part(seen)
    np.testing.assert_allclose(new_positions[seen], positions(part.edges, part.ids), atol=1e-5)
    matrix = graph.adjacency + graph.adjacency.T if graph.directed else graph.adjacency
    order = np.concatenate([np.flatnonzero(seen), np.flatnonzero(~seen)])
    links = sparse.csr_array(matrix)[np.flatnonzero(~seen)][:, order]
    np.testing.assert_allclose(
        new_positions[~seen], attached_positions(links, new_positions[seen]), atol=1e-5
    )
    assert np.linalg.norm(new_positions[~seen], axis=1).max() == pytest.approx(1, abs=1e-5)


def test_new_nodes_in_a_row_have_positions_as_far_as_rounds_reach():
    links = sparse.csr_array(np.eye(6, 7) + np.eye(6, 7, 2))  # a known node, then six in a row
    new_positions = attached_positions(links, unit(np.ones((1, POSITION_WIDTH), np.float32)))
    np.testing.assert_allclose(
        np.linalg.norm(new_positions, axis=1),
        [1] * ATTACHING_ROUNDS + [0] * (6 - ATTACHING_ROUNDS),
        atol=1e-6,
    )


@needs_cora
def test_an_attached_copy_of_a_node_stands_beside_it(tmp_path):
    labelled_graph = load_dataset("cora")
    graph = Graph.from_scipy(labelled_graph.adjacency)
    some = np.flatnonzero(graph.degrees() > 1)[::50]
    entries = sparse.coo_array(graph.adjacency[some])
    lines = [f"{10_000 + some[row]},{column}" for row, column in zip(*entries.coords, strict=True)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    grown = read_graph(tmp_path / "edges.csv", attach_to=graph)
    np.testing.assert_array_equal(grown.features[: graph.num_nodes], graph.features)
    new_positions = grown.features[graph.num_nodes :]
    cosines = (
        new_positions
        * graph.features[[identifier - 10_000 for identifier in grown.ids[graph.num_nodes :]]]
    ).sum(axis=1)
    others = new_positions @ graph.features.T
    assert np.median(cosines) > 0.95
    assert (
        others > cosines[:, None]
    ).mean() < 0.002  # few of all nodes are nearer than the one it is a copy of


@needs_cora
def test_classes_are_found_without_features():
    whole = load_dataset("cora")
    graph = Graph.from_scipy(whole.adjacency)
    score = paper_probe(graph.features, *labelled(whole), restarts=3).value
    assert score > 0.672  # DeepWalk's mean on the same edges; degrees have 0.3
