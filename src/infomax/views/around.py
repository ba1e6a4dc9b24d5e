"""The small graph around some nodes, which has all that their vectors depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.relations import Relation, Step
from infomax.arrays.table import Table
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Rows = NDArray[np.int64]
Edges = tuple[Rows, Rows, NDArray[np.float32]]
"""Receivers, senders and weights ``[E]``."""
NONE = np.empty(0, np.int64)


def around(
    graph: Record,
    rows: Rows,
    paths: Iterable[Sequence[Step]],
    senders_weigh: bool,
    most: float = inf,
) -> Record | None:
    """A small graph in memory in which some nodes have the vectors that they have in a graph; they come first.

    Only what is around the nodes is read. Nodes where paths end have lost their senders. Where messages are weighted by
    the sender's degree, one more node sends to each of these as much as all of them did; it is the last of its type.
    For ``paths`` and ``senders_weigh`` see `walks`; None is returned where there are more than ``most`` nodes.
    """
    if len(rows) > most:
        return None
    levels: dict[tuple[Step, ...], Rows] = {
        (): rows
    }  # the nodes where the beginning of a path leads
    found = {node_type: rows if node_type == graph.node_type else NONE for node_type in graph.nodes}
    complete = dict[Step, Rows]()  # whose senders are all there
    edges = dict[Step, list[Edges]]()
    for path in paths:
        for length, step in enumerate(path, 1):
            if (begun := tuple(path[:length])) in levels:
                continue
            nodes = levels[begun[:-1]]
            place, senders, weights = step.received(nodes)
            levels[begun] = np.unique(senders)
            fresh = ~np.isin(nodes, complete.get(step, NONE))[place]
            edges.setdefault(step, []).append((nodes[place[fresh]], senders[fresh], weights[fresh]))
            complete[step] = np.union1d(complete.get(step, NONE), nodes)
            found[step.sender] = np.union1d(found[step.sender], levels[begun])
            if sum(map(len, found.values())) > most:
                return None
    found[graph.node_type] = np.concatenate([rows, np.setdiff1d(found[graph.node_type], rows)])
    relations = [_relation(one, found, edges, complete, senders_weigh) for one in graph.relations]
    nodes_by_type = {
        node_type: _nodes(nodes, found[node_type]) for node_type, nodes in graph.nodes.items()
    }
    return type(graph)(nodes_by_type, tuple(relations), graph.node_type)


def _relation(
    relation: Relation,
    rows: dict[str, Rows],
    edges: dict[Step, list[Edges]],
    complete: dict[Step, Rows],
    senders_weigh: bool,
) -> Relation:
    """The edges of a relation by which nodes receive; within a type they run one way."""
    to_target, to_source = Step(relation, relation.target), Step(relation, relation.source)
    found = [(NONE, NONE, np.empty(0, np.float32)), *edges.get(to_target, ())]
    if not relation.within:
        for back, front, more in edges.get(to_source, ()):
            kept = ~np.isin(front, complete.get(to_target, NONE))  # the others are there already
            found.append((front[kept], back[kept], more[kept]))
    targets, sources, weights = map(np.concatenate, zip(*found, strict=True))
    sources, targets = (
        _places(rows[relation.source], sources),
        _places(rows[relation.target], targets),
    )
    shape = len(rows[relation.source]) + 1, len(rows[relation.target]) + 1
    if relation.within and senders_weigh:
        outer = np.setdiff1d(rows[relation.target], complete.get(to_target, NONE))
        sources = np.concatenate([sources, np.full(len(outer), shape[0] - 1)])
        targets = np.concatenate([targets, _places(rows[relation.target], outer)])
        weights = np.concatenate([weights, relation.edges.strength(outer)])
    matrix = sparse.csr_array((weights.astype(np.float32), (sources, targets)), shape=shape)
    matrix.eliminate_zeros()
    return Relation.of(*relation.ends, matrix, directed=True)


def _places(among: Rows, rows: Rows) -> Rows:
    """The place of each of some rows among others, each of which is there once."""
    order = np.argsort(among)
    return order[np.searchsorted(among[order], rows)]


def _nodes(nodes: Nodes, rows: Rows) -> Nodes:
    """Some nodes, and one more, whose features nobody reads."""
    read = np.append(rows, rows[:1] if len(rows) else 0)
    features = (
        nodes.table[read] if nodes.num_nodes else np.zeros((1, nodes.num_features), np.float32)
    )
    return Nodes(Table(features), read, nodes.feature_names)
