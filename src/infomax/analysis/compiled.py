"""Inner loops of t-SNE, compiled by numba."""

from __future__ import annotations

import numpy as np

from infomax.kernels.compiling import compiled


@compiled
def attract(points, starts, columns, weights, out, begin, end):
    """Sum p_ij (y_i - y_j) / (1 + |y_i - y_j|^2) over the edges of points begin to end of ``[N, 2]``."""
    one = np.float32(1)
    for i in range(begin, end):
        x, y = points[i, 0], points[i, 1]
        right, up = np.float32(0), np.float32(0)
        for e in range(starts[i], starts[i + 1]):
            j = columns[e]
            across, along = x - points[j, 0], y - points[j, 1]
            pull = weights[e] / (one + across * across + along * along)
            right += pull * across
            up += pull * along
        out[i, 0], out[i, 1] = right, up


@compiled
def _shares(after, shares):
    """Fill the shares ``[degree + 1]`` of the lines around a point, which lies so far after a line: a B-spline."""
    shares[0] = 1
    for d in range(1, len(shares)):
        shares[d] = after * shares[d - 1] / d
        for i in range(d - 1, 0, -1):
            shares[i] = ((after + d - i) * shares[i - 1] + (1 - after + i) * shares[i]) / d
        shares[0] = (1 - after) * shares[0] / d


@compiled
def spread(grid, density, degree):
    """Share each point, ``[N, 2]`` in cells of the grid, among the corners around it: add to the density."""
    across, up = np.empty(degree + 1), np.empty(degree + 1)
    for i in range(len(grid)):
        x, y = int(grid[i, 0]), int(grid[i, 1])
        _shares(grid[i, 0] - x, across)
        _shares(grid[i, 1] - y, up)
        for p in range(degree + 1):
            for q in range(degree + 1):
                density[x + p, y + q] += across[p] * up[q]


@compiled
def collect(grid, field, degree, scale, out, begin, end):
    """Read the field, ``[2, side, side]``, at points begin to end, with the shares with which `spread` writes."""
    across, up = np.empty(degree + 1), np.empty(degree + 1)
    for i in range(begin, end):
        x, y = int(grid[i, 0]), int(grid[i, 1])
        _shares(grid[i, 0] - x, across)
        _shares(grid[i, 1] - y, up)
        first, second = 0.0, 0.0
        for p in range(degree + 1):
            for q in range(degree + 1):
                share = across[p] * up[q]
                first += share * field[0, x + p, y + q]
                second += share * field[1, x + p, y + q]
        out[i, 0], out[i, 1] = scale * first, scale * second
