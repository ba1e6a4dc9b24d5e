"""k-means on the vectors, how many clusters there are, and how well they agree with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

KS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30)
SAMPLE = 2000
LARGE = 50_000


def cluster(vectors: NDArray[np.float32], k: int, *, seed: int) -> NDArray[np.int64]:
    """Clusters ``[N]``, 0 to k - 1, the largest first, of ``[N, d]`` vectors: k-means of their directions.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a high cosine. Above
    LARGE nodes k-means goes by batches. Where fewer than k vectors differ, there are fewer clusters.
    """
    codes = _kmeans(_units(vectors), k, seed)
    order = np.argsort(-np.bincount(codes, minlength=k), kind="stable")
    return np.argsort(order)[codes]


def choose_k(vectors: NDArray[np.float32], *, seed: int) -> dict[int, float]:
    """Silhouette of k-means for each of KS, on at most SAMPLE of the ``[N, d]`` vectors: take the k of the highest."""
    from sklearn.metrics import pairwise_distances, silhouette_score

    rows = np.random.default_rng(seed).permutation(len(vectors))[:SAMPLE]
    sample = _units(vectors[rows])
    most = len(np.unique(sample, axis=0))
    apart = pairwise_distances(sample)
    np.fill_diagonal(apart, 0)  # rounding leaves a hair
    return {k: float(silhouette_score(apart, _kmeans(sample, k, seed), metric="precomputed")) for k in KS if k < most}


def best_k(scores: Mapping[int, float]) -> int:
    """The k of the highest silhouette; 1 where no number of clusters could be tried."""
    return max(scores, key=scores.__getitem__, default=1)


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


def _kmeans(units: NDArray[np.float32], k: int, seed: int) -> NDArray[np.int64]:
    import warnings

    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    if len(units) > LARGE:
        method = MiniBatchKMeans(k, n_init=3, batch_size=4096, random_state=seed)
    else:
        method = KMeans(k, n_init=3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct vectors than k: as the docstring says
        codes: NDArray[np.int64] = method.fit_predict(units).astype(np.int64)
    return codes
