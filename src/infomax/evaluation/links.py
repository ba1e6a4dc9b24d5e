"""How well vectors tell edges from random pairs of nodes: a score that needs no labels.

Half of the pairs are edges, half are pairs of nodes that no edge joins. A pair is scored by the
cosine of its two vectors, by a logistic regression on their elementwise product, or by the number
of common neighbours. A random score has an AUC of 0.5, and so has its average precision, since both
halves are of one size.
"""

from __future__ import annotations

from collections.abc import Sequence
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
MOST_SCORED_EDGES = 20_000
"""The most edges that are scored, and as many pairs that are none."""
FEWEST_SCORED_EDGES = 10
"""The fewest edges that can be scored."""
LINK_COSTS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
"""The strengths C that the regression chooses from."""
NUMBERS_PER_BLOCK = 2**22
"""Numbers that are computed at a time: 16 MB of float32."""
MOST_FITTED_NUMBERS = 2**25
"""Numbers that the regression is fitted to at most.

20,000 pairs of vectors of width 512 are a third of that.
"""
MOST_DRAWS_OF_PAIRS = 20
"""How often pairs are drawn: where nearly all nodes are joined, draws are mostly edges."""


@dataclass(frozen=True, eq=False)
class NodePairs:
    """Pairs of nodes, half of them edges.

    The regression learns from one half of each, and all scores are of the other half.

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
    most_edges: int = MOST_SCORED_EDGES,
) -> NodePairs:
    """Draw edges at random, and as many pairs of nodes that no edge joins, in either direction.

    Args:
        adjacency: the known edges.
        held_out: ``[2, H]``, hidden edges, which are scored in place of known ones.
        groups: ``[N]``; both nodes of a pair are of one group, as those of an edge are.
        types: ``[N]``; the nodes of a pair are of the types of the nodes of some edge.
        seed: of the draws.
        most_edges: the most edges that are drawn.
    """
    rng = np.random.default_rng(seed)
    node_count = adjacency.shape[0]
    if held_out is None:
        # Each pair has at most two entries, so twice as many entries have at least so many pairs.
        entry_count = min(adjacency.nnz, 2 * most_edges)
        entries = rng.choice(adjacency.nnz, entry_count, replace=False)
        sources = np.searchsorted(adjacency.indptr, entries, side="right") - 1
        edges = _pair_keys(np.stack([sources, adjacency.indices[entries]]), node_count)
        hidden_edges = edges[:0]
    else:
        edges = _pair_keys(held_out, node_count)
        hidden_edges = edges
    edges = rng.permutation(edges)[:most_edges]

    like_edges = None
    if types is not None:
        like_edges = np.stack(np.divmod(edges, node_count))
        groups = types
    non_edges = _draw_non_edges(adjacency, hidden_edges, groups, like_edges, len(edges), rng)

    pair_count = min(len(edges), len(non_edges))
    if pair_count < FEWEST_SCORED_EDGES:
        expected = f"at least {FEWEST_SCORED_EDGES} edges, and as many pairs of nodes without one"
        found = f"{len(edges)} and {len(non_edges)}"
        raise TooFewEdgesError("edges to score vectors on", expected, found)
    keys = np.concatenate([edges[:pair_count], non_edges[:pair_count]])
    ends = np.stack(np.divmod(keys, node_count))
    joined = np.repeat([True, False], pair_count)
    # Both halves are in random order already, so every second pair is a random half.
    fitted = np.tile(np.arange(pair_count) % 2 == 0, 2)
    return NodePairs(ends, joined, fitted)


def score(pairs: NodePairs, values: NDArray[Any]) -> dict[str, float]:
    """How well one number ``[P]`` per pair puts edges first; 1 at best.

    Only pairs that no regression learnt from count.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    joined = pairs.joined[~pairs.fitted]
    scored_values = values[~pairs.fitted]
    return {
        "auc": float(roc_auc_score(joined, scored_values)),
        "average_precision": float(average_precision_score(joined, scored_values)),
    }


def cosines(
    vectors: Vectors, pairs: NodePairs, numbers_per_block: int = NUMBERS_PER_BLOCK
) -> NDArray[np.float32]:
    """The cosine ``[P]`` of the two vectors of each pair; 0 where one of them is of zeros.

    The mean is subtracted from dense vectors before: those that have most of their length in
    common would all be near each other.
    """
    if not sparse.issparse(vectors):
        vectors = vectors - vectors.mean(axis=0)
    blocks = _blocks(pairs, _numbers_per_vector(vectors), numbers_per_block)
    return np.concatenate([_products(vectors, ends).sum(axis=1) for ends in blocks])


