"""Corruptions: shuffled features, flipped edges, or both; dropout on features."""

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

V = TypeVar("V", WholeView, PaddedView, BatchView)
W = TypeVar("W", WholeView, PaddedView)

DENSE_RATE = 0.02
"""Above this rate the negative graph is treated as dense: drawn in row blocks, and stored only if it is small."""
STORED = 1 << 24
"""Entries of a dense negative graph that are stored for the step, at most: 4,096 nodes."""


def shuffle_features(view: V, generator: torch.Generator) -> V:
    """The same graph with the rows of X shuffled."""
    return view.shuffled(generator)


def flip_edges(view: WholeView, generator: torch.Generator, *, rho: float) -> WholeView:
    """The same features on ``A xor Bernoulli(rho)``: every pair of nodes is flipped with
    probability rho.

    An undirected graph stays undirected: its unordered pairs are flipped. A new edge has weight 1.
    Up to `DENSE_RATE` memory is proportional to the edges of the negative graph. Above it, the
    graph is drawn in row blocks, in forward and again in backward from the same seed, so that no N
    x N matrix is stored, unless it has few entries (`STORED`).
    """
    if not 0 <= rho <= 1:
        raise InputError("rho", "a rate from 0 to 1", repr(rho))
    graph = view.propagation
    if rho > DENSE_RATE:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        return view.with_propagation(DenseFlips(graph, rho, seed))
    flipped = _draw_pairs(graph.n, rho, graph.directed, generator)
    edges = _xor(graph.keys, graph.weights, flipped)
    flips = Propagation(*edges, graph.n, graph.rule, graph.backend, directed=graph.directed)
    return view.with_propagation(flips)


def flip_and_shuffle(view: WholeView, generator: torch.Generator, *, rho: float) -> WholeView:
    """Shuffled features on flipped edges."""
    return shuffle_features(flip_edges(view, generator, rho=rho), generator)


def drop_features(view: W, generator: torch.Generator, *, rate: float) -> W:
    """The same graph with dropout on its features; the remaining ones are scaled by 1 / (1 - rate).

    Sparse features stay sparse, but N x F random numbers are drawn, so that the result is the same
    as with dense ones.
    """
    if not 0 <= rate < 1:
        raise InputError("rate", "a rate from 0 to below 1", repr(rate))
    x = view.features if isinstance(view.features, Tensor) else view.features.matrix.to_sparse_coo()
    kept = torch.rand(x.shape, generator=generator, device=generator.device) >= rate
    left = x * kept / (1 - rate)
    features: Any = SparseOperand(left.to_sparse_csr(), view.backend) if left.is_sparse else left
    return view.with_features(features)


def watched(corruption: Corruption) -> Corruption:
    """A corruption that raises InputError for a mistake: no view, features changed in place, half an edge dropped."""
    if partial(corruption).func.__module__ == __name__:
        return corruption

    def changes(view: Any) -> int | None:
        return getattr(getattr(view, "features", None), "_version", None)

    def checked(view: View, generator: torch.Generator) -> View:
        before, negative = changes(view), corruption(view, generator)
        if not hasattr(negative, "at"):
            remedy = "Return view.with_features(...), or view.shuffled(generator)."
            raise InputError(
                "corruption", "a view", f"one of type {type(negative).__name__}", remedy
            )
        if changes(view) != before:
            remedy = "Compute new ones, and return view.with_features(...)."
            raise InputError(
                "corruption", "a new view", "the features of the graph changed in place", remedy
            )
        edges = getattr(negative, "propagation", None)
        if isinstance(edges, Propagation) and edges is not getattr(view, "propagation", None):
            _check_edges(edges)
        return negative

    return checked


