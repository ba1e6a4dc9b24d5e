"""Inner loops of t-SNE, compiled by numba."""

from __future__ import annotations

import numpy as np

from infomax.kernels.compiling import compiled


@compiled
def attract(points, row_starts, columns, weights, out, begin, end):
    """Sum p_ij (y_i - y_j) / (1 + |y_i - y_j|^2) over the edges of points begin to end."""
    one = np.float32(1)
    for i in range(begin, end):
        x, y = points[i, 0], points[i, 1]
        sum_x, sum_y = np.float32(0), np.float32(0)
        for edge in range(row_starts[i], row_starts[i + 1]):
            j = columns[edge]
            dx, dy = x - points[j, 0], y - points[j, 1]
            pull = weights[edge] / (one + dx * dx + dy * dy)
            sum_x += pull * dx
            sum_y += pull * dy
        out[i, 0], out[i, 1] = sum_x, sum_y


@compiled
def _shares(offset, shares):
    """Fill the shares ``[degree + 1]`` of the grid lines around a point: a B-spline.

    The offset, from 0 to 1, is how far after a grid line the point lies.
    """
    shares[0] = 1
    for d in range(1, len(shares)):
        shares[d] = offset * shares[d - 1] / d
        for i in range(d - 1, 0, -1):
            shares[i] = ((offset + d - i) * shares[i - 1] + (1 - offset + i) * shares[i]) / d
        shares[0] = (1 - offset) * shares[0] / d


@compiled
def spread(grid, density, degree):
    """Add each point ``[N, 2]``, in cells of the grid, to the density of the corners around it."""
    shares_x, shares_y = np.empty(degree + 1), np.empty(degree + 1)
    for i in range(len(grid)):
        x, y = int(grid[i, 0]), int(grid[i, 1])
        _shares(grid[i, 0] - x, shares_x)
        _shares(grid[i, 1] - y, shares_y)
        for p in range(degree + 1):
            for q in range(degree + 1):
                density[x + p, y + q] += shares_x[p] * shares_y[q]


@compiled
def collect(grid, field, degree, scale, out, begin, end):
    """Read the field ``[2, side, side]`` at points begin to end, by the shares of `spread`."""
    shares_x, shares_y = np.empty(degree + 1), np.empty(degree + 1)
    for i in range(begin, end):
        x, y = int(grid[i, 0]), int(grid[i, 1])
        _shares(grid[i, 0] - x, shares_x)
        _shares(grid[i, 1] - y, shares_y)
        sum_x, sum_y = 0.0, 0.0
        for p in range(degree + 1):
            for q in range(degree + 1):
                share = shares_x[p] * shares_y[q]
                sum_x += share * field[0, x + p, y + q]
                sum_y += share * field[1, x + p, y + q]
        out[i, 0], out[i, 1] = scale * sum_x, scale * sum_y
