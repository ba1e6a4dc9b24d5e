"""A graph with new nodes and edges: what is known stays where it is, in memory or on disk, and is not copied."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Grown
from infomax.arrays.blocks import unit
from infomax.arrays.positions import WIDTH, attached
from infomax.arrays.relations import Relation, steps
from infomax.arrays.structural_features import (
    DEGREE_NAMES,
    degree_features,
    structural_features_named,
)
from infomax.arrays.table import Appended, ComputedRows, Features, Table
from infomax.arrays.times import UNKNOWN
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Ends = tuple[str, str, str]
Rows = NDArray[np.int64]


class NewNodes(NamedTuple):
    """M new nodes of a type; without features they get positions or degrees, as the known ones have."""

    ids: Sequence[Any]
    features: Features | None = None
    names: NDArray[Any] | None = None
    times: NDArray[np.int64] | None = None


class NewEdges(NamedTuple):
    """Edges of a relation: a clean matrix ``[S + s, T + t]``, whose last rows and columns are those of new nodes."""

    matrix: sparse.coo_array
    binary: bool = False
    """Whether an edge that is known already counts as 1, not by the sum of both weights."""


def grow(known: Record, new: Mapping[str, NewNodes], edges: Mapping[Ends, NewEdges]) -> Record:
    """The known graph with nodes by type and edges by relation appended; it has no labels and no splits."""
    sizes = {
        node_type: nodes.num_nodes + (len(new[node_type].ids) if node_type in new else 0)
        for node_type, nodes in known.nodes.items()
    }
    relations, dropped = list[Relation](), Counter[str]()
    for one in known.relations:
        none = sparse.coo_array((sizes[one.source], sizes[one.target]), dtype=np.float32)
        grown = Grown(one.edges, *edges.get(one.ends, NewEdges(none)))
        dropped["duplicates"] += grown.duplicates if grown.directed else grown.duplicates // 2
        relations.append(dataclasses.replace(one, edges=grown))
    positions = _positions(known, new, edges, sizes)
    nodes = {}
    for node_type, own in known.nodes.items():
        late = new.get(node_type)
        features = (
            positions.get(node_type) if late is None or late.features is None else late.features
        )
        table = own.table if features is None else own.table.grown(features)
        if features is None and structural_features_named(own.feature_names) == "degrees":
            make = partial(_degree_rows, relations, node_type)
            table = Table(ComputedRows((sizes[node_type], len(DEGREE_NAMES)), make), mapped=True)
        nodes[node_type] = _appended(own, late, table)
    return dataclasses.replace(
        known, nodes=nodes, relations=tuple(relations), dropped=dict(dropped), folder=None
    )


def degrees(relations: Sequence[Relation], node_type: str, rows: Rows) -> Rows:
    """The number of edges at some nodes ``[n]``; among several types a neighbour counts once, by however many edges."""
    found: list[tuple[str, Rows, Rows]] = []
    for step in steps(relations, node_type):
        place, others, _ = step.received(rows)
        found.append((step.sender, place, others))
        if step.relation.directed:
            place, others, _ = step.sent(rows)
            found.append((step.sender if node_type else "sent", place, others))
    total = np.zeros(len(rows), np.int64)
    for group in {name for name, _, _ in found}:
        place, others = (
            np.concatenate([one[at] for one in found if one[0] == group]) for at in (1, 2)
        )
        width = int(others.max(initial=0)) + 1
        total += np.bincount(np.unique(place * width + others) // width, minlength=len(rows))
    return total


def standing(known: Record, rows: Rows) -> NDArray[np.float32]:
    """Where some nodes of the type that a graph is seen from stand ``[n, WIDTH]``.

    It is their positions; nodes with features of their own have none, and stand between those of their neighbours.
    """
    if structural_features_named(known.feature_names) == "positions":
        return np.asarray(known.table[rows])
    total = np.zeros((len(rows), WIDTH), np.float32)
    for step in steps(known.relations, known.node_type):
        if (
            structural_features_named((sender := known.target(step.sender)).feature_names)
            == "positions"
        ):
            place, senders, weights = step.received(rows)
            found, at = np.unique(senders, return_inverse=True)
            total += (
                sparse.csr_array((weights, (place, at)), shape=(len(rows), len(found)))
                @ sender.table[found]
            )
    return unit(total)


def _degree_rows(relations: Sequence[Relation], node_type: str, rows: Rows) -> sparse.csr_array:
    return degree_features(degrees(relations, node_type, rows))


def _appended(known: Nodes, new: NewNodes | None, table: Table) -> Nodes:
    """The nodes of a type with its new ones, if any."""
    if new is None:
        return dataclasses.replace(known, table=table, labels={}, splits={})
    text = known.ids.dtype == object or any(isinstance(one, str) for one in new.ids[:1])
    late = np.array(
        list(map(str, new.ids)) if text else new.ids, dtype=object if text else np.int64
    )
    names: Any = known.node_names
    if names is not None:
        names = Appended(names, np.full(len(late), "", object) if new.names is None else new.names)
    times: Any = known.times
    if times is not None:
        times = Appended(times, np.full(len(late), UNKNOWN) if new.times is None else new.times)
    ids: Any = Appended(known.ids, late)
    return dataclasses.replace(
        known, table=table, ids=ids, node_names=names, times=times, labels={}, splits={}
    )


def _positions(
    known: Record,
    new: Mapping[str, NewNodes],
    edges: Mapping[Ends, NewEdges],
    sizes: Mapping[str, int],
) -> dict[str, NDArray[np.float32]]:
    """Positions of the new nodes of each type that has them: means of where their neighbours stand; see `attached`."""
    bare = [
        node_type
        for node_type, one in new.items()
        if structural_features_named(known.nodes[node_type].feature_names) == "positions"
    ]
    if all(new[node_type].features is not None for node_type in bare):
        return {}
    starts = dict(
        zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False)
    )  # types after one another
    late = np.concatenate(
        [
            starts[node_type] + np.arange(one.num_nodes, sizes[node_type])
            for node_type, one in known.nodes.items()
        ]
    )
    ends, weights = [np.empty((2, 0), np.int64)], [np.empty(0, np.float32)]
    for one in known.relations:
        if one.ends in edges:
            matrix = edges[one.ends].matrix
            sources, targets = (rows.astype(np.int64) for rows in matrix.coords)
            both = np.stack([starts[one.target] + targets, starts[one.source] + sources])
            ends += [both, both[::-1]] if one.edges.directed else [both]
            weights += [matrix.data] * (2 if one.edges.directed else 1)
    receivers, senders = np.concatenate(ends, axis=1)
    kept = np.isin(receivers, late)
    old = np.setdiff1d(senders[kept], late)
    stand = []
    for node_type, size in sizes.items():
        own = (old >= starts[node_type]) & (old < starts[node_type] + size)
        stand.append(standing(known.target(node_type), old[own] - starts[node_type]))
    columns = np.concatenate([old, late])
    order = np.argsort(columns)
    places = (
        np.searchsorted(late, receivers[kept]),
        order[np.searchsorted(columns[order], senders[kept])],
    )
    links = sparse.csr_array(
        (np.concatenate(weights)[kept], places), shape=(len(late), len(columns))
    )
    found = attached(links, np.concatenate(stand))
    return {
        node_type: found[
            (late >= starts[node_type]) & (late < starts[node_type] + sizes[node_type])
        ]
        for node_type in bare
    }
