"""k-means on the vectors, how many clusters there are, and how well they agree with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.arrays.parquet_columns import StoredVectors
from infomax.arrays.sparsity import dense
from infomax.progress import Progress, silent

KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
ALWAYS = 30
"""Numbers of clusters up to here are all tried; each further one only if the one before it was the best so far."""
SAMPLE, WIDTH, REPEATS = 2500, 32, 4
FIRST, LARGE = 5_000, 50_000
"""Vectors from which a sample finds where k-means starts, and from which it goes by batches."""
FITTED = 100_000
"""Of vectors on disk, as many are in memory to find the clusters; then all are assigned to them."""


class Stability(NamedTuple):
    """How well k-means on two halves of a sample agree: adjusted Rand index, 1 for the same clusters, 0 for chance."""

    found: float
    """Of the vectors."""
    expected: float
    """Of a normal distribution with the same covariance, which has no clusters."""


def cluster(vectors: NDArray[np.float32] | StoredVectors, k: int, *, seed: int) -> NDArray[np.int64]:
    """Clusters ``[N]``, 0 to k - 1, the largest first, of ``[N, d]`` vectors: k-means of their directions.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a high cosine. Above
    LARGE nodes k-means goes by batches; of vectors on disk it sees FITTED, drawn at random, and assigns the others.
    Where fewer than k vectors differ, there are fewer clusters.
    """
    codes: NDArray[np.int32]
    if isinstance(vectors, np.ndarray):
        codes = _fit(_units(vectors), k, seed).labels_
    else:
        rows = np.random.default_rng(seed).permutation(len(vectors))[:FITTED]
        fitted = _fit(_units(vectors[np.sort(rows)]), k, seed)
        codes = np.concatenate([fitted.predict(_units(block)) for block in vectors.blocks()])
    order = np.argsort(-np.bincount(codes, minlength=k), kind="stable")
    return np.argsort(order)[codes]


def choose_k(
    vectors: NDArray[np.float32] | StoredVectors, *, seed: int, progress: Progress = silent
) -> dict[int, Stability]:
    """The stability of k-means for KS, on at most SAMPLE of the ``[N, d]`` vectors; see `best_k` and `ALWAYS`."""
    from sklearn.decomposition import PCA
    from threadpoolctl import threadpool_limits

    generator = np.random.default_rng(seed)
    sample = _units(vectors[generator.permutation(len(vectors))[:SAMPLE]])
    most = min(len(np.unique(sample, axis=0)) - 1, len(sample) // 2)
    ks = [k for k in KS if k <= most]
    if not ks:
        return {}
    # The main directions suffice, and are ten times as fast.
    sample = PCA(min(WIDTH, *sample.shape), svd_solver="covariance_eigh").fit_transform(sample)
    sample = sample.astype(np.float64)  # single precision would be converted for each distance
    cloud = sample.std(axis=0) * generator.normal(size=sample.shape)
    scores: dict[int, Stability] = {}
    with threadpool_limits(1):  # threads would wait for each other, the samples are so small
        for k in ks:
            if k > ALWAYS and best_k(scores) < max(scores):
                break
            progress(len(scores), f"{k} clusters", len(ks))
            scores[k] = Stability(*(_stability(points, k, generator, seed) for points in (sample, cloud)))
    return scores


def _stability(points: NDArray[np.float64], k: int, generator: np.random.Generator, seed: int) -> float:
    """Divide ``[n, d]`` points into halves, let k-means of each half assign all of them, and compare; the mean."""
    from sklearn.metrics import adjusted_rand_score

    scores = []
    for _ in range(REPEATS):
        halves = np.array_split(points[generator.permutation(len(points))], 2)
        scores.append(adjusted_rand_score(*(_fit(half, k, seed, starts=2).predict(points) for half in halves)))
    return float(np.mean(scores))


def levels(scores: Mapping[int, Stability]) -> dict[int, float]:
    """The stability to be expected without clusters: the most of k or more clusters, as it varies much for small k."""
    highest = np.maximum.accumulate([each.expected for each in scores.values()][::-1])[::-1]
    return dict(zip(scores, highest.tolist(), strict=True))


def peaks(scores: Mapping[int, Stability]) -> dict[int, float]:
    """How far each peak of the stability is above its level; the last k is a peak where the stability still grows."""
    found, level = [-np.inf, *(each.found for each in scores.values()), -np.inf], levels(scores)
    rows = zip(scores, found, found[1:], found[2:], strict=False)
    return {k: here - level[k] for k, before, here, after in rows if before <= here >= after}


def best_k(scores: Mapping[int, Stability]) -> int:
    """The number of clusters to take: of the `peaks` of the stability the one furthest above what is expected.

    The highest peak would often be the coarsest division: any long cloud can be cut in two in the same way again. 1
    where no number could be tried.
    """
    above = peaks(scores)
    return max(above, key=lambda k: (above[k], k), default=1)


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


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float32] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units


def _fit(units: NDArray[np.floating[Any]], k: int, seed: int, starts: int = 3) -> Any:
    """The fitted k-means of ``[N, d]`` vectors, the best of some starts; of many vectors these are a sample's."""
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than k: as `cluster` says
        if len(units) > LARGE:
            return MiniBatchKMeans(k, n_init=3, batch_size=4096, random_state=seed).fit(units)
        if len(units) <= FIRST:
            return KMeans(k, n_init=starts, random_state=seed).fit(units)
        some = units[np.random.default_rng(seed).permutation(len(units))[:FIRST]]
        some = some.astype(np.float64)  # as above: nine tenths of the time
        centres = KMeans(k, n_init=starts, random_state=seed).fit(some).cluster_centers_
        return KMeans(k, init=centres, n_init=1, random_state=seed).fit(units)
