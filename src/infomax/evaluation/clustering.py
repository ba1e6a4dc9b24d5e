"""k-means on the vectors, how many clusters there are, and how well they agree with labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks, unit
from infomax.arrays.parquet_columns import StoredRows
from infomax.arrays.sparsity import dense
from infomax.progress import Progress, silent

KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
ALWAYS = 30
"""Numbers of clusters up to here are all tried; each further one only if the one before it was the best so far."""
SAMPLE, WIDTH = 2500, 32
"""Vectors, and principal components of them, in which numbers of clusters are compared."""
SMALL, FITTED = 10_000, 50_000
"""Vectors up to which k-means moves its centres over all at a time; as many move them at most, then all join one."""
STARTS = 3


def cluster(
    vectors: NDArray[np.float32] | StoredRows,
    k: int,
    *,
    seed: int,
    progress: Progress = silent,
    fitted: int = FITTED,
    small: int = SMALL,
) -> NDArray[np.int64]:
    """Clusters ``[N]``, 0 to k - 1, the largest first, of ``[N, d]`` vectors: k-means of their directions.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a high cosine. Of more
    than ``fitted`` vectors, so many, drawn at random, move the centres. Where fewer than k vectors differ, there are
    fewer clusters.
    """
    rows = np.random.default_rng(seed).permutation(len(vectors))[:fitted]
    progress(0, "k-means", 1)
    found = _kmeans(unit(vectors[np.sort(rows)]), k, seed, small)
    codes: NDArray[np.int64] = np.concatenate(
        [found.predict(unit(block)) for block in row_blocks(vectors)]
    )
    progress(1, "k-means", 1)
    order = np.argsort(-np.bincount(codes, minlength=k), kind="stable")
    ranks: NDArray[np.int64] = np.argsort(order)
    return ranks[codes]


def _kmeans(points: NDArray[np.float32], k: int, seed: int, small: int = SMALL) -> Any:
    """scikit-learn's k-means, fitted to points ``[n, d]``."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    kind = KMeans if len(points) <= small else MiniBatchKMeans
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # of fewer distinct points than clusters
        return kind(min(k, len(points)), n_init=STARTS, random_state=seed).fit(points)


def choose_k(
    vectors: NDArray[np.float32] | StoredRows,
    *,
    seed: int,
    progress: Progress = silent,
    ks: Sequence[int] = KS,
    always: int = ALWAYS,
) -> dict[int, float]:
    """The mean silhouette (Rousseeuw 1987) of k-means by k, on at most SAMPLE of the ``[N, d]`` vectors; see `ALWAYS`.

    The silhouette of a node is (b - a) / max(a, b), where a is its mean distance to its own cluster and b that to the
    nearest other one.
    """
    from sklearn.metrics import pairwise_distances, silhouette_score

    sample = unit(vectors[np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE]])
    most = min(len(np.unique(sample, axis=0)) - 1, len(sample) // 2)
    sample = sample - sample.mean(axis=0)
    sample = (
        sample @ np.linalg.eigh(sample.T @ sample)[1][:, : -WIDTH - 1 : -1]
    )  # the main directions suffice
    distances = pairwise_distances(sample)
    scores: dict[int, float] = {}
    for k in (k for k in ks if k <= most):
        if k > always and best_k(scores) < max(scores):
            break
        progress(len(scores), f"{k} clusters", len(ks))
        labels = _kmeans(sample, k, seed).labels_
        scores[k] = float(silhouette_score(distances, labels, metric="precomputed"))
    return scores


def best_k(scores: Mapping[int, float]) -> int:
    """The number of clusters with the highest silhouette; 1 where no number could be tried."""
    return max(scores, key=lambda k: scores[k]) if scores else 1


def distinctive(
    features: Any, clusters: NDArray[Any], *, top: int
) -> list[list[tuple[int, float]]]:
    """The columns of the features ``[N, F]`` that set each cluster apart, at most ``top`` of them, the clearest first.

    Each with the distance of its mean in the cluster from its mean over all nodes, in standard deviations.
    """
    from scipy import sparse

    sizes, first = np.bincount(clusters), 0
    sums, squares = np.zeros((2, len(sizes), features.shape[1]))
    for block in row_blocks(features):
        here = clusters[first : first + block.shape[0]]
        member = sparse.csr_array(
            (np.ones(len(here)), (here, np.arange(len(here)))), shape=(len(sizes), len(here))
        )
        for total, power in ((sums, 1), (squares, 2)):
            total += dense(member @ block**power)
        first += len(here)
    mean = sums.sum(axis=0) / len(clusters)
    deviation = np.sqrt(np.maximum(squares.sum(axis=0) / len(clusters) - mean**2, 0))
    apart = np.divide(
        sums / sizes[:, None] - mean, deviation, out=np.zeros_like(sums), where=deviation > 1e-12
    )
    order = np.argsort(-np.abs(apart), axis=1, kind="stable")[:, :top]
    return [
        [(int(f), float(apart[row, f])) for f in best if apart[row, f]]
        for row, best in enumerate(order)
    ]


def agreement(clusters: NDArray[Any], codes: NDArray[Any]) -> dict[str, float]:
    """NMI and ARI of clusters ``[N]`` with the codes ``[N]`` of labels; nodes of code -1 are left out.

    Both are 1 where they are the same partition; NMI is 0 where one tells nothing of the other, ARI is 0 by chance.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    known = codes >= 0
    pair = codes[known], clusters[known]
    return {
        "nmi": float(normalized_mutual_info_score(*pair)),
        "ari": float(adjusted_rand_score(*pair)),
    }
