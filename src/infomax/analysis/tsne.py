"""t-SNE in time proportional to the number of nodes.

The gradient of t-SNE is an attraction along the edges of the neighbour graph, and a repulsion
between all pairs, sum_j (y_i - y_j) / (1 + |y_i - y_j|^2)^2. The repulsion is a convolution of the
density of the points with a fixed kernel, so it is computed on a grid by the fast Fourier
transform.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import fft, sparse
from scipy.special import xlogy

from infomax.kernels.host import equal_ranges, ranges_by_entries, run_in_ranges
from infomax.progress import Progress, silent

PlanePoints: TypeAlias = NDArray[np.float32]
"""Points in the plane, ``[N, 2]``."""
CELL = 0.5
"""The side of a cell of the grid."""
FEWEST_CELLS = 100
"""Cells each way, at least, of a fine grid."""
EARLY_EXAGGERATION = 12
"""How much stronger the attraction is in the early steps."""
BISECTIONS = 30
"""Halvings of the interval in which the width of a normal distribution is searched."""


def descend(
    start: PlanePoints,
    edges: sparse.csr_array,
    early_steps: int,
    late_steps: int,
    *,
    fine: bool = False,
    progress: Progress = silent,
) -> PlanePoints:
    """The points ``[N, 2]`` of nodes after some steps of gradient descent, centred.

    Args:
        start: ``[N, 2]``, with a deviation of about 1.
        edges: ``[N, N]``, how strongly nodes attract each other: symmetric, the sum of all is 1, no
            row is empty.
        early_steps: steps with a stronger attraction, in which clusters gather.
        late_steps: the steps after them.
        fine: compute the repulsion more accurately: at least 100 cells each way, and cubic splines.
            On large graphs a step then takes twice as long.
        progress: is told the steps done.
    """
    from infomax.analysis.compiled import attract

    n = len(start)
    points = 1e-4 * np.ascontiguousarray(start)
    velocity = np.zeros_like(start)
    gain = np.ones_like(start)
    attraction = np.empty_like(start)
    # Unsigned numbers, since numba lets those below zero count from the end, which takes longer.
    row_starts = edges.indptr.astype(np.uint32)
    columns = edges.indices.astype(np.uint32)
    for step in range(early_steps + late_steps):
        exaggeration, momentum = 1, 0.8
        if step < early_steps:
            exaggeration, momentum = EARLY_EXAGGERATION, 0.5
        ranges = ranges_by_entries(row_starts)
        run_in_ranges(attract, (ranges, points, row_starts, columns, edges.data, attraction))
        gradient = exaggeration * attraction - _repulsion(points, fine)

        # The rate of each coordinate grows while its gradient keeps its sign.
        changes_sign = gradient * velocity > 0
        gain = np.where(changes_sign, 0.8 * gain, gain + 0.2)
        gain = np.maximum(gain, 0.01).astype(np.float32)
        velocity = momentum * velocity - n / exaggeration * gain * gradient
        points = points + velocity
        progress(step + 1, "layout", early_steps + late_steps)
    centred: PlanePoints = points - points.mean(axis=0)
    return centred


def affinities(vectors: NDArray[Any], perplexity: float) -> sparse.csr_array:
    """How strongly t-SNE attracts each pair of nodes, ``[N, N]``: symmetric, the sum of all is 1.

    Around each vector of ``[N, d]`` lies a normal distribution that is as wide as its entropy,
    log(perplexity), needs; it is cut off after three times the perplexity of neighbours.
    """
    from sklearn.neighbors import NearestNeighbors

    n = len(vectors)
    neighbour_count = min(n - 1, int(3 * perplexity) + 1)
    search = NearestNeighbors(n_neighbors=neighbour_count).fit(vectors)
    distances, neighbours = search.kneighbors()
    # Differences from the nearest keep the exponentials below from vanishing.
    squares = distances**2 - distances[:, :1] ** 2
    squares /= np.maximum(squares.mean(axis=1, keepdims=True), 1e-30)

    # The logarithm of 1 / variance, by bisection.
    low = np.full((n, 1), -20.0)
    high = np.full((n, 1), 20.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        shares = np.exp(-np.exp(middle) * squares)
        shares /= shares.sum(axis=1, keepdims=True)
        entropy = -xlogy(shares, shares).sum(axis=1, keepdims=True)
        is_too_wide = entropy > np.log(perplexity)
        low = np.where(is_too_wide, middle, low)
        high = np.where(is_too_wide, high, middle)

    shares = (shares / (2 * n)).astype(np.float32)
    row_starts = neighbour_count * np.arange(n + 1)
    directed = sparse.csr_array((shares.ravel(), neighbours.ravel(), row_starts), (n, n))
    return sparse.csr_array(directed + directed.T)


def _repulsion(points: PlanePoints, fine: bool) -> PlanePoints:
    """The repulsion ``[N, 2]`` of each point by all other ones.

    It is the sum of (y_i - y_j) / (1 + |y_i - y_j|^2)^2 over j, divided by the sum of
    1 / (1 + |y_i - y_j|^2) over all pairs.

    Args:
        points: the points y.
        fine: see `descend`.
    """
    from infomax.analysis.compiled import collect, spread

    cell = CELL
    spline_degree = 1
    if fine:
        extent = max(float(np.ptp(points, axis=0).max()), 0.1)
        # A power of 2, so that few kernels are computed while the extent grows.
        cell = min(CELL, 2.0 ** math.floor(math.log2(extent / FEWEST_CELLS)))
        spline_degree = 3

    # Each point adds to the density at the corners of its cell, by its distance from them.
    # `collect` reads the field from the same corners with the same weights.
    grid = (points - points.min(axis=0)) / np.float32(cell)
    side = int(grid.max()) + spline_degree + 1
    density = np.zeros((side, side), np.float32)
    spread(grid, density, spline_degree)

    # A product of spectra is a circular convolution. Twice as wide as the grid, it does not wrap
    # round; widths are in steps of 64, so that few kernels are computed.
    size = fft.next_fast_len(64 * (2 * side // 64 + 1))
    potential, force = _kernels(size, cell, spline_degree)
    rows_spectrum = fft.rfft(density, size, axis=1, workers=-1)
    spectrum = fft.fft(rows_spectrum, size, axis=0, workers=-1)
    # By Parseval's theorem. Each point is also paired with itself, which adds 1.
    sum_over_pairs = float((np.abs(spectrum) ** 2 * potential).sum()) - len(points)
    columns = fft.ifft(spectrum * force, axis=1, workers=-1, overwrite_x=True)[:, :side]
    field = fft.irfft(columns, size, axis=2, workers=-1)

    repulsion = np.empty_like(points)
    scale = 1 / max(sum_over_pairs, 1e-12)
    ranges = equal_ranges(len(points))
    run_in_ranges(collect, (ranges, grid, field, spline_degree, scale, repulsion))
    return repulsion


@lru_cache(maxsize=1)
def _kernels(
    size: int, cell: float, spline_degree: int
) -> tuple[NDArray[np.float32], NDArray[np.complex64]]:
    """Spectra of 1 / (1 + |z|^2) and z / (1 + |z|^2)^2 on the grid, corrected for the
    blur of spreading a point over corners of the grid, and of reading it back.

    Both are the half ``[size, size // 2 + 1]`` that a real function needs, the second for each of
    two coordinates. The first is scaled so that its sum, weighted by the squared spectrum of the
    density, is the sum over all ordered pairs, each point with itself included.
    """
    cycles = fft.fftfreq(size)
    z = cell * size * np.stack(np.meshgrid(cycles, cycles, indexing="ij"))
    closeness = 1 / (1 + (z**2).sum(axis=0))
    # A spline multiplies the spectrum by a power of sinc in each direction, once for writing and
    # once for reading.
    blur = np.outer(np.sinc(cycles), np.sinc(fft.rfftfreq(size))) ** (2 * spline_degree + 2)
    potential = fft.rfft2(closeness) / blur
    force = fft.rfft2(z * closeness**2) / blur
    potential[:, 1 : (size + 1) // 2] *= 2  # each also stands for its conjugate, left out by rfft2
    return (potential.real / size**2).astype(np.float32), force.astype(np.complex64)
