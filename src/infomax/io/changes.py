"""What has changed between a graph and a later one, by the ids of their nodes, and which vectors that reaches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES
from infomax.arrays.sparsity import dense
from infomax.errors import InputError
from infomax.io.record import Record

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Changes:
    """What a later graph of N nodes has that an earlier one had not.

    Shapes:
        before: ``[N]``, the row of each node in the earlier graph; -1 for a new node
        features: ``[N]``, whether its features are new or other ones
        senders: ``[N]``, whether it receives from others than before, or by other weights
        matrix: ``[N, N]``, the adjacency of the later graph; None where there are several types of nodes
    """

    before: NDArray[np.int64]
    features: Mask
    senders: Mask
    matrix: Any
    gone: int
    """Nodes that are no longer there."""
    edges: int | None
    """Edges that came, went, or changed their weight; None where there are several types, which are not compared."""

    @classmethod
    def of(cls, earlier: Record, later: Record) -> Changes:
        """Compare two graphs, whose edges are read into memory; features are read some rows at a time."""
        for record in (earlier, later):
            if record.groups is not None:
                raise InputError("update", "one graph", "several", "Embed the new one whole.")
        before = rows_before(earlier.ids[:], later.ids[:])
        if later.kind:
            gone, every = earlier.num_nodes - int((before >= 0).sum()), np.ones(len(before), bool)
            return cls(before, _changed_features(earlier, later, before), every, None, gone, None)
        with ThreadPoolExecutor(1) as pool:
            features = pool.submit(_changed_features, earlier, later, before)
            senders, gone, count = _changed_edges(earlier, later, before)
            return cls(before, features.result(), senders, later.adjacency, gone, count)

    def reach(self, passes: int, *, senders_weigh: bool) -> Mask:
        """The nodes ``[N]`` whose vectors are others after so many passes of an encoder.

        ``senders_weigh``: whether the weight of a message depends on the degree of its sender.
        """
        reached = self.features | self.senders if senders_weigh else self.features.copy()
        for _ in range(passes):
            reached[self.matrix[np.flatnonzero(reached)].indices] = True
            reached |= self.senders
        return reached

    def __str__(self) -> str:
        new = int((self.before < 0).sum())
        changed = int((self.features & (self.before >= 0)).sum())
        edges = "" if self.edges is None else f"; {self.edges:,} edges came, went or changed"
        return f"{new:,} nodes are new, {self.gone:,} have gone{edges}; {changed:,} nodes have other features"


def rows_before(earlier: NDArray[Any], later: NDArray[Any]) -> NDArray[np.int64]:
    """The row of each later id ``[N]`` among earlier ones, by their text; -1 where it is none of them."""
    n = min(len(earlier), len(later))
    if earlier.dtype == later.dtype and (earlier[:n] == later[:n]).all() and n == len(earlier):
        rows = np.arange(len(later))
        rows[n:] = -1
        return rows
    known = {str(identifier): row for row, identifier in enumerate(earlier.tolist())}
    return np.fromiter((known.get(str(identifier), -1) for identifier in later.tolist()), np.int64, len(later))


def _changed_edges(earlier: Record, later: Record, before: NDArray[np.int64]) -> tuple[Mask, int, int]:
    """The mask `Changes.senders`, how many nodes have gone, and how many edges came, went or changed."""
    senders, old, n, lost, gone = before < 0, earlier.adjacency, len(before), 0, 0
    if np.array_equal(before[: earlier.num_nodes], np.arange(earlier.num_nodes)):  # new nodes come last, none has gone
        ends = np.concatenate([old.indptr, np.full(n - len(old.indptr) + 1, old.indptr[-1], old.indptr.dtype)])
        old = sparse.csr_array((old.data, old.indices, ends), shape=(n, n))
    else:
        rows = np.full(earlier.num_nodes, -1)
        rows[before[~senders]] = np.flatnonzero(~senders)
        gone = int((rows < 0).sum())
        links = old.tocoo()
        source, target = rows[links.row], rows[links.col]
        kept = (source >= 0) & (target >= 0)
        senders[target[(source < 0) & (target >= 0)]] = True
        lost = int((~kept).sum())
        old = sparse.csr_array((links.data[kept], (source[kept], target[kept])), shape=(n, n))
    differ = old != later.adjacency
    senders[differ.indices] = True
    count = lost + int(differ.nnz)
    return senders, gone, count if later.directed else count // 2


def _changed_features(earlier: Record, later: Record, before: NDArray[np.int64]) -> Mask:
    changed, step = before < 0, max(1, BLOCK_BYTES // (4 * later.num_features))
    for first in range(0, len(before), step):
        rows: Any = np.flatnonzero(before[first : first + step] >= 0) + first
        old: Any = before[rows]
        if len(rows) and np.array_equal(old, rows + old[0] - rows[0]) and len(rows) == rows[-1] - rows[0] + 1:
            old, rows = slice(old[0], old[-1] + 1), slice(rows[0], rows[-1] + 1)  # not copied
        one, other = earlier.table[old], later.table[rows]
        both = sparse.issparse(one) and sparse.issparse(other)
        if both:
            changed[rows] = np.diff((one != other).tocsr().indptr) > 0
        elif not np.array_equal(one := dense(one), other := dense(other)):  # faster than a look at each row
            changed[rows] = (one != other).any(axis=1)
    return changed
