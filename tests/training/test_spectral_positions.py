"""Positions of nodes: what they are by definition, and where new nodes stand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_graphs import typed_graph
from scipy import sparse

from infomax import Graph
from infomax.arrays.relations import Relation
from infomax.io.nodes import Nodes
from infomax.kernels import Backend
from infomax.training.places import Places, fit_places, received

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
    whole = np.zeros((max(part.stop for part in rows.values()),) * 2)
    for relation in graph.relations:
        block = relation.edges.matrix().toarray()
        sources, targets = rows[relation.source], rows[relation.target]
        whole[sources, targets] += block
        if relation.directed or not relation.within:
            whole[targets, sources] += block.T
    return whole


@pytest.mark.parametrize("make", [mixed_graph, typed_graph])
def test_positions_are_eigenvectors_of_all_relations_together(make):
    graph = make()
    places = fit_places(graph, CPU)
    edges = dense_edges(graph, places.rows)
    strength = edges.sum(axis=1)
    scale = 1 / np.sqrt(strength + places.values[0])
    expected = np.linalg.eigvalsh(scale[:, None] * edges * scale)[::-1]
    np.testing.assert_allclose(places.table[:, 0], strength + places.values[0], rtol=1e-5)
    np.testing.assert_allclose(places.values[1:9], expected[:8], atol=2e-3)


def test_a_known_node_stands_near_its_neighbours_where_it_is():
    """P V = V s: by the links of a known node to all its neighbours its own row comes out again."""
    graph = typed_graph()
    places = fit_places(graph, CPU)
    rows = np.arange(graph.num_nodes)
    found = places.near(received(graph, rows), len(rows))
    known = places.table[places.rows["paper"]]
    np.testing.assert_allclose(found[:, 0], known[:, 0], rtol=1e-5)
    np.testing.assert_allclose(
        found[:, 1:6], known[:, 1:6], atol=1e-3 * np.abs(known[:, 1:6]).max()
    )


def chain(known: int, new: int) -> tuple[Graph, Graph]:
    """A ring of known nodes, and the same with a chain of new nodes that hangs at node 0."""
    ring = np.array([np.arange(known), np.roll(np.arange(known), -1)])
    tail = np.array([[0, *range(known, known + new - 1)], range(known, known + new)])
    ids = np.arange(known + new)
    earlier = Graph.from_arrays(ring, np.ones((known, 1)), ids=ids[:known])
    later = Graph.from_arrays(
        np.concatenate([ring, tail], axis=1), np.ones((known + new, 1)), ids=ids
    )
    return earlier, later


def test_new_nodes_are_placed_once_up_to_four_edges_from_known_ones():
    earlier, later = chain(known=20, new=6)
    places = fit_places(earlier, CPU)
    moved = places.moved(earlier, later)
    np.testing.assert_array_equal(moved.table[:20], places.table)
    # The first new node stands where node 0 alone puts it: what comes after it in the chain does not move it.
    lone = places.moved(earlier, later.part(np.arange(26) <= 20))
    first = moved.table[20, 1:] / np.linalg.norm(moved.table[20, 1:])
    np.testing.assert_allclose(
        first, lone.table[20, 1:] / np.linalg.norm(lone.table[20, 1:]), atol=1e-5
    )
    placed = (moved.table[20:] != 0).any(axis=1)
    assert placed.tolist() == [True, True, True, True, False, False]


def test_types_that_come_or_go_later_change_nothing_for_the_others():
    graph = typed_graph()
    places = fit_places(graph, CPU)
    without = Graph(
        {name: graph.nodes[name] for name in ("author", "paper")},
        tuple(one for one in graph.relations if "subject" not in (one.source, one.target)),
        "paper",
    )
    np.testing.assert_array_equal(
        places.moved(graph, without).of_type("paper"), places.of_type("paper")
    )
    fewer = fit_places(without, CPU)
    more = fewer.moved(without, graph)
    np.testing.assert_array_equal(more.of_type("paper"), fewer.of_type("paper"))
    assert (more.of_type("subject") != 0).any(axis=1).all()
    # A new type that changes no other: only its own nodes are placed.
    alone = Graph(
        {**without.nodes, "tag": Nodes.of(3, np.ones((3, 1)))}, without.relations, "paper"
    )
    assert isinstance(fewer.moved(without, alone), Places)
