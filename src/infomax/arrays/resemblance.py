"""Resemblance: how much more alike the features of neighbours are than those of other pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.scaling import SMALL, Scaler
from infomax.arrays.table import Table

SAMPLE, FEW = 50_000, 5_000
"""Edges that are looked at: the standard error is then at most about 0.003, and usually below 0.001. Few are enough
where these tell that neighbours are clearly alike: above twice `ALIKE`."""
ALIKE, DIFFERENT = 0.03, 0.01
"""On sixteen public graphs averaging over neighbours helped above the one; below the other raw features mostly won."""
MEANING = "The number is the mean centred cosine of the features of neighbours, less that of random pairs of nodes."


def resemblance(table: Table, edges: Adjacency, scaler: Scaler, seed: int = 0) -> float | None:
    """The mean centred cosine of the features at both ends of an edge, less that of random pairs; None without edges.

    Only edges count that have features at both ends: a row of zeros says that nothing is known of its node. A random
    pair has one end of an edge and another end of any edge. The mean over all such pairs needs none of them: it is the
    product of the mean unit vectors of both ends. Of many edges a sample is drawn. Only the rows of their nodes are
    read, some at a time.
    """
    found = None
    for most in (FEW, SAMPLE):
        found = _among(most, table, edges, scaler, seed)
        if found is None or found > 2 * ALIKE or edges.nnz <= most:
            break
    return found


def _among(most: int, table: Table, edges: Adjacency, scaler: Scaler, seed: int) -> float | None:
    """As `resemblance`, of so many edges at most."""
    if not edges.nnz:
        return None
    senders = edges.senders
    few = edges.nnz <= most
    drawn = (
        np.arange(edges.nnz)
        if few
        else np.sort(np.random.default_rng(seed).integers(edges.nnz, size=most))
    )
    near = np.searchsorted(senders.indptr, drawn, side="right") - 1
    far = np.asarray(senders.indices[drawn], np.int64)
    centre = _centre(table, scaler, most)
    count = 0
    joined = 0.0
    means = np.zeros((2, table.shape[1]))
    for part in _blocks(len(drawn), table):
        nodes, at = np.unique(np.concatenate([near[part], far[part]]), return_inverse=True)
        ends = at.reshape(2, -1)
        rows = table[nodes]
        ends = ends[:, _described(rows)[ends].all(axis=0)]
        x = Centred(scaler.transform(rows), centre)
        count += ends.shape[1]
        joined += float(x.cosines(*ends).sum())
        means += [x.total(one) for one in ends]
    return joined / count - float(means[0] @ means[1]) / count**2 if count else None


def in_words(value: float | None) -> str:
    """A resemblance as people read it."""
    if value is None:
        return "there are no edges between nodes with features"
    if value >= ALIKE:
        return f"neighbours resemble each other ({value:.3f})"
    if value >= DIFFERENT:
        return f"neighbours hardly resemble each other ({value:.3f})"
    return f"neighbours do not resemble each other ({value:.3f})"


class Centred:
    """Rows ``[n, F]``, dense or sparse, less a centre ``[F]``; the difference, which would be dense, is never made."""

    def __init__(self, rows: Any, centre: NDArray[np.float64]) -> None:
        self.rows, self.centre, self.along = rows, centre, rows @ centre
        self.level = float(centre @ centre)
        squares = rows.power(2) if sparse.issparse(rows) else np.square(rows)
        square = np.asarray(squares.sum(axis=1, dtype=np.float64) - 2 * self.along + self.level)
        apart = square > 1e-12 * self.level
        self.inverse = np.zeros(len(square))
        self.inverse[apart] = 1 / np.sqrt(square[apart])
        """``[n]``: 1 by the length of each row; 0 where a row is the centre."""

    def cosines(self, some: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Those of pairs of rows, ``[m]``."""
        x, y = self.rows[some], self.rows[others]
        plain = (x.multiply(y) if sparse.issparse(x) else x * y).sum(axis=1, dtype=np.float64)
        products = plain - self.along[some] - self.along[others] + self.level
        return np.asarray(products * self.inverse[some] * self.inverse[others])

    def total(self, some: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum ``[F]`` of rows at length 1, some of them several times."""
        weights = np.bincount(some, minlength=len(self.inverse)) * self.inverse
        return np.asarray(self.rows.T @ weights - self.centre * weights.sum())


def _centre(table: Table, scaler: Scaler, most: int) -> NDArray[np.float64]:
    """The mean ``[F]`` of the scaled features of nodes, at equal distances where there are many."""
    nodes, total = np.arange(0, len(table), max(1, len(table) // most)), np.zeros(table.shape[1])
    for part in _blocks(len(nodes), table):
        total += np.asarray(scaler.transform(table[nodes[part]]).sum(axis=0, dtype=np.float64))
    return total / len(nodes)


def _described(rows: Any) -> NDArray[np.bool_]:
    """Which rows ``[n, F]`` have a number other than zero."""
    if sparse.issparse(rows):
        return np.asarray(rows.indptr[1:] > rows.indptr[:-1])
    return np.asarray((rows != 0).any(axis=1))


def _blocks(count: int, table: Table) -> Iterator[slice]:
    """Slices of so many rows, each small in memory; sparse rows are small however wide they are."""
    step = SMALL // 64 if table.sparse else max(1, SMALL // table.shape[1])
    return (slice(first, first + step) for first in range(0, count, step))
