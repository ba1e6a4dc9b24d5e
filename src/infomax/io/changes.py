"""What has changed between a graph and a later one, by the ids of their nodes, and which vectors that reaches."""

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
from infomax.errors import InputError, number_of
from infomax.io.nodes import Nodes
from infomax.io.record import Record

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """The differences of a later graph from an earlier one; N counts the nodes of the type that they are seen from.

    Shapes:
        before: ``[N]``, the row of each node in the earlier graph; -1 for a new node
        features: by type, ``[N]``, whether a node's features, or its time, are new or other ones
        senders: by the step in which nodes of a type receive, ``[N]``, whether a node receives from others than before,
            or by other weights
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
        """Compare two graphs, whose edges are read into memory; features are read some rows at a time."""
        for record in (earlier, later):
            if record.groups is not None:
                raise InputError("update", "one graph", "several", "Embed the new one whole.")
        before = dict[str, NDArray[np.int64]]()
        for node_type, nodes in later.nodes.items():
            known = earlier.nodes.get(node_type)
            before[node_type] = (
                np.full(nodes.num_nodes, -1)
                if known is None
                else rows_before(known.ids[:], nodes.ids[:])
            )
        with ThreadPoolExecutor(1) as pool:
            features = {
                node_type: pool.submit(
                    _changed_features, earlier.nodes.get(node_type, nodes), nodes, before[node_type]
                )
                for node_type, nodes in later.nodes.items()
            }
            senders, edges = _changed_relations(earlier, later, before)
            changed = {node_type: found.result() for node_type, found in features.items()}
        own = before[later.node_type]
        gone = earlier.num_nodes - int((own >= 0).sum())
        return cls(later.node_type, own, changed, senders, gone, edges)

    def reach(self, paths: Iterable[Sequence[Step]], senders_weigh: bool) -> Mask:
        """The nodes ``[N]`` from which a path leads to changed features, or along changed edges.

        ``senders_weigh``: whether the weight of a message depends on the degree of its sender.
        """
        found = self.features[self.node_type].copy()
        for path in paths:
            reached = self.features[path[-1].sender]
            if senders_weigh:
                reached = reached | self.senders[path[-1]]
            for step in reversed(path):
                receivers = self.senders[step].copy()
                receivers[step.sent(np.flatnonzero(reached))[1]] = True
                reached = receivers
            found |= reached
        return found

    def __repr__(self) -> str:
        return f"Changes({self})"

    def __str__(self) -> str:
        new = int((self.before < 0).sum())
        changed = int((self.features[self.node_type] & (self.before >= 0)).sum())
        return (
            f"{number_of(new, 'new node')}, {self.gone:,} gone; {number_of(self.edges, 'edge')} came, went or changed; "
            f"{number_of(changed, 'node')} with other features"
        )


def rows_before(earlier: NDArray[Any], later: NDArray[Any]) -> NDArray[np.int64]:
    """The row of each later id ``[N]`` among earlier ones, by their text; -1 where it is none of them."""
    import pyarrow as pa
    from pyarrow import compute

    known, asked = (pa.array(ids.tolist()).cast(pa.large_string()) for ids in (earlier, later))
    found: NDArray[np.int32] = (
        compute.index_in(asked, known).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    return found.astype(np.int64)


def _changed_relations(
    earlier: Record, later: Record, before: Mapping[str, NDArray[np.int64]]
) -> tuple[dict[Step, Mask], int]:
    """Who receives otherwise than before in each step, and how many edges differ."""
    known = {one.ends: one.edges for one in earlier.relations}
    steps = dict[Step, Mask]()
    total = 0
    for one in later.relations:
        ends = before[one.source], before[one.target]
        matrix = one.edges.matrix()
        if (old := known.get(one.ends)) is None:
            sources, targets, count = (
                np.ones(len(ends[0]), bool),
                np.ones(len(ends[1]), bool),
                matrix.nnz,
            )
        else:
            sources, targets, count = _changed_edges(old.matrix(), matrix, *ends)
        steps |= {
            Step(one, one.source): sources,
            Step(one, one.target): targets,
        }  # of one type, the targets
        total += count if one.edges.directed else count // 2
    return steps, total


def _changed_edges(
    old: sparse.csr_array,
    new: sparse.csr_array,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> tuple[Mask, Mask, int]:
    """Which rows ``[S]`` and columns ``[T]`` of a later matrix have other entries, and how many differ.

    ``sources [S]`` and ``targets [T]`` are the rows and columns in the earlier matrix, -1 for new ones.
    """
    wide = old.copy()
    wide.resize(
        old.shape[0] + 1, old.shape[1] + 1
    )  # the last row and the last column, which are empty, are -1
    moved = wide[sources][:, targets]
    moved.sort_indices()
    differ = moved != new
    changed = []
    for ends, before, after, other in (
        (sources, np.diff(wide.indptr), np.diff(moved.indptr), np.diff(differ.indptr)),
        (
            targets,
            *(np.bincount(one.indices, minlength=one.shape[1]) for one in (wide, moved, differ)),
        ),
    ):
        changed.append((ends < 0) | (before[ends] != after) | (other > 0))
    return changed[0], changed[1], old.nnz - moved.nnz + int(differ.nnz)


def _changed_features(earlier: Nodes, later: Nodes, before: NDArray[np.int64]) -> Mask:
    changed, step = before < 0, max(1, BLOCK_BYTES // (4 * later.num_features))
    for first in range(0, len(before), step):
        rows: Any = np.flatnonzero(before[first : first + step] >= 0) + first
        old: Any = before[rows]
        if (
            len(rows)
            and np.array_equal(old, rows + old[0] - rows[0])
            and len(rows) == rows[-1] - rows[0] + 1
        ):
            old, rows = slice(old[0], old[-1] + 1), slice(rows[0], rows[-1] + 1)  # not copied
        if earlier.times is not None and later.times is not None:
            changed[rows] = earlier.times[old] != later.times[rows]
        one, other = earlier.table[old], later.table[rows]
        if sparse.issparse(one) and sparse.issparse(other):
            changed[rows] |= np.diff((one != other).tocsr().indptr) > 0
        elif not np.array_equal(
            one := dense(one), other := dense(other)
        ):  # faster than a look at each row
            changed[rows] |= (one != other).any(axis=1)
    return changed
