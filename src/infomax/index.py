"""Nearest neighbours among many vectors: an index of faiss in memory, with its measured recall."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks, unit
from infomax.embeddings import Embeddings, NearestNodes, SearchableVectors
from infomax.errors import format_count, library, warn
from infomax.neighbours.of_some import cosines, nearest_to
from infomax.progress import Progress, silent

EXACT_NODES = 50_000
"""Up to this number of nodes an exact search for one node takes milliseconds."""
RECALL_NODES = 400
"""Sampled nodes on whose neighbours the recall of an index is measured."""
RECALL_NEIGHBOURS = 10
"""Exact neighbours of each, of which the recall is the share that the index finds."""
TARGET_RECALL = 0.95
"""Lists are added to a search until it has this recall."""
FITTED_PER_LIST = 64
"""Nodes per list to which k-means, which makes the lists, is fitted."""
KMEANS_ROUNDS = 6
"""Rounds of k-means."""
NODES_PER_SEARCH = 1 << 14
"""Nodes whose neighbours are searched at a time."""


@dataclass(frozen=True, eq=False)
class NeighbourIndex(SearchableVectors):
    """Vectors in lists of similar ones, of which only the nearest lists are searched.

    Shapes:
        vectors: ``[N, d]``, ids: ``[N]``, node_names: ``[N]`` or None.
        lists: the index of faiss over the same vectors.
        recall: the share of the exact neighbours of sampled nodes that it finds.
    """

    vectors: NDArray[np.float32]
    ids: NDArray[Any]
    node_names: NDArray[Any] | None
    lists: Any
    recall: float

    @classmethod
    def of(cls, embeddings: Embeddings) -> NeighbourIndex:
        """Build an index over vectors in memory."""
        lists, recall = build(embeddings.vectors)
        return cls(embeddings.vectors, embeddings.ids, embeddings.node_names, lists, recall)

    def nearest(self, nodes: NDArray[Any], k: int) -> NearestNodes:
        """As `Embeddings.nearest`, among nodes that the index finds; their cosines are exact."""
        queries, own_rows = self.queries(nodes)
        k = min(k, len(self.ids) - 1)
        return nearest_found(self.lists, self.vectors, queries, own_rows, k)

    def __str__(self) -> str:
        return f"index: {described(self.lists, self.recall)}"


def described(lists: Any, recall: float) -> str:
    """The settings of an index and its recall, in words."""
    searched = f"{lists.nprobe} of {lists.nlist:,} lists of similar nodes searched"
    sample = format_count(min(RECALL_NODES, lists.ntotal), "sampled node")
    return f"{searched}, recall@{RECALL_NEIGHBOURS} {recall:.2f} against exact, on {sample}"


def has_faiss() -> bool:
    """Whether an index can be built; if not, warn that all vectors are searched, and why."""
    is_installed = find_spec("faiss") is not None
    if not is_installed:
        remedy = "Install it: pip install 'infomax[search]'."
        warn(f"neighbours: without faiss all vectors are searched. {remedy}")
    return is_installed


def build(vectors: NDArray[np.float32], progress: Progress = silent) -> tuple[Any, float]:
    """An index of faiss over vectors ``[N, d]``, and its recall.

    As many lists are searched as it takes to find the share ``TARGET_RECALL`` of exact neighbours.
    """
    faiss = library("faiss", "search", "neighbours")
    n, width = vectors.shape
    list_count = min(n, round(2 * n**0.5))
    lists = faiss.index_factory(width, f"IVF{list_count},Flat", faiss.METRIC_INNER_PRODUCT)
    lists.cp.niter = KMEANS_ROUNDS
    lists.cp.max_points_per_centroid = FITTED_PER_LIST
    lists.cp.min_points_per_centroid = 1

    sampled_rows = np.random.default_rng(0).permutation(n)[: FITTED_PER_LIST * list_count]
    lists.train(unit(vectors[np.sort(sampled_rows)]))
    for block in row_blocks(vectors):
        lists.add(unit(block))
        progress(lists.ntotal, "indexing")

    # More lists are searched until the recall is high enough.
    nodes, exact_cosines = exact_neighbours_of_sample(vectors)
    while True:
        recall = measure_recall(lists, vectors, nodes, exact_cosines)
        if recall >= TARGET_RECALL or lists.nprobe >= list_count:
            return lists, recall
        lists.nprobe += 1 + lists.nprobe // 4


def exact_neighbours_of_sample(
    vectors: NDArray[np.float32], seed: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """A sample of nodes ``[n]``, and the cosines ``[n, k]`` of their exact neighbours."""
    node_count = len(vectors)
    nodes = np.sort(np.random.default_rng(seed).permutation(node_count)[:RECALL_NODES])
    k = min(RECALL_NEIGHBOURS, node_count - 1)

    def compare(queries: NDArray[np.float32], block: NDArray[np.float32]) -> NDArray[np.float32]:
        product: NDArray[np.float32] = unit(queries) @ unit(block).T
        return product

    neighbours = nearest_to(vectors[nodes], nodes, row_blocks(vectors), k, compare)
    return nodes, np.array([best_cosines for _, best_cosines in neighbours])


def measure_recall(
    lists: Any,
    vectors: NDArray[np.float32],
    nodes: NDArray[np.int64],
    exact_cosines: NDArray[np.float32],
) -> float:
    """The share of the exact nearest neighbours of sampled nodes that an index finds.

    A node as near as the last exact neighbour counts as found, whichever node it is.
    """
    if exact_cosines.size == 0:
        return 1.0
    k = exact_cosines.shape[1]
    _, index_cosines = nearest_found(lists, vectors, vectors[nodes], nodes, k)
    return float((index_cosines >= exact_cosines[:, -1:] - 1e-6).mean())


def nearest_found(
    lists: Any,
    vectors: NDArray[np.float32],
    queries: NDArray[np.float32],
    own_rows: NDArray[np.int64],
    k: int,
) -> NearestNodes:
    """Rows and exact cosines ``[n, k]`` of the nodes that an index finds near queries ``[n, d]``.

    ``own_rows`` ``[n]`` are the rows of the queries, which are left out; -1 of a query that is no
    node.
    """
    # In the order of rows, so that equally near nodes come in input order.
    candidates = np.sort(_search(lists, queries, k + 1)[0], axis=1)
    similarity = [
        cosines(query[None], vectors[rows]) for query, rows in zip(queries, candidates, strict=True)
    ]
    return _without_itself(own_rows, candidates, np.vstack(similarity))


def nearest_of_all(
    vectors: NDArray[np.float32], k: int, progress: Progress = silent
) -> tuple[NDArray[np.int64], NDArray[np.float32], str]:
    """Rows and cosines ``[N, k]`` of the nodes that an index finds nearest to each node.

    The third value says in words how the index searched.
    """
    lists, recall = build(vectors)
    n = len(vectors)
    k = min(k, n - 1)
    neighbour_rows = np.empty((n, k), np.int64)
    similarity = np.empty((n, k), np.float32)
    for first in range(0, n, NODES_PER_SEARCH):
        nodes = np.arange(first, min(first + NODES_PER_SEARCH, n))
        rows, row_cosines = _search(lists, vectors[nodes], k + 1)
        neighbour_rows[nodes], similarity[nodes] = _without_itself(nodes, rows, row_cosines)
        progress(int(nodes[-1]) + 1, "neighbours", n)
    return neighbour_rows, similarity, described(lists, recall)


def _search(lists: Any, queries: NDArray[np.float32], k: int) -> NearestNodes:
    """Rows and cosines ``[n, k]`` of the nodes nearest to queries ``[n, d]``.

    The index must hold at least k nodes.
    """
    faiss = library("faiss", "search", "neighbours")
    directions = np.ascontiguousarray(unit(queries))
    similarity, rows = lists.search(directions, k)

    # Where the searched lists hold fewer than k nodes, faiss gives the row -1: search all lists.
    incomplete = (rows < 0).any(axis=1)
    if incomplete.any():
        everywhere = faiss.SearchParametersIVF(nprobe=lists.nlist)
        similarity[incomplete], rows[incomplete] = lists.search(
            directions[incomplete], k, params=everywhere
        )
    return rows, similarity


def _without_itself(
    own_rows: NDArray[np.int64], rows: NDArray[np.int64], similarity: NDArray[np.float32]
) -> NearestNodes:
    """Of k + 1 rows and cosines for each node ``[n]`` the k nearest others, the nearest first."""
    below_every_cosine = -2
    similarity[rows == own_rows[:, None]] = below_every_cosine
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :-1]
    best_cosines = np.take_along_axis(similarity, best, 1).clip(-1, 1)
    return np.take_along_axis(rows, best, 1), best_cosines