def _check_edges(edges: Messages) -> None:
    """Raise InputError unless keys ascend and, in an undirected graph, both directions of an edge are the same."""
    if not (edges.keys.diff() > 0).all():
        raise InputError(
            "corruption, keys of the propagation",
            "ascending ones, each once",
            "others",
            "Sort them.",
        )
    back, order = torch.sort(edges.keys % edges.n * edges.n + edges.keys // edges.n)
    if not edges.directed and not (
        torch.equal(back, edges.keys) and torch.equal(edges.weights[order], edges.weights)
    ):
        remedy = (
            "Keep both directions of an edge or none, or make the propagation with directed=True."
        )
        raise InputError(
            "corruption", "an undirected graph", "edges that differ in their two directions", remedy
        )


SAME_SHAPES: set[Callable[..., Any]] = {shuffle_features}
"""Corruptions whose negatives of a graph all have the same shape."""


def is_replayable(corruption: Any, sparse_features: bool) -> bool:
    """Whether all negatives of a graph with such features have the same shape, so that a GPU can replay the step."""
    function = partial(corruption).func  # that of a partial is its function, too
    if function is drop_features:
        return not sparse_features
    return function in SAME_SHAPES


def _draw_pairs(n: int, rho: float, directed: bool, generator: torch.Generator) -> Tensor:
    """Draw the keys i * n + j of the flipped pairs, ascending; both directions of an unordered
    pair.

    Their number is binomial and every set of that size is equally likely, so each pair is flipped
    independently.
    """
    total = n * (n - 1) // (1 if directed else 2)
    device = generator.device
    mean = torch.tensor([float(total), rho], dtype=torch.float64, device=device)
    count = int(torch.binomial(mean[:1], mean[1:], generator=generator)) if total else 0
    pairs = torch.empty(0, dtype=torch.int64, device=device)
    while len(pairs) < count:  # replace duplicate draws
        more = torch.randint(total, (count - len(pairs),), generator=generator, device=device)
        pairs = torch.unique(torch.cat([pairs, more]))
    if directed:
        i, j = pairs // max(n - 1, 1), pairs % max(n - 1, 1)
        return i * n + j + (j >= i)  # skip the diagonal
    # Pair p of the strict lower triangle: row i holds the pairs from i (i - 1) / 2 on.
    i = ((1 + (1 + 8 * pairs.double()).sqrt()) / 2).long()
    i = i - (i * (i - 1) // 2 > pairs).long()
    i = i + (i * (i + 1) // 2 <= pairs).long()
    j = pairs - i * (i - 1) // 2
    return torch.sort(torch.cat([i * n + j, j * n + i])).values


def _xor(keys: Tensor, weights: Tensor, flipped: Tensor) -> tuple[Tensor, Tensor]:
    """Return the edges in exactly one of the two sets: old edges keep their weight, new ones have weight 1."""
    survivors = ~torch.isin(keys, flipped, assume_unique=True)
    born = flipped[~torch.isin(flipped, keys, assume_unique=True)]
    merged, order = torch.sort(torch.cat([keys[survivors], born]))
    return merged, torch.cat([weights[survivors], weights.new_ones(len(born))])[order]


class DenseFlips(Messages):
    """``A xor Bernoulli(rho)``, normalised; every use draws its rows again, in blocks, if they are
    too many to store.

    Whether a pair is flipped is a hash of the pair and the seed, so that every use has the same
    graph.
    """

    def __init__(self, base: Messages, rho: float, seed: Tensor, block: int = 1 << 22) -> None:
        super().__init__(
            base.keys, base.weights, base.n, base.rule, base.backend, directed=base.directed
        )
        self.rho, self.seed = rho, seed
        self.height = max(1, block // self.n)
        self.stored: list[Tensor] | None = [] if self.n**2 <= STORED else None
        degree = torch.cat([self._rows(start).sum(1) for start in range(0, self.n, self.height)])
        self.left, self.right = self.rule.factors(degree, degree.dtype)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Propagate once, ``[N, D] -> [N, D]``."""
        return linear(y, self.product, self.transposed_product)

    def product(self, y: Tensor) -> Tensor:
        """Compute ``P y``, block by block."""
        y = self.right[:, None] * y
        blocks = [self._rows(start) @ y for start in range(0, self.n, self.height)]
        return self.left[:, None] * torch.cat(blocks)

    def transposed_product(self, g: Tensor) -> Tensor:
        """Compute ``P^T g``, block by block."""
        g = self.left[:, None] * g
        out = torch.zeros_like(g)
        for start in range(0, self.n, self.height):
            out += self._rows(start).T @ g[start : start + self.height]
        return self.right[:, None] * out

    def _rows(self, start: int) -> Tensor:
        """Rows start to start + height of ``A xor Sigma``, with any self-loops, ``[height, N]``: drawn or stored."""
        at = start // self.height
        if self.stored is not None and at < len(self.stored):
            return self.stored[at]
        stop = min(start + self.height, self.n)
        i = torch.arange(start, stop, device=self.keys.device)[:, None]
        j = torch.arange(self.n, device=self.keys.device)[None, :]
        low, high = (i, j) if self.directed else (torch.minimum(i, j), torch.maximum(i, j))
        switched = uniform(low * self.n + high, self.seed) < self.rho
        first, last = torch.searchsorted(
            self.keys, torch.tensor([start * self.n, stop * self.n], device=i.device)
        )
        block = torch.zeros(stop - start, self.n, dtype=self.weights.dtype, device=i.device)
        block.view(-1)[self.keys[first:last] - start * self.n] = self.weights[first:last]
        block = torch.where(switched, (block == 0).to(block.dtype), block)
        block[i == j] = int(self.rule.loops)
        if self.stored is not None:
            self.stored.append(block)
        return block
