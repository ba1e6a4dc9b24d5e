"""The small graph around some nodes, which has all that their vectors depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.relations import Relation, Step
from infomax.arrays.table import FeatureTable
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Rows = NDArray[np.int64]
Edges = tuple[Rows, Rows, NDArray[np.float32]]
"""Receivers, senders and weights ``[E]``."""
NO_ROWS = np.empty(0, np.int64)


def around(
    graph: Record,
    rows: Rows,
    paths: Iterable[Sequence[Step]],
    senders_weigh: bool,
    most_nodes: float = inf,
) -> Record | None:
    """A small graph in memory in which some nodes have the vectors that they have in a graph.

    These nodes come first. Only the rows and edges around them are read. Nodes where paths end have
    lost their senders. Where messages are weighted by the sender's degree, one more node sends to
    each of these as much as all of its senders did; it is the last of its type.

    Args:
        graph: the graph, in memory or on disk.
        rows: the nodes whose vectors are asked for.
        paths: the paths from a node on which its vector depends, see `walks`.
        senders_weigh: whether messages are weighted by the sender's degree.
        most_nodes: None is returned where the small graph would have more.
    """
    if len(rows) > most_nodes:
        return None
    # By the beginning of a path, the nodes where it leads.
    nodes_reached: dict[tuple[Step, ...], Rows] = {(): rows}
    # By type, the nodes of the small graph.
    rows_by_type = dict.fromkeys(graph.nodes, NO_ROWS)
    rows_by_type[graph.node_type] = rows
    # By step, the nodes all of whose senders are in the small graph; and the edges by which they
    # receive.
    complete_rows: dict[Step, Rows] = {}
    edges_by_step: dict[Step, list[Edges]] = {}
    for path in paths:
        for length, step in enumerate(path, 1):
            beginning = tuple(path[:length])
            if beginning in nodes_reached:
                continue
            receivers = nodes_reached[beginning[:-1]]
            positions, senders, weights = step.received(receivers)
            nodes_reached[beginning] = np.unique(senders)

            already_complete = complete_rows.get(step, NO_ROWS)
            is_new = ~np.isin(receivers, already_complete)[positions]
            new_edges = (receivers[positions[is_new]], senders[is_new], weights[is_new])
            edges_by_step.setdefault(step, []).append(new_edges)
            complete_rows[step] = np.union1d(already_complete, receivers)
            rows_by_type[step.sender] = np.union1d(
                rows_by_type[step.sender], nodes_reached[beginning]
            )
            if sum(map(len, rows_by_type.values())) > most_nodes:
                return None

    further_rows = np.setdiff1d(rows_by_type[graph.node_type], rows)
    rows_by_type[graph.node_type] = np.concatenate([rows, further_rows])
    relations = [
        _relation(relation, rows_by_type, edges_by_step, complete_rows, senders_weigh)
        for relation in graph.relations
    ]
    nodes_by_type = {
        node_type: _nodes(nodes, rows_by_type[node_type])
        for node_type, nodes in graph.nodes.items()
    }
    return type(graph)(nodes_by_type, tuple(relations), graph.node_type)


def _relation(
    relation: Relation,
    rows_by_type: dict[str, Rows],
    edges_by_step: dict[Step, list[Edges]],
    complete_rows: dict[Step, Rows],
    senders_weigh: bool,
) -> Relation:
    """The edges of a relation by which nodes receive; within a type they run one way."""
    source_rows = rows_by_type[relation.source]
    target_rows = rows_by_type[relation.target]
    to_target = Step(relation, relation.target)
    to_source = Step(relation, relation.source)
    no_edges = (NO_ROWS, NO_ROWS, np.empty(0, np.float32))
    parts = [no_edges, *edges_by_step.get(to_target, ())]
    if not relation.within_one_type:
        # Edges by which sources receive; edges to complete targets are among the parts already.
        complete_targets = complete_rows.get(to_target, NO_ROWS)
        for sources, targets, weights in edges_by_step.get(to_source, ()):
            is_new = ~np.isin(targets, complete_targets)
            parts.append((targets[is_new], sources[is_new], weights[is_new]))
    targets, sources, weights = map(np.concatenate, zip(*parts, strict=True))
    source_positions = _positions_among(source_rows, sources)
    target_positions = _positions_among(target_rows, targets)

    # One more node of each type, which sends in place of the senders that were not read.
    shape = (len(source_rows) + 1, len(target_rows) + 1)
    if relation.within_one_type and senders_weigh:
        incomplete = np.setdiff1d(target_rows, complete_rows.get(to_target, NO_ROWS))
        last_source = np.full(len(incomplete), shape[0] - 1)
        source_positions = np.concatenate([source_positions, last_source])
        target_positions = np.concatenate(
            [target_positions, _positions_among(target_rows, incomplete)]
        )
        weights = np.concatenate([weights, relation.edges.strength(incomplete)])
    ends = (source_positions, target_positions)
    matrix = sparse.csr_array((weights.astype(np.float32), ends), shape=shape)
    matrix.eliminate_zeros()
    return Relation.of(*relation.ends, matrix, directed=True)


def _positions_among(unique_rows: Rows, rows: Rows) -> Rows:
    """The position of each row among rows that differ."""
    order = np.argsort(unique_rows)
    return order[np.searchsorted(unique_rows[order], rows)]


def _nodes(nodes: Nodes, rows: Rows) -> Nodes:
    """Some nodes, and one more, whose features nobody reads."""
    last_row = rows[:1] if len(rows) else 0
    rows_with_last = np.append(rows, last_row)
    if nodes.num_nodes:
        features = nodes.table[rows_with_last]
    else:
        features = np.zeros((1, nodes.num_features), np.float32)
    return Nodes(FeatureTable(features), rows_with_last, nodes.feature_names)
