"""t-SNE in time proportional to the number of nodes.

The gradient of t-SNE is an attraction along the edges of the neighbour graph, and a repulsion between all pairs,
sum_j (y_i - y_j) / (1 + |y_i - y_j|^2)^2. The repulsion is a convolution of the density of the points with a fixed
kernel, so it is computed on a grid by the fast Fourier transform.
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

Places: TypeAlias = NDArray[np.float32]
"""Points in the plane, ``[N, 2]``."""
CELL, CELLS = 0.5, 100


def descend(
    start: NDArray[np.float32],
    edges: sparse.csr_array,
    early: int,
    late: int,
    *,
    fine: bool = False,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Places ``[N, 2]`` after so many steps of gradient descent.

    Args:
        start: ``[N, 2]``, with a deviation of about 1.
        edges: ``[N, N]``, how strongly nodes attract each other: symmetric, the sum of all is 1, no row is empty.
        early, late: steps with a stronger attraction, which lets the clusters find their places, and steps after them.
        fine: compute the repulsion more accurately: at least 100 cells each way, and cubic splines. On large graphs a
            step then takes twice as long.
    """
    from infomax.analysis.compiled import attract

    n = len(start)
    attraction = np.empty_like(
        start
    )  # of each point: the sum over its edges of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2)
    places = 1e-4 * np.ascontiguousarray(start)
    speed = np.zeros_like(start)
    gain = np.ones_like(start)
    # Numbers without a sign, since numba lets those below zero count from the end, which takes longer.
    forces = edges.indptr.astype(np.uint32), edges.indices.astype(np.uint32), edges.data
    for step in range(early + late):
        pull, momentum = (12, 0.5) if step < early else (1, 0.8)
        run_in_ranges(attract, (ranges_by_entries(forces[0]), places, *forces, attraction))
        gradient = pull * attraction - _repulsion(places, fine)
        gain = np.maximum(np.where(gradient * speed > 0, 0.8 * gain, gain + 0.2), 0.01).astype(
            np.float32
        )
        speed = momentum * speed - n / pull * gain * gradient
        places = places + speed
        progress(step + 1, "layout", early + late)
    centred: NDArray[np.float32] = places - places.mean(axis=0)
    return centred


def affinities(vectors: NDArray[Any], perplexity: float) -> sparse.csr_array:
    """How strongly t-SNE attracts each pair of nodes, ``[N, N]``, symmetric, the sum of all is 1.

    Around each vector of ``[N, d]`` lies a normal distribution that is as wide as its entropy, log(perplexity), needs;
    it is cut off after three times the perplexity of neighbours.
    """
    from sklearn.neighbors import NearestNeighbors

    n = len(vectors)
    k = min(n - 1, int(3 * perplexity) + 1)
    distances, rows = NearestNeighbors(n_neighbors=k).fit(vectors).kneighbors()
    squares = distances**2 - distances[:, :1] ** 2
    squares /= np.maximum(squares.mean(axis=1, keepdims=True), 1e-30)
    low, high = (
        np.full((n, 1), -20.0),
        np.full((n, 1), 20.0),
    )  # the logarithm of 1 / variance, by bisection
    for _ in range(30):
        middle = (low + high) / 2
        shares = np.exp(-np.exp(middle) * squares)
        shares /= shares.sum(axis=1, keepdims=True)
        wide = -xlogy(shares, shares).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    shares = (shares / (2 * n)).astype(np.float32)
    near = sparse.csr_array((shares.ravel(), rows.ravel(), k * np.arange(n + 1)), (n, n))
    return sparse.csr_array(near + near.T)


def _repulsion(points: Places, fine: bool) -> Places:
    """Sum over all other nodes of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, divided by that of 1 / (1 + |.|^2)."""
    from infomax.analysis.compiled import collect, spread

    cell, degree = CELL, 1
    if fine:
        reach = max(float(np.ptp(points, axis=0).max()), 0.1)
        cell, degree = (
            min(CELL, 2.0 ** math.floor(math.log2(reach / CELLS))),
            3,
        )  # a power of 2: few kernels
    # A point is shared among the corners around it; it reads the field from them with the same shares.
    grid = (points - points.min(axis=0)) / np.float32(cell)
    side = int(grid.max()) + degree + 1
    density = np.zeros((side, side), np.float32)
    spread(grid, density, degree)
    # Twice as wide as the grid, so that it does not wrap round; in steps of 64, so that few kernels are computed.
    size = fft.next_fast_len(64 * (2 * side // 64 + 1))
    potential, force = _kernels(size, cell, degree)
    spectrum = fft.fft(fft.rfft(density, size, axis=1, workers=-1), size, axis=0, workers=-1)
    pairs = float((np.abs(spectrum) ** 2 * potential).sum()) - len(points)
    columns = fft.ifft(spectrum * force, axis=1, workers=-1, overwrite_x=True)[:, :side]
    field = fft.irfft(columns, size, axis=2, workers=-1)
    out = np.empty_like(points)
    run_in_ranges(
        collect, (equal_ranges(len(points)), grid, field, degree, 1 / max(pairs, 1e-12), out)
    )
    return out


@lru_cache(maxsize=1)
def _kernels(
    size: int, cell: float, degree: int
) -> tuple[NDArray[np.float32], NDArray[np.complex64]]:
    """Spectra of 1 / (1 + |z|^2) and z / (1 + |z|^2)^2 on the grid, corrected for the sharing.

    Both are the half ``[size, size // 2 + 1]`` that a real function needs, the second for each of two coordinates. The
    first is scaled so that its sum, weighted by a squared spectrum, is the sum over all pairs.
    """
    cycles = fft.fftfreq(size)
    z = cell * size * np.stack(np.meshgrid(cycles, cycles, indexing="ij"))
    closeness = 1 / (1 + (z**2).sum(axis=0))
    # A spline multiplies the spectrum by a power of sinc in each direction, once for writing and once for reading.
    blur = np.outer(np.sinc(cycles), np.sinc(fft.rfftfreq(size))) ** (2 * degree + 2)
    potential, force = (fft.rfft2(kernel) / blur for kernel in (closeness, z * closeness**2))
    potential[:, 1 : (size + 1) // 2] *= 2  # these columns stand for two
    return (potential.real / size**2).astype(np.float32), force.astype(np.complex64)
