"""k-means on the vectors, how many groups there are, and how well they agree with labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks, unit
from infomax.arrays.parquet_columns import StoredRows
from infomax.arrays.sparsity import dense
from infomax.progress import Progress, silent

GROUP_COUNTS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
"""Numbers of groups that are compared."""
ALWAYS_COMPARED = 30
"""Numbers up to here are all compared; each further one only if the one before it was the clearest so far."""
COMPARED_VECTORS = 2500
"""Vectors in which numbers of groups are compared, at most, ..."""
COMPARED_WIDTH = 32
"""... by so many of their principal components."""
SMALLEST_GROUP = 3
"""Nodes of the smallest group, at least: a group of one is an outlier, ..."""
SMALLEST_SHARE = 0.005
"""... and so is one of a few nodes among thousands."""
LARGEST_SHARE = 0.75
"""The share of the nodes in the largest group, at most: else a few outliers are told from all others."""
NEARLY_BEST = 0.95
"""The fewest groups are taken that are as clear as this share of the clearest.

Of Cora, which has 7 classes, 30 groups are as clear as 7; of generated listeners to artists of 12 tastes, 25 as 12.
"""
FITTED_AT_ONCE = 10_000
"""Vectors up to which k-means moves its centres over all at a time."""
FITTED_VECTORS = 50_000
"""Vectors that move the centres, at most; then all join one."""
STARTS = 3
"""Random starts of k-means, of which the best is kept."""


def cluster(
    vectors: NDArray[np.float32] | StoredRows,
    k: int,
    *,
    seed: int,
    progress: Progress = silent,
    fitted: int = FITTED_VECTORS,
    small: int = FITTED_AT_ONCE,
) -> NDArray[np.int64]:
    """Groups ``[N]``, 0 to k - 1, the largest first, of ``[N, d]`` vectors: k-means of their directions.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a high cosine. Of more
    than ``fitted`` vectors, so many, drawn at random, move the centres. Where fewer than k vectors differ, there are
    fewer groups.
    """
    drawn = np.random.default_rng(seed).permutation(len(vectors))[:fitted]
    progress(0, "k-means", 1)
    centres = _kmeans(unit(vectors[np.sort(drawn)]), k, seed, small)
    blocks = [centres.predict(unit(block)) for block in row_blocks(vectors)]
    groups: NDArray[np.int64] = np.concatenate(blocks)
    progress(1, "k-means", 1)

    largest_first = np.argsort(-np.bincount(groups, minlength=k), kind="stable")
    ranks: NDArray[np.int64] = np.argsort(largest_first)
    return ranks[groups]


def _kmeans(points: NDArray[np.float32], k: int, seed: int, small: int = FITTED_AT_ONCE) -> Any:
    """scikit-learn's k-means, fitted to points ``[n, d]``."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    method = KMeans if len(points) <= small else MiniBatchKMeans
    with warnings.catch_warnings():
        # Fewer points differ than there are to be groups: then there are fewer groups.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(min(k, len(points)), n_init=STARTS, random_state=seed).fit(points)


@dataclass(frozen=True)
class GroupCount:
    """How clear a number of groups is.

    Attributes:
        count: the number of groups.
        silhouette: the mean silhouette (Rousseeuw 1987) of k-means. That of a node is (b - a) / max(a, b), where a is
            its mean distance to its own group and b that to the nearest other one.
        by_chance: the same of vectors of one normal distribution, with the same variance in each direction.
        is_even: whether neither outliers are groups, nor one group has nearly all nodes.
    """

    count: int
    silhouette: float
    by_chance: float
    is_even: bool

    @property
    def clarity(self) -> float:
        """By how much the groups are clearer than those of vectors without any."""
        return self.silhouette - self.by_chance


