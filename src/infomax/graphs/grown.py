"""A graph folder with new nodes: the new ones are in memory, the known ones stay on disk, and nothing is copied."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.degrees import degree_features, node_degrees
from infomax.arrays.stored import StoredAdjacency, StoredFeatures, entries
from infomax.graphs.graph import Graph


@dataclass(frozen=True, eq=False)
class Appended:
    """Rows of a stored array ``[N, ...]``, then rows in memory ``[M, ...]``, which decide the dtype."""

    known: Any
    new: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N + M, ...)``."""
        return len(self), *self.new.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that are read."""
        return self.new.dtype

    def __len__(self) -> int:
        return len(self.known) + len(self.new)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        late, out = rows >= len(self.known), np.empty((len(rows), *self.new.shape[1:]), self.new.dtype)
        known = self.known[rows[~late]]
        # Beside new ids that are text, integers are text too.
        out[~late] = list(map(str, known.tolist())) if self.new.dtype == object and known.dtype != object else known
        out[late] = self.new[rows[late] - len(self.known)]
        return out

    def tolist(self) -> list[Any]:
        """All rows, in memory."""
        rows: list[Any] = self[:].tolist()
        return rows


@dataclass(frozen=True, eq=False)
class DegreeRows:
    """The degree features ``[N, 32]`` of degrees ``[N]``, made when they are asked for."""

    degrees: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, 32)``."""
        return len(self.degrees), 32

    def __len__(self) -> int:
        return len(self.degrees)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = degree_features(self.degrees[rows])[0].toarray()
        return found


@dataclass(frozen=True, eq=False)
class GrownAdjacency:
    """A stored matrix ``[N, N]`` and further entries in memory; an entry in both counts with the sum of its values.

    Shapes:
        known: ``[N, N]``, by rows or by columns
        extra: ``[N + M, N + M]``, its rows those of the stored arrays
        shared: those entries of ``extra`` that are stored, too
    """

    known: StoredAdjacency
    extra: sparse.csr_array
    shared: sparse.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """``(N + M, N + M)``."""
        return self.extra.shape[0], self.extra.shape[0]

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self.known.nnz + int(self.extra.nnz) - int(self.shared.nnz)

    @property
    def weighted(self) -> bool:
        """Whether any entry has a weight other than 1."""
        return self.known.weighted or bool((self.extra.data != 1).any())

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the entries of each row would begin ``[N + M + 1]``, were they in one array; shared ones twice."""
        known = self.known.indptr
        late = np.full(self.shape[0] + 1 - len(known), known[-1])
        return np.asarray(np.concatenate([known, late]) + self.extra.indptr)

    def sums(self) -> NDArray[np.float64]:
        """The sum ``[N + M]`` of each row of the stored arrays."""
        total = self.extra.sum(axis=1, dtype=np.float64)
        total[: self.known.shape[0]] += self.known.sums()
        return np.asarray(total)

    def degrees(self, directed: bool) -> NDArray[np.int64]:
        """As `node_degrees`."""
        degrees: NDArray[np.int64] = node_degrees(self.extra, directed) - node_degrees(self.shared, directed)
        degrees[: self.known.shape[0]] += node_degrees(self.known, directed)
        return degrees

    def rows(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """The entries of some rows of the stored arrays: the place of their row among ``nodes``, column and value."""
        old = np.flatnonzero(nodes < self.known.shape[0])
        place, columns, values = entries(self.known, nodes[old])
        late, others, weights = entries(self.extra, nodes)
        places = np.concatenate([old[place], late])
        return places, np.concatenate([columns, others]), np.concatenate([values, weights])

    def part(self, rows: NDArray[np.int64]) -> sparse.csr_array:
        """As `StoredAdjacency.part`."""
        return self.loaded()[rows][:, rows]

    def loaded(self) -> sparse.csr_array:
        """The same matrix in memory."""
        known = self.known.loaded()
        known.resize(self.shape)
        return sparse.csr_array(known + (self.extra if self.known.format == "csr" else self.extra.T))


def grow(
    known: Graph, edges: NDArray[np.int64], weight: NDArray[np.float32] | None, ids: list[Any], features: Any
) -> Graph:
    """A graph folder with new nodes appended; the split "new" marks them, and there are no labels.

    Args:
        known: the graph of a folder.
        edges: ``[2, E]`` rows; those from N on are the new nodes.
        weight: ``[E]``.
        ids: M, of the new nodes.
        features: ``[M, F]`` of the new nodes; None: all nodes get degree features.
    """
    stored, n = known.adjacency, known.num_nodes + len(ids)
    values = np.ones(edges.shape[1], np.float32) if weight is None else weight
    listed = sparse.coo_array((values, (edges[0], edges[1])), shape=(n, n))
    matrix, dropped = checks.clean(listed, known.directed, weight is None)
    extra = sparse.csr_array(matrix.T) if known.directed else matrix
    extra, shared = _apart(extra, stored)
    dropped["duplicates"] += int(shared.nnz) if known.directed else int(shared.nnz) // 2
    if weight is None:  # an edge that the folder has already counts once
        adjacency = GrownAdjacency(stored, extra, sparse.csr_array(extra.shape, dtype=np.float32))
    else:
        adjacency = GrownAdjacency(stored, sparse.csr_array(extra + shared), shared)
    text = known.ids.dtype == object or isinstance(ids[0], str)
    late = np.array(list(map(str, ids)) if text else ids, dtype=object if text else np.int64)
    if features is None:
        rows: Any = DegreeRows(adjacency.degrees(known.directed))
        names = tuple(degree_features(np.zeros(1, np.int64))[1])
    else:
        rows, names = Appended(known.features.array, features), known.feature_names
    return dataclasses.replace(
        known,
        adjacency=adjacency,
        features=StoredFeatures(rows),
        feature_names=names,
        ids=Appended(known.ids, late),  # type: ignore[arg-type]
        labels={},
        splits={"new": np.arange(n) >= known.num_nodes},
        dropped=dropped,
    )


def _apart(extra: sparse.csr_array, stored: StoredAdjacency) -> tuple[sparse.csr_array, sparse.csr_array]:
    """The entries that are not stored, and those that are."""
    links, n = extra.tocoo(), extra.shape[0]
    nodes = np.unique(links.row[links.row < stored.shape[0]]).astype(np.int64)
    owner, columns, _ = entries(stored, nodes)
    twice = np.isin(links.row.astype(np.int64) * n + links.col, nodes[owner] * n + columns)
    new, shared = (
        sparse.csr_array((links.data[kept], (links.row[kept], links.col[kept])), shape=extra.shape)
        for kept in (~twice, twice)
    )
    return new, shared
