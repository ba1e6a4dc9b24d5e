"""The edges of all relations among the nodes of all types, and the features made of them."""

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

ENTRIES_PER_BLOCK = 1 << 22
"""Entries of the matrix of all relations that are made at a time."""


def structural_features_of_types(
    nodes: Mapping[str, Nodes],
    relations: Sequence[Relation],
    requests: Mapping[str, StructuralFeatures],
) -> dict[str, Any]:
    """The structural features ``[N, F]`` of some types, made of the edges of all relations.

    Args:
        nodes: by type.
        relations: the edges.
        requests: which structural features to make, by type.
    """
    if not requests:
        return {}
    if "" in nodes:
        edges = relations[0].edges
    else:
        edges = Adjacency(adjacency_of_all_types(nodes, relations))
    ids = TypedIds({node_type: nodes[node_type].ids for node_type in sorted(nodes)})
    # Training sees the split "seen" of each type, and all nodes of a type without it.
    masks = [
        nodes[node_type].splits.get("seen", np.ones(nodes[node_type].num_nodes, bool))
        for node_type in ids.rows
    ]
    is_seen = np.concatenate(masks)
    seen = None if is_seen.all() else is_seen
    # They are made of all nodes at once, and cut by type.
    features_of_all_types = {
        structural_features: make_structural_features(structural_features, edges, ids, seen)
        for structural_features in set(requests.values())
    }
    return {
        node_type: features_of_all_types[structural_features][ids.rows[node_type]]
        for node_type, structural_features in requests.items()
    }


def adjacency_of_all_types(
    nodes: Mapping[str, Nodes], relations: Sequence[Relation]
) -> sparse.csr_array:
    """The edges of all relations among the nodes of all types, see `union`.

    Where the only type has no name, it is the matrix of the only relation, directed or not.
    """
    if "" in nodes:
        return relations[0].edges.matrix()
    return union(relations, {node_type: nodes[node_type].num_nodes for node_type in sorted(nodes)})


class TypedIds:
    """The ids ``[N]`` of all types, one type after the other, as text such as paper:5.

    The ids of a type may be on disk. Where the only type has no name, its ids stay as they are.
    """

    def __init__(self, ids: Mapping[str, Any]) -> None:
        self.ids = ids
        starts = np.cumsum([0, *map(len, ids.values())]).tolist()
        self.rows = {
            node_type: slice(*ends) for node_type, ends in zip(ids, pairwise(starts), strict=True)
        }
        """The rows of each type."""

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        ids: list[Any] = []
        for node_type, rows_of_type in self.rows.items():
            first = max(rows.start, rows_of_type.start)
            last = min(rows.stop, rows_of_type.stop)
            if first >= last:
                continue
            start = rows_of_type.start
            ids_of_type = self.ids[node_type][first - start : last - start].tolist()
            if node_type:
                ids += [f"{node_type}:{node_id}" for node_id in ids_of_type]
            else:
                ids += ids_of_type
        return np.array(ids, dtype=object)


def union(relations: Sequence[Relation], sizes: Mapping[str, int]) -> sparse.csr_array:
    """The edges of all relations among all nodes ``[N, N]``, in both directions.

    Args:
        relations: the edges.
        sizes: the number of nodes of each type, in the order in which types follow each other.
    """
    return sparse.csr_array(sparse.vstack([*union_rows(relations, sizes)], format="csr"))


def union_rows(
    relations: Sequence[Relation],
    sizes: Mapping[str, int],
    entries_per_block: int = ENTRIES_PER_BLOCK,
) -> Iterator[sparse.csr_array]:
    """The rows ``[n, N]`` of `union`, some at a time."""
    type_starts = np.cumsum([0, *sizes.values()]).tolist()
    starts = dict(zip(sizes, type_starts, strict=False))
    num_nodes = sum(sizes.values())
    index_dtype = sparse.get_index_dtype(maxval=num_nodes)
    for node_type, size in sizes.items():
        # Both sides of all relations of the type, each with the first row of the type at its
        # other end.
        sides = []
        for relation in relations:
            if relation.source == node_type:
                sides.append((starts[relation.target], relation.edges.receivers))
        for relation in relations:
            if relation.target == node_type and relation.edges.directed:
                sides.append((starts[relation.source], relation.edges.senders))

        # Blocks of rows with about as many entries each; a row counts as one entry more.
        counts = np.ones(size, np.int64)
        for _, neighbours in sides:
            counts += np.diff(neighbours.indptr)
        block_of_row = np.cumsum(counts) // entries_per_block
        block_bounds = [0, *(np.flatnonzero(np.diff(block_of_row)) + 1).tolist(), size]
        for first, last in pairwise(block_bounds):
            rows = sparse.csr_array((last - first, num_nodes), dtype=np.float32)
            for start, neighbours in sides:
                first_entry = int(neighbours.indptr[first])
                last_entry = int(neighbours.indptr[last])
                if neighbours.data is None:
                    weights = np.ones(last_entry - first_entry, np.float32)
                else:
                    weights = neighbours.data[first_entry:last_entry]
                columns = neighbours.indices[first_entry:last_entry].astype(index_dtype) + start
                row_starts = (neighbours.indptr[first : last + 1] - first_entry).astype(index_dtype)
                side = sparse.csr_array((weights, columns, row_starts), shape=rows.shape)
                rows = rows + side
            yield sparse.csr_array(rows)
