"""Graphs of several types of nodes from tables, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.relations import RELATION
from infomax.errors import InputError
from infomax.io import tables
from infomax.io.blocks import FILL_IN
from infomax.io.refusals import no_edges, refuse_missing_header, refuse_two_kinds
from infomax.io.sources import NodeTable, Source
from infomax.io.tables import EdgeTable, Listed, find_rows
from infomax.io.typed import Tables
from infomax.io.unite import Ends


def rows_of(table: EdgeTable, first: Listed, last: Listed) -> NDArray[np.int32]:
    """The rows ``[2, E]`` of the nodes that the edges of a relation join; an id that is none of its type is refused."""
    refuse_missing_header(table.source, table.source.ends, lambda end, name: name in (first, last)[end].position)
    return find_rows(table, first, last)


def read_relations(found: Tables, nodes: Mapping[str, NodeTable]) -> dict[Ends, EdgeTable]:
    """The edge tables in memory by relation; one table of several relations is divided."""
    edges: dict[Ends, EdgeTable] = {}
    for ends, source in found.edges.items():
        table = tables.read_edges(source)
        if not table.ids and not nodes:
            raise no_edges(source)
        if ends is None and not found.listed and not found.columns.types:
            refuse_two_kinds(source, source.ends, table.overlaps)
        parts = _by_relation(table, found, nodes) if ends is None else {ends: table}
        edges |= _around_rows(table, parts, found, nodes) if source.columns.edges_as else parts
        del table
    return edges


def _around_rows(
    table: EdgeTable, parts: Mapping[Ends, EdgeTable], found: Tables, nodes: Mapping[str, NodeTable]
) -> dict[Ends, EdgeTable]:
    """Relations to and from the rows of an edge table, which are nodes, in place of its own relations."""
    rows, out = nodes[str(found.columns.edges_as)], dict[Ends, EdgeTable]()
    ids: Any = [*table.ids, *rows.ids]
    for ends, part in parts.items():
        at = len(table.ids) + np.searchsorted(table.numbers, part.numbers)
        to, of = found.around_rows(ends, alone=len(parts) == 1)
        for name, end, pair in ((to, 1, (part.ends[0], at)), (of, 0, (at, part.ends[1]))):
            integers = list(part.source.integers)
            integers[end : end + 1] = [not isinstance(rows.ids[0], str)]
            source = replace(part.source, integers=integers)
            out[name] = replace(part, source=source, ids=ids, ends=np.stack(pair), weight=None)
    return out


def _by_relation(table: EdgeTable, found: Tables, nodes: Mapping[str, NodeTable]) -> dict[Ends, EdgeTable]:
    """The edges of each relation: the types of its ends are told with its name, or for all edges, or by node tables."""
    rows: dict[Ends, NDArray[np.bool_]] = {}
    none = np.zeros(len(table.numbers), bool)
    if table.relations is None and (all_of_one := found.told_ends(RELATION)):
        return {all_of_one: table}
    names = np.full(len(none), RELATION, object) if table.relations is None else table.relations
    for name in dict.fromkeys(names.tolist()):
        here = names == name
        if not name:
            raise unnamed(table.source, int(table.numbers[np.argmax(here)]))
        if ends := found.told_ends(name):
            rows[ends] = rows.get(ends, none) | here
            continue
        owners = _owners(table, here, found, nodes)
        for first, last in dict.fromkeys(zip(*owners[:, here].tolist(), strict=True)):
            ends = (found.listed[first], name, found.listed[last])
            rows[ends] = rows.get(ends, none) | (here & (owners[0] == first) & (owners[1] == last))
    return {ends: table.part(mask) for ends, mask in rows.items()}


def unnamed(edges: Source, number: int) -> InputError:
    """The error for an edge, the row of this number, whose relation has no name."""
    return InputError(
        edges.place(number, edges.columns.edge_type or ""), "the name of a relation", "an empty cell", FILL_IN
    )


def _owners(
    table: EdgeTable, here: NDArray[np.bool_], found: Tables, nodes: Mapping[str, NodeTable]
) -> NDArray[np.int64]:
    """The number of the type ``[2, E]`` that the ends of some edges are of; refused where it is none, or several."""
    known = {kind: set(map(str, nodes[kind].ids)) for kind in found.listed}
    kinds = [[at for at, ids in enumerate(known.values()) if str(node) in ids] for node in table.ids]
    owner = np.array([at[0] if len(at) == 1 else -1 for at in kinds], dtype=np.int64)[table.ends]
    bad = (owner < 0) & here
    if bad.any():
        edge, end = divmod(int(np.argmax(bad.T.ravel())), 2)
        code, number = table.ends[end, edge], int(table.numbers[edge])
        several = [found.listed[at] for at in kinds[code]]
        raise found.of_no_type(table.source, table.source.ends[end], table.ids[code], number, several)
    return owner
