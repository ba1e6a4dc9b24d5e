"""A graph without a share of its edges, which are held out to score vectors on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from infomax.arrays.blocks import require_room
from infomax.arrays.held_out import draw_edges, without_edges
from infomax.arrays.links import Reference, find_references, joining_types
from infomax.errors import InputError
from infomax.io.building import AnyRecord, with_structural_features
from infomax.io.record import Record
from infomax.io.union import adjacency_of_all_types


def hold_out_edges(graph: AnyRecord, share: float, seed: int) -> AnyRecord:
    """The graph without a random share of its edges; see `infomax.Graph.hold_out_edges`."""
    if graph.held_out is not None:
        expected = "a graph with all its edges"
        found = "one that has edges held out already"
        raise InputError("hold_out_edges", expected, found)

    # The edges are joined, drawn from and cut again: about six copies in memory.
    bytes_of_edges = sum(relation.edges.bytes_to_load() for relation in graph.relations)
    bytes_of_features = sum(nodes.table.bytes_to_load() for nodes in graph.nodes.values())
    remedy = (
        "Take edges out of the table before infomax prepare, and score them with your own tools."
    )
    use = "read all of it and hold out edges"
    require_room(bytes_of_features + 6 * bytes_of_edges, use, remedy)
    graph = graph.loaded()

    # References of rows that join others are no edges to draw: all of a row are drawn together.
    row_types = joining_types(graph.relations)
    references = [
        reference for reference in find_references(graph.relations) if reference.source in row_types
    ]
    referring_relations = [reference.relation for reference in references]
    edge_relations = [
        relation for relation in graph.relations if relation not in referring_relations
    ]
    joining = _reference_matrix(graph, references) if references else None
    adjacency = adjacency_of_all_types(graph.nodes, edge_relations)
    held_out = draw_edges(adjacency, share, seed, joining)

    first_rows = graph.first_rows
    num_nodes = _num_nodes_of_all_types(graph)
    relations = []
    for relation in graph.relations:
        first_nodes = (first_rows[relation.source], first_rows[relation.target])
        matrix = without_edges(relation.edges.matrix(), held_out, first_nodes, num_nodes)
        relations.append(relation.with_matrix(matrix))
    graph = dataclasses.replace(graph, relations=tuple(relations), held_out=held_out)
    # Structural features would tell of the held-out edges.
    return with_structural_features(graph)


def _reference_matrix(graph: Record, references: Sequence[Reference]) -> sparse.csr_array:
    """References as a matrix ``[N, N]``, whose rows and columns are counted over all types."""
    first_rows = graph.first_rows
    num_nodes = _num_nodes_of_all_types(graph)
    source_parts, target_parts = [], []
    for reference in references:
        rows = np.flatnonzero(reference.rows >= 0)
        source_parts.append(rows + first_rows[reference.source])
        target_parts.append(reference.rows[rows] + first_rows[reference.target])
    sources, targets = np.concatenate(source_parts), np.concatenate(target_parts)
    ones = np.ones(len(sources), np.float32)
    return sparse.csr_array((ones, (sources, targets)), shape=(num_nodes, num_nodes))


def _num_nodes_of_all_types(graph: Record) -> int:
    return sum(nodes.num_nodes for nodes in graph.nodes.values())
