"""Edges that are taken out of a graph before training, to score vectors on edges that they have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays.checks import check_array
from infomax.errors import InputError, format_count


def draw_edges(
    adjacency: sparse.csr_array,
    share: float,
    seed: int,
    joining: sparse.csr_array | None = None,
) -> NDArray[np.int64]:
    """A random share of the edges of an adjacency matrix ``[N, N]``: pairs of rows ``[2, H]``, the lower one first.

    ``joining`` ``[N, N]`` are the references of rows that join others, which are no edges of the matrix. One reference
    alone would be half of a link, so those of a row are drawn together, as one edge is.
    """
    links, n = adjacency.tocoo(), adjacency.shape[0]
    pairs = np.unique(_keys(np.stack(links.coords), n))
    joining_rows = np.empty(0, np.int64)
    if joining is not None:
        joining_rows = np.flatnonzero(np.diff(joining.indptr))

    drawn_from = len(pairs) + len(joining_rows)
    if drawn_from < 2:
        found, remedy = format_count(drawn_from, "edge"), "Train without holding edges out."
        raise InputError("edges to hold out", "a graph of two edges or more", found, remedy)
    count = round(share * drawn_from) if 0 < share < 1 else 0
    if not 0 < count < drawn_from:
        expected = f"a share between 0 and 1 that divides the {format_count(drawn_from, 'pair')} of joined nodes in two"
        raise InputError(
            "share of edges to hold out", expected, str(share), "Use 0.1, for example."
        )

    drawn = np.sort(np.random.default_rng(seed).choice(drawn_from, count, replace=False))
    keys = pairs[drawn[drawn < len(pairs)]]
    if joining is not None:
        rows = joining_rows[drawn[drawn >= len(pairs)] - len(pairs)]
        references = joining[rows].tocoo()
        ends = np.stack([rows[references.row], references.col.astype(np.int64)])
        keys = np.unique(np.concatenate([keys, _keys(ends, n)]))
    return np.stack(np.divmod(keys, n))


def without_edges(
    matrix: sparse.csr_array, held_out: NDArray[np.int64], first: tuple[int, int], n: int
) -> sparse.csr_array:
    """A matrix without edges ``[2, H]`` of N nodes, in either direction, since one would give away the other.

    Its rows and columns are the nodes from ``first`` on.
    """
    links = matrix.tocoo()
    keys = _keys(np.stack(links.coords).astype(np.int64) + np.array(first)[:, None], n)
    keep = ~np.isin(keys, _keys(held_out, n))
    return sparse.csr_array(
        (links.data[keep], (links.row[keep], links.col[keep])), shape=links.shape
    )


def _keys(ends: NDArray[Any], n: int) -> NDArray[np.int64]:
    """One number per pair of rows ``[2, E]``, whatever their order."""
    low, high = np.sort(ends.astype(np.int64), axis=0)
    return np.asarray(low * n + high)


def check_held_out(held_out: ArrayLike, adjacency: sparse.csr_array) -> NDArray[np.int64]:
    """Edges ``[2, H]`` that were held out; refuse one that is an edge of the graph all the same."""
    edges, n = (
        check_array("held_out", held_out, "iu", "row numbers (integers)", np.int64),
        adjacency.shape[0],
    )
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges < 0).any() or (edges >= n).any():
        found = f"shape {list(edges.shape)}, or rows outside"
        raise InputError(
            "held_out", f"an array of shape [2, H] with row numbers from 0 to {n - 1}", found
        )
    joined = are_joined(adjacency, edges)
    if joined.any():
        source, target = edges[:, int(np.argmax(joined))].tolist()
        raise InputError("held_out", "no edge of the graph", f"the edge {source} -> {target}")
    return edges


def are_joined(adjacency: sparse.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the pairs ``[2, P]`` of nodes an edge joins, in one direction or the other: ``[P]``."""
    if pairs.shape[1] == 0:  # scipy would return a matrix
        return np.zeros(0, dtype=bool)
    u, v = pairs
    return np.asarray((adjacency[u, v] != 0) | (adjacency[v, u] != 0))
