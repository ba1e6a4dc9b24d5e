"""k-means on the vectors, how many clusters there are, and how well they agree with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks, unit
from infomax.arrays.parquet_columns import StoredVectors
from infomax.arrays.sparsity import dense
from infomax.evaluation.kmeans import kmeans, nearest_centres, starts
from infomax.progress import Progress, silent

KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
ALWAYS = 30
"""Numbers of clusters up to here are all tried; each further one only if the one before it was the best so far."""
SAMPLE, WIDTH, REPEATS, STARTS = 2500, 32, 40, 2
"""Vectors, and principal components of them, in which numbers of clusters are compared; how often, times the number
of clusters, since few clusters vary more and take less time; starts of each."""
FIRST, FITTED = 5_000, 50_000
"""As many vectors find where k-means starts, and as many move its centres; then all are assigned to them."""


class Stability(NamedTuple):
    """How well k-means on two halves of a sample agree: adjusted Rand index, 1 for the same clusters, 0 for chance."""

    found: float
    """Of the vectors."""
    expected: float
    """Of a normal distribution with the same covariance, which has no clusters."""
    error: float = 0.0
    """The standard error of their difference."""


def cluster(
    vectors: NDArray[np.float32] | StoredVectors, k: int, *, seed: int, progress: Progress = silent
) -> NDArray[np.int64]:
    """Clusters ``[N]``, 0 to k - 1, the largest first, of ``[N, d]`` vectors: k-means of their directions.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a high cosine. Of more
    than FITTED vectors, so many, drawn at random, move the centres. Where fewer than k vectors differ, there are fewer
    clusters.
    """
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(vectors))
    some, first = (unit(vectors[np.sort(rows[:count])])[None] for count in (FITTED, FIRST))
    tried = np.repeat(first, 1 + STARTS, axis=0)
    begun, distances = kmeans(tried, starts(tried, k, generator), progress)
    centres, _ = kmeans(some, begun[distances.argmin()][None], progress)
    found = [nearest_centres(unit(block)[None], centres)[0][0] for block in row_blocks(vectors)]
    codes: NDArray[np.int64] = np.concatenate(found)
    order = np.argsort(-np.bincount(codes, minlength=k), kind="stable")
    ranks: NDArray[np.int64] = np.argsort(order)
    return ranks[codes]


def choose_k(
    vectors: NDArray[np.float32] | StoredVectors, *, seed: int, progress: Progress = silent
) -> dict[int, Stability]:
    """The stability of k-means for KS, on at most SAMPLE of the ``[N, d]`` vectors; see `best_k` and `ALWAYS`."""
    from threadpoolctl import threadpool_limits

    generator = np.random.default_rng(seed)
    sample = unit(vectors[generator.permutation(len(vectors))[:SAMPLE]])
    most = min(len(np.unique(sample, axis=0)) - 1, len(sample) // 2)
    ks = [k for k in KS if k <= most]
    if not ks:
        return {}
    scores: dict[int, Stability] = {}
    with threadpool_limits(1):  # threads would wait for each other, the samples are so small
        # The main directions suffice, and are ten times as fast.
        sample -= sample.mean(axis=0)
        sample = sample @ np.linalg.eigh(sample.T @ sample)[1][:, : -WIDTH - 1 : -1]
        clouds = np.empty((1 + REPEATS // ks[0], *sample.shape), np.float32)
        clouds[0] = sample
        for cloud in clouds[1:]:
            cloud[:] = sample.std(axis=0) * generator.normal(size=sample.shape)
        for k in ks:
            if k > ALWAYS and _highest(peaks(scores)) < max(scores):
                break
            progress(len(scores), f"{k} clusters", len(ks))
            scores[k] = _stability(clouds, k, generator)
    return scores


def _stability(clouds: NDArray[np.float32], k: int, generator: np.random.Generator) -> Stability:
    """Divide sets of points into halves, let k-means of each half assign all of a set, and compare; the means.

    The first of the clouds ``[1 + R, n, d]`` are the vectors, which are divided again and again; of the others, which
    have no clusters, each is divided once.
    """
    repeats, half = max(2, REPEATS // k), clouds.shape[1] // 2
    owner = np.repeat(np.concatenate([np.zeros(repeats, np.int64), np.arange(1, 1 + repeats)]), 2)
    orders = [generator.permutation(clouds.shape[1])[: 2 * half].reshape(2, half) for _ in owner[::2]]
    halves = clouds[owner[:, None], np.concatenate(orders)]
    tried = np.repeat(halves, STARTS, axis=0)
    centres, distances = kmeans(tried, starts(tried, k, generator))
    best = distances.reshape(-1, STARTS).argmin(axis=1) + STARTS * np.arange(len(halves))
    codes = nearest_centres(clouds[owner], centres[best])[0].reshape(2 * repeats, 2, -1)
    agreed = np.array([_rand(one, other, k) for one, other in codes]).reshape(2, repeats)
    found, expected = agreed.mean(axis=1).tolist()
    return Stability(found, expected, float(np.sqrt(agreed.var(axis=1, ddof=1).sum() / repeats)))


def _rand(one: NDArray[np.int64], other: NDArray[np.int64], k: int) -> float:
    """The adjusted Rand index of two divisions ``[n]`` into k clusters or fewer."""
    both = np.bincount(one * k + other, minlength=k * k).reshape(k, k).astype(np.float64)
    joint, first, second, pairs = (
        float((counts * (counts - 1)).sum()) for counts in (both, both.sum(axis=1), both.sum(axis=0), both.sum())
    )
    chance, mean = first * second / pairs, (first + second) / 2
    return 1.0 if mean == chance else (joint - chance) / (mean - chance)


def levels(scores: Mapping[int, Stability]) -> dict[int, float]:
    """The stability to be expected without clusters: a curve that falls with k, as near as can be to what was found."""
    from scipy.optimize import isotonic_regression

    falling = isotonic_regression([each.expected for each in scores.values()], increasing=False).x
    return dict(zip(scores, falling.tolist(), strict=True))


def peaks(scores: Mapping[int, Stability]) -> dict[int, float]:
    """How far each peak of the stability is above its level; the last k is a peak where the stability still grows."""
    found, level = [-np.inf, *(each.found for each in scores.values()), -np.inf], levels(scores)
    rows = zip(scores, found, found[1:], found[2:], strict=False)
    return {k: here - level[k] for k, before, here, after in rows if before <= here >= after}


def _highest(above: Mapping[int, float]) -> int:
    return max(above, key=lambda k: (above[k], k))


def best_k(scores: Mapping[int, Stability]) -> int:
    """The number of clusters to take: of the `peaks` of the stability the one furthest above what is expected.

    Of those that are as far above it, up to a standard error, the highest peak is taken. The highest of all would often
    be the coarsest division: any long cloud can be cut in two in the same way again. 1 where no number could be tried.
    """
    above = peaks(scores)
    if not above:
        return 1
    best = _highest(above)
    as_far = [k for k in above if above[k] >= above[best] - np.hypot(scores[best].error, scores[k].error)]
    return max(as_far, key=lambda k: (scores[k].found, k))


def distinctive(features: Any, clusters: NDArray[Any], *, top: int) -> list[list[tuple[int, float]]]:
    """The columns of the features ``[N, F]`` that set each cluster apart, at most ``top`` of them, the clearest first.

    Each with the distance of its mean in the cluster from its mean over all nodes, in standard deviations.
    """
    from scipy import sparse

    sizes, first = np.bincount(clusters), 0
    sums, squares = np.zeros((2, len(sizes), features.shape[1]))
    for block in row_blocks(features):
        here = clusters[first : first + block.shape[0]]
        member = sparse.csr_array((np.ones(len(here)), (here, np.arange(len(here)))), shape=(len(sizes), len(here)))
        for total, power in ((sums, 1), (squares, 2)):
            total += dense(member @ block**power)
        first += len(here)
    mean = sums.sum(axis=0) / len(clusters)
    deviation = np.sqrt(np.maximum(squares.sum(axis=0) / len(clusters) - mean**2, 0))
    apart = np.divide(sums / sizes[:, None] - mean, deviation, out=np.zeros_like(sums), where=deviation > 1e-12)
    order = np.argsort(-np.abs(apart), axis=1, kind="stable")[:, :top]
    return [[(int(f), float(apart[row, f])) for f in best if apart[row, f]] for row, best in enumerate(order)]


def agreement(clusters: NDArray[Any], codes: NDArray[Any]) -> dict[str, float]:
    """NMI and ARI of clusters ``[N]`` with the codes ``[N]`` of labels; nodes of code -1 are left out.

    Both are 1 where they are the same partition; NMI is 0 where one tells nothing of the other, ARI is 0 by chance.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    known = codes >= 0
    pair = codes[known], clusters[known]
    return {"nmi": float(normalized_mutual_info_score(*pair)), "ari": float(adjusted_rand_score(*pair))}