def regression(
    vectors: Vectors,
    pairs: NodePairs,
    costs: Sequence[float] = LINK_COSTS,
    numbers_per_block: int = NUMBERS_PER_BLOCK,
) -> NDArray[np.float64]:
    """Log-odds ``[P]`` of an edge, by a logistic regression on the products of vectors.

    The elementwise products are those of vectors of length 1. C is chosen from ``costs`` on a
    quarter of the pairs to learn from, then the regression is fitted to all of them.
    """
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    # Edges and other pairs in turn, so that each stretch of them has as many of both.
    rows = np.flatnonzero(pairs.fitted).reshape(2, -1).T.ravel()
    width = _numbers_per_vector(vectors)
    rows = rows[: max(2 * FEWEST_SCORED_EDGES, MOST_FITTED_NUMBERS // width)]
    x = _products(vectors, pairs.ends[:, rows])
    y = pairs.joined[rows, None]
    is_learnt = np.arange(len(rows)) % 8 < 6

    # Such products wait longer for a second thread than they gain.
    with threadpool_limits(1):
        auc_of_cost = {
            cost: roc_auc_score(y[~is_learnt], model.logits(x[~is_learnt]))
            for cost, model in logistic_path(x[is_learnt], y[is_learnt], costs)
        }
        best_cost = max(auc_of_cost, key=auc_of_cost.__getitem__)
        _, best_model = next(logistic_path(x, y, [best_cost]))
    blocks = _blocks(pairs, width, numbers_per_block)
    return np.concatenate([best_model.logits(_products(vectors, ends))[:, 0] for ends in blocks])


def common_neighbours(
    adjacency: sparse.csr_array,
    pairs: NodePairs,
    *,
    directed: bool = False,
    numbers_per_block: int = NUMBERS_PER_BLOCK,
) -> NDArray[np.int64]:
    """The number ``[P]`` of nodes with edges, in either direction, with both nodes of a pair."""
    linked = sparse.csr_array(adjacency.maximum(adjacency.T)) if directed else adjacency
    # Hubs have far longer rows than other nodes.
    neighbour_counts = np.diff(linked.indptr)[pairs.ends].sum(axis=0)
    counts = []
    for first_nodes, second_nodes in _blocks(pairs, neighbour_counts, numbers_per_block):
        is_common = (linked[first_nodes] != 0).multiply(linked[second_nodes] != 0)
        counts.append(is_common.sum(axis=1))
    return np.concatenate(counts)


# Products of vectors


def _products(vectors: Vectors, ends: NDArray[np.int64]) -> Any:
    """The elementwise products ``[P, d]`` of the vectors of pairs ``[2, P]``, at length 1."""
    first = _unit_rows(vectors[ends[0]])
    second = _unit_rows(vectors[ends[1]])
    if sparse.issparse(first):
        return sparse.csr_array(first.multiply(second))
    return first * second


def _unit_rows(rows: Any) -> Any:
    from sklearn.preprocessing import normalize

    # Squares of entries that are very small would be zero.
    return normalize(rows / max(abs(rows).max(), 1e-30))


def _numbers_per_vector(vectors: Vectors) -> int:
    """d, or the mean number of entries that a sparse row holds."""
    if sparse.issparse(vectors):
        return max(int(vectors.nnz) // int(vectors.shape[0]), 1)
    return int(vectors.shape[1])


def _blocks(
    pairs: NodePairs, numbers_per_pair: int | NDArray[np.int64], numbers_per_block: int
) -> list[NDArray[np.int64]]:
    """The ends ``[2, p]`` of pairs in blocks, each of about ``numbers_per_block`` numbers."""
    pair_count = pairs.ends.shape[1]
    total = np.cumsum(np.broadcast_to(numbers_per_pair, pair_count))
    block_starts = np.flatnonzero(np.diff(total // numbers_per_block)) + 1
    return np.split(pairs.ends, block_starts, axis=1)


# Pairs that are no edges


def _draw_non_edges(
    adjacency: sparse.csr_array,
    hidden_edges: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    like_edges: NDArray[np.int64] | None,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """About ``count`` different pairs of nodes that are no edges, as keys in random order.

    Args:
        adjacency: the known edges.
        hidden_edges: the keys of edges that are not in the adjacency.
        groups: ``[N]``; both nodes of a pair are of one group.
        like_edges: ``[2, E]``; then the nodes are of the groups of the two nodes of one of these.
        count: how many; there are fewer where the graph has few.
        rng: draws them.
    """
    node_count = adjacency.shape[0]
    group_of_node = np.zeros(node_count, dtype=np.int64)
    if groups is not None:
        group_of_node = np.unique(groups, return_inverse=True)[1]
    # The nodes of a group are a stretch of these.
    nodes_by_group = np.argsort(group_of_node, kind="stable")
    group_sizes = np.bincount(group_of_node)
    group_starts = np.cumsum(group_sizes) - group_sizes

    def draw_of_same_group(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        group = group_of_node[nodes]
        drawn: NDArray[np.int64] = nodes_by_group[
            group_starts[group] + rng.integers(group_sizes[group])
        ]
        return drawn

    non_edges = np.zeros(0, dtype=np.int64)
    for _ in range(MOST_DRAWS_OF_PAIRS):
        first_nodes = rng.integers(node_count, size=2 * count)
        second_nodes = first_nodes
        if like_edges is not None:
            drawn_edges = rng.integers(like_edges.shape[1], size=2 * count)
            first_nodes, second_nodes = like_edges[:, drawn_edges]
        first_ends = draw_of_same_group(first_nodes)
        second_ends = draw_of_same_group(second_nodes)
        drawn_pairs = np.stack([first_ends, second_ends])
        keys = _pair_keys(drawn_pairs[:, ~are_joined(adjacency, drawn_pairs)], node_count)
        non_edges = np.union1d(non_edges, np.setdiff1d(keys, hidden_edges))
        if len(non_edges) >= count:
            break
    return rng.permutation(non_edges)


def _pair_keys(ends: NDArray[np.int64], node_count: int) -> NDArray[np.int64]:
    """One number for each pair of different nodes ``[2, P]``, whatever their order.

    Each pair has its key once, and keys are sorted.
    """
    low, high = np.sort(ends.astype(np.int64), axis=0)
    return np.unique((low * node_count + high)[low != high])
