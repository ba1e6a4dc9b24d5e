"""The changes between a graph and a later one, and which vectors they reach.

Nodes are matched by their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES
from infomax.arrays.relations import Step
from infomax.arrays.sparsity import dense
from infomax.errors import InputError, format_count
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """The differences of a later graph from an earlier one.

    N counts the nodes of the type that the later graph is seen from.

    Shapes:
        before: ``[N]``, the row of each node in the earlier graph; -1 for a new node
        features: by type, ``[N]``, whether a node's features, or its time, are new or other ones
        senders: by the step in which nodes of a type receive, ``[N]``, whether a node receives from
            others than before, or by other weights
    """

    node_type: str
    before: NDArray[np.int64]
    features: Mapping[str, Mask]
    senders: Mapping[Step, Mask]
    gone: int
    """Nodes that are no longer there."""
    edges: int
    """Edges that came, went, or changed their weight, of all relations."""

    @classmethod
    def of(cls, earlier: Record, later: Record) -> Changes:
        """Compare two graphs.

        Their edges are read into memory; features are read some rows at a time.
        """
        for record in (earlier, later):
            if record.groups is not None:
                raise InputError("update", "one graph", "several", "Embed the new one whole.")
        before: dict[str, NDArray[np.int64]] = {}
        for node_type, nodes in later.nodes.items():
            earlier_nodes = earlier.nodes.get(node_type)
            if earlier_nodes is None:
                before[node_type] = np.full(nodes.num_nodes, -1)
            else:
                before[node_type] = rows_before(earlier_nodes.ids[:], nodes.ids[:])

        # Features are compared on another thread while edges are compared on this one.
        with ThreadPoolExecutor(1) as pool:
            futures = {}
            for node_type, nodes in later.nodes.items():
                earlier_nodes = earlier.nodes.get(node_type, nodes)
                futures[node_type] = pool.submit(
                    _changed_features, earlier_nodes, nodes, before[node_type]
                )
            senders, num_edges = _changed_relations(earlier, later, before)
            features = {node_type: future.result() for node_type, future in futures.items()}

        before_of_type = before[later.node_type]
        num_gone = earlier.num_nodes - int((before_of_type >= 0).sum())
        return cls(later.node_type, before_of_type, features, senders, num_gone, num_edges)

    def reach(self, paths: Iterable[Sequence[Step]], senders_weigh: bool) -> Mask:
        """The nodes ``[N]`` from which a path leads to changed features, or along changed edges.

        ``senders_weigh``: whether the weight of a message depends on the degree of its sender.
        """
        is_reached = self.features[self.node_type].copy()
        for path in paths:
            # What is at the end of the path may have changed; what may reach nodes from there, too.
            is_changed = self.features[path[-1].sender]
            if senders_weigh:
                is_changed = is_changed | self.senders[path[-1]]
            # Go back along the path, from its end to the nodes.
            for step in reversed(path):
                _, receivers, _ = step.sent(np.flatnonzero(is_changed))
                is_changed = self.senders[step].copy()
                is_changed[receivers] = True
            is_reached |= is_changed
        return is_reached

    def __repr__(self) -> str:
        return f"Changes({self})"

    def __str__(self) -> str:
        new = int((self.before < 0).sum())
        changed = int((self.features[self.node_type] & (self.before >= 0)).sum())
        return (
            f"{format_count(new, 'new node')}, {self.gone:,} gone; "
            f"{format_count(self.edges, 'edge')} came, went or changed; "
            f"{format_count(changed, 'node')} with other features"
        )


def rows_before(earlier: NDArray[Any], later: NDArray[Any]) -> NDArray[np.int64]:
    """The row of each later id ``[N]`` among earlier ids, by its text; -1 for a new id."""
    import pyarrow as pa
    from pyarrow import compute

    earlier_ids = pa.array(earlier.tolist()).cast(pa.large_string())
    later_ids = pa.array(later.tolist()).cast(pa.large_string())
    rows = compute.index_in(later_ids, earlier_ids).fill_null(-1)
    rows_array: NDArray[np.int32] = rows.to_numpy(zero_copy_only=False)
    return rows_array.astype(np.int64)


def _changed_relations(
    earlier: Record, later: Record, before: Mapping[str, NDArray[np.int64]]
) -> tuple[dict[Step, Mask], int]:
    """Who receives otherwise than before in each step, and how many edges differ."""
    earlier_edges = {relation.ends: relation.edges for relation in earlier.relations}
    is_changed: dict[Step, Mask] = {}
    num_changed_edges = 0
    for relation in later.relations:
        source_rows = before[relation.source]
        target_rows = before[relation.target]
        matrix = relation.edges.matrix()
        old_edges = earlier_edges.get(relation.ends)
        # A relation that is new changes what all of its nodes receive.
        if old_edges is None:
            sources_changed = np.ones(len(source_rows), bool)
            targets_changed = np.ones(len(target_rows), bool)
            num_entries = matrix.nnz
        else:
            sources_changed, targets_changed, num_entries = _changed_edges(
                old_edges.matrix(), matrix, source_rows, target_rows
            )
        is_changed[Step(relation, relation.source)] = sources_changed
        # Within one type both steps are the same, and nodes receive as targets.
        is_changed[Step(relation, relation.target)] = targets_changed
        entries_per_edge = 1 if relation.edges.directed else 2
        num_changed_edges += num_entries // entries_per_edge
    return is_changed, num_changed_edges


def _changed_edges(
    old: sparse.csr_array,
    new: sparse.csr_array,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> tuple[Mask, Mask, int]:
    """Which rows ``[S]`` and columns ``[T]`` of a later matrix have other entries.

    Args:
        old: the earlier matrix.
        new: the later matrix ``[S, T]``.
        sources: ``[S]``, the row of each source in the earlier matrix; -1 for a new one.
        targets: ``[T]``, the column of each target in the earlier matrix; -1 for a new one.

    Returns:
        Whether each row and each column changed; and how many entries differ.
    """
    # An empty last row and an empty last column stand for new ones, which have the number -1.
    widened = old.copy()
    widened.resize(old.shape[0] + 1, old.shape[1] + 1)
    # The earlier matrix, with rows and columns in the order of the later one.
    moved = widened[sources][:, targets]
    moved.sort_indices()
    differences = moved != new

    # A row changed if it is new, if it lost entries to rows that are gone, or if its entries
    # differ.
    lost_by_row = np.diff(widened.indptr)[sources] != np.diff(moved.indptr)
    sources_changed = (sources < 0) | lost_by_row | (np.diff(differences.indptr) > 0)

    lost_by_column = _column_counts(widened)[targets] != _column_counts(moved)
    targets_changed = (targets < 0) | lost_by_column | (_column_counts(differences) > 0)

    num_entries = old.nnz - moved.nnz + int(differences.nnz)
    return sources_changed, targets_changed, num_entries


def _column_counts(matrix: sparse.csr_array) -> NDArray[np.int64]:
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def _changed_features(earlier: Nodes, later: Nodes, before: NDArray[np.int64]) -> Mask:
    """Which later nodes have other features, or another time.

    ``before`` has their rows in the earlier graph, -1 for new nodes.
    """
    is_changed = before < 0
    rows_per_block = max(1, BLOCK_BYTES // (4 * later.num_features))
    for first in range(0, len(before), rows_per_block):
        new_rows: Any = np.flatnonzero(before[first : first + rows_per_block] >= 0) + first
        old_rows: Any = before[new_rows]
        if _are_consecutive(new_rows) and _are_consecutive(old_rows):
            # Slices are not copied.
            new_rows = slice(new_rows[0], new_rows[-1] + 1)
            old_rows = slice(old_rows[0], old_rows[-1] + 1)

        if earlier.times is not None and later.times is not None:
            is_changed[new_rows] = earlier.times[old_rows] != later.times[new_rows]
        old_features = earlier.table[old_rows]
        new_features = later.table[new_rows]
        if sparse.issparse(old_features) and sparse.issparse(new_features):
            differences = (old_features != new_features).tocsr()
            is_changed[new_rows] |= np.diff(differences.indptr) > 0
            continue
        old_features, new_features = dense(old_features), dense(new_features)
        # One comparison of all is faster than a look at each row.
        if not np.array_equal(old_features, new_features):
            is_changed[new_rows] |= (old_features != new_features).any(axis=1)
    return is_changed


def _are_consecutive(rows: NDArray[np.int64]) -> bool:
    return len(rows) > 0 and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows)))
