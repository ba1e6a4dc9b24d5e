"""Edges that are taken out of a graph before training, to score vectors on edges not seen."""

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
    """A random share of the edges: pairs of rows ``[2, H]``, the lower row first.

    Args:
        adjacency: ``[N, N]``.
        share: the share to draw, between 0 and 1.
        seed: decides which edges are drawn.
        joining: ``[N, N]``, the references of rows that join others, which are no edges of the
            adjacency. One reference alone would be half of a link, so the references of a row are
            drawn together, as one edge is.
    """
    n = adjacency.shape[0]
    pairs = np.unique(_pair_keys(np.stack(adjacency.tocoo().coords), n))
    joining_rows = np.empty(0, np.int64)
    if joining is not None:
        joining_rows = np.flatnonzero(np.diff(joining.indptr))

    num_candidates = len(pairs) + len(joining_rows)
    if num_candidates < 2:
        found = format_count(num_candidates, "edge")
        remedy = "Train without holding edges out."
        raise InputError("edges to hold out", "a graph of two edges or more", found, remedy)
    num_drawn = round(share * num_candidates) if 0 < share < 1 else 0
    if not 0 < num_drawn < num_candidates:
        pair_count = format_count(num_candidates, "pair")
        expected = f"a share between 0 and 1 that divides the {pair_count} of joined nodes in two"
        remedy = "Use 0.1, for example."
        raise InputError("share of edges to hold out", expected, str(share), remedy)

    generator = np.random.default_rng(seed)
    drawn = np.sort(generator.choice(num_candidates, num_drawn, replace=False))
    # Numbers below the number of pairs are edges; those above are rows that join others.
    keys = pairs[drawn[drawn < len(pairs)]]
    if joining is not None:
        rows = joining_rows[drawn[drawn >= len(pairs)] - len(pairs)]
        references = joining[rows].tocoo()
        ends = np.stack([rows[references.row], references.col.astype(np.int64)])
        keys = np.unique(np.concatenate([keys, _pair_keys(ends, n)]))
    return np.stack(np.divmod(keys, n))


def without_edges(
    matrix: sparse.csr_array, held_out: NDArray[np.int64], first_nodes: tuple[int, int], n: int
) -> sparse.csr_array:
    """A matrix without some edges, in either direction, since one would give away the other.

    Args:
        matrix: the edges of a relation.
        held_out: ``[2, H]`` rows among all nodes.
        first_nodes: which of all nodes the first row and the first column of the matrix are.
        n: the number of all nodes.
    """
    entries = matrix.tocoo()
    ends = np.stack(entries.coords).astype(np.int64) + np.array(first_nodes)[:, None]
    is_kept = ~np.isin(_pair_keys(ends, n), _pair_keys(held_out, n))
    kept_ends = (entries.row[is_kept], entries.col[is_kept])
    return sparse.csr_array((entries.data[is_kept], kept_ends), shape=entries.shape)


def _pair_keys(ends: NDArray[Any], n: int) -> NDArray[np.int64]:
    """One number per pair of rows ``[2, E]``, whatever their order."""
    low, high = np.sort(ends.astype(np.int64), axis=0)
    return np.asarray(low * n + high)


def check_held_out(held_out: ArrayLike, adjacency: sparse.csr_array) -> NDArray[np.int64]:
    """Edges ``[2, H]`` that were held out; refuse one that is an edge of the graph all the same."""
    edges = check_array("held_out", held_out, "iu", "row numbers (integers)", np.int64)
    n = adjacency.shape[0]
    has_shape = edges.ndim == 2 and edges.shape[0] == 2
    if not has_shape or (edges < 0).any() or (edges >= n).any():
        expected = f"an array of shape [2, H] with row numbers from 0 to {n - 1}"
        found = f"shape {list(edges.shape)}, or rows outside"
        raise InputError("held_out", expected, found)
    is_edge = are_joined(adjacency, edges)
    if is_edge.any():
        source, target = edges[:, int(np.argmax(is_edge))].tolist()
        raise InputError("held_out", "no edge of the graph", f"the edge {source} -> {target}")
    return edges


def are_joined(adjacency: sparse.csr_array, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether an edge joins each pair of nodes, in either direction: ``[2, P]`` -> ``[P]``."""
    # Of no pairs scipy would return a matrix.
    if pairs.shape[1] == 0:
        return np.zeros(0, dtype=bool)
    sources, targets = pairs
    has_edge = (adjacency[sources, targets] != 0) | (adjacency[targets, sources] != 0)
    return np.asarray(has_edge)
