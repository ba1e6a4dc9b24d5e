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
"""Numbers up to this one are all compared, further ones while each is the clearest so far."""
COMPARED_VECTORS = 2500
"""Vectors in which numbers of groups are compared, at most."""
COMPARED_WIDTH = 32
"""Principal components by which they are compared."""
SMALLEST_GROUP = 3
"""Nodes of the smallest group, at least: a group of one is an outlier."""
SMALLEST_SHARE = 0.005
"""The same as a share of the nodes: a few nodes among thousands are outliers as well."""
LARGEST_SHARE = 0.75
"""The share of the nodes in the largest group, at most.

Where it is larger, a few outliers are told from all other nodes.
"""
SHARE_OF_CLEAREST = 0.95
"""The fewest groups are taken that are as clear as this share of the clearest.

Of Cora, which has 7 classes, 30 groups are as clear as 7; of generated listeners to artists of 12
tastes, 25 as 12.
"""
FULL_BATCH_VECTORS = 10_000
"""Vectors up to which a step of k-means reads all of them; of more, it reads a batch."""
FITTED_VECTORS = 50_000
"""Vectors to which the centres are fitted, at most; then each vector joins the nearest centre."""
K_MEANS_STARTS = 3
"""Random starts of k-means, of which the best is kept."""


def cluster(
    vectors: NDArray[np.float32] | StoredRows,
    k: int,
    *,
    seed: int,
    progress: Progress = silent,
    most_fitted: int = FITTED_VECTORS,
    most_in_full_batch: int = FULL_BATCH_VECTORS,
) -> NDArray[np.int64]:
    """Groups ``[N]``, 0 to k - 1, the largest first, by k-means of the directions of vectors.

    Vectors are scaled to length 1, so that near means what it means to `Embeddings.neighbours`: a
    high cosine. Where fewer than k vectors differ, there are fewer groups.

    Args:
        vectors: ``[N, d]``.
        k: the number of groups.
        seed: of the sample and of k-means.
        progress: is told when k-means begins and ends.
        most_fitted: the centres are fitted to at most so many vectors, drawn at random.
        most_in_full_batch: of more vectors than this, k-means reads a batch at a time.
    """
    sampled_rows = np.random.default_rng(seed).permutation(len(vectors))[:most_fitted]
    progress(0, "k-means", 1)
    sample = unit(vectors[np.sort(sampled_rows)])
    centres = _kmeans(sample, k, seed, most_in_full_batch)
    blocks = [centres.predict(unit(block)) for block in row_blocks(vectors)]
    groups: NDArray[np.int64] = np.concatenate(blocks)
    progress(1, "k-means", 1)

    largest_first = np.argsort(-np.bincount(groups, minlength=k), kind="stable")
    ranks: NDArray[np.int64] = np.argsort(largest_first)
    return ranks[groups]


def _kmeans(
    points: NDArray[np.float32], k: int, seed: int, most_in_full_batch: int = FULL_BATCH_VECTORS
) -> Any:
    """scikit-learn's k-means, fitted to points ``[n, d]``."""
    from sklearn.cluster import KMeans, MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    method = KMeans if len(points) <= most_in_full_batch else MiniBatchKMeans
    with warnings.catch_warnings():
        # Fewer points differ than there are to be groups: then there are fewer groups.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(min(k, len(points)), n_init=K_MEANS_STARTS, random_state=seed).fit(points)


