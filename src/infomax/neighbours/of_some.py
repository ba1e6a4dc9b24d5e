"""The exact nearest neighbours of some nodes, by cosine similarity.

It does without torch, which takes seconds to load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

VECTORS_PER_BLOCK = 512
"""Vectors that are held in float64 at a time."""


def cosines(queries: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine similarity ``[n, N]`` of queries ``[n, d]`` to vectors ``[N, d]``.

    It is 0 for a vector of zeros.
    """
    wide_queries = queries.astype(np.float64)
    query_lengths = np.linalg.norm(wide_queries, axis=1)
    similarity = np.empty((len(queries), len(vectors)), np.float32)
    # In float64, a block at a time to spare memory; rounded to float32, so that equal vectors tie.
    for start in range(0, len(vectors), VECTORS_PER_BLOCK):
        block = vectors[start : start + VECTORS_PER_BLOCK].astype(np.float64)
        products = wide_queries @ block.T
        lengths = np.outer(query_lengths, np.linalg.norm(block, axis=1))
        similarity[:, start : start + VECTORS_PER_BLOCK] = np.divide(
            products, lengths, np.zeros_like(products), where=lengths > 0
        )
    return similarity


def nearest_to(
    queries: NDArray[np.float32],
    query_rows: NDArray[np.int64],
    blocks: Iterable[NDArray[np.float32]],
    k: int,
    compare: Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]] = cosines,
) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """For each query the rows of the highest cosines, and the cosines; ties are in input order.

    Args:
        queries: ``[n, d]``.
        query_rows: ``[n]``, the rows of the queries themselves, which are left out.
        blocks: all rows, some at a time.
        k: how many rows of each query; at least one.
        compare: gives the cosines ``[n, m]`` of the queries and a block ``[m, d]``.
    """
    best = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in query_rows]
    first_row = 0
    for block in blocks:
        for query, block_cosines in enumerate(compare(queries, block)):
            rows, best_cosines = best[query]
            if len(best_cosines) == k:
                # A row that is as near as the last of the best comes behind it, being later.
                candidates = np.flatnonzero(block_cosines > best_cosines[-1])
            else:
                # One more than k, as the query may be among them.
                last = min(k, len(block_cosines) - 1)
                distances = -block_cosines
                is_farther = distances > np.partition(distances, last)[last]
                candidates = np.flatnonzero(~is_farther)
            candidates = candidates[candidates != query_rows[query] - first_row]

            rows = np.concatenate([rows, first_row + candidates])
            best_cosines = np.concatenate([best_cosines, block_cosines[candidates]])
            nearest_first = np.argsort(-best_cosines, kind="stable")[:k]
            best[query] = rows[nearest_first], best_cosines[nearest_first]
        first_row += len(block)
    return best
