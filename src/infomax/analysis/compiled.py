"""Inner loops of the nearest neighbours and of t-SNE, compiled by numba."""

from __future__ import annotations

import numpy as np

from infomax.kernels.compiling import compiled

CHUNK = 32
"""Products that are compared at a time; most of them are below what is kept already."""


@compiled
def _offer(value, row, best, found, worst):
    """Put a row into the kept ones ``[c]`` in place of the least similar; return the place of the next such."""
    best[worst], found[worst] = value, row
    worst = 0
    for at in range(1, len(best)):
        if best[at] < best[worst]:
            worst = at
    return worst


@compiled
def _some_above(values, level, others):
    """Whether any of the values ``[c]`` is above one level, or above its own of the others ``[c]``."""
    count = 0
    for at in range(len(values)):  # over all, without an end at the first: so it becomes vector instructions
        count += (values[at] > level) | (values[at] > others[at])
    return count > 0


@compiled
def keep_nearest(similar, first, second, best, found, worst, level):
    """Keep the most similar rows of each node, as far as cosines ``[b, c]`` of two ranges of nodes tell.

    The ranges begin with the nodes ``first`` and ``second``; where they are the same one, a node is not compared with
    itself.

    Shapes:
        best, found: ``[N, s]``, the cosines that are kept of each node, in no order, and the rows.
        worst, level: ``[N]``, the place of the lowest of these cosines, and that cosine.
    """
    height, width = similar.shape
    same = first == second
    for i in range(height):
        node, row = first + i, similar[i]
        if same:
            row[i] = -np.inf
        for begin in range(0, width, CHUNK):
            end = min(begin + CHUNK, width)
            if not _some_above(row[begin:end], level[node], level[second + begin : second + end]):
                continue
            for j in range(begin, end):
                value, other = row[j], second + j
                if value > level[node]:
                    worst[node] = _offer(value, other, best[node], found[node], worst[node])
                    level[node] = best[node, worst[node]]
                if not same and value > level[other]:
                    worst[other] = _offer(value, node, best[other], found[other], worst[other])
                    level[other] = best[other, worst[other]]


@compiled
def exact_cosines(units, candidates, out, begin, end):
    """Multiply nodes begin to end of ``[N, d]`` with their candidates, rows ``[N, s]``, in double precision."""
    for i in range(begin, end):
        for at in range(candidates.shape[1]):
            one, other, total = units[i], units[candidates[i, at]], 0.0
            for k in range(len(one)):
                total += np.float64(one[k]) * np.float64(other[k])
            out[i, at] = total


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
