"""A graph with new nodes: the new ones are in memory, the known ones stay where they are, and nothing is copied."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import checks
from infomax.arrays.checks import check_feature_names
from infomax.arrays.made import made
from infomax.arrays.parquet_columns import find_ids
from infomax.errors import InputError, shorten
from infomax.io.columns import TYPES, Columns
from infomax.io.growth import Ends, NewEdges, NewNodes, grow
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.refusals import refuse_missing_header
from infomax.io.sources import NodeTable
from infomax.io.tables import EdgeTable, Listed, find_rows


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
    """A graph with new nodes appended; ``edges [2, E]`` are rows, those from N on are the new nodes."""
    n = known.num_nodes + len(nodes.ids)
    matrix, dropped = checks.clean(checks.check_links(edges, weight, (n, n)), known.directed, weight is None)
    links = {known.relations[0].ends: NewEdges(matrix.tocoo(), binary=weight is None)}
    return finished(known, {"": nodes}, links, dropped)


def finished(
    known: Record, nodes: Mapping[str, NodeTable], edges: Mapping[Ends, NewEdges], dropped: Mapping[str, int]
) -> Record:
    """The known graph with new nodes, in memory where it is; the split "new" of each type marks them."""
    new = {kind: NewNodes(one.ids, one.features, one.names, one.times) for kind, one in nodes.items() if one.ids}
    grown = grow(known, new, edges)
    if not known.table.mapped:
        grown = grown.loaded()

    def marked(kind: str, nodes: Nodes) -> Nodes:
        late = np.arange(nodes.num_nodes) >= known.nodes[kind].num_nodes
        return dataclasses.replace(nodes, splits={"new": late})

    return grown.with_nodes(marked, dropped=dict(Counter(grown.dropped) + Counter(dropped)))
