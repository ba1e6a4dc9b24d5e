"""The exact nearest neighbours of some nodes, by cosine similarity; without torch, which takes seconds to load."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK = 512


def cosines(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine similarity ``[n, N]`` of queries ``[n, d]`` to vectors ``[N, d]``; 0 for a vector of zeros."""
    wide = queries.astype(np.float64)
    similarity = np.empty((len(queries), len(vectors)), np.float32)
    # In float64, a block at a time to spare memory; rounded to float32, so that equal vectors tie.
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK].astype(np.float64)
        product = wide @ block.T
        length = np.outer(np.linalg.norm(wide, axis=1), np.linalg.norm(block, axis=1))
        similarity[:, start : start + BLOCK] = np.divide(
            product, length, np.zeros_like(product), where=length > 0
        )
    return similarity


def nearest_to(
    queries: NDArray[np.float32],
    own: NDArray[np.int64],
    blocks: Iterable[NDArray[np.float32]],
    k: int,
    compare: Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]] = cosines,
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """For each query ``[n, d]`` the ``k`` rows of highest cosine, at least one, and the cosines; ties in input order.

    ``own`` are the rows ``[n]`` of the queries, which are left out; ``blocks`` all rows, some at a time. ``compare``
    gives the cosines ``[n, m]`` of the queries and a block ``[m, d]``.
    """
    best = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in own]
    first = 0
    for block in blocks:
        for at, cosine in enumerate(compare(queries, block)):
            rows, found = best[at]
            if (
                len(found) == k
            ):  # a later row that is only as near as the last of the best comes behind it
                new = np.flatnonzero(cosine > found[-1])
            else:  # one more, as the query may be among them
                new = np.flatnonzero(
                    ~(-cosine > np.partition(-cosine, last := min(k, len(cosine) - 1))[last])
                )
            new = new[new != own[at] - first]
            rows, found = np.concatenate([rows, first + new]), np.concatenate([found, cosine[new]])
            order = np.argsort(-found, kind="stable")[:k]
            best[at] = rows[order], found[order]
        first += len(block)
    return best
