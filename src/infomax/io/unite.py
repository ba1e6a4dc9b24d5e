"""Nodes of several types and the relations between them, as one graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import Adjacency
from infomax.arrays.made import MADE, Kind, made, make
from infomax.arrays.relations import RELATION, Relation
from infomax.arrays.table import Table
from infomax.errors import InputError, shorten, within
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Ends: TypeAlias = tuple[str, str, str]
"""A relation: the type of its sources, its name, the type of its targets."""
Links: TypeAlias = tuple[NDArray[Any], NDArray[np.float32] | None]
"""Edges ``[2, E]``, rows of the sources and of the targets, and their weights ``[E]``."""
AnyRecord = TypeVar("AnyRecord", bound=Record)
ENTRIES = 1 << 22
"""Entries of the union of all relations that are in memory at a time."""


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
) -> Record:
    """The graph of nodes by type and edges by relation.

    Args:
        nodes: for each type ``ids`` and, where it has them, ``features``, ``feature_names``, ``labels`` and ``splits``,
            as in `Record.from_scipy`.
        edges: for each relation its edges. Between nodes of different types they have no direction.
        directed: those relations between nodes of one type whose edges have directions.
        made: the features of types that have none, made of all edges; None: positions.
    """
    for kind in nodes:
        check_names(f"type {shorten(kind)}", (kind, RELATION, kind))
    dropped: Counter[str] = Counter()
    relations = []
    for ends in sorted(edges):
        check_names(f"relation {'.'.join(ends)}", ends)
        sizes = [len(nodes[kind]["ids"]) for kind in ends[::2]]
        matrix, left_out = relation_matrix(ends, edges[ends], sizes, ends in directed)
        relations.append(Relation.of(*ends, matrix, ends in directed))
        dropped.update(left_out)
    columns = {kind: dict(nodes[kind]) for kind in sorted(nodes)}
    bare = [kind for kind in columns if columns[kind].get("features") is None]
    if bare or any(relation.edges.weighted for relation in relations):
        _make(columns, bare, relations, made or "positions")
    checked = {kind: _nodes(kind, own) for kind, own in columns.items()}
    return Record(checked, tuple(relations), min(checked), dropped=dict(dropped), kind_is_first=True)


def relation_matrix(
    ends: Ends, links: Links, sizes: list[int], directed: bool
) -> tuple[sparse.csr_array, dict[str, int]]:
    """The clean matrix ``[S, T]`` of a relation, and how many of its edges were left out."""
    one_type = ends[0] == ends[2]
    with within(f"relation {'.'.join(ends)}"):
        matrix = checks.check_links(*links, (sizes[0], sizes[1]))
        matrix.coords = tuple(rows.astype(np.int32, copy=False) for rows in matrix.coords)
        return checks.clean(matrix, directed or not one_type, links[1] is None, loops=not one_type)


def _nodes(kind: str, columns: dict[str, Any]) -> Nodes:
    """The checked nodes of one type; several types are one graph, so that there are no groups."""
    columns = {name: values for name, values in columns.items() if name != "groups"}
    with within(f"nodes of type {kind}"):
        return Nodes.of(len(columns["ids"]), **columns)


def without_made(graph: Record) -> dict[str, Record]:
    """The graph seen from each type; without features where they are positions that are made again when it is read."""
    if not (types := graph.by_type()):
        return {}
    columns: dict[str, dict[str, Any]] = {kind: {"ids": one.ids, "splits": one.splits} for kind, one in types.items()}
    bare = [kind for kind, one in types.items() if made(one.feature_names) == "positions"]
    _make(columns, bare, list(graph.relations), "positions")
    anew = [kind for kind in bare if np.allclose(types[kind].features, columns[kind]["features"], atol=1e-5)]
    return types | {kind: without_features(types[kind]) for kind in anew}


def whole_adjacency(graph: Record) -> sparse.csr_array:
    """The edges of all relations among the nodes of all types, see `union`."""
    return union(graph.relations, {kind: graph.nodes[kind].num_nodes for kind in sorted(graph.nodes)})


def with_made_again(graph: AnyRecord) -> AnyRecord:
    """The graph with those features that are made of the edges made again, as after some nodes were dropped."""
    kinds = {kind: word for kind, one in graph.nodes.items() if (word := made(one.feature_names))}
    if not graph.types:
        new = {kind: make(word, graph.edges, graph.ids, graph.splits.get("seen")) for kind, word in kinds.items()}
    else:
        columns: dict[str, dict[str, Any]] = {
            kind: {"ids": one.ids[:], "splits": one.splits} for kind, one in graph.nodes.items()
        }
        for word in set(kinds.values()):
            _make(columns, [kind for kind in kinds if kinds[kind] == word], list(graph.relations), word)
        new = {kind: columns[kind]["features"] for kind in kinds}
    return graph.with_nodes(lambda kind, one: replace(one, table=Table(new[kind])) if kind in new else one)


def without_features(graph: Record) -> Record:
    """The graph with no feature at all, as a table of nodes may be written."""
    return graph.replace(table=Table(np.empty((graph.num_nodes, 0), np.float32)), feature_names=())


def _make(columns: dict[str, dict[str, Any]], bare: list[str], relations: list[Relation], kind: Kind) -> None:
    """Give the ``bare`` types features that are made of the edges of all relations; refuse sums that are too large."""
    sizes = {of_type: len(one["ids"]) for of_type, one in columns.items()}
    ids = TypedIds({of_type: np.asarray(one["ids"], dtype=object) for of_type, one in columns.items()})
    together = union(relations, sizes)
    checks.check_sums(together, ids.named)
    if not bare:
        return
    masks = (one.get("splits", {}).get("seen", np.ones(sizes[of_type], bool)) for of_type, one in columns.items())
    seen = np.concatenate([*masks])
    features = make(kind, Adjacency(together), ids, None if seen.all() else seen)
    for of_type in bare:
        columns[of_type] |= {"features": features[ids.rows[of_type]], "feature_names": MADE[kind]}


class TypedIds:
    """The ids ``[N]`` of all types after one another, as text such as paper:5; those of a type may be on disk.

    Those of a graph of one type, whose name is empty, stay as they are.
    """

    def __init__(self, ids: Mapping[str, Any]) -> None:
        self.ids = ids
        starts = np.cumsum([0, *map(len, ids.values())]).tolist()
        self.rows = {kind: slice(*ends) for kind, ends in zip(ids, pairwise(starts), strict=True)}
        """The rows of each type."""

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        found = []
        for kind, own in self.rows.items():
            first, last = max(rows.start, own.start), min(rows.stop, own.stop)
            if first < last:
                found += [
                    f"{kind}:{node}" if kind else node
                    for node in self.ids[kind][first - own.start : last - own.start].tolist()
                ]
        return np.array(found, dtype=object)

    def named(self, row: int) -> str:
        """The id of a row."""
        return str(self[row : row + 1][0])


def union(relations: Sequence[Relation], sizes: Mapping[str, int]) -> sparse.csr_array:
    """The edges of all relations among all nodes, those of each type after one another, in both directions."""
    return sparse.csr_array(sparse.vstack([*union_rows(relations, sizes)], format="csr"))


def union_rows(relations: Sequence[Relation], sizes: Mapping[str, int]) -> Iterator[sparse.csr_array]:
    """The rows ``[n, N]`` of `union`, about `ENTRIES` entries at a time."""
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    n = sum(sizes.values())
    dtype = sparse.get_index_dtype(maxval=n)
    for kind, size in sizes.items():
        sides = [(starts[one.target], one.to_source) for one in relations if one.source == kind]
        sides += [(starts[one.source], one.to_target) for one in relations if one.target == kind and one.edges.directed]
        counts = np.ones(size, np.int64)
        for _, senders in sides:
            counts += np.diff(senders.indptr)
        for first, last in pairwise([0, *(np.flatnonzero(np.diff(np.cumsum(counts) // ENTRIES)) + 1).tolist(), size]):
            rows = sparse.csr_array((last - first, n), dtype=np.float32)
            for start, senders in sides:
                begin, end = int(senders.indptr[first]), int(senders.indptr[last])
                data = np.ones(end - begin, np.float32) if senders.data is None else senders.data[begin:end]
                columns = senders.indices[begin:end].astype(dtype) + start
                own = (senders.indptr[first : last + 1] - begin).astype(dtype)
                rows = rows + sparse.csr_array((data, columns, own), shape=rows.shape)
            yield sparse.csr_array(rows)
