"""Lay out all nodes of a map in the plane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.analysis.tsne import descend
from infomax.kernels.host import leading_eigenvectors
from infomax.progress import Progress, silent

LAYOUT_NEIGHBOURS = 15
"""Nearest neighbours that attract a node."""
EARLY_STEPS, LATE_STEPS = 100, 250
"""Steps of gradient descent; more change little (benchmarks/README.md)."""
NOISE = 1e-3
"""Deviation of the noise that lets equal vectors separate."""
SMALLEST_SIDE = 0.1
"""The least side of a picture beside others, and the gap between two, as parts of the largest."""


def layout(
    vectors: NDArray[np.float32],
    neighbours: NDArray[np.int64],
    *,
    seed: int,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Points ``[N, 2]`` in the plane for the nodes, with neighbours close to each other.

    All neighbours of a node attract it equally; the result looks like that of t-SNE's calibrated
    forces. It starts from the first two principal components, which keeps distant groups apart.

    Args:
        vectors: ``[N, d]``.
        neighbours: ``[N, k]``, the rows of those nearest to each.
        seed: of the noise.
        progress: is told the steps done.
    """
    n, k = neighbours.shape
    noise = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    start = _principal_plane(vectors) + NOISE * noise
    if k == n - 1:  # all nodes are neighbours of all: nothing to lay out
        return start
    weights = np.ones(n * k, np.float32)
    row_starts = k * np.arange(n + 1)
    directed = sparse.csr_array((weights, neighbours.ravel(), row_starts), (n, n))
    edges = sparse.csr_array(directed + directed.T)
    edges.data /= edges.data.sum()
    return descend(start, edges, EARLY_STEPS, LATE_STEPS, progress=progress)


def side_by_side(pictures: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The points ``[N, 2]`` of several pictures ``[n, 2]`` in a row.

    Each picture is in a square whose area is its share of the nodes.
    """
    sides = np.sqrt([len(picture) for picture in pictures])
    sides = np.maximum(sides / sides.max(), SMALLEST_SIDE)
    left = 0.0
    moved_pictures = []
    for side, picture in zip(sides.tolist(), pictures, strict=True):
        corner = picture.min(axis=0)
        extent = max(float(np.ptp(picture, axis=0).max()), 1e-9)
        origin = np.array([left, -side / 2], np.float32)
        moved_pictures.append((picture - corner) / extent * side + origin)
        left += side + SMALLEST_SIDE
    return np.concatenate(moved_pictures)


def _principal_plane(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first two principal components ``[N, 2]`` of the directions of vectors ``[N, d]``.

    The first component has a deviation of 1.
    """
    directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    directions -= directions.mean(axis=0)
    axes = leading_eigenvectors(directions.T @ directions, 2)
    # The sign of an axis is arbitrary: make its largest entry positive, so that all machines agree.
    largest_rows = np.abs(axes).argmax(axis=0)
    axes *= np.sign(axes[largest_rows, np.arange(axes.shape[1])])
    components: NDArray[np.float32] = directions @ axes
    if components.shape[1] < 2:
        components = np.column_stack([components, np.zeros(len(components), np.float32)])
    return components / max(float(components[:, 0].std()), 1e-12)
