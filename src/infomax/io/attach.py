"""A graph with new nodes: the new ones are in memory, the known ones stay where they are, and nothing is copied."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import Adjacency, GrownAdjacency
from infomax.arrays.checks import check_feature_names
from infomax.arrays.made import made
from infomax.arrays.parquet_columns import find_ids
from infomax.arrays.positions import attached
from infomax.arrays.table import Appended, Table
from infomax.arrays.times import UNKNOWN
from infomax.errors import InputError, shorten
from infomax.io.columns import TYPES, Columns
from infomax.io.record import Record
from infomax.io.refusals import refuse_missing_header
from infomax.io.sources import NodeTable
from infomax.io.tables import EdgeTable, Listed, find_rows

NewEdges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
"""Edges ``[E]`` of new nodes: the rows at their known ends, the numbers of the new nodes from 0 on, and weights."""


def like_known(columns: Columns, known: Record) -> Columns:
    """The choices with what a known graph adds: its columns, features and encodings, so that tables are read alike."""
    columns = dataclasses.replace(columns, earlier={**known.table_columns, **columns.earlier})
    if known.types:
        return columns.like_types({kind: (one.feature_names, one.encoding) for kind, one in known.by_type().items()})
    return columns if columns.matrix else columns.like(known.feature_names, known.encoding)


def read_like(columns: Columns, known: Record) -> Columns:
    """As `like_known`, where the caller has chosen no features."""
    columns.refuse(("features", "kinds"), "none where features are those of another graph")
    return like_known(columns, known)


def as_known(columns: Columns, known: Record | None) -> Columns:
    """As `like_known`, for tables of new nodes, if any; what the known graph decides cannot be chosen again."""
    if known is None:
        return columns
    last = ("matrix",) if known.types else TYPES
    columns.refuse(("labels", "ignore", "groups", "kinds", *last), "none where nodes are attached to a graph")
    if known.types:
        # Where only names were read of a type, its encoding does not tell their column: the usual one is taken.
        columns = dataclasses.replace(columns, earlier={"name": "name", **known.table_columns, **columns.named()})
    return like_known(columns, known)


def attach(edges: EdgeTable, nodes: NodeTable | None, known: Record) -> Record:
    """The known graph with the nodes of tables appended; the split "new" marks them.

    Without a node table the new nodes are the unknown ids of the edge table. The result has no labels and no other
    splits.
    """
    if known.groups is not None:
        remedy = "Embed new graphs whole, without attaching them."
        raise InputError("the known graph", "one graph, to attach nodes to", "several (it has groups)", remedy)
    if known.weighted and edges.weight is None:
        expected = f"a column {shorten(edges.source.columns.earlier.get('weight', 'weight'))}"
        raise InputError(str(edges.source.path), f"{expected}, as edges of the known graph have weights", "none")
    mentioned = [*edges.source.ends, *edges.ids, *(nodes.ids if nodes else ())]
    position = find_ids(known.ids, mentioned)
    if nodes is None:
        unknown: Any = [identifier for identifier in edges.ids if str(identifier) not in position]
        nodes = NodeTable(edges.source, np.empty(0, np.int64), unknown)
    refuse_known(nodes, position)
    position |= {str(identifier): row for row, identifier in enumerate(nodes.ids, known.num_nodes)}
    refuse_missing_header(edges.source, edges.source.ends, lambda _, name: name in position)
    listed = Listed(nodes, position, f"of the known graph, or listed in {nodes.source.path}", known.ids)
    ends = find_rows(edges, listed, listed)
    known_are_made = nodes.features is None and made(known.feature_names)
    if nodes.source is edges.source and not known_are_made:
        expected, found = "a node table beside it, with the features of the new nodes", "only the edge table"
        raise InputError(str(edges.source.path), expected, found)
    names = known.feature_names if known_are_made else tuple(nodes.feature_names)
    check_feature_names(str(nodes.source.path), names, known.feature_names)
    return _grow(known, ends, edges.weight, nodes)


def refuse_known(nodes: NodeTable, position: Mapping[str, int]) -> None:
    """Refuse a table without nodes, or with a node that the known graph has."""
    if not nodes.ids:
        raise InputError(str(nodes.source.path), "at least one new node", "none")
    for row, identifier in enumerate(map(str, nodes.ids)):
        if identifier in position:
            found = f"{shorten(identifier)}, already row {position[identifier] + 1} of the known graph"
            remedy = "Remove the row. A graph that has changed as a whole is read by itself: infomax update."
            raise InputError(nodes.source.place(int(nodes.numbers[row])), "the id of a new node", found, remedy)


def _grow(known: Record, edges: NDArray[np.int32], weight: NDArray[np.float32] | None, nodes: NodeTable) -> Record:
    """A graph with new nodes appended; the split "new" marks them, and there are no labels.

    Args:
        known: the graph.
        edges: ``[2, E]`` rows; those from N on are the new nodes.
        weight: ``[E]``.
        nodes: the M new nodes; without features they get positions, or all get degree features, as the known ones do.
    """
    ids, features = nodes.ids, nodes.features
    n = known.num_nodes + len(ids)
    matrix, dropped = checks.clean(checks.check_links(edges, weight, (n, n)), known.directed, weight is None)
    grown = GrownAdjacency.of(known.edges, matrix, binary=weight is None)
    dropped["duplicates"] += grown.duplicates if known.directed else grown.duplicates // 2
    if features is None and made(known.feature_names) == "positions":
        links = sparse.csr_array(matrix + matrix.T if known.directed else matrix)
        features = attached(links[known.num_nodes :], known.table)
    return known.replace(
        edges=grown,
        table=known.table.of_degrees(grown.degrees()) if features is None else known.table.grown(features),
        folder=None,
        **appended(known, nodes),
        labels={},
        splits={"new": np.arange(n) >= known.num_nodes},
        dropped=dropped,
    )


def appended(known: Record, nodes: NodeTable) -> dict[str, Any]:
    """The ids, the names and the times of the known nodes and of new ones."""
    text = known.ids.dtype == object or isinstance(nodes.ids[0], str)
    late = np.array(list(map(str, nodes.ids)) if text else nodes.ids, dtype=object if text else np.int64)
    names = np.full(len(late), "", object) if nodes.names is None else nodes.names
    both = None if known.node_names is None else _appended(known.node_names, names)
    times = known.own.times
    if times is not None:
        times = _appended(times, np.full(len(late), UNKNOWN) if nodes.times is None else nodes.times)
    return {"ids": _appended(known.ids, late), "node_names": both, "times": times}


def _appended(known: Any, new: NDArray[Any]) -> Any:
    """A column ``[N]`` with that of the new nodes ``[M]``; one on disk stays there."""
    rows = Appended(known, new)
    return rows[:] if isinstance(known, np.ndarray) else rows


def attach_near(known: Record, count: int, links: NewEdges, features: Any, passes: int) -> Record:
    """A small graph in memory: the new nodes, which come last, and all nodes that their vectors depend on.

    Edges run one way here. Nodes at the last hop have lost their senders: one more node sends to each as much as they
    did. So all have the degrees by which messages are weighted.

    Args:
        known: the graph.
        count: M.
        links: their edges; of a directed graph those that end in them.
        features: ``[M, F]``; None: positions or degree features, as the known ones are.
        passes: layers of the encoder and hops of smoothing.
    """
    rows, new, weights = links
    inner, nodes = rows[:0], np.unique(rows)
    for _ in range(passes - 1):
        inner, nodes = nodes, np.union1d(nodes, known.edges.received(nodes)[1])
    outer, n, at = np.setdiff1d(nodes, inner), len(nodes), np.searchsorted(nodes, rows)
    place, senders, values = known.edges.received(inner)
    lost, _, sent = known.edges.received(outer)
    late, both = n + 1 + new, not known.directed
    source = [np.searchsorted(nodes, senders), np.full(len(outer), n), at, *([late] if both else [])]
    target = [np.searchsorted(nodes, inner)[place], np.searchsorted(nodes, outer), late, *([at] if both else [])]
    weight: list[Any] = [values, np.bincount(lost, sent, len(outer)), weights, *([weights] if both else [])]
    ends = np.concatenate(source), np.concatenate(target)
    entries = np.concatenate(weight).astype(np.float32)
    matrix = sparse.csr_array((entries, ends), shape=(n + 1 + count, n + 1 + count))
    matrix.eliminate_zeros()
    if features is None and made(known.feature_names) == "degrees":
        degrees = np.append(known.edges.degrees()[nodes] + np.bincount(at, minlength=n), 0)
        table = known.table.of_degrees(np.append(degrees, np.bincount(new, minlength=count)))
    else:
        if features is None:
            joined = sparse.csr_array((weights, (new, at)), shape=(count, n + count))
            features = attached(joined, known.table[nodes])
        empty = np.zeros((1, known.num_features), np.float32)
        table = Table(known.table[nodes]).grown(empty).grown(features)
    return known.replace(
        edges=Adjacency(matrix, directed=True),
        table=table,
        ids=np.arange(n + 1 + count),
        labels={},
        splits={},
        held_out=None,
        folder=None,
    )
