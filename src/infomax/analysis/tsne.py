"""t-SNE in time proportional to the number of nodes.

The gradient of t-SNE is an attraction along the edges of the neighbour graph, and a repulsion between all pairs,
sum_j (y_i - y_j) / (1 + |y_i - y_j|^2)^2. The repulsion is a convolution of the density of the points with a fixed
kernel, so it is computed on a grid by the fast Fourier transform. A place is one complex number.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

from infomax.progress import Progress, silent

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
    n = len(start)
    places, speed, gain = 1e-4 * np.ascontiguousarray(start), np.zeros_like(start), np.ones_like(start)
    for step in range(early + late):
        pull, momentum = (12, 0.5) if step < early else (1, 0.8)
        points = places.view(np.complex64).ravel()
        gradient = (pull * _attraction(points, edges) - _repulsion(points, fine)).view(np.float32).reshape(n, 2)
        gain = np.maximum(np.where(gradient * speed > 0, 0.8 * gain, gain + 0.2), 0.01).astype(np.float32)
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
    low, high = np.full((n, 1), -20.0), np.full((n, 1), 20.0)  # the logarithm of 1 / variance, by bisection
    for _ in range(30):
        middle = (low + high) / 2
        shares = np.exp(-np.exp(middle) * squares)
        shares /= shares.sum(axis=1, keepdims=True)
        wide = -xlogy(shares, shares).sum(axis=1, keepdims=True) > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    shares = (shares / (2 * n)).astype(np.float32)
    near = sparse.csr_array((shares.ravel(), rows.ravel(), k * np.arange(n + 1)), (n, n))
    return sparse.csr_array(near + near.T)


def _attraction(points: NDArray[np.complex64], edges: sparse.csr_array) -> NDArray[np.complex64]:
    """Sum over the edges of a node of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), ``[N]``; every node has an edge."""
    apart = np.repeat(points, np.diff(edges.indptr)) - points[edges.indices]
    pulls = apart * (edges.data / (1 + apart.real**2 + apart.imag**2))
    total: NDArray[np.complex64] = np.add.reduceat(pulls, edges.indptr[:-1])
    return total


def _repulsion(points: NDArray[np.complex64], fine: bool) -> NDArray[np.complex64]:
    """Sum over all other nodes of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, divided by that of 1 / (1 + |.|^2), ``[N]``."""
    cell, degree = CELL, 1
    if fine:
        reach = max(float(np.ptp(points.real)), float(np.ptp(points.imag)), 0.1)
        cell, degree = min(CELL, 2.0 ** math.floor(math.log2(reach / CELLS))), 3  # a power of 2: few kernels
    grid = (points - (points.real.min() + 1j * points.imag.min())) / np.float32(cell)
    x, y = grid.real.astype(np.int64), grid.imag.astype(np.int64)
    side = int(max(x.max(), y.max())) + degree + 1
    # A point is shared among the corners around it; it reads the field from them with the same shares.
    across, up = _shares(grid.real - x, degree), _shares(grid.imag - y, degree)
    corner = x * side + y
    shares = [(corner + i * side + j, across[i] * up[j]) for i in range(degree + 1) for j in range(degree + 1)]
    density = np.zeros(side * side)
    for cells, share in shares:
        density += np.bincount(cells, share, minlength=side * side)
    # Twice as wide as the grid, so that it does not wrap round; in steps of 64, so that few kernels are computed.
    size = scipy.fft.next_fast_len(64 * (2 * side // 64 + 1))
    potential, force = _kernels(size, cell, degree)
    spectrum = scipy.fft.fft2(density.astype(np.float32).reshape(side, side), s=(size, size), workers=-1)
    pairs = float((np.abs(spectrum) ** 2 * potential).mean()) - len(points)
    field = scipy.fft.ifft2(spectrum * force, workers=-1, overwrite_x=True)[:side, :side].ravel()
    total: NDArray[np.complex64] = sum(field[cells] * share for cells, share in shares)
    return (total / max(pairs, 1e-12)).astype(np.complex64)


def _shares(after: NDArray[Any], degree: int) -> list[NDArray[Any]]:
    """Shares ``[N]`` of the degree + 1 lines around points, which lie so far after a line: a B-spline."""
    shares = [np.ones_like(after)]
    for d in range(1, degree + 1):
        lower = [np.zeros_like(after), *shares, np.zeros_like(after)]
        shares = [((after + d - i) * lower[i] + (1 - after + i) * lower[i + 1]) / d for i in range(d + 1)]
    return shares


@lru_cache(maxsize=1)
def _kernels(size: int, cell: float, degree: int) -> tuple[NDArray[np.float32], NDArray[np.complex64]]:
    """Spectra ``[size, size]`` of 1 / (1 + |z|^2) and z / (1 + |z|^2)^2 on the grid, corrected for the sharing."""
    cycles = scipy.fft.fftfreq(size)
    z = cell * size * (cycles[:, None] + 1j * cycles)
    closeness = 1 / (1 + np.abs(z) ** 2)
    # A spline multiplies the spectrum by a power of sinc in each direction, once for writing and once for reading.
    blur = np.outer(np.sinc(cycles), np.sinc(cycles)) ** (2 * degree + 2)
    potential = scipy.fft.fft2(closeness).real / blur
    force = scipy.fft.fft2(z * closeness**2) / blur
    return potential.astype(np.float32), force.astype(np.complex64)
