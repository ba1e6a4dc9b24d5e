"""Nodes of several types and the relations between them, as one graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import MemoryAdjacency
from infomax.arrays.made import MADE, Kind, made, make
from infomax.arrays.positions import WIDTH, fill_positions
from infomax.arrays.relations import Relation
from infomax.arrays.table import MemoryTable
from infomax.errors import InputError, shorten, within
from infomax.io.record import Record

Ends: TypeAlias = tuple[str, str, str]
"""A relation: the type of its sources, its name, the type of its targets."""
Links: TypeAlias = tuple[NDArray[Any], NDArray[np.float32] | None]
"""Edges ``[2, E]``, rows of the sources and of the targets, and their weights ``[E]``."""
RELATION = "to"
"""The name of a relation that has none."""


def check_names(where: str, ends: Ends) -> None:
    """Refuse names of types and relations that cannot be told apart in ``paper-[writes]-author`` or ``paper:123``."""
    for what, name, kept in zip(("type", "relation", "type"), ends, ("-", "", "-"), strict=True):
        if not name or name.strip() != name or any(sign in name for sign in kept + ".:[]/\\\0"):
            expected = f"a name of a {what} without {' '.join(kept + '.:[]/')}"
            raise InputError(where, expected, shorten(name) if name else "an empty one", "Rename it.")


def unite(
    nodes: Mapping[str, Mapping[str, Any]],
    edges: Mapping[Ends, Links],
    *,
    directed: Collection[Ends] = (),
    made: Kind | None = None,
    work: Path | None = None,
) -> Record:
    """The graph of nodes by type and edges by relation.

    Args:
        nodes: for each type ``ids`` and, where it has them, ``features``, ``feature_names``, ``labels`` and ``splits``,
            as in `Record.from_scipy`.
        edges: for each relation its edges. Between nodes of different types they have no direction.
        directed: those relations between nodes of one type whose edges have directions.
        made: the features of types that have none, made of all edges; None: positions.
        work: a folder for files of positions, which are then mapped; None: they are in memory.
    """
    for kind in nodes:
        check_names(f"type {shorten(kind)}", (kind, RELATION, kind))
    dropped: Counter[str] = Counter()
    relations = []
    for ends in sorted(edges):
        matrix, left_out = relation_matrix(
            ends, edges[ends], [len(nodes[kind]["ids"]) for kind in ends[::2]], ends in directed
        )
        relations.append(Relation.of(*ends, matrix))
        dropped.update(left_out)
    columns = {kind: dict(nodes[kind]) for kind in sorted(nodes)}
    bare = [kind for kind in columns if columns[kind].get("features") is None]
    if bare or any(relation.to_source.data is not None for relation in relations):
        _make(columns, bare, relations, made or "positions", work)
    records = {kind: _nodes(kind, of_kind) for kind, of_kind in columns.items()}
    records = {kind: replace(record, dropped=dict(dropped)) for kind, record in records.items()}
    first = min(records)
    return replace(records.pop(first), kind=first, others=records, relations=tuple(relations))


def relation_matrix(
    ends: Ends, links: Links, sizes: list[int], directed: bool
) -> tuple[sparse.csr_array, dict[str, int]]:
    """The clean matrix ``[S, T]`` of a relation, and how many of its edges were left out."""
    where, one_type = f"relation {'.'.join(ends)}", ends[0] == ends[2]
    check_names(where, ends)
    with within(where):
        matrix = checks.check_links(*links, (sizes[0], sizes[1]))
        matrix.coords = tuple(rows.astype(np.int32, copy=False) for rows in matrix.coords)
        return checks.clean(matrix, directed or not one_type, links[1] is None, loops=not one_type)


def _nodes(kind: str, columns: dict[str, Any]) -> Record:
    """The nodes of one type, without edges."""
    n = len(columns["ids"])
    with within(f"nodes of type {kind}"):
        return Record.from_scipy(sparse.csr_array((n, n), dtype=np.float32), **columns)


def without_made(graph: Record) -> dict[str, Record]:
    """The graph seen from each type; without features where they are positions that are made again when it is read."""
    if not (types := graph.by_type()):
        return {}
    columns: dict[str, dict[str, Any]] = {kind: {"ids": one.ids, "splits": one.splits} for kind, one in types.items()}
    bare = [kind for kind, one in types.items() if made(one.feature_names) == "positions"]
    _make(columns, bare, list(graph.relations), "positions")
    anew = [kind for kind in bare if np.allclose(types[kind].features, columns[kind]["features"], atol=1e-5)]
    return types | {kind: without_features(types[kind]) for kind in anew}


def without_features(graph: Record) -> Record:
    """The graph with no feature at all, as a table of nodes may be written."""
    return replace(graph, table=MemoryTable(np.empty((graph.num_nodes, 0), np.float32)), feature_names=())


def _make(
    columns: dict[str, dict[str, Any]], bare: list[str], relations: list[Relation], kind: Kind, work: Path | None = None
) -> None:
    """Give the types without features some that are made of the edges of all relations, in both directions."""
    start, n = dict[str, int](), 0
    for of_type in columns:
        start[of_type], n = n, n + len(columns[of_type]["ids"])
    together = union(columns, relations)
    ids = np.array([f"{kind}:{node}" for kind in columns for node in columns[kind]["ids"]], dtype=object)
    checks.check_sums(together, ids.__getitem__)
    if not bare:
        return
    seen = np.ones(n, bool)
    for of_type, first in start.items():
        mask = columns[of_type].get("splits", {}).get("seen")
        seen[first : first + len(columns[of_type]["ids"])] = True if mask is None else mask
    edges, among = MemoryAdjacency(together), None if seen.all() else seen
    if work is None or kind != "positions":
        features = make(kind, edges, ids, among)
    else:
        paths, shape = [work / f"positions-{name}" for name in ("total", "now", "then")], (n, WIDTH)
        features, now, then = (np.memmap(path, np.float32, "w+", shape=shape) for path in paths)
        fill_positions(features, now, then, edges, ids, among)
    for of_type in bare:
        rows = slice(start[of_type], start[of_type] + len(columns[of_type]["ids"]))
        columns[of_type] |= {"features": features[rows], "feature_names": MADE[kind]}


def union(columns: Mapping[str, Mapping[str, Any]], relations: list[Relation]) -> sparse.csr_array:
    """The edges of all relations among all nodes, those of each type after one another, in both directions."""
    sizes = {kind: len(columns[kind]["ids"]) for kind in columns}
    blocks: dict[tuple[str, str], Any] = {
        (kind, kind): sparse.csr_array((size, size), dtype=np.float32) for kind, size in sizes.items()
    }
    for one in relations:
        sides = [(one.source, one.target, one.to_source)]
        sides += [] if one.symmetric else [(one.target, one.source, one.to_target)]
        for receiver, sender, senders in sides:
            matrix, there = senders.matrix(sizes[sender]), blocks.get((receiver, sender))
            blocks[receiver, sender] = matrix if there is None or not there.nnz else there + matrix
    return sparse.csr_array(sparse.block_array([[blocks.get((row, column)) for column in sizes] for row in sizes]))
