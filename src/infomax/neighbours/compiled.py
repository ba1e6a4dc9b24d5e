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
