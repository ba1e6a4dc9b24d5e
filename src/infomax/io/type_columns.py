"""Graphs of several types of nodes in one edge table and one node table, with columns that tell types apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, shorten
from infomax.io import tables
from infomax.io.blocks import FILL_IN
from infomax.io.columns import Columns
from infomax.io.features import read_nodes
from infomax.io.record import Record
from infomax.io.sources import Source, id_unknown, refuse_two_kinds
from infomax.io.tables import EdgeTable, NodeTable
from infomax.io.typed import build, of_table, refuse_missing, rows_as_nodes, with_columns
from infomax.io.unite import RELATION, Ends


def read_tables(
    edges: Source, nodes: Source | None, columns: Columns, *, directed: bool = False, work: Path | None = None
) -> Record:
    """The graph of one edge table and, where there is one, one node table, with columns that tell types apart."""
    kinds = dict.fromkeys(columns.types or ("node",))
    own = [edges] if columns.edges_as else []
    refuse_missing(columns, own if nodes is None else [nodes, *own], [edges])
    of_nodes: dict[str, NodeTable] = {}
    if nodes is not None and columns.node_type:
        for kind, filled in nodes.types(columns.node_type).items():
            chosen = of_table(columns, kind, filled, columns.matrix)
            unused = (name for name in nodes.names if name not in filled)
            chosen = replace(chosen, ignore=tuple(dict.fromkeys([*chosen.ignore, *unused, columns.node_type])))
            of_nodes[kind] = read_nodes(Source(nodes.files, chosen, nodes.frame, only=(columns.node_type, kind)))
    elif nodes is not None:
        if len(kinds) > 1:
            raise InputError(str(nodes.path), "a column that tells the type of a node: --node-type COLUMN", "none")
        of_nodes = {
            kind: read_nodes(with_columns(nodes, of_table(columns, kind, nodes.header(), columns.matrix)))
            for kind in kinds
        }
    edges.apart = True
    table = tables.read_edges(with_columns(edges, columns))
    if nodes is None and not columns.types:
        refuse_two_kinds(edges, edges.ends, bool(np.intersect1d(*table.ends).size))
    of_edges = _by_relation(table, columns, of_nodes)
    if columns.edges_as:
        of_edges = rows_as_nodes(columns, table, of_edges, of_nodes)
    del table
    return build(of_nodes, of_edges, columns, directed=directed, work=work)


def _by_relation(table: EdgeTable, columns: Columns, nodes: Mapping[str, NodeTable]) -> dict[Ends, EdgeTable]:
    """The edges of each relation: the types of its ends are told with its name, or for all edges, or by node tables."""
    if table.relations is None and (columns.types or len(nodes) < 2):
        first, last = columns.types or [*nodes, "node"][:1] * 2
        return {(first, RELATION, last): table}
    found: dict[Ends, NDArray[np.bool_]] = {}
    none = np.zeros(len(table.numbers), bool)
    names = np.full(len(none), RELATION, object) if table.relations is None else table.relations
    for name in dict.fromkeys(names.tolist()):
        here, words = names == name, name.split(".")
        if not name:
            where = table.source.place(int(table.numbers[np.argmax(here)]), columns.edge_type or "")
            raise InputError(where, "the name of a relation", "an empty cell", FILL_IN)
        if len(words) > 1 or columns.types or len(nodes) < 2:
            kinds = (words[0], words[-1]) if len(words) > 1 else columns.types or [*nodes, "node"][:1] * 2
            ends = (kinds[0], words[1] if len(words) == 3 else RELATION if len(words) == 2 else name, kinds[1])
            found[ends] = found.get(ends, none) | here
            continue
        owners = _owners(table, here, nodes)
        for first, last in dict.fromkeys(zip(*owners[:, here].tolist(), strict=True)):
            ends = (list(nodes)[first], name, list(nodes)[last])
            found[ends] = found.get(ends, none) | (here & (owners[0] == first) & (owners[1] == last))
    return {ends: table.part(rows) for ends, rows in found.items()}


def _owners(table: EdgeTable, here: NDArray[np.bool_], nodes: Mapping[str, NodeTable]) -> NDArray[np.int64]:
    """The number of the type ``[2, E]`` that the ends of some edges are of; refused where it is none, or several."""
    known = [{str(node) for node in one.ids} for one in nodes.values()]
    kinds = [[at for at, ids in enumerate(known) if str(node) in ids] for node in table.ids]
    owner = np.array([at[0] if len(at) == 1 else -1 for at in kinds], dtype=np.int64)[table.ends]
    bad = (owner < 0) & here
    if bad.any():
        edge, end = divmod(int(np.argmax(bad.T.ravel())), 2)
        code, number, column = table.ends[end, edge], int(table.numbers[edge]), table.source.ends[end]
        source = next(iter(nodes.values())).source
        if not kinds[code]:
            raise id_unknown(table.source, column, table.ids[code], number, f"listed in {source.path}")
        found = f"{shorten(table.ids[code])}, an id of {' and of '.join(list(nodes)[at] for at in kinds[code])}"
        remedy = "Say which: --types TYPE,TYPE, or names such as author.writes.paper in the column of --edge-type."
        raise InputError(table.source.place(number, column), "an id of one type", found, remedy)
    return owner
