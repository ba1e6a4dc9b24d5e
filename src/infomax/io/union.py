"""The edges of all relations of a graph among the nodes of all types, and the features that are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.relations import Relation
from infomax.arrays.structural_features import StructuralFeatures, make_structural_features
from infomax.io.nodes import Nodes


def structural_features_of_types(
    nodes: Mapping[str, Nodes],
    relations: Sequence[Relation],
    words: Mapping[str, StructuralFeatures],
) -> dict[str, Any]:
    """The features ``[N, F]`` of some types, made of the edges of all relations."""
    if not words:
        return {}
    edges = relations[0].edges if "" in nodes else Adjacency(whole_adjacency(nodes, relations))
    ids = TypedIds({node_type: nodes[node_type].ids for node_type in sorted(nodes)})
    masks = [
        nodes[node_type].splits.get("seen", np.ones(nodes[node_type].num_nodes, bool))
        for node_type in ids.rows
    ]
    seen = np.concatenate(masks)
    whole = {
        word: make_structural_features(word, edges, ids, None if seen.all() else seen)
        for word in set(words.values())
    }
    return {node_type: whole[word][ids.rows[node_type]] for node_type, word in words.items()}


def whole_adjacency(nodes: Mapping[str, Nodes], relations: Sequence[Relation]) -> sparse.csr_array:
    """The edges of all relations among the nodes of all types, see `union`; of one type they are as they are."""
    if "" in nodes:
        return relations[0].edges.matrix()
    return union(relations, {node_type: nodes[node_type].num_nodes for node_type in sorted(nodes)})


class TypedIds:
    """The ids ``[N]`` of all types after one another, as text such as paper:5; those of a type may be on disk.

    Those of a graph of one type, whose name is empty, stay as they are.
    """

    def __init__(self, ids: Mapping[str, Any]) -> None:
        self.ids = ids
        starts = np.cumsum([0, *map(len, ids.values())]).tolist()
        self.rows = {
            node_type: slice(*ends) for node_type, ends in zip(ids, pairwise(starts), strict=True)
        }
        """The rows of each type."""

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        found = []
        for node_type, own in self.rows.items():
            first = max(rows.start, own.start)
            last = min(rows.stop, own.stop)
            if first < last:
                found += [
                    f"{node_type}:{node}" if node_type else node
                    for node in self.ids[node_type][first - own.start : last - own.start].tolist()
                ]
        return np.array(found, dtype=object)


def union(relations: Sequence[Relation], sizes: Mapping[str, int]) -> sparse.csr_array:
    """The edges of all relations among all nodes, those of each type after one another, in both directions."""
    return sparse.csr_array(sparse.vstack([*union_rows(relations, sizes)], format="csr"))


def union_rows(
    relations: Sequence[Relation], sizes: Mapping[str, int], entries: int = 1 << 22
) -> Iterator[sparse.csr_array]:
    """The rows ``[n, N]`` of `union`, about so many entries at a time."""
    starts = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    n = sum(sizes.values())
    dtype = sparse.get_index_dtype(maxval=n)
    for node_type, size in sizes.items():
        sides = [
            (starts[one.target], one.edges.receivers)
            for one in relations
            if one.source == node_type
        ]
        sides += [
            (starts[one.source], one.edges.senders)
            for one in relations
            if one.target == node_type and one.edges.directed
        ]
        counts = np.ones(size, np.int64)
        for _, senders in sides:
            counts += np.diff(senders.indptr)
        for first, last in pairwise(
            [0, *(np.flatnonzero(np.diff(np.cumsum(counts) // entries)) + 1).tolist(), size]
        ):
            rows = sparse.csr_array((last - first, n), dtype=np.float32)
            for start, senders in sides:
                begin = int(senders.indptr[first])
                end = int(senders.indptr[last])
                data = (
                    np.ones(end - begin, np.float32)
                    if senders.data is None
                    else senders.data[begin:end]
                )
                columns = senders.indices[begin:end].astype(dtype) + start
                own = (senders.indptr[first : last + 1] - begin).astype(dtype)
                rows = rows + sparse.csr_array((data, columns, own), shape=rows.shape)
            yield sparse.csr_array(rows)
