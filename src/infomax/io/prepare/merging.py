"""From sorted pairs of nodes to the rows of a matrix, some pairs at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]
"""Rows ``[n]``, columns ``[n]`` and values ``[n]`` of a matrix, ascending; no values where all are 1."""


Keys = tuple[NDArray[np.int64], NDArray[np.float32] | None]
"""Keys ``[e]`` of edges, ascending, and their weights ``[e]``; None: each counts once, however often it is listed.

A key is ``2 (row * N + column) + back``: an edge listed from row to column has back = 0, one that was listed the other
way 1.
"""


def merge(batches: Iterable[Keys], n: int, dropped: Counter[str], *, turned: bool) -> Iterator[Entries]:
    """The entries of a matrix of N columns, from batches of its keys, in order.

    Weights of the same key add up, then the larger of both directions is taken.

    Args:
        batches: the keys.
        n: N.
        dropped: counts the ``duplicates`` that are left out.
        turned: an entry of the matrix belongs to the edge from its column to its row.
    """
    rest: Keys | None = None
    for keys, weights in batches:
        if rest is not None:
            keys = np.concatenate([rest[0], keys])
            weights = None if weights is None or rest[1] is None else np.concatenate([rest[1], weights])
        # The last pair may go on in the next batch.
        stop = int(np.searchsorted(keys >> 1, keys[-1] >> 1)) if len(keys) else 0
        rest = keys[stop:].copy(), None if weights is None else weights[stop:].copy()
        if stop:
            yield _merged(keys[:stop], None if weights is None else weights[:stop], n, dropped, turned)
    if rest is not None and len(rest[0]):
        yield _merged(*rest, n, dropped, turned)


def _merged(
    keys: NDArray[np.int64], weights: NDArray[np.float32] | None, n: int, dropped: Counter[str], turned: bool
) -> Entries:
    """The entries of complete pairs."""
    starts = _first_of_each(keys)
    distinct = keys[starts]
    forward = int(np.count_nonzero(keys & 1 == 0))
    dropped["duplicates"] += forward - int(np.count_nonzero(distinct & 1 == 0))
    pairs = distinct >> 1
    firsts = _first_of_each(pairs)
    rows, columns = np.divmod(pairs[firsts], n)
    if weights is None:
        return rows, columns, None
    with np.errstate(over="ignore"):
        sums = np.add.reduceat(weights.astype(np.float64), starts).astype(np.float32)
    if not np.isfinite(sums).all():
        row, column = divmod(int(pairs[np.argmin(np.isfinite(sums))]), n)
        ends = f"{column} -> {row}" if turned else f"{row} -> {column}"
        raise InputError(f"edge {ends}", "weights whose sum float32 can hold", "larger ones")
    return rows, columns, np.maximum.reduceat(sums, firsts)


def _first_of_each(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places where ascending values ``[n]`` change, the first place included."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