@dataclass(frozen=True)
class GroupCount:
    """How clear a number of groups is.

    Attributes:
        count: the number of groups.
        silhouette: the mean silhouette (Rousseeuw 1987) of k-means. That of a node is (b - a) /
            max(a, b), where a is its mean distance to its own group and b that to the nearest other
            one.
        by_chance: the same of vectors of one normal distribution, with the same variance in each
            direction.
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
    always_compared: int = ALWAYS_COMPARED,
) -> list[GroupCount]:
    """How clear each number of groups is, on at most `COMPARED_VECTORS` of the ``[N, d]`` vectors.

    There are at most as many groups as the root of the number of vectors. No numbers are compared
    where hardly any vectors differ. Numbers above ``always_compared`` are compared only as long as
    each is the clearest so far.
    """
    from sklearn.metrics import pairwise_distances, silhouette_score

    draws = np.random.default_rng(seed)
    directions = unit(vectors[draws.permutation(len(vectors))[:COMPARED_VECTORS]])
    distinct_count = len(np.unique(directions, axis=0))
    most_groups = max(2, round(len(directions) ** 0.5))
    most_groups = min(most_groups, distinct_count - 1, len(directions) // 2)

    # Distances in the main directions suffice. What k-means finds by chance is measured on points
    # of one normal distribution with the same variances.
    centred = directions - directions.mean(axis=0)
    main_directions = np.linalg.eigh(centred.T @ centred)[1][:, : -COMPARED_WIDTH - 1 : -1]
    points = centred @ main_directions
    normal = draws.standard_normal(points.shape).astype(np.float32) * points.std(axis=0)
    distances = pairwise_distances(points)
    normal_distances = pairwise_distances(normal)

    compared: list[GroupCount] = []
    for count in counts:
        if count > most_groups:
            break
        if count > always_compared:
            clearest = max(group_count.clarity for group_count in compared)
            if compared[-1].clarity < clearest:
                break
        progress(len(compared), f"{count} groups", len(counts))
        groups = _kmeans(points, count, seed).labels_
        silhouette = float(silhouette_score(distances, groups, metric="precomputed"))
        chance_groups = _kmeans(normal, count, seed).labels_
        by_chance = float(silhouette_score(normal_distances, chance_groups, metric="precomputed"))
        compared.append(GroupCount(count, silhouette, by_chance, _is_even(groups)))
    return compared


def _is_even(groups: NDArray[Any]) -> bool:
    """Whether no group is as small as an outlier, and none has nearly all nodes."""
    sizes = np.bincount(groups)
    smallest = min(max(SMALLEST_GROUP, SMALLEST_SHARE * len(groups)), len(groups) / 4)
    return bool(sizes.min() >= smallest and sizes.max() <= LARGEST_SHARE * len(groups))


def best_group_count(compared: Sequence[GroupCount]) -> int:
    """The fewest groups that are nearly as clear as the clearest even ones.

    Where no even groups are clearer than chance, it is the number of groups with the highest
    silhouette; where no numbers were compared, it is 1.
    """
    if not compared:
        return 1
    candidates = [group_count for group_count in compared if group_count.is_even]
    if not candidates:
        candidates = list(compared[:1])
    clearest = max(group_count.clarity for group_count in candidates)
    if clearest <= 0:
        return max(candidates, key=lambda group_count: group_count.silhouette).count
    clear_enough = [
        group_count.count
        for group_count in candidates
        if group_count.clarity >= SHARE_OF_CLEAREST * clearest
    ]
    return clear_enough[0]


def distinctive(
    features: Any, clusters: NDArray[Any], *, top: int
) -> list[list[tuple[int, float]]]:
    """For each cluster at most ``top`` columns of the features ``[N, F]`` that distinguish it.

    The clearest comes first. Each column has the distance of its mean in the cluster from its mean
    over all nodes, in standard deviations.
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
    largest_columns = np.argsort(-np.abs(distances), axis=1, kind="stable")[:, :top]
    columns_of_clusters = []
    for distances_of_cluster, columns in zip(distances, largest_columns, strict=True):
        columns_with_distance = [
            (int(column), float(distances_of_cluster[column]))
            for column in columns
            if distances_of_cluster[column] != 0
        ]
        columns_of_clusters.append(columns_with_distance)
    return columns_of_clusters


def agreement(clusters: NDArray[Any], codes: NDArray[Any]) -> dict[str, float]:
    """NMI and ARI of clusters ``[N]`` with the codes ``[N]`` of labels, without nodes of code -1.

    Both are 1 for the same partition. NMI is 0 where one tells nothing of the other; by chance, ARI
    is 0.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    has_code = codes >= 0
    labels = codes[has_code]
    groups = clusters[has_code]
    return {
        "nmi": float(normalized_mutual_info_score(labels, groups)),
        "ari": float(adjusted_rand_score(labels, groups)),
    }
