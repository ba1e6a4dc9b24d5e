"""Resemblance: how much more alike the features of neighbours are than those of other pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.scaling import Scaler
from infomax.arrays.table import FeatureTable

EDGES_IN_SAMPLE = 50_000
"""Edges that are looked at.

The standard error is then at most about 0.003, and usually below 0.001.
"""
EDGES_IN_FIRST_SAMPLE = 5_000
"""They are enough where neighbours are clearly alike: above twice `ALIKE_ABOVE`."""
ALIKE_ABOVE = 0.03
"""Above it averaging over neighbours helped on sixteen public graphs."""
DIFFERENT_BELOW = 0.01
"""Below it raw features mostly won on these graphs."""
CELLS_PER_BLOCK = 1 << 20
"""Numbers of dense features that are read at a time."""
SPARSE_ROWS_PER_BLOCK = 1 << 14
"""Rows of sparse features that are read at a time: they are small however wide they are."""
MEANING = (
    "The number is the mean centred cosine of the features of neighbours, "
    "less that of random pairs of nodes."
)


def resemblance(
    table: FeatureTable,
    edges: Adjacency,
    scaler: Scaler,
    seed: int = 0,
    sample_sizes: tuple[int, int] = (EDGES_IN_FIRST_SAMPLE, EDGES_IN_SAMPLE),
    cells_per_block: int = CELLS_PER_BLOCK,
) -> float | None:
    """The mean centred cosine of the features at both ends of an edge, less that of random pairs.

    Only edges count that have features at both ends: a row of zeros says that nothing is known of
    its node. A random pair has one end of an edge and another end of any edge. The mean over all
    such pairs needs none of them: it is the product of the mean unit vectors of both ends.

    Args:
        table: the features.
        edges: the edges; without any the resemblance is None.
        scaler: what scales the features.
        seed: decides which edges are drawn, where there are many.
        sample_sizes: how many edges are drawn first; and how many then, where the first do not
            show clearly that neighbours are alike.
        cells_per_block: numbers that are read at a time.
    """
    first_size, second_size = sample_sizes
    first_estimate = _resemblance_in_sample(first_size, table, edges, scaler, seed, cells_per_block)
    is_clear = first_estimate is None or first_estimate > 2 * ALIKE_ABOVE
    if is_clear or edges.nnz <= first_size:
        return first_estimate
    return _resemblance_in_sample(second_size, table, edges, scaler, seed, cells_per_block)


def _resemblance_in_sample(
    sample_size: int,
    table: FeatureTable,
    edges: Adjacency,
    scaler: Scaler,
    seed: int,
    cells_per_block: int,
) -> float | None:
    """As `resemblance`, of so many edges at most."""
    if not edges.nnz:
        return None
    if edges.nnz <= sample_size:
        drawn = np.arange(edges.nnz)
    else:
        drawn = np.sort(np.random.default_rng(seed).integers(edges.nnz, size=sample_size))

    # The ends of the drawn entries: an entry belongs to the last node that starts at or before it.
    receivers = np.searchsorted(edges.senders.indptr, drawn, side="right") - 1
    senders = np.asarray(edges.senders.indices[drawn], np.int64)

    centre = _centre(table, scaler, sample_size, cells_per_block)
    num_edges = 0
    cosine_sum = 0.0
    unit_vector_sums = np.zeros((2, table.shape[1]))
    for block in _blocks(len(drawn), table, cells_per_block):
        both_ends = np.concatenate([receivers[block], senders[block]])
        # Each node is read once, however many edges it has.
        nodes, positions = np.unique(both_ends, return_inverse=True)
        rows = table[nodes]
        ends = positions.reshape(2, -1)
        both_have_features = _has_features(rows)[ends].all(axis=0)
        ends = ends[:, both_have_features]

        centred_rows = Centred(scaler.transform(rows), centre)
        num_edges += ends.shape[1]
        cosine_sum += float(centred_rows.cosines(*ends).sum())
        unit_vector_sums += [centred_rows.total(positions_of_end) for positions_of_end in ends]
    if num_edges == 0:
        return None
    # The mean over all pairs of ends is the product of two means.
    cosine_of_random_pairs = float(unit_vector_sums[0] @ unit_vector_sums[1]) / num_edges**2
    return cosine_sum / num_edges - cosine_of_random_pairs


def in_words(value: float | None) -> str:
    """A resemblance as people read it."""
    if value is None:
        return "there are no edges between nodes with features"
    if value >= ALIKE_ABOVE:
        return f"neighbours resemble each other ({value:.3f})"
    if value >= DIFFERENT_BELOW:
        return f"neighbours hardly resemble each other ({value:.3f})"
    return f"neighbours do not resemble each other ({value:.3f})"


class Centred:
    """Rows ``[n, F]``, dense or sparse, less a centre ``[F]``.

    The difference, which would be dense, is never made.
    """

    def __init__(self, rows: Any, centre: NDArray[np.float64]) -> None:
        self.rows = rows
        self.centre = centre
        self.products_with_centre = rows @ centre
        self.square_of_centre = float(centre @ centre)

        squares = rows.power(2) if sparse.issparse(rows) else np.square(rows)
        row_squares = squares.sum(axis=1, dtype=np.float64)
        centred_squares = np.asarray(
            row_squares - 2 * self.products_with_centre + self.square_of_centre
        )
        differs = centred_squares > 1e-12 * self.square_of_centre
        self.inverse_lengths = np.zeros(len(centred_squares))
        self.inverse_lengths[differs] = 1 / np.sqrt(centred_squares[differs])
        """``[n]``: 1 by the length of each row; 0 where a row is the centre."""

    def cosines(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.float64]:
        """The cosines ``[m]`` of pairs of rows."""
        x, y = self.rows[first], self.rows[second]
        entries = x.multiply(y) if sparse.issparse(x) else x * y
        products = (
            entries.sum(axis=1, dtype=np.float64)
            - self.products_with_centre[first]
            - self.products_with_centre[second]
            + self.square_of_centre
        )
        return np.asarray(products * self.inverse_lengths[first] * self.inverse_lengths[second])

    def total(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sum ``[F]`` of rows at length 1, by their numbers, some of them several times."""
        counts = np.bincount(rows, minlength=len(self.inverse_lengths))
        weights = counts * self.inverse_lengths
        return np.asarray(self.rows.T @ weights - self.centre * weights.sum())


def _centre(
    table: FeatureTable, scaler: Scaler, most_nodes: int, cells_per_block: int
) -> NDArray[np.float64]:
    """The mean ``[F]`` of the scaled features of nodes, at equal distances where there are many."""
    nodes = np.arange(0, len(table), max(1, len(table) // most_nodes))
    sums = np.zeros(table.shape[1])
    for block in _blocks(len(nodes), table, cells_per_block):
        scaled_rows = scaler.transform(table[nodes[block]])
        sums += np.asarray(scaled_rows.sum(axis=0, dtype=np.float64))
    return sums / len(nodes)


def _has_features(rows: Any) -> NDArray[np.bool_]:
    """Which rows ``[n, F]`` have a number other than zero."""
    if sparse.issparse(rows):
        return np.asarray(rows.indptr[1:] > rows.indptr[:-1])
    return np.asarray((rows != 0).any(axis=1))


def _blocks(count: int, table: FeatureTable, cells_per_block: int) -> Iterator[slice]:
    """Slices of so many rows, each small in memory."""
    rows_per_block = max(1, cells_per_block // table.shape[1])
    if table.sparse:
        rows_per_block = SPARSE_ROWS_PER_BLOCK
    return (slice(first, first + rows_per_block) for first in range(0, count, rows_per_block))
