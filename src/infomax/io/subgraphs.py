"""Subgraphs: some nodes of a graph and the edges among them."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import require_room
from infomax.arrays.checks import check_column
from infomax.io.building import AnyRecord
from infomax.io.record import Record


def part_of(graph: AnyRecord, mask: NDArray[np.bool_]) -> AnyRecord:
    """The subgraph of the nodes of a mask ``[N]``; see `infomax.Graph.part`."""
    rows = np.flatnonzero(check_column("mask", mask, graph.num_nodes, "b", "booleans"))
    node_type = graph.node_type
    bytes_of_edges = sum(
        relation.edges.bytes_to_load(rows)
        for relation in graph.relations
        if relation.within_one_type and relation.source == node_type
    )
    use = f"read {len(rows):,} of its nodes"
    remedy = "Make a graph folder of these nodes alone: infomax prepare."
    require_room(graph.table.bytes_to_load(len(rows)) + bytes_of_edges, use, remedy)
    return dataclasses.replace(
        graph,
        nodes={**graph.nodes, node_type: graph.nodes_in_view.part(rows)},
        relations=tuple(relation.part(node_type, rows) for relation in graph.relations),
        held_out=_held_out_among(graph, mask),
        folder=None,
    )


def _held_out_among(graph: Record, mask: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The held-out edges among the nodes of a mask and the nodes of all other types."""
    if graph.held_out is None:
        return None
    masks = []
    for node_type in graph.first_rows:
        if node_type == graph.node_type:
            masks.append(mask)
        else:
            masks.append(np.ones(graph.nodes[node_type].num_nodes, bool))
    is_kept = np.concatenate(masks)
    kept_edges = graph.held_out[:, is_kept[graph.held_out].all(axis=0)]
    # The new row of a node is how many kept nodes come before it.
    return np.searchsorted(np.flatnonzero(is_kept), kept_edges)


def seen_part(graph: AnyRecord) -> AnyRecord:
    """The part of the graph that training may use; see `infomax.Graph.seen`."""
    part = graph
    for node_type, nodes in graph.nodes.items():
        if "seen" in nodes.splits:
            part = part_of(part.target(node_type), nodes.splits["seen"])
    return part.target(graph.node_type)
