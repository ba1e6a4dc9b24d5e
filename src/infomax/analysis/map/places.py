"""Place all nodes of a map in the plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.analysis.tsne import descend
from infomax.kernels.host import leading_eigenvectors
from infomax.progress import Progress, silent

NEIGHBOURS = 15
SMALLEST = 0.1
"""Of several pictures, the least side, and the gap between two, as parts of the largest."""
EARLY, LATE = 100, 250
"""Steps; with 150 and 400 the map of 12,000 nodes has the same trustworthiness, 0.85, and keeps 25.1 % of the nearest
neighbours nearest, not 24.5."""


def layout(
    vectors: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    *,
    seed: int,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Places ``[N, 2]`` of the nodes, with neighbours close to each other.

    All neighbours of a node attract it equally; the result looks like that of t-SNE's calibrated forces. It starts from
    the first two principal components, which keeps distant groups apart, plus a little noise, so that equal vectors can
    separate. ``neighbours`` are the rows ``[N, k]`` of those nearest to each of ``[N, d]``, from `nearest`.
    """
    n, k = neighbours.shape
    start = _principal(vectors) + 1e-3 * np.random.default_rng(seed).normal(size=(n, 2)).astype(
        np.float32
    )
    if k == n - 1:  # all nodes are neighbours of all: nothing to lay out
        return start
    edges = sparse.csr_array(
        (np.ones(n * k, np.float32), neighbours.ravel(), k * np.arange(n + 1)), (n, n)
    )
    edges = sparse.csr_array(edges + edges.T)
    edges.data /= edges.data.sum()
    return descend(start, edges, EARLY, LATE, progress=progress)


def side_by_side(pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Pictures ``[n, 2]`` in a row, each in a square whose area is its share of the nodes, as places ``[N, 2]``."""
    sides = np.sqrt([len(picture) for picture in pictures])
    sides = np.maximum(sides / sides.max(), SMALLEST)
    left = 0.0
    placed = []
    for side, picture in zip(sides.tolist(), pictures, strict=True):
        corner, span = picture.min(axis=0), max(float(np.ptp(picture, axis=0).max()), 1e-9)
        placed.append((picture - corner) / span * side + np.array([left, -side / 2], np.float32))
        left += side + SMALLEST
    return np.concatenate(placed)


def _principal(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first two principal components ``[N, 2]`` of the directions of ``[N, d]`` vectors, the first of spread 1."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    units -= units.mean(axis=0)
    axes = leading_eigenvectors(units.T @ units, 2)
    # The sign of an axis is arbitrary: make its largest entry positive, so that all machines agree.
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    components: NDArray[np.float32] = units @ axes
    if components.shape[1] < 2:
        components = np.column_stack([components, np.zeros(len(components), np.float32)])
    return components / max(float(components[:, 0].std()), 1e-12)
