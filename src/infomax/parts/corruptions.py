"""Corruptions C: how the negative view (X~, A~) is made from the graph (X, A), step 1 of the paper.

A regime calls the corruption in ``Views.pair``; see ``deep_graph_infomax.py``. The paper's is
`shuffle_features`; flipped edges, both at once, and dropout on features are its Appendix C and its
PPI experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from infomax.errors import InputError
from infomax.kernels.plain import linear
from infomax.kernels.random import uniform
from infomax.views import BatchView, Corruption, PaddedView, View, WholeView
from infomax.views.operands import SparseOperand
from infomax.views.propagation import Messages, Propagation

AnyView = TypeVar("AnyView", WholeView, PaddedView, BatchView)
ViewInMemory = TypeVar("ViewInMemory", WholeView, PaddedView)

LARGEST_SPARSE_RATE = 0.02
"""Up to this rate the flipped pairs are drawn one by one; above it, a hash decides about each
pair."""
STORED_ENTRIES = 1 << 24
"""Entries N x N of a dense negative graph that are stored for the step, at most: 4,096 nodes."""
ENTRIES_PER_BLOCK = 1 << 22
"""Entries of a dense negative graph that are drawn at a time."""


def shuffle_features(view: AnyView, generator: torch.Generator) -> AnyView:
    """The same graph with the rows of X shuffled: A~ = A, and X~ a permutation of the rows of X."""
    return view.shuffled(generator)


def flip_edges(
    view: WholeView,
    generator: torch.Generator,
    *,
    rho: float,
    largest_sparse_rate: float = LARGEST_SPARSE_RATE,
    stored_entries: int = STORED_ENTRIES,
) -> WholeView:
    """The same features on ``A xor Bernoulli(rho)``: every pair of nodes is flipped with
    probability rho.

    An undirected graph stays undirected: its unordered pairs are flipped. A new edge has weight 1.

    Args:
        view: the graph.
        generator: for the draws.
        rho: the rate of flipped pairs.
        largest_sparse_rate: up to this rate memory is proportional to the edges of the negative
            graph. Above it the graph is drawn in row blocks, in forward and again in backward from
            the same seed, so that no N x N matrix is stored.
        stored_entries: a negative graph of at most so many entries, N x N, is stored all the same.
    """
    if not 0 <= rho <= 1:
        raise InputError("rho", "a rate from 0 to 1", repr(rho))
    graph = view.propagation
    if rho > largest_sparse_rate:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        return view.with_propagation(DenseFlips(graph, rho, seed, stored_entries=stored_entries))

    flipped = _draw_pairs(graph.n, rho, graph.directed, generator)
    keys, weights = _xor(graph.keys, graph.weights, flipped)
    negative = Propagation(
        keys, weights, graph.n, graph.rule, graph.backend, directed=graph.directed
    )
    return view.with_propagation(negative)


def flip_and_shuffle(view: WholeView, generator: torch.Generator, *, rho: float) -> WholeView:
    """Shuffled features on flipped edges."""
    return shuffle_features(flip_edges(view, generator, rho=rho), generator)


def drop_features(view: ViewInMemory, generator: torch.Generator, *, rate: float) -> ViewInMemory:
    """The same graph with dropout on its features; the remaining ones are scaled by 1 / (1 - rate).

    Sparse features stay sparse, but N x F random numbers are drawn, so that the result is the same
    as with dense ones.
    """
    if not 0 <= rate < 1:
        raise InputError("rate", "a rate from 0 to below 1", repr(rate))
    if isinstance(view.features, Tensor):
        x = view.features
    else:
        x = view.features.matrix.to_sparse_coo()

    is_kept = torch.rand(x.shape, generator=generator, device=generator.device) >= rate
    remaining = x * is_kept / (1 - rate)
    if not remaining.is_sparse:
        return view.with_features(remaining)
    # A PaddedView has dense features only, so this is a WholeView.
    features: Any = SparseOperand(remaining.to_sparse_csr(), view.backend)
    return view.with_features(features)


SAME_SHAPE_CORRUPTIONS: set[Callable[..., Any]] = {shuffle_features}
"""Corruptions whose negatives of a graph all have the same shape."""


def is_replayable(corruption: Any, sparse_features: bool) -> bool:
    """Whether all negatives of a graph have the same shape, so that a GPU can replay the step."""
    function = partial(corruption).func  # of a partial, the function that it binds
    if function is drop_features:
        # Of sparse features each draw keeps another number of entries.
        return not sparse_features
    return function in SAME_SHAPE_CORRUPTIONS


def with_checks(corruption: Corruption) -> Corruption:
    """A corruption of your own, with an InputError for a mistake; infomax's own as they are.

    Mistakes are: something that is no view, features that are changed in place, and an undirected
    graph of which one direction of an edge is dropped.
    """
    if partial(corruption).func.__module__ == __name__:
        return corruption

    def checked_corruption(view: View, generator: torch.Generator) -> View:
        version_before = _version_of_features(view)
        negative = corruption(view, generator)
        if not hasattr(negative, "at"):
            found = f"one of type {type(negative).__name__}"
            remedy = "Return view.with_features(...), or view.shuffled(generator)."
            raise InputError("corruption", "a view", found, remedy)
        if _version_of_features(view) != version_before:
            found = "the features of the graph changed in place"
            remedy = "Compute new ones, and return view.with_features(...)."
            raise InputError("corruption", "a new view", found, remedy)

        propagation = getattr(negative, "propagation", None)
        has_new_edges = propagation is not getattr(view, "propagation", None)
        if isinstance(propagation, Propagation) and has_new_edges:
            _check_edges_of_negative(propagation)
        return negative

    return checked_corruption


def _version_of_features(view: Any) -> int | None:
    """A number by which torch counts changes in place; None where features are not one tensor."""
    return getattr(getattr(view, "features", None), "_version", None)


def _check_edges_of_negative(edges: Propagation) -> None:
    """Refuse the edges of a negative whose keys do not ascend, or of which one direction differs.

    The key of an edge is receiver * N + sender. It is called only for a corruption of your own
    that returns new edges. In an undirected graph each edge has both directions, of one weight.
    """
    if not (edges.keys.diff() > 0).all():
        location = "corruption, keys of the propagation"
        raise InputError(location, "ascending ones, each once", "others", "Sort them.")
    if edges.directed:
        return

    n = edges.n
    reversed_keys, order = torch.sort(edges.keys % n * n + edges.keys // n)
    has_both_directions = torch.equal(reversed_keys, edges.keys)
    if not has_both_directions or not torch.equal(edges.weights[order], edges.weights):
        found = "edges that differ in their two directions"
        remedy = (
            "Keep both directions of an edge or none, or make the propagation with directed=True."
        )
        raise InputError("corruption", "an undirected graph", found, remedy)


def _draw_pairs(n: int, rho: float, directed: bool, generator: torch.Generator) -> Tensor:
    """Draw the keys i * n + j of the flipped pairs, ascending; both directions of an unordered
    pair.

    Their number is binomial and every set of that size is equally likely, so each pair is flipped
    independently.
    """
    total = n * (n - 1) // (1 if directed else 2)
    device = generator.device
    count = 0
    if total:
        trials_and_rate = torch.tensor([float(total), rho], dtype=torch.float64, device=device)
        count = int(torch.binomial(trials_and_rate[:1], trials_and_rate[1:], generator=generator))

    # Draw until there are so many different ones.
    pairs = torch.empty(0, dtype=torch.int64, device=device)
    while len(pairs) < count:
        more = torch.randint(total, (count - len(pairs),), generator=generator, device=device)
        pairs = torch.unique(torch.cat([pairs, more]))

    if directed:
        # A row has n - 1 pairs, for it has none on the diagonal.
        i = pairs // max(n - 1, 1)
        j = pairs % max(n - 1, 1)
        return i * n + j + (j >= i)

    # Pair p of the strict lower triangle: row i holds the pairs from i (i - 1) / 2 on. The root is
    # rounded, so that i may be one too large or too small.
    i = ((1 + (1 + 8 * pairs.double()).sqrt()) / 2).long()
    i = i - (i * (i - 1) // 2 > pairs).long()
    i = i + (i * (i + 1) // 2 <= pairs).long()
    j = pairs - i * (i - 1) // 2
    return torch.sort(torch.cat([i * n + j, j * n + i])).values


def _xor(keys: Tensor, weights: Tensor, flipped: Tensor) -> tuple[Tensor, Tensor]:
    """Return the edges in exactly one of the two sets: old edges keep their weight, new ones have
    weight 1."""
    survives = ~torch.isin(keys, flipped, assume_unique=True)
    new_keys = flipped[~torch.isin(flipped, keys, assume_unique=True)]
    all_keys, order = torch.sort(torch.cat([keys[survives], new_keys]))
    all_weights = torch.cat([weights[survives], weights.new_ones(len(new_keys))])
    return all_keys, all_weights[order]


class DenseFlips(Messages):
    """``A xor Bernoulli(rho)``, normalised; every use draws its rows again, in blocks, if they are
    too many to store.

    Whether a pair is flipped is a hash of the pair and the seed, so that every use has the same
    graph.

    Args:
        graph: A.
        rho: the rate of flipped pairs.
        seed: ``[]``, of the hash.
        entries_per_block: entries, of N per row, that are drawn at a time.
        stored_entries: a graph of at most so many entries, N x N, is drawn once and stored.
    """

    lists_edges = False

    def __init__(
        self,
        graph: Messages,
        rho: float,
        seed: Tensor,
        *,
        entries_per_block: int = ENTRIES_PER_BLOCK,
        stored_entries: int = STORED_ENTRIES,
    ) -> None:
        super().__init__(
            graph.keys, graph.weights, graph.n, graph.rule, graph.backend, directed=graph.directed
        )
        self.rho = rho
        self.seed = seed
        self.rows_per_block = max(1, entries_per_block // self.n)
        self.block_starts = range(0, self.n, self.rows_per_block)
        self.stored_blocks: list[Tensor] | None = None
        if self.n**2 <= stored_entries:
            self.stored_blocks = [self._draw_block(start) for start in self.block_starts]

        degree = torch.cat([self._block(start).sum(1) for start in self.block_starts])
        self.left, self.right = self.rule.factors(degree, degree.dtype)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        return linear(y, self.product, self.transposed_product)

    def product(self, y: Tensor) -> Tensor:
        """Compute ``P y``, block by block."""
        y = self.right[:, None] * y
        rows = torch.cat([self._block(start) @ y for start in self.block_starts])
        return self.left[:, None] * rows

    def transposed_product(self, g: Tensor) -> Tensor:
        """Compute ``P^T g``, block by block."""
        g = self.left[:, None] * g
        total = torch.zeros_like(g)
        for start in self.block_starts:
            total += self._block(start).T @ g[start : start + self.rows_per_block]
        return self.right[:, None] * total

    def _block(self, start: int) -> Tensor:
        """Rows of ``A xor Bernoulli``, with any self-loops, ``[rows_per_block, N]``: stored or
        drawn."""
        if self.stored_blocks is not None:
            return self.stored_blocks[start // self.rows_per_block]
        return self._draw_block(start)

    def _draw_block(self, start: int) -> Tensor:
        n, device = self.n, self.keys.device
        stop = min(start + self.rows_per_block, n)
        i = torch.arange(start, stop, device=device)[:, None]
        j = torch.arange(n, device=device)[None, :]

        # In an undirected graph (i, j) and (j, i) have the same hash.
        if self.directed:
            pair = i * n + j
        else:
            pair = torch.minimum(i, j) * n + torch.maximum(i, j)
        is_flipped = uniform(pair, self.seed) < self.rho

        # The rows of A; keys ascend, so those of these rows follow each other.
        bounds = torch.tensor([start * n, stop * n], device=device)
        first, last = torch.searchsorted(self.keys, bounds)
        block = torch.zeros(stop - start, n, dtype=self.weights.dtype, device=device)
        block.view(-1)[self.keys[first:last] - start * n] = self.weights[first:last]

        block = torch.where(is_flipped, (block == 0).to(block.dtype), block)
        block[i == j] = int(self.rule.loops)
        return block
