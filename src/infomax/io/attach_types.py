"""A graph of several types with new nodes of any type, from tables; in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays.checks import check_feature_names
from infomax.arrays.made import made
from infomax.arrays.parquet_columns import find_ids
from infomax.errors import InputError
from infomax.io.attach import finished, refuse_known
from infomax.io.blocks import typed
from infomax.io.growth import Ends, NewEdges
from infomax.io.record import Record
from infomax.io.refusals import id_unknown
from infomax.io.sources import NodeTable, Source
from infomax.io.tables import EdgeTable, Listed, read_nodes
from infomax.io.type_tables import read_relations, rows_of
from infomax.io.typed import Tables
from infomax.io.unite import relation_matrix


def attach_types(found: Tables, known: Record) -> Record:
    """The known graph with the nodes of tables appended; the split "new" of each type marks them.

    A type without a node table has as new nodes the unknown ids of its edges. There are no labels and other splits.
    """
    known_relations, types = {one.ends: one for one in known.relations}, known.by_type()
    _refuse_unknown("type", {kind: source.path for kind, source in found.nodes.items()}, known.types)
    nodes = {kind: _read_new(source, types[kind]) for kind, source in found.nodes.items()}
    edges = read_relations(found, nodes)
    by_name = {".".join(ends): table.source.path for ends, table in edges.items()}
    _refuse_unknown("relation", by_name, [".".join(ends) for ends in known_relations])
    for ends, table in edges.items():
        if known_relations[ends].edges.weighted and table.weight is None:
            expected = 'a column "weight", as known edges of this relation have weights'
            raise InputError(str(table.source.path), expected, "none")
    listed = {kind: _listed(kind, one, nodes, edges) for kind, one in types.items()}
    if not any(table.ids for table in nodes.values()):
        raise InputError(str(next(iter(found.edges.values())).path.parent), "at least one new node", "none")
    sizes = {kind: one.num_nodes + (len(nodes[kind].ids) if kind in nodes else 0) for kind, one in types.items()}
    links, dropped = dict[Ends, NewEdges](), Counter[str]()
    for ends, table in edges.items():
        one, shape = known_relations[ends], [sizes[ends[0]], sizes[ends[2]]]
        rows = rows_of(table, listed[ends[0]], listed[ends[2]])
        matrix, left_out = relation_matrix(ends, (rows, table.weight), shape, one.directed)
        dropped.update(left_out)
        links[ends] = NewEdges(matrix.tocoo(), binary=table.weight is None)
    return finished(known, nodes, links, dropped)


def _read_new(source: Source, known: Record) -> NodeTable:
    """A table of new nodes; rows of an edge table without ids are numbered on from the largest id of their type."""
    nodes = read_nodes(source)
    if not source.columns.numbered:
        return nodes
    if known.ids.dtype == object:
        raise InputError(str(source.path), 'a column "id", as the known rows have ids that are no numbers', "none")
    first = int(known.ids[:].max()) + 1
    return replace(nodes, ids=list(range(first, first + len(nodes.ids))))


def _refuse_unknown(what: str, found: Mapping[str, Path], known: Sequence[str]) -> None:
    for name, path in found.items():
        if name not in known:
            raise InputError(str(path), f"a {what} of the known graph ({', '.join(known)})", "another")


def _listed(kind: str, known: Record, nodes: dict[str, NodeTable], edges: Mapping[Ends, EdgeTable]) -> Listed:
    """The rows of the ids of a type that tables mention; unknown ids of edges become new nodes."""
    here = [(table, end) for ends, table in edges.items() for end in (0, 1) if ends[2 * end] == kind]
    words = dict.fromkeys(str(table.ids[code]) for table, end in here for code in np.unique(table.ends[end]))
    listed = list(map(str, nodes[kind].ids)) if kind in nodes else []
    found = find_ids(known.ids, [*words, *listed, *(name for table, _ in here for name in table.source.ends)])
    if kind not in nodes and (strangers := [word for word in words if word not in found]):
        if not made(known.feature_names):
            raise _without_features(kind, strangers[0], here)
        ids: Any = strangers if known.ids.dtype == object else typed(strangers)
        nodes[kind] = NodeTable(here[0][0].source, np.empty(0, np.int64), ids)
        listed = strangers
    if listed:
        refuse_known(nodes[kind], found)
        names = nodes[kind].feature_names if nodes[kind].features is not None else ()
        if nodes[kind].features is not None or not made(known.feature_names):
            check_feature_names(str(nodes[kind].source.path), tuple(names), known.feature_names)
    table = nodes.get(kind)
    where = "of the known graph" + ("" if table is None else f", or listed in {table.source.path}")
    return Listed(table, found | {word: row for row, word in enumerate(listed, known.num_nodes)}, where, known.ids)


def _without_features(kind: str, word: str, tables: Sequence[tuple[EdgeTable, int]]) -> InputError:
    """The error for an unknown node of a type with features, which has no row in a node table."""
    places = ((table, end, np.array([str(one) == word for one in table.ids])[table.ends[end]]) for table, end in tables)
    table, end, edge = next((table, end, int(np.argmax(there))) for table, end, there in places if there.any())
    where = f"of the known graph, or listed in a table nodes/{kind}.* with features"
    return id_unknown(table.source, table.source.ends[end], word, int(table.numbers[edge]), where)
