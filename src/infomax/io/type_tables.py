"""Graphs of several types of nodes from tables, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.relations import RELATION
from infomax.errors import InputError
from infomax.io import tables
from infomax.io.blocks import FILL_IN, typed
from infomax.io.learning import read_all
from infomax.io.record import Record
from infomax.io.refusals import no_edges, refuse_missing_header, refuse_two_kinds, warn_nameless
from infomax.io.sources import NodeTable, Source
from infomax.io.tables import EdgeTable, Listed, find_rows, read_nodes
from infomax.io.typed import Tables
from infomax.io.unite import Ends, unite


def read_types(found: Tables, *, directed: bool) -> Record:
    """The graph of tables of several types; types without a node table have the ids of their edges."""
    nodes = read_all({kind: partial(read_nodes, source) for kind, source in found.nodes.items()})
    edges = read_relations(found, nodes)
    of_nodes: dict[str, dict[str, Any]] = {kind: _columns(table) for kind, table in nodes.items()}
    for kind in sorted({kind for ends in edges for kind in ends[::2]} - nodes.keys()):
        of_nodes[kind] = {"ids": _ids_of_edges(kind, edges)}
    listed = {
        kind: Listed(nodes.get(kind), {str(node): row for row, node in enumerate(columns["ids"])})
        for kind, columns in of_nodes.items()
    }
    for kind, one in listed.items():
        if one.nodes is None:
            warn_nameless(next(table.source for ends, table in edges.items() if kind in ends[::2]), one.position)
    links = {}
    for ends in list(edges):
        table = edges.pop(ends)
        links[ends] = (rows_of(table, listed[ends[0]], listed[ends[2]]), table.weight)
        del table
    del listed
    if directed:
        refuse_between(links)
    graph = unite(of_nodes, links, directed=list(links) if directed else found.directed, made=found.columns.made)
    return replace(graph, table_columns=found.columns.named())


def refuse_between(relations: Iterable[Ends]) -> None:
    """Refuse to keep directions where there are no edges that can have any, those within one type."""
    if all(ends[0] != ends[2] for ends in relations):
        found = "relations between two types, whose edges run both ways"
        raise InputError("directed", "a relation within one type of nodes", found, "Leave out --directed.")


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


def _columns(table: NodeTable) -> dict[str, Any]:
    """What `unite` takes of a node table."""
    if table.groups is not None:
        raise InputError(str(table.source.path), "one graph, where there are several types", "a column of graphs")
    return table.fields()


def _ids_of_edges(kind: str, edges: Mapping[Ends, EdgeTable]) -> list[Any]:
    """The ids of a type in all edge tables, in order of first appearance; integers where all of them are."""
    of_type = [(table, end) for ends, table in edges.items() for end in (0, 1) if ends[2 * end] == kind]
    integers, found = all(table.source.lines or table.source.integers[end] for table, end in of_type), dict[str, None]()
    # Parts of one table share its ids, and are put in the order of its rows.
    for path in dict.fromkeys(table.source.path for table, _ in of_type):
        parts = [(table, end) for table, end in of_type if table.source.path == path]
        ids, codes = parts[0][0].ids, parts[0][0].ends[parts[0][1]]
        if len(parts) > 1:
            places = np.concatenate([2 * table.numbers + end for table, end in parts])
            codes = np.concatenate([table.ends[end] for table, end in parts])[np.argsort(places)]
        first = np.full(len(ids), len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # what is written last stays: the first place of each
        words = [str(ids[code]) for code in np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]]
        integers = integers and (not parts[0][0].source.lines or typed(words) is not words)
        found |= dict.fromkeys(words)
    return [int(word) for word in found] if integers else list(found)
