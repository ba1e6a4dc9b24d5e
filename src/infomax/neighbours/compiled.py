"""Inner loops of the exact nearest neighbours, compiled by numba."""

from __future__ import annotations

import numpy as np

from infomax.kernels.compiling import compiled

COSINES_AT_ONCE = 32
"""Cosines that are compared at a time; most of them are below what is kept already."""


@compiled
def _replace_lowest(cosine, row, kept_cosines, kept_rows, position_of_lowest):
    """Keep a row in place of the least similar of the kept ones ``[s]``.

    Returns the position of the row that is the least similar then.
    """
    kept_cosines[position_of_lowest] = cosine
    kept_rows[position_of_lowest] = row
    position_of_lowest = 0
    for position in range(1, len(kept_cosines)):
        if kept_cosines[position] < kept_cosines[position_of_lowest]:
            position_of_lowest = position
    return position_of_lowest


@compiled
def _any_may_be_kept(
    partial_cosines, tail_length, other_tail_lengths, lowest_cosine, other_lowest_cosines
):
    """Whether a pair of a node and one of others ``[c]`` may be among the nearest of either.

    The tails of both can add no more to a cosine than the product of their lengths.
    """
    count = 0
    # Over all pairs, without an end at the first, so that it becomes vector instructions.
    for position in range(len(partial_cosines)):
        bound = partial_cosines[position] + tail_length * other_tail_lengths[position]
        count += (bound > lowest_cosine) | (bound > other_lowest_cosines[position])
    return count > 0


@compiled
def _inner_product(x, y):
    """The product of two vectors ``[t]``."""
    total = x.dtype.type(0)
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@compiled
def keep_nearest(
    partial_cosines,
    first,
    second,
    tails,
    tail_lengths,
    kept_cosines,
    kept_rows,
    positions_of_lowest,
    lowest_cosines,
):
    """Keep the most similar nodes of each node, as far as a block of cosines tells.

    A vector has a head, whose products are the partial cosines, and a tail. The product of two
    tails is computed only where the pair may be kept.

    Args:
        partial_cosines: ``[b, c]``, of two ranges of nodes; changed.
        first: the node where the first range begins.
        second: the node where the second range begins. Where both are the same range, a node is not
            compared with itself.
        tails: ``[N, t]``.
        tail_lengths: ``[N]``.
        kept_cosines: ``[N, s]``, the cosines that are kept of each node, in no order; changed.
        kept_rows: ``[N, s]``, the nodes that these belong to; changed.
        positions_of_lowest: ``[N]``, the position of the lowest of these cosines; changed.
        lowest_cosines: ``[N]``, the lowest of these cosines; changed.
    """
    height, width = partial_cosines.shape
    is_same_range = first == second
    for i in range(height):
        node = first + i
        row = partial_cosines[i]
        if is_same_range:
            row[i] = -np.inf
        for begin in range(0, width, COSINES_AT_ONCE):
            end = min(begin + COSINES_AT_ONCE, width)
            others = slice(second + begin, second + end)
            if not _any_may_be_kept(
                row[begin:end],
                tail_lengths[node],
                tail_lengths[others],
                lowest_cosines[node],
                lowest_cosines[others],
            ):
                continue
            for j in range(begin, end):
                other = second + j
                # In one range a pair comes twice, once for each of its nodes.
                least = lowest_cosines[node]
                if not is_same_range:
                    least = min(least, lowest_cosines[other])
                if row[j] + tail_lengths[node] * tail_lengths[other] <= least:
                    continue
                cosine = row[j] + _inner_product(tails[node], tails[other])
                if cosine > lowest_cosines[node]:
                    positions_of_lowest[node] = _replace_lowest(
                        cosine,
                        other,
                        kept_cosines[node],
                        kept_rows[node],
                        positions_of_lowest[node],
                    )
                    lowest_cosines[node] = kept_cosines[node, positions_of_lowest[node]]
                if not is_same_range and cosine > lowest_cosines[other]:
                    positions_of_lowest[other] = _replace_lowest(
                        cosine,
                        node,
                        kept_cosines[other],
                        kept_rows[other],
                        positions_of_lowest[other],
                    )
                    lowest_cosines[other] = kept_cosines[other, positions_of_lowest[other]]


@compiled
def exact_cosines(units, candidates, cosines, begin, end):
    """Compute the cosines of some nodes with their candidates, summed in double precision.

    Sums in float32 may rank the last candidates wrongly.

    Args:
        units: ``[N, d]``.
        candidates: ``[N, s]``, rows.
        cosines: ``[N, s]``; rows begin to end are filled in.
        begin: the first of the nodes.
        end: the node after the last.
    """
    for i in range(begin, end):
        for position in range(candidates.shape[1]):
            unit = units[i]
            candidate = units[candidates[i, position]]
            total = 0.0
            for k in range(len(unit)):
                total += np.float64(unit[k]) * np.float64(candidate[k])
            cosines[i, position] = total
