"""Links that are hidden from an encoder are gone from the graph, both halves of them, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph, typed_graph

from infomax.arrays.links import find_links
from infomax.training.hidden_links import hide_links


def linked_pairs(graph, links):
    """The pairs of rows that links join, whichever comes first."""
    matching = [one for one in find_links(graph.relations, graph.node_type) if str(one) == links]
    return {pair for one in matching for pair in zip(one.first, one.second, strict=True)}


def test_hidden_edges_are_gone_in_both_directions():
    graph = random_graph(80, seed=3)
    hidden = hide_links(graph, np.random.default_rng(0))
    pairs = hidden.pairs["edges"]
    before, after = graph.adjacency, hidden.graph.adjacency
    assert (before[pairs[0], pairs[1]] != 0).all()
    assert not (after[pairs[0], pairs[1]] != 0).any()
    assert not (after[pairs[1], pairs[0]] != 0).any()
    assert before.nnz - after.nnz == 2 * pairs.shape[1]
    assert 0 < pairs.shape[1] < 0.5 * before.nnz / 2


@pytest.mark.parametrize("node_type", ["paper", "author"])
def test_a_pair_is_of_nodes_that_were_linked_to_the_same_node(node_type):
    graph = typed_graph().target(node_type)
    hidden = hide_links(graph, np.random.default_rng(0))
    assert hidden.graph.num_edges < graph.num_edges
    for links in find_links(graph.relations, node_type):
        pairs = hidden.pairs.get(str(links), np.zeros((2, 0), np.int64))
        linked = linked_pairs(graph, str(links))
        for first, second in pairs.T.tolist():
            ends = [{b for a, b in linked if a == node} for node in (first, second)]
            is_direct = links.second_type == node_type
            assert (first, second) in linked if is_direct else ends[0] & ends[1]
