"""A graph with new nodes and edges.

Known nodes and edges stay where they are, in memory or on disk, and are not copied.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import GrownAdjacency
from infomax.arrays.blocks import unit
from infomax.arrays.positions import POSITION_WIDTH, attached_positions
from infomax.arrays.relations import Relation, steps
from infomax.arrays.structural_features import (
    DEGREE_NAMES,
    degree_features,
    structural_features_named,
)
from infomax.arrays.table import AppendedRows, ComputedRows, Features, FeatureTable
from infomax.arrays.times import UNKNOWN_TIME
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Ends = tuple[str, str, str]
Rows = NDArray[np.int64]


class NewNodes(NamedTuple):
    """M new nodes of a type; without features they get positions or degrees, as known nodes do."""

    ids: Sequence[Any]
    features: Features | None = None
    names: NDArray[Any] | None = None
    times: NDArray[np.int64] | None = None


class NewEdges(NamedTuple):
    """Edges of a relation: a clean matrix ``[S + s, T + t]``.

    The last s rows and t columns are those of new nodes.
    """

    matrix: sparse.coo_array
    binary: bool = False
    """Whether an edge that is known already counts as 1, rather than by the sum of both weights."""


def grow(known: Record, new: Mapping[str, NewNodes], edges: Mapping[Ends, NewEdges]) -> Record:
    """The known graph with new nodes by type and new edges by relation.

    It has no labels and no splits.
    """
    sizes = {}
    for node_type, nodes in known.nodes.items():
        num_new = len(new[node_type].ids) if node_type in new else 0
        sizes[node_type] = nodes.num_nodes + num_new

    relations: list[Relation] = []
    num_duplicates = 0
    for relation in known.relations:
        shape = (sizes[relation.source], sizes[relation.target])
        # Relations without new edges grow as well: their types may have new nodes.
        no_edges = NewEdges(sparse.coo_array(shape, dtype=np.float32))
        new_edges = edges.get(relation.ends, no_edges)
        grown_edges = GrownAdjacency(relation.edges, new_edges.matrix, new_edges.binary)
        relations.append(dataclasses.replace(relation, edges=grown_edges))
        # Without directions each edge is there twice.
        entries_per_edge = 1 if grown_edges.directed else 2
        num_duplicates += grown_edges.duplicates // entries_per_edge

    new_positions = _positions(known, new, edges, sizes)
    nodes_by_type = {}
    for node_type, known_nodes in known.nodes.items():
        new_nodes = new.get(node_type)
        new_features = None if new_nodes is None else new_nodes.features
        # New nodes without features get positions, where known nodes have them.
        if new_features is None:
            new_features = new_positions.get(node_type)
        if new_features is not None:
            table = known_nodes.table.grown(new_features)
        elif structural_features_named(known_nodes.feature_names) == "degrees":
            # Those of known nodes change as well: all are made when they are asked for.
            make_rows = partial(_degree_rows, relations, node_type)
            rows = ComputedRows((sizes[node_type], len(DEGREE_NAMES)), make_rows)
            table = FeatureTable(rows, mapped=True)
        else:
            table = known_nodes.table
        nodes_by_type[node_type] = _appended(known_nodes, new_nodes, table)
    return dataclasses.replace(
        known,
        nodes=nodes_by_type,
        relations=tuple(relations),
        dropped={"duplicates": num_duplicates},
        folder=None,
    )


def degrees(relations: Sequence[Relation], node_type: str, rows: Rows) -> Rows:
    """The number of edges at some nodes ``[n]``.

    Among several types a neighbour counts once, by however many edges.
    """
    # By group, the positions among `rows` and the neighbours. Neighbours of one group are told
    # apart by their rows.
    ends_by_group: dict[str, list[tuple[Rows, Rows]]] = {}
    for step in steps(relations, node_type):
        positions, senders, _ = step.received(rows)
        ends_by_group.setdefault(step.sender, []).append((positions, senders))
        if step.relation.directed:
            positions, receivers, _ = step.sent(rows)
            # In a graph of one type edges in both directions count twice.
            group = step.sender if node_type else "sent"
            ends_by_group.setdefault(group, []).append((positions, receivers))

    # Each pair of a node and a neighbour counts once in its group.
    totals = np.zeros(len(rows), np.int64)
    for ends in ends_by_group.values():
        positions, neighbours = map(np.concatenate, zip(*ends, strict=True))
        stride = int(neighbours.max(initial=0)) + 1
        different_pairs = np.unique(positions * stride + neighbours)
        totals += np.bincount(different_pairs // stride, minlength=len(rows))
    return totals


def standing(known: Record, rows: Rows) -> NDArray[np.float32]:
    """Where some nodes of the type that a graph is seen from stand ``[n, POSITION_WIDTH]``.

    Nodes whose features are positions stand there. Other nodes stand at the mean of the positions
    of their neighbours.
    """
    if structural_features_named(known.feature_names) == "positions":
        return np.asarray(known.table[rows])
    sums = np.zeros((len(rows), POSITION_WIDTH), np.float32)
    for step in steps(known.relations, known.node_type):
        sender_graph = known.target(step.sender)
        if structural_features_named(sender_graph.feature_names) != "positions":
            continue
        positions, senders, weights = step.received(rows)
        different_senders, columns = np.unique(senders, return_inverse=True)
        shape = (len(rows), len(different_senders))
        links = sparse.csr_array((weights, (positions, columns)), shape=shape)
        sums += links @ sender_graph.table[different_senders]
    return unit(sums)


def _degree_rows(relations: Sequence[Relation], node_type: str, rows: Rows) -> sparse.csr_array:
    return degree_features(degrees(relations, node_type, rows))


def _appended(known: Nodes, new: NewNodes | None, table: FeatureTable) -> Nodes:
    """The nodes of a type with its new ones, if any."""
    if new is None:
        return dataclasses.replace(known, table=table, labels={}, splits={})
    # Ids of known and new nodes must be of one type: where either is text, all are.
    is_text = known.ids.dtype == object or any(isinstance(node_id, str) for node_id in new.ids[:1])
    if is_text:
        new_ids = np.array(list(map(str, new.ids)), dtype=object)
    else:
        new_ids = np.array(new.ids, dtype=np.int64)

    names: Any = known.node_names
    if names is not None:
        new_names = np.full(len(new_ids), "", object) if new.names is None else new.names
        names = AppendedRows(names, new_names)
    times: Any = known.times
    if times is not None:
        # A new node without a time is always there.
        new_times = np.full(len(new_ids), UNKNOWN_TIME) if new.times is None else new.times
        times = AppendedRows(times, new_times)
    ids: Any = AppendedRows(known.ids, new_ids)
    return dataclasses.replace(
        known, table=table, ids=ids, node_names=names, times=times, labels={}, splits={}
    )


def _positions(
    known: Record,
    new: Mapping[str, NewNodes],
    edges: Mapping[Ends, NewEdges],
    sizes: Mapping[str, int],
) -> dict[str, NDArray[np.float32]]:
    """Positions of the new nodes of each type that has positions, see `attached_positions`."""
    types_with_positions = [
        node_type
        for node_type in new
        if structural_features_named(known.nodes[node_type].feature_names) == "positions"
    ]
    if all(new[node_type].features is not None for node_type in types_with_positions):
        return {}

    # Rows are counted over all types, one after the other.
    type_starts = np.cumsum([0, *sizes.values()]).tolist()
    starts = dict(zip(sizes, type_starts, strict=False))
    rows_of_new_nodes = [
        starts[node_type] + np.arange(nodes.num_nodes, sizes[node_type])
        for node_type, nodes in known.nodes.items()
    ]
    new_rows = np.concatenate(rows_of_new_nodes)

    # The new edges by which new nodes receive.
    all_ends, all_weights = [np.empty((2, 0), np.int64)], [np.empty(0, np.float32)]
    for relation in known.relations:
        if relation.ends not in edges:
            continue
        matrix = edges[relation.ends].matrix
        sources, targets = (rows.astype(np.int64) for rows in matrix.coords)
        ends = np.stack([starts[relation.target] + targets, starts[relation.source] + sources])
        all_ends.append(ends)
        all_weights.append(matrix.data)
        if relation.edges.directed:
            all_ends.append(ends[::-1])
            all_weights.append(matrix.data)
    receivers, senders = np.concatenate(all_ends, axis=1)
    is_to_new = np.isin(receivers, new_rows)
    receivers, senders = receivers[is_to_new], senders[is_to_new]
    weights = np.concatenate(all_weights)[is_to_new]

    # Where the known senders stand.
    known_rows = np.setdiff1d(senders, new_rows)
    standings = []
    for node_type, size in sizes.items():
        is_of_type = (known_rows >= starts[node_type]) & (known_rows < starts[node_type] + size)
        rows_of_type = known_rows[is_of_type] - starts[node_type]
        standings.append(standing(known.target(node_type), rows_of_type))

    # A column for each known sender, then for each new node.
    column_rows = np.concatenate([known_rows, new_rows])
    order = np.argsort(column_rows)
    columns = order[np.searchsorted(column_rows[order], senders)]
    link_rows = np.searchsorted(new_rows, receivers)
    shape = (len(new_rows), len(column_rows))
    links = sparse.csr_array((weights, (link_rows, columns)), shape=shape)
    positions = attached_positions(links, np.concatenate(standings))

    positions_by_type = {}
    for node_type in types_with_positions:
        start = starts[node_type]
        is_of_type = (new_rows >= start) & (new_rows < start + sizes[node_type])
        positions_by_type[node_type] = positions[is_of_type]
    return positions_by_type
