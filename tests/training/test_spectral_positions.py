"""Positions of nodes: what they are by definition, and where new nodes stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sample_graphs import typed_graph
from scipy import sparse

from infomax import Graph
from infomax.arrays.relations import Relation
from infomax.io.nodes import Nodes
from infomax.kernels import Backend
from infomax.training.spectral_positions import (
    PositionSettings,
    SpectralPositions,
    connected_parts,
    edges_both_ways,
    fit_spectral_positions,
    received,
)

CPU = Backend(torch.device("cpu"))


def mixed_graph(seed: int = 0, people: int = 60, films: int = 30) -> Graph:
    """People rate films, know each other both ways, and follow each other one way; all with weights."""
    rng = np.random.default_rng(seed)

    def weights(rows: int, columns: int, share: float) -> np.ndarray:
        chosen = rng.random((rows, columns)) < share
        return (chosen * rng.integers(1, 4, (rows, columns))).astype(np.float32)

    knows = np.triu(weights(people, people, 0.1), 1)
    follows = weights(people, people, 0.05)
    np.fill_diagonal(follows, 0)
    relations = (
        Relation.of("person", "knows", "person", sparse.csr_array(knows + knows.T)),
        Relation.of("person", "follows", "person", sparse.csr_array(follows), directed=True),
        Relation.of("person", "rates", "film", sparse.csr_array(weights(people, films, 0.1))),
    )
    nodes = {
        "film": Nodes.of(films, np.ones((films, 1))),
        "person": Nodes.of(people, np.ones((people, 1))),
    }
    return Graph(nodes, relations, "person")


def dense_edges(graph: Graph, rows: dict[str, slice]) -> np.ndarray:
    """The weights between all nodes ``[N, N]``: those of an edge with a direction count once at each of its ends."""
    weights = np.zeros((max(part.stop for part in rows.values()),) * 2)
    for relation in graph.relations:
        block = relation.edges.matrix().toarray()
        sources, targets = rows[relation.source], rows[relation.target]
        weights[sources, targets] += block
        if relation.directed or not relation.within_one_type:
            weights[targets, sources] += block.T
    return weights


@pytest.mark.parametrize("make", [mixed_graph, typed_graph])
def test_positions_are_eigenvectors_of_all_relations_together(make):
    graph = make()
    positions = fit_spectral_positions(graph, CPU)
    edges = dense_edges(graph, positions.rows_of_type)
    strength = edges.sum(axis=1)
    scale = 1 / np.sqrt(strength + positions.values[0])
    expected = np.linalg.eigvalsh(scale[:, None] * edges * scale)[::-1]
    np.testing.assert_allclose(positions.table[:, 0], strength + positions.values[0], rtol=1e-5)
    np.testing.assert_allclose(positions.values[1:9], expected[:8], atol=2e-3)


def test_a_known_node_stands_near_its_neighbours_where_it_is():
    """P V = V s: by the links of a known node to all its neighbours its own row comes out again."""
    graph = typed_graph()
    positions = fit_spectral_positions(graph, CPU)
    rows = np.arange(graph.num_nodes)
    rows_from_links = positions.rows_from_links(received(graph, rows), len(rows))
    known_rows = positions.table[positions.rows_of_type["paper"]]
    np.testing.assert_allclose(rows_from_links[:, 0], known_rows[:, 0], rtol=1e-5)
    np.testing.assert_allclose(
        rows_from_links[:, 1:6], known_rows[:, 1:6], atol=1e-3 * np.abs(known_rows[:, 1:6]).max()
    )


def chain(known_count: int, new_count: int) -> tuple[Graph, Graph]:
    """A ring of known nodes, and the same with a chain of new nodes that hangs at node 0."""
    ring = np.array([np.arange(known_count), np.roll(np.arange(known_count), -1)])
    tail = np.array(
        [
            [0, *range(known_count, known_count + new_count - 1)],
            range(known_count, known_count + new_count),
        ]
    )
    ids = np.arange(known_count + new_count)
    earlier = Graph.from_arrays(ring, np.ones((known_count, 1)), ids=ids[:known_count])
    later = Graph.from_arrays(
        np.concatenate([ring, tail], axis=1), np.ones((known_count + new_count, 1)), ids=ids
    )
    return earlier, later


def test_new_nodes_are_placed_once_up_to_four_edges_from_known_ones():
    earlier, later = chain(known_count=20, new_count=6)
    positions = fit_spectral_positions(earlier, CPU)
    later_positions = positions.for_later_graph(earlier, later)
    np.testing.assert_array_equal(later_positions.table[:20], positions.table)
    # The first new node stands where node 0 alone puts it: what comes after it in the chain does not move it.
    lone = positions.for_later_graph(earlier, later.part(np.arange(26) <= 20))
    first = later_positions.table[20, 1:] / np.linalg.norm(later_positions.table[20, 1:])
    np.testing.assert_allclose(
        first, lone.table[20, 1:] / np.linalg.norm(lone.table[20, 1:]), atol=1e-5
    )
    placed = (later_positions.table[20:] != 0).any(axis=1)
    assert placed.tolist() == [True, True, True, True, False, False]


def test_types_that_come_or_go_later_change_nothing_for_the_others():
    graph = typed_graph()
    positions = fit_spectral_positions(graph, CPU)
    without = Graph(
        {name: graph.nodes[name] for name in ("author", "paper")},
        tuple(one for one in graph.relations if "subject" not in (one.source, one.target)),
        "paper",
    )
    np.testing.assert_array_equal(
        positions.for_later_graph(graph, without).of_type("paper"), positions.of_type("paper")
    )
    fewer = fit_spectral_positions(without, CPU)
    more = fewer.for_later_graph(without, graph)
    np.testing.assert_array_equal(more.of_type("paper"), fewer.of_type("paper"))
    assert (more.of_type("subject") != 0).any(axis=1).all()
    # A new type that changes no other: only its own nodes are placed.
    alone = Graph(
        {**without.nodes, "tag": Nodes.of(3, np.ones((3, 1)))}, without.relations, "paper"
    )
    assert isinstance(fewer.for_later_graph(without, alone), SpectralPositions)


def parts_graph(sizes: list[int], seed: int = 0) -> Graph:
    """Separate rings with a few chords each, of these sizes, in a random order of nodes."""
    rng = np.random.default_rng(seed)
    ends: list[np.ndarray] = []
    first = 0
    for size in sizes:
        nodes = first + np.arange(size)
        ends.append(np.stack([nodes, np.roll(nodes, -1)]))
        if size > 4:
            ends.append(first + rng.integers(size, size=(2, 2 * size)))
        first += size
    order = rng.permutation(first)
    return Graph.from_arrays(order[np.concatenate(ends, axis=1)], np.ones((first, 1)))


def test_connected_parts_are_those_of_scipy():
    graph = parts_graph([300, 40, 7, 2, 2, 2, 1])
    rows = {"": slice(0, graph.num_nodes)}
    for entries_per_block in (10, 1 << 20):
        edge_lists = edges_both_ways(graph, rows, entries_per_block)
        parts = connected_parts(edge_lists, np.ones(graph.num_nodes, bool))
        count, expected = sparse.csgraph.connected_components(graph.adjacency, directed=False)
        assert len(np.unique(parts)) == count
        assert len({*zip(parts.tolist(), expected.tolist(), strict=True)}) == count


def test_degrees_are_raised_by_the_share_of_columns_that_small_parts_would_take():
    assert fit_spectral_positions(parts_graph([600]), CPU).values[0] == 0
    assert fit_spectral_positions(parts_graph([300, 300]), CPU).values[0] == 0  # both are large
    graph = parts_graph([600, *[2] * 32])
    mean = graph.adjacency.sum() / graph.num_nodes
    assert fit_spectral_positions(graph, CPU).values[0] == pytest.approx(0.1 * 32 / 128 * mean)
    graph = parts_graph([600, *[2] * 200])
    mean = graph.adjacency.sum() / graph.num_nodes
    assert fit_spectral_positions(graph, CPU).values[0] == pytest.approx(0.1 * mean)


LARGE = PositionSettings(
    large_nodes=50, columns_if_large=12, huge_nodes=10_000, spare_columns_if_large=8
)


@pytest.mark.parametrize("make", [lambda: mixed_graph(people=200, films=80), typed_graph])
def test_large_graphs_have_fewer_positions_that_are_as_exact_as_they_say(make):
    graph = make()
    large = fit_spectral_positions(graph, CPU, settings=LARGE)
    usual = fit_spectral_positions(graph, CPU)
    assert large.width == 12
    np.testing.assert_allclose(large.values[1:], usual.values[1:13], atol=1.1e-2)
    np.testing.assert_allclose(large.table[:, 0], usual.table[:, 0], rtol=1e-6)
    edges = dense_edges(graph, large.rows_of_type)
    scale = np.where(edges.sum(axis=1) > 0, 1 / np.sqrt(np.maximum(large.table[:, 0], 1e-9)), 0)
    vectors = np.concatenate(
        [large.singular_vectors(node_type) for node_type in large.rows_of_type]
    )
    residuals = (scale[:, None] * edges * scale) @ vectors - vectors * large.values[1:]
    assert np.linalg.norm(residuals, axis=0).max() < 1.1e-2


@pytest.mark.parametrize("settings", [LARGE, PositionSettings()])
def test_positions_are_the_same_in_memory_and_on_disk_and_in_blocks(settings, tmp_path):
    graph = parts_graph([150, 30, 2, 2])
    expected = fit_spectral_positions(graph, CPU, settings=settings)
    graph.save(tmp_path / "g.graph")
    in_blocks = replace(settings, entries_per_block=40)
    on_disk = fit_spectral_positions(Graph.open(tmp_path / "g.graph"), CPU, settings=in_blocks)
    again = fit_spectral_positions(Graph.open(tmp_path / "g.graph"), CPU, settings=in_blocks)
    np.testing.assert_allclose(on_disk.values, expected.values, atol=1e-5)
    scale = np.abs(expected.table[:, 1:]).max()
    np.testing.assert_allclose(on_disk.table[:, 1:], expected.table[:, 1:], atol=2e-3 * scale)
    np.testing.assert_array_equal(on_disk.table, again.table)


def test_fewer_positions_are_told_in_one_line():
    settings = PositionSettings()
    assert settings.note_for(2_000_000) is None
    assert settings.note_for(5_000_000) == (
        "vectors have 64 positions, not 128: of 5,000,000 nodes, more would take longer than the training"
    )
    assert "32 positions" in settings.note_for(111_000_000)
    search = fit_spectral_positions(typed_graph(), CPU).search
    assert "products with the adjacency, residuals up to" in search