def compare_group_counts(
    vectors: NDArray[np.float32] | StoredRows,
    *,
    seed: int,
    progress: Progress = silent,
    counts: Sequence[int] = GROUP_COUNTS,
    always: int = ALWAYS_COMPARED,
) -> list[GroupCount]:
    """How clear each number of groups is, on at most `COMPARED_VECTORS` of the ``[N, d]`` vectors.

    There are at most as many groups as the root of the number of vectors. None are compared where hardly any differ.
    """
    from sklearn.metrics import pairwise_distances, silhouette_score

    draws = np.random.default_rng(seed)
    directions = unit(vectors[draws.permutation(len(vectors))[:COMPARED_VECTORS]])
    different = len(np.unique(directions, axis=0))
    most = min(different - 1, max(2, round(len(directions) ** 0.5)), len(directions) // 2)

    # Distances in the main directions suffice.
    centred = directions - directions.mean(axis=0)
    main_directions = np.linalg.eigh(centred.T @ centred)[1][:, : -COMPARED_WIDTH - 1 : -1]
    points = centred @ main_directions
    normal = draws.standard_normal(points.shape).astype(np.float32) * points.std(axis=0)
    distances = pairwise_distances(points)
    normal_distances = pairwise_distances(normal)

    compared: list[GroupCount] = []
    for count in counts:
        if count > most:
            break
        if count > always and compared[-1].clarity < max(one.clarity for one in compared):
            break
        progress(len(compared), f"{count} groups", len(counts))
        groups = _kmeans(points, count, seed).labels_
        silhouette = float(silhouette_score(distances, groups, metric="precomputed"))
        chance_groups = _kmeans(normal, count, seed).labels_
        by_chance = float(silhouette_score(normal_distances, chance_groups, metric="precomputed"))
        compared.append(GroupCount(count, silhouette, by_chance, _is_even(groups)))
    return compared


def _is_even(groups: NDArray[Any]) -> bool:
    sizes = np.bincount(groups)
    smallest = min(max(SMALLEST_GROUP, SMALLEST_SHARE * len(groups)), len(groups) / 4)
    return bool(sizes.min() >= smallest and sizes.max() <= LARGEST_SHARE * len(groups))


def best_group_count(compared: Sequence[GroupCount]) -> int:
    """The fewest groups that are nearly as clear as the clearest even ones; 1 where none were compared.

    Where no even groups are clearer than chance, the one number whose groups have the highest silhouette.
    """
    if not compared:
        return 1
    candidates = [one for one in compared if one.is_even] or list(compared[:1])
    clearest = max(one.clarity for one in candidates)
    if clearest <= 0:
        return max(candidates, key=lambda one: one.silhouette).count
    return next(one.count for one in candidates if one.clarity >= NEARLY_BEST * clearest)


def distinctive(
    features: Any, clusters: NDArray[Any], *, top: int
) -> list[list[tuple[int, float]]]:
    """The columns of the features ``[N, F]`` that set each cluster apart, at most ``top`` of them, the clearest first.

    Each with the distance of its mean in the cluster from its mean over all nodes, in standard deviations.
    """
    from scipy import sparse

    sizes = np.bincount(clusters)
    sums = np.zeros((len(sizes), features.shape[1]))
    squares = np.zeros_like(sums)
    first = 0
    for block in row_blocks(features):
        groups = clusters[first : first + block.shape[0]]
        entries = (np.ones(len(groups)), (groups, np.arange(len(groups))))
        is_member = sparse.csr_array(entries, shape=(len(sizes), len(groups)))
        sums += dense(is_member @ block)
        squares += dense(is_member @ block**2)
        first += len(groups)

    mean = sums.sum(axis=0) / len(clusters)
    deviation = np.sqrt(np.maximum(squares.sum(axis=0) / len(clusters) - mean**2, 0))
    difference = sums / sizes[:, None] - mean
    distances = np.divide(difference, deviation, out=np.zeros_like(sums), where=deviation > 1e-12)
    order = np.argsort(-np.abs(distances), axis=1, kind="stable")[:, :top]
    return [
        [
            (int(column), float(distances[group, column]))
            for column in best
            if distances[group, column]
        ]
        for group, best in enumerate(order)
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
