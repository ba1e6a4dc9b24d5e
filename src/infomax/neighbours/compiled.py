"""Inner loops of the exact nearest neighbours, compiled by numba."""

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
def _some_above(values, rest, rests, level, levels):
    """Whether a value of ``[c]``, with all it may gain, is above the level or above its own of the levels ``[c]``."""
    count = 0
    for at in range(
        len(values)
    ):  # over all, without an end at the first: so it becomes vector instructions
        most = values[at] + rest * rests[at]
        count += (most > level) | (most > levels[at])
    return count > 0


@compiled
def _dot(x, y):
    """The product of two vectors ``[t]``."""
    total = x.dtype.type(0)
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@compiled
def keep_nearest(similar, first, second, tail, rest, best, found, worst, level):
    """Keep the most similar rows of each node, as far as cosines ``[b, c]`` of two ranges of nodes tell.

    The ranges begin with the nodes ``first`` and ``second``; where they are the same one, a node is not compared with
    itself. To a cosine belongs the product of both rows of the tail, which is at most that of their lengths.

    Shapes:
        tail, rest: ``[N, t]`` and the lengths of its rows ``[N]``.
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
            others = slice(second + begin, second + end)
            if not _some_above(
                row[begin:end], rest[node], rest[others], level[node], level[others]
            ):
                continue
            for j in range(begin, end):
                other = second + j
                least = level[node] if same else min(level[node], level[other])
                if row[j] + rest[node] * rest[other] <= least:
                    continue
                value = row[j] + _dot(tail[node], tail[other])
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
