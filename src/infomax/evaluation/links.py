"""How well vectors tell edges from random pairs of nodes: a score that needs no labels.

Half of the pairs are edges, half are pairs of nodes that no edge joins. A pair is scored by the cosine of its two
vectors, by a logistic regression on their elementwise product, or by the number of common neighbours. A random score
has an AUC of 0.5, and so has its average precision, since both halves are of one size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.held_out import are_joined
from infomax.errors import TooFewEdgesError
from infomax.evaluation.logistic import logistic_path

Vectors: TypeAlias = Any
"""``[N, d]``: an array, or a `scipy.sparse.csr_array` (scipy has no type annotations)."""
MOST_PAIRS = 20_000
"""The most edges that are scored, and as many pairs that are none."""
LEAST_PAIRS = 10
COSTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
"""The strengths C that the regression chooses from."""
_BLOCK = 2**22
"""Numbers that are computed at a time: 16 MB of float32."""
_FITTED = 2**25
"""Numbers that the regression is fitted to at most: 20,000 pairs of vectors of width 512 are a third of that."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes, half of them edges. The regression learns from one half of them; all scores are of the other.

    Shapes:
        ends: ``[2, P]`` rows of the two nodes.
        joined: ``[P]`` bool, the edges.
        fitted: ``[P]`` bool, the pairs that the regression may learn from.
    """

    ends: NDArray[np.int64]
    joined: NDArray[np.bool_]
    fitted: NDArray[np.bool_]


def draw_pairs(
    adjacency: sparse.csr_array,
    held_out: NDArray[np.int64] | None = None,
    groups: NDArray[np.int64] | None = None,
    *,
    types: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> Pairs:
    """At most `MOST_PAIRS` edges, drawn at random, and as many pairs of nodes that no edge joins, in either direction.

    The edges are those ``held_out`` ``[2, H]``, else known ones. Both nodes of a pair are of one of the ``groups``
    ``[N]``, as those of an edge are, or of the ``types`` ``[N]`` of the nodes of some edge.
    """
    rng, n = np.random.default_rng(seed), adjacency.shape[0]
    if held_out is None:
        # Each pair has at most two entries, so twice as many entries have at least so many pairs.
        places = rng.choice(adjacency.nnz, min(adjacency.nnz, 2 * MOST_PAIRS), replace=False)
        sources = np.searchsorted(adjacency.indptr, places, side="right") - 1
        edges = _keys(np.stack([sources, adjacency.indices[places]]), n)
    else:
        edges = _keys(held_out, n)
    hidden = edges if held_out is not None else edges[:0]
    edges = rng.permutation(edges)[:MOST_PAIRS]
    like = None if types is None else np.stack(np.divmod(edges, n))
    others = _other_pairs(
        adjacency, hidden, groups if types is None else types, like, len(edges), rng
    )
    count = min(len(edges), len(others))
    if count < LEAST_PAIRS:
        expected = f"at least {LEAST_PAIRS} edges, and as many pairs of nodes without one"
        raise TooFewEdgesError(
            "edges to score vectors on", expected, f"{len(edges)} and {len(others)}"
        )
    keys = np.concatenate([edges[:count], others[:count]])
    order = np.arange(count)  # both halves are in random order already
    return Pairs(
        np.stack(np.divmod(keys, n)), np.repeat([True, False], count), np.tile(order % 2 == 0, 2)
    )


def score(pairs: Pairs, values: NDArray[Any]) -> dict[str, float]:
    """How well one number ``[P]`` per pair puts edges first, of the pairs that no regression learnt from; 1 at best."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    joined, values = pairs.joined[~pairs.fitted], values[~pairs.fitted]
    scores = {"auc": roc_auc_score, "average_precision": average_precision_score}
    return {name: float(of(joined, values)) for name, of in scores.items()}


def cosines(vectors: Vectors, pairs: Pairs) -> NDArray[np.float32]:
    """The cosine ``[P]`` of the two vectors of each pair, less their mean unless sparse; 0 where one is of zeros.

    Without that, vectors that have most of their length in common would all be near each other.
    """
    if not sparse.issparse(vectors):
        vectors = vectors - vectors.mean(axis=0)
    return np.concatenate(
        [_products(vectors, ends).sum(axis=1) for ends in _blocks(pairs, _width(vectors))]
    )


