"""The whole graph and a corruption of it, the paper's regime for citation graphs; and blocks of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.arrays.adjacency import Senders
from infomax.arrays.edge_features import EdgeFeatures
from infomax.errors import InputError
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.plain import permute
from infomax.views.operands import Operand, Products, SparseOperand, multiply, operand, to_multiply
from infomax.views.propagation import Messages, Normalisation, Propagation, Rule
from infomax.views.steps import no_path, paths_of, tables_of
from infomax.views.view import AllNodes, Corruption, View, Views

Factor = Messages | SparseOperand
"""One step of a path as a matrix ``[N_1, N_2]``."""
SPARSE = 10 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 4
"""How many times as long a product with a sparse matrix takes per entry as one with a dense matrix.

The one waits for memory, the other for arithmetic, of which wide vector units do more. So machines may multiply in
another order; the vectors are equal up to rounding.
"""


def pooled_first(chain: Sequence[SparseOperand], x: Operand, weight: Tensor) -> int:
    """How many factors, from the last, are best applied to X before Θ in a step: P (Q (X Θ)), P ((Q X) Θ), (P Q X) Θ.

    X Θ is computed for both views together, with a gradient; Q X needs no gradient, and that of a view without a
    shuffle is known.
    """
    features, dim = weight.shape

    def work(count: int) -> int:
        later = len(chain) - count
        own = x.numel() if isinstance(x, Tensor) else SPARSE * x.entries
        product = 4 * dim * chain[later].shape[0] * features if count else 2 * dim * own
        widths = [4 * dim] * later + [features] * count
        return product + SPARSE * sum(
            one.entries * width for one, width in zip(chain, widths, strict=True)
        )

    return min(range(len(chain) + 1), key=work)


def pool_features(
    factors: Sequence[SparseOperand], x: Operand, dim: int, rows: Tensor | None = None
) -> Tensor:
    """P Q X, dense, ``[M, F]``; with ``rows``, of these rows of X. It replaces a product of width ``dim``."""
    *others, last = factors
    if isinstance(x, Tensor):
        return through(factors, x if rows is None else x[rows])
    if kernels := last.backend.numba(x.shape[0] * dim):
        return through(others, kernels.sparse_product(last.matrix, x.matrix, rows))
    shuffled = x if rows is None else x.gather(rows)
    return through(others, torch.from_numpy((last.scipy @ shuffled.scipy).toarray()))


def through(factors: Sequence[Factor], y: Tensor) -> Tensor:
    """P Q Y."""
    for factor in reversed(factors):
        y = factor @ y
    return y


def features_of_messages(propagation: Messages, known_features: EdgeFeatures) -> Tensor:
    """The features ``[E, F]`` of the messages of a graph, in the order of their keys."""
    keys = propagation.keys.cpu().numpy()
    receivers, senders = np.divmod(keys, propagation.n)
    features = known_features.of_messages(senders, receivers)
    return torch.from_numpy(features).to(propagation.keys.device)


def mean_over(senders: Senders, width: int) -> sparse.csr_array:
    """The mean over those that send to each node, as a matrix ``[N, width]``; zero where nobody does."""
    matrix = senders.matrix(width).astype("float32")
    total = matrix.sum(axis=1)
    matrix.data = matrix.data / total.repeat(matrix.indptr[1:] - matrix.indptr[:-1])
    return matrix


def merged(factors: Iterable[sparse.csr_array]) -> list[sparse.csr_array]:
    """Multiply adjacent factors whose product has no more entries than they have together, so it is less work."""
    first, *others = factors
    found = [first]
    for right in others:
        left = found[-1]
        together = found[-1].nnz + right.nnz
        # Only where the product takes little time and memory is it computed at all.
        few = (
            np.bincount(left.indices, minlength=left.shape[1]) @ np.diff(right.indptr)
            <= 2 * together
        )
        if few and (both := left @ right).nnz <= together:
            found[-1] = both
        else:
            found.append(right)
    return found


@dataclass(frozen=True, eq=False)
class WholeView(AllNodes):
    """The view of all nodes of a graph, or of those of one of its types.

    Messages run along paths. The paper's graph has one, whose name is empty: one step, with the normalisation that the
    encoder asks for. Between several types each step is the mean over the neighbours.

    Shapes:
        products: by type, with its features ``[N, F]``
        chains: by path, its factors ``[N, N_1]``, ``[N_1, N_2]``...
        rows: by type, a permutation: the row of the features for each node; none: its own
    """

    node_type: str
    products: Mapping[str, Products]
    chains: Mapping[str, Sequence[Factor]]
    ends: Mapping[str, str]
    """By path, the type at its end."""
    rows: Mapping[str, Tensor] = field(default_factory=dict)
    known: dict[str, Tensor] = field(default_factory=dict)
    """By path, its features pooled by the last factors, in their own order, which all steps share."""
    both: bool = False
    """Whether it stands for two views: all features in their own order, then shuffled; ``[2 N, d]``, not ``[N, d]``."""
    edge_features: Tensor | None = None
    """``[E, F]``, the features of the messages in ``edges``, in their order. None: the graph's edges have none."""
    known_edge_features: EdgeFeatures | None = None
    """The features of all edges of the graph, by which a corruption's edges get theirs; zeros for new ones."""
    passed: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False)
    """By path, the last product that was passed on by all factors but the first, and the result."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend) -> WholeView:
        """Build the view of a graph on the device; paths share their factors."""
        if not graph.node_type:
            propagation = Propagation.of(graph, cast(Normalisation, rule), backend)
            view = cls.of_one_path(to_multiply(graph.table, backend), propagation)
            known_features = graph.relations[0].edge_features
            if known_features is None:
                return view
            return dataclasses.replace(
                view,
                edge_features=features_of_messages(propagation, known_features),
                known_edge_features=known_features,
            )
        paths = paths_of(graph, rule)
        mean = cache(lambda step: mean_over(step.senders, graph.nodes[step.sender].num_nodes))
        factors = cache(
            lambda steps: [
                cast(SparseOperand, operand(one, backend)) for one in merged(map(mean, steps))
            ]
        )
        return cls(
            graph.node_type,
            {
                node_type: Products(to_multiply(table, backend))
                for node_type, table in tables_of(graph, paths).items()
            },
            {name: factors(tuple(path)) for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
        )

    @classmethod
    def of_one_path(cls, features: Operand, propagation: Messages) -> WholeView:
        """The view of the paper's graph, of features ``[N, F]``."""
        return cls("", {"": Products(features)}, {"": [propagation]}, {"": ""})

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return next(iter(self.chains.values()))[0].backend

    @property
    def n(self) -> int:
        """N."""
        return self.features.shape[0]

    @property
    def features(self) -> Operand:
        """X, before any shuffle."""
        return self.products[self.node_type].features

    @property
    def propagation(self) -> Messages:
        """P of the paper's graph."""
        return cast(Messages, self.chain("")[0])

    @property
    def edges(self) -> Tensor:
        """The senders and the receivers of messages, ``[2, E]``, without self-loops; an undirected edge is two."""
        return torch.stack([self.propagation.keys % self.n, self.propagation.keys // self.n])

    def chain(self, path: str) -> Sequence[Factor]:
        """The factors of a path; raise InputError where there is none of the name."""
        if path not in self.chains:
            raise no_path()
        return self.chains[path]

    def fresh(self) -> WholeView:
        """The same view without cached products, for a step with other weights."""
        products = {
            node_type: Products(known.features) for node_type, known in self.products.items()
        }
        return dataclasses.replace(self, products=products)

    def with_features(self, features: Operand) -> WholeView:
        """The same graph with other features ``[N, F]``."""
        expected, found = (
            f"{one.dtype} features of shape {list(one.shape)}" for one in (self.features, features)
        )
        if expected != found:
            raise InputError("corruption", expected, found)
        return dataclasses.replace(
            self, products={**self.products, self.node_type: Products(features)}
        )

    def with_propagation(self, propagation: Messages) -> WholeView:
        """The same features with other edges."""
        features = None
        if self.known_edge_features is not None:
            features = features_of_messages(propagation, self.known_edge_features)
        return dataclasses.replace(self, chains={"": [propagation]}, edge_features=features)

    def shuffled(self, generator: torch.Generator) -> WholeView:
        """The same graph with the rows of X in random order, within each type."""
        rows = {
            node_type: self.backend.permutation(known.features.shape[0], generator)
            for node_type, known in self.products.items()
        }
        return dataclasses.replace(
            self,
            rows={
                node_type: self.rows[node_type][order] if node_type in self.rows else order
                for node_type, order in rows.items()
            },
        )

    def beside(self, negative: WholeView) -> WholeView | None:
        """Both views of several types as one, on a CPU; None if the negative is not this one with shuffled features."""
        alike = (
            negative.products is self.products
            and negative.rows
            and not self.rows
            and self.node_type
        )
        return (
            dataclasses.replace(negative, both=True)
            if alike and self.backend.device.type == "cpu"
            else None
        )

    def blocks(self, keep: Any = None) -> Callable[[int, int], BlockView]:
        """A function of (start, stop) that returns the view of these nodes; all share their products."""
        return partial(BlockView, self.fresh())

    def pool(self, h: Tensor, start: int, stop: int) -> Tensor:
        """Rows start to stop of P H, of H ``[N, d]``."""
        return self.chain("")[0].rows(start, stop) @ h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return self._features(self.node_type, weight) if h is None else h @ weight

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ, or along a path the mean of means of X Θ of the type at its end."""
        chain = self.chain(path)
        if h is not None or not path:
            return through(chain, self.own(h, weight))
        end, factors = self.ends[path], cast(Sequence[SparseOperand], chain)
        known, rows = self.products[end], self.rows.get(end)
        if (
            count := pooled_first(factors, known.features, weight)
            if self.backend.device.type == "cpu"
            else 0
        ):
            y = multiply(
                self._pooled(path, factors[-count:], weight.shape[1]), weight, self.backend
            )
            y = y.unflatten(0, (2, -1)) if self.both else y
        elif self.both and rows is not None:
            count, y = 1, factors[-1].pair(known.of(None, weight, self.backend), rows)
        else:
            y = self._features(end, weight)
        y = through(chain[: len(chain) - count], y)
        return y.flatten(0, 1) if self.both else y

    def before_first(self, path: str, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ, passed on by all factors of a path but the first, ``[N_1, d]``; computed once for all blocks."""
        y = self.products[self.ends[path]].of(h, weight, self.backend)
        if path not in self.passed or self.passed[path][0] is not y:
            self.passed[path] = y, through(self.chain(path)[1:], y)
        return self.passed[path][1]

    def _pooled(self, path: str, factors: Sequence[SparseOperand], dim: int) -> Tensor:
        """The features at the end of a path, pooled by its last factors."""
        x, rows = self.products[self.ends[path]].features, self.rows.get(self.ends[path])
        if path not in self.known and (self.both or rows is None):
            self.known[path] = pool_features(factors, x, dim)
        if rows is None:
            return self.known[path]
        shuffled = pool_features(factors, x, dim, rows)
        # By NumPy: torch's threads would spin afterwards, on cores that those of our kernels need.
        return (
            torch.from_numpy(np.concatenate([self.known[path], shuffled]))
            if self.both
            else shuffled
        )

    def _features(self, node_type: str, weight: Tensor) -> Tensor:
        y = self.products[node_type].of(None, weight, self.backend)
        return permute(y, self.rows[node_type]) if node_type in self.rows else y


def shuffle_of(positive: View, negative: View) -> tuple[Propagation, Tensor] | None:
    """Return propagation and permutation if the negative is only the positive with shuffled features, else None."""
    if (
        not (isinstance(positive, WholeView) and isinstance(negative, WholeView))
        or positive.node_type
    ):
        return None
    p, rows = positive.propagation, negative.rows.get("")
    alike = (
        negative.products is positive.products and negative.propagation is p and not positive.rows
    )
    return (p, rows) if alike and rows is not None and isinstance(p, Propagation) else None


class BlockView:
    """Nodes start to stop of a whole view: a layer is computed for these only, which bounds the memory."""

    def __init__(self, view: WholeView, start: int, stop: int) -> None:
        self.view = view
        self.start = start
        self.stop = stop
        self.backend = view.backend

    def carry(self, h: Tensor) -> Tensor:
        """The rows of H of these nodes."""
        return h[self.start : self.stop]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        if h is not None:
            return self.carry(h) @ weight
        x = self.view.features
        return multiply(
            self.carry(x) if isinstance(x, Tensor) else x.rows(self.start, self.stop),
            weight,
            self.backend,
        )

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of these nodes, or the mean of means along a path; H Θ is computed once for all blocks."""
        first = self.view.chain(path)[0]
        return first.rows(self.start, self.stop) @ self.view.before_first(path, h, weight)


class WholeGraph(Views):
    """Pairs of the graph and a corruption of it; one step per epoch."""

    steps = 1
    uniform = True
    corruptions = ("shuffle_features", "flip_edges", "flip_and_shuffle", "drop_features")

    def __init__(self, graph: Record, rule: Rule, corruption: Corruption, backend: Backend) -> None:
        self.view = WholeView.of(graph, rule, backend)
        self.corruption = corruption
        self.turn = torch.zeros(1, dtype=torch.int64, device=self.view.backend.device)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch: the graph."""
        return [self.turn]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The graph, and a new corruption of it."""
        view = self.view.fresh()
        return view, self.corruption(view, generator)
