"""Place all nodes in the plane: t-SNE in time proportional to the number of nodes.

The gradient of t-SNE is an attraction along the edges of the neighbour graph, and a repulsion between all pairs,
sum_j (y_i - y_j) / (1 + |y_i - y_j|^2)^2. The repulsion is a convolution of the density of the points with a fixed
kernel, so it is computed on a grid by the fast Fourier transform. A place is one complex number.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from scipy import sparse

from infomax.progress import Progress, silent

NEIGHBOURS = 15
EARLY, LATE = 150, 400
CELL = 0.5


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
    separate.

    Shapes:
        vectors: ``[N, d]``.
        neighbours: ``[N, k]`` rows of each node's nearest, from `nearest`; NEIGHBOURS is a good k.
    """
    n, k = neighbours.shape
    start = _principal(vectors) + 1e-3 * np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    if k == n - 1:  # all nodes are neighbours of all: nothing to lay out
        return start
    edges = sparse.csr_array((np.ones(n * k, np.float32), neighbours.ravel(), k * np.arange(n + 1)), (n, n))
    edges = sparse.csr_array(edges + edges.T)
    edges.data /= edges.data.sum()
    places, speed, gain = 1e-4 * start, np.zeros_like(start), np.ones_like(start)
    for step in range(EARLY + LATE):
        # At first, stronger attraction and less momentum let the clusters find their places.
        pull, momentum = (12, 0.5) if step < EARLY else (1, 0.8)
        points = places.view(np.complex64).ravel()
        gradient = (pull * _attraction(points, edges) - _repulsion(points)).view(np.float32).reshape(n, 2)
        gain = np.maximum(np.where(gradient * speed > 0, 0.8 * gain, gain + 0.2), 0.01).astype(np.float32)
        speed = momentum * speed - n / 3 * gain * gradient
        places = places + speed
        progress(step + 1, "layout", EARLY + LATE)
    centred: NDArray[np.float32] = places - places.mean(axis=0)
    return centred


def _principal(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The first two principal components ``[N, 2]`` of the directions of ``[N, d]`` vectors, the first of spread 1."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    units -= units.mean(axis=0)
    _, axes = np.linalg.eigh(units.T @ units)
    # The sign of an axis is arbitrary: make its largest entry positive, so that all machines agree.
    axes = axes[:, ::-1][:, :2]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    components: NDArray[np.float32] = units @ axes
    if components.shape[1] < 2:
        components = np.column_stack([components, np.zeros(len(components), np.float32)])
    return components / max(float(components[:, 0].std()), 1e-12)


def _attraction(points: NDArray[np.complex64], edges: sparse.csr_array) -> NDArray[np.complex64]:
    """Sum over the edges of a node of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), ``[N]``; every node has an edge."""
    apart = np.repeat(points, np.diff(edges.indptr)) - points[edges.indices]
    pulls = apart * (edges.data / (1 + apart.real**2 + apart.imag**2))
    total: NDArray[np.complex64] = np.add.reduceat(pulls, edges.indptr[:-1])
    return total


def _repulsion(points: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Sum over all other nodes of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, divided by that of 1 / (1 + |.|^2), ``[N]``."""
    grid = (points - (points.real.min() + 1j * points.imag.min())) / CELL
    x, y = grid.real.astype(np.int64), grid.imag.astype(np.int64)
    side = int(max(x.max(), y.max())) + 2
    right, up = grid.real - x, grid.imag - y
    # A point is shared among the four corners of its cell; it reads the field from them with the same shares.
    corner = x * side + y
    shares = [
        (corner, (1 - right) * (1 - up)),
        (corner + 1, (1 - right) * up),
        (corner + side, right * (1 - up)),
        (corner + side + 1, right * up),
    ]
    density = np.zeros(side * side)
    for cells, share in shares:
        density += np.bincount(cells, share, minlength=side * side)
    # Twice as wide as the grid, so that it does not wrap round; in steps of 64, so that few kernels are computed.
    size = scipy.fft.next_fast_len(64 * (2 * side // 64 + 1))
    potential, force = _kernels(size)
    spectrum = scipy.fft.fft2(density.astype(np.float32).reshape(side, side), s=(size, size), workers=-1)
    pairs = float((np.abs(spectrum) ** 2 * potential).mean()) - len(points)
    field = scipy.fft.ifft2(spectrum * force, workers=-1, overwrite_x=True)[:side, :side].ravel()
    total: NDArray[np.complex64] = sum(field[cells] * share for cells, share in shares)
    return (total / max(pairs, 1e-12)).astype(np.complex64)


@lru_cache(maxsize=1)
def _kernels(size: int) -> tuple[NDArray[np.float32], NDArray[np.complex64]]:
    """Spectra ``[size, size]`` of 1 / (1 + |z|^2) and z / (1 + |z|^2)^2 on the grid, corrected for the sharing."""
    cycles = scipy.fft.fftfreq(size)
    z = CELL * size * (cycles[:, None] + 1j * cycles)
    closeness = 1 / (1 + np.abs(z) ** 2)
    # Sharing among corners multiplies the spectrum by sinc^2 in each direction, once for writing and once for reading.
    blur = np.outer(np.sinc(cycles), np.sinc(cycles)) ** 4
    potential = scipy.fft.fft2(closeness).real / blur
    force = scipy.fft.fft2(z * closeness**2) / blur
    return potential.astype(np.float32), force.astype(np.complex64)