def regression(vectors: Vectors, pairs: Pairs) -> NDArray[np.float64]:
    """Log-odds ``[P]`` of an edge, by a logistic regression on the elementwise product of the two vectors of a pair.

    Products are those of vectors of length 1. C is chosen on a quarter of the pairs to learn from, then the regression
    is fitted to all of them.
    """
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    rows = (
        np.flatnonzero(pairs.fitted).reshape(2, -1).T.ravel()
    )  # an edge, another pair, an edge, ...
    rows = rows[: max(2 * LEAST_PAIRS, _FITTED // _width(vectors))]
    x, y = _products(vectors, pairs.ends[:, rows]), pairs.joined[rows, None]
    learnt = np.arange(len(rows)) % 8 < 6
    with threadpool_limits(1):  # such products wait longer for a second thread than they gain
        path = logistic_path(x[learnt], y[learnt], COSTS)
        found = {cost: roc_auc_score(y[~learnt], model.logits(x[~learnt])) for cost, model in path}
        _, best = next(logistic_path(x, y, [max(found, key=found.__getitem__)]))
    blocks = _blocks(pairs, _width(vectors))
    return np.concatenate([best.logits(_products(vectors, ends))[:, 0] for ends in blocks])


def common_neighbours(
    adjacency: sparse.csr_array, pairs: Pairs, *, directed: bool = False
) -> NDArray[np.int64]:
    """The number of nodes ``[P]`` that are neighbours, in either direction, of both nodes of each pair."""
    linked = sparse.csr_array(adjacency.maximum(adjacency.T)) if directed else adjacency
    width = np.diff(linked.indptr)[pairs.ends].sum(
        axis=0
    )  # hubs have far longer rows than other nodes
    counts = [
        (linked[u] != 0).multiply(linked[v] != 0).sum(axis=1) for u, v in _blocks(pairs, width)
    ]
    return np.concatenate(counts)


def _products(vectors: Vectors, ends: NDArray[np.int64]) -> Any:
    """The elementwise products ``[P, d]`` of the vectors of pairs ``[2, P]``, scaled to length 1 before."""
    from sklearn.preprocessing import normalize

    u, v = (
        normalize(rows / max(abs(rows).max(), 1e-30))
        for rows in (vectors[ends[0]], vectors[ends[1]])
    )
    return sparse.csr_array(u.multiply(v)) if sparse.issparse(u) else u * v


def _width(vectors: Vectors) -> int:
    """Numbers per vector: d, or the mean that a sparse row holds."""
    return (
        max(vectors.nnz // vectors.shape[0], 1)
        if sparse.issparse(vectors)
        else int(vectors.shape[1])
    )


def _blocks(pairs: Pairs, width: int | NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The pairs in pieces ``[2, p]``, each of which takes about _BLOCK numbers, where a pair takes ``width``."""
    total = np.cumsum(np.broadcast_to(width, pairs.ends.shape[1]))
    return np.split(pairs.ends, np.flatnonzero(np.diff(total // _BLOCK)) + 1, axis=1)


def _other_pairs(
    adjacency: sparse.csr_array,
    hidden: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    like: NDArray[np.int64] | None,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """About ``count`` different pairs of nodes that are no edges, as keys in random order; fewer where there are few.

    ``hidden`` are the keys of edges that are not in the adjacency. Both nodes of a pair are of one group, or of the two
    groups of some edge of ``like [2, E]``.
    """
    n = adjacency.shape[0]
    groups = (
        np.zeros(n, dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    members = np.argsort(groups, kind="stable")  # the nodes of a group are a stretch of these
    sizes = np.bincount(groups)
    first = np.cumsum(sizes) - sizes
    found = np.zeros(0, dtype=np.int64)
    for _ in range(20):  # in a graph where nearly all nodes are joined, draws are mostly edges
        near = rng.integers(n, size=2 * count)
        far = near
        if like is not None:
            near, far = like[:, rng.integers(like.shape[1], size=2 * count)]
        u, v = (
            members[first[groups[one]] + rng.integers(sizes[groups[one]])] for one in (near, far)
        )
        drawn = np.stack([u, v])
        keys = _keys(drawn[:, ~are_joined(adjacency, drawn)], n)
        found = np.union1d(found, np.setdiff1d(keys, hidden))
        if len(found) >= count:
            break
    return rng.permutation(found)


def _keys(ends: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """One number per pair of different nodes of ``[2, P]``, whatever their order; each pair once, sorted."""
    low, high = np.sort(ends.astype(np.int64), axis=0)
    return np.unique((low * n + high)[low != high])
