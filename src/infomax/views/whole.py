"""The whole graph and a corruption of it, the paper's regime for citation graphs.

A step sees all nodes (`WholeView`). Vectors are computed for blocks of nodes (`BlockView`).
"""

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
from infomax.arrays.relations import Step
from infomax.errors import InputError
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.plain import permute
from infomax.views.operands import Operand, Products, SparseOperand, multiply, operand, to_multiply
from infomax.views.propagation import Messages, Normalisation, Propagation, Rule
from infomax.views.steps import no_path, paths_of, tables_of
from infomax.views.view import AllNodes, Corruption, View, Views, WithoutEdges

Factor = Messages | SparseOperand
"""One step of a path as a matrix ``[N_1, N_2]``."""
SPARSE_ENTRY_COST = 10 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 4
"""How many times as long a product with a sparse matrix takes per entry as one with a dense matrix.

A sparse product waits for memory, a dense one for arithmetic, of which wide vector units do more.
So machines may multiply in another order; the vectors are equal up to rounding.
"""
MOST_TERMS_PER_ENTRY = 2
"""Factors are multiplied with each other only where that adds up so few terms for each entry."""


class WholeGraph(Views):
    """Pairs of the graph and a corruption of it; one step per epoch."""

    steps = 1
    uniform = True
    corruptions = ("shuffle_features", "flip_edges", "flip_and_shuffle", "drop_features")

    def __init__(self, graph: Record, rule: Rule, corruption: Corruption, backend: Backend) -> None:
        self.view = WholeView.of(graph, rule, backend)
        self.corruption = corruption
        device = self.view.backend.device
        self.only_batch = torch.zeros(1, dtype=torch.int64, device=device)

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch: the graph."""
        return [self.only_batch]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The graph, and a new corruption of it."""
        view = self.view.fresh()
        return view, self.corruption(view, generator)


@dataclass(frozen=True, eq=False)
class WholeView(AllNodes):
    """The view of all nodes of a graph, or of those of one of its types.

    Messages run along paths. The paper's graph has one, whose name is empty: one step, with the
    normalisation that the encoder asks for. Between several types each step is the mean over the
    neighbours.

    Shapes:
        products: by type, with its features ``[N, F]``
        factors: by path, its factors ``[N, N_1]``, ``[N_1, N_2]``...
        shuffled_rows: by type, a permutation ``[N]``: the row of the features for each node; a type
            that is missing has its own order
        message_features: ``[E, F]``
    """

    node_type: str
    products: Mapping[str, Products]
    factors: Mapping[str, Sequence[Factor]]
    end_types: Mapping[str, str]
    """By path, the type at its end."""
    shuffled_rows: Mapping[str, Tensor] = field(default_factory=dict)
    pooled_features: dict[str, Tensor] = field(default_factory=dict)
    """By path, its features pooled by the last factors, in their own order.

    They do not depend on weights, so all steps share them.
    """
    is_pair: bool = False
    """Whether it stands for two views, ``[2 N, d]``: with features in order, then shuffled."""
    message_features: Tensor | None = None
    """The features of the messages in ``edges``, in their order; None: edges have none."""
    graph_edge_features: EdgeFeatures | None = None
    """The features of all edges of the graph: a corruption takes them, new edges get 0."""
    passed_products: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False)
    """By path, the last product that was passed on by all factors but the first, and the result."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend) -> WholeView:
        """Build the view of a graph on the device; paths share their factors."""
        if graph.has_named_types:
            return cls._of_several_types(graph, rule, backend)

        propagation = Propagation.of(graph, cast(Normalisation, rule), backend)
        view = cls.of_one_path(to_multiply(graph.table, backend), propagation)
        edge_features = graph.relations[0].edge_features
        if edge_features is None:
            return view
        return dataclasses.replace(
            view,
            message_features=features_of_messages(propagation, edge_features),
            graph_edge_features=edge_features,
        )

    @classmethod
    def of_one_path(cls, features: Operand, propagation: Messages) -> WholeView:
        """The view of the paper's graph, of features ``[N, F]``."""
        return cls("", {"": Products(features)}, {"": [propagation]}, {"": ""})

    @classmethod
    def _of_several_types(cls, graph: Record, rule: Rule, backend: Backend) -> WholeView:
        """The view of the nodes of one of several types; each path is a product of means."""
        paths = paths_of(graph, rule)

        @cache
        def mean_matrix(step: Step) -> sparse.csr_array:
            return mean_over(step.senders, graph.nodes[step.sender].num_nodes)

        @cache
        def factors(steps: tuple[Step, ...]) -> list[SparseOperand]:
            matrices = merge_factors(map(mean_matrix, steps))
            return [cast(SparseOperand, operand(matrix, backend)) for matrix in matrices]

        products = {
            node_type: Products(to_multiply(table, backend))
            for node_type, table in tables_of(graph, paths).items()
        }
        return cls(
            graph.node_type,
            products,
            {name: factors(tuple(path)) for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
        )

    @property
    def backend(self) -> Backend:
        """The kernels that compute products of the view."""
        any_factors = next(iter(self.factors.values()))
        return any_factors[0].backend

    @property
    def has_named_types(self) -> bool:
        """Whether the graph has several types of nodes, whose names are not empty."""
        return self.node_type != ""

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
        return cast(Messages, self.factors_of("")[0])

    @property
    def edges(self) -> Tensor:
        """The senders and the receivers of messages, ``[2, E]``, without self-loops.

        An undirected edge is two messages.
        """
        self._require_listed_edges()
        keys = self.propagation.keys
        return torch.stack([keys % self.n, keys // self.n])

    @property
    def has_edge_features(self) -> bool:
        """Whether the edges of the graph have features."""
        return self.graph_edge_features is not None

    @property
    def edge_features(self) -> Tensor:
        """The features of the messages in `edges`, ``[E, F]``, in their order.

        Raises InputError where edges have none: an encoder that can do without them asks
        `has_edge_features` first.
        """
        self._require_listed_edges()
        if self.message_features is None:
            expected = "features of edges, which the encoder reads"
            remedy = "Give them: graph.with_edge_features(edges, values)."
            raise InputError("graph", expected, "none", remedy)
        return self.message_features

    def _require_listed_edges(self) -> None:
        """Raise InputError where the edges of a negative are drawn anew whenever they are used."""
        if not self.propagation.lists_edges:
            expected = "edges that can be listed, for an encoder that reads them"
            found = "flips at a rate for which they are not"
            remedy = "Pass partial(flip_edges, rho=..., largest_sparse_rate=1)."
            raise InputError("corruption", expected, found, remedy)

    def factors_of(self, path: str) -> Sequence[Factor]:
        """The factors of a path; raise InputError where there is none of the name."""
        if path not in self.factors:
            raise no_path()
        return self.factors[path]

    # Changed copies

    def fresh(self) -> WholeView:
        """The same view without cached products, for a step with other weights."""
        products = {
            node_type: Products(earlier.features) for node_type, earlier in self.products.items()
        }
        return dataclasses.replace(self, products=products)

    def with_features(self, features: Operand) -> WholeView:
        """The same graph with other features ``[N, F]``."""
        expected = f"{self.features.dtype} features of shape {list(self.features.shape)}"
        found = f"{features.dtype} features of shape {list(features.shape)}"
        if expected != found:
            raise InputError("corruption", expected, found)
        products = {**self.products, self.node_type: Products(features)}
        return dataclasses.replace(self, products=products)

    def with_propagation(self, propagation: Messages) -> WholeView:
        """The same features with other edges."""
        message_features = None
        if self.graph_edge_features is not None and propagation.lists_edges:
            message_features = features_of_messages(propagation, self.graph_edge_features)
        return dataclasses.replace(
            self, factors={"": [propagation]}, message_features=message_features
        )

    def shuffled(self, generator: torch.Generator) -> WholeView:
        """The same graph with the rows of X in random order, within each type."""
        # The draws come first and in the order of the types, so that a seed gives the same ones.
        orders = {
            node_type: self.backend.permutation(products.features.shape[0], generator)
            for node_type, products in self.products.items()
        }
        for node_type, earlier_rows in self.shuffled_rows.items():
            orders[node_type] = earlier_rows[orders[node_type]]
        return dataclasses.replace(self, shuffled_rows=orders)

    def as_pair_with(self, negative: WholeView) -> WholeView | None:
        """One view that stands for this one and its shuffled negative; see ``is_pair``.

        None for graphs of one type, for other negatives, and on a GPU.
        """
        if not self.has_named_types or self.backend.device.type != "cpu":
            return None
        shares_features = negative.products is self.products
        is_shuffle = bool(negative.shuffled_rows) and not self.shuffled_rows
        if not shares_features or not is_shuffle:
            return None
        return dataclasses.replace(negative, is_pair=True)

    # What the layers of an encoder ask for

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        if h is None:
            return self._times_features(self.node_type, weight)
        return h @ weight

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ, or along a path the mean of means of X Θ of the type at its end."""
        factors = self.factors_of(path)
        if h is not None or not path:
            return through(factors, self.own(h, weight))
        return self._pooled_along(path, weight)

    def _pooled_along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means along a path, in the order of products that takes least work."""
        end_type = self.end_types[path]
        factors = cast(Sequence[SparseOperand], self.factors[path])
        products = self.products[end_type]
        order = self.shuffled_rows.get(end_type)

        applied_count = 0
        if self.backend.device.type == "cpu":
            applied_count = count_factors_before_weight(factors, products.features, weight)
        if applied_count:
            pooled_features = self._pool_features(path, factors[-applied_count:], weight.shape[1])
            y = multiply(pooled_features, weight, self.backend)
            if self.is_pair:
                y = y.unflatten(0, (2, -1))
        elif self.is_pair and order is not None:
            # The last factor takes X Θ in both orders.
            applied_count = 1
            x_theta = products.of(None, weight, self.backend)
            y = factors[-1].multiply_with_shuffled(x_theta, order)
        else:
            y = self._times_features(end_type, weight)

        y = through(factors[: len(factors) - applied_count], y)
        return y.flatten(0, 1) if self.is_pair else y

    def _pool_features(self, path: str, factors: Sequence[SparseOperand], dim: int) -> Tensor:
        """The features at the end of a path, pooled by its last factors; see `pool_features`."""
        end_type = self.end_types[path]
        features = self.products[end_type].features
        order = self.shuffled_rows.get(end_type)

        needs_unshuffled = self.is_pair or order is None
        if needs_unshuffled and path not in self.pooled_features:
            self.pooled_features[path] = pool_features(factors, features, dim)
        if order is None:
            return self.pooled_features[path]
        shuffled = pool_features(factors, features, dim, order)
        if not self.is_pair:
            return shuffled
        # By NumPy: torch's threads would spin afterwards, on cores that those of our kernels need.
        return torch.from_numpy(np.concatenate([self.pooled_features[path], shuffled]))

    def _times_features(self, node_type: str, weight: Tensor) -> Tensor:
        """X Θ of a type, in the order of the view."""
        x_theta = self.products[node_type].of(None, weight, self.backend)
        if node_type not in self.shuffled_rows:
            return x_theta
        return permute(x_theta, self.shuffled_rows[node_type])

    def without_edges(self) -> AllNodesWithoutEdges:
        """The view as it is read by an encoder that does not ask for the whole graph."""
        return AllNodesWithoutEdges(self)

    # What an embedding asks for

    def blocks(self, keep: Any = None) -> Callable[[int, int], BlockView]:
        """A function of (start, stop) that returns the view of these nodes; all share products."""
        return partial(BlockView, self.fresh())

    def pool(self, h: Tensor, start: int, stop: int) -> Tensor:
        """Rows start to stop of P H, of H ``[N, d]``."""
        return self.factors_of("")[0].rows(start, stop) @ h

    def before_first_factor(self, path: str, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ, passed on by all factors of a path but the first, ``[N_1, d]``.

        It is computed once for all blocks.
        """
        y = self.products[self.end_types[path]].of(h, weight, self.backend)
        if path not in self.passed_products or self.passed_products[path][0] is not y:
            self.passed_products[path] = y, through(self.factors_of(path)[1:], y)
        return self.passed_products[path][1]


class AllNodesWithoutEdges(WithoutEdges):
    """All nodes of a whole view, as a training shows them to an encoder without
    ``needs_whole_graph``.

    It has what a `BlockView` has, and no more. So an encoder that reads more is refused at its
    first step, and not after the training, when vectors are computed in blocks.
    """

    def __init__(self, view: WholeView) -> None:
        self.view = view
        self.backend = view.backend

    def carry(self, h: Tensor) -> Tensor:
        """All of H."""
        return h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return self.view.own(h, weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ, or the mean of means along a path."""
        return self.view.pooled(h, weight, path)


class BlockView(WithoutEdges):
    """Nodes start to stop of a whole view: a layer computes only these, which bounds the memory."""

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
        rows = self.carry(x) if isinstance(x, Tensor) else x.rows(self.start, self.stop)
        return multiply(rows, weight, self.backend)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of these nodes, or the mean of means along a path."""
        first_factor = self.view.factors_of(path)[0]
        passed_product = self.view.before_first_factor(path, h, weight)
        return first_factor.rows(self.start, self.stop) @ passed_product


def shuffle_of(positive: View, negative: View) -> tuple[Propagation, Tensor] | None:
    """Return propagation and permutation of a pair of the paper's graph and its shuffle.

    None where the negative is not only the positive with shuffled features.
    """
    if not isinstance(positive, WholeView) or not isinstance(negative, WholeView):
        return None
    if positive.has_named_types or positive.shuffled_rows:
        return None
    propagation = positive.propagation
    if negative.products is not positive.products or negative.propagation is not propagation:
        return None
    rows = negative.shuffled_rows.get("")
    if rows is None or not isinstance(propagation, Propagation):
        return None
    return propagation, rows


# Products along paths


def through(factors: Sequence[Factor], y: Tensor) -> Tensor:
    """P Q Y."""
    for factor in reversed(factors):
        y = factor @ y
    return y


def count_factors_before_weight(
    factors: Sequence[SparseOperand],
    x: Operand,
    weight: Tensor,
    sparse_entry_cost: int = SPARSE_ENTRY_COST,
) -> int:
    """How many factors, from the last, are best applied to X before Θ in a step.

    The choice is between P (Q (X Θ)), P ((Q X) Θ) and (P Q X) Θ. X Θ is computed for both views
    together, with a gradient. Q X needs no gradient, and without a shuffle it is known.
    """
    feature_count, dim = weight.shape

    # Work is counted in multiplications. One of vectors is done for two views, and in a step that
    # needs a gradient forwards and backwards.
    def work(count: int) -> int:
        factors_after = len(factors) - count
        if count:
            pooled_count = factors[factors_after].shape[0]
            product_work = 4 * dim * pooled_count * feature_count
        elif isinstance(x, Tensor):
            product_work = 2 * dim * x.numel()
        else:
            product_work = 2 * dim * sparse_entry_cost * x.entry_count
        # Factors after the weight multiply vectors. Those before it multiply features, of the
        # shuffled view only, and without a gradient.
        widths = [4 * dim] * factors_after + [feature_count] * count
        factor_work = sum(
            factor.entry_count * width for factor, width in zip(factors, widths, strict=True)
        )
        return product_work + sparse_entry_cost * factor_work

    return min(range(len(factors) + 1), key=work)


def pool_features(
    factors: Sequence[SparseOperand], x: Operand, dim: int, rows: Tensor | None = None
) -> Tensor:
    """P Q X, dense, ``[M, F]``.

    Args:
        factors: P, Q.
        x: the features.
        dim: the width of X Θ, the product that would be propagated instead; kernels are chosen by
            its size.
        rows: the rows of X, in the order in which they are taken; None: all, in order.
    """
    if isinstance(x, Tensor):
        return through(factors, x if rows is None else x[rows])

    *earlier_factors, last_factor = factors
    kernels = last_factor.backend.numba_for(x.shape[0] * dim)
    if kernels is not None:
        product = kernels.sparse_product(last_factor.matrix, x.matrix, rows)
        return through(earlier_factors, product)
    x_in_order = x if rows is None else x.gather(rows)
    dense_product = (last_factor.scipy @ x_in_order.scipy).toarray()
    return through(earlier_factors, torch.from_numpy(dense_product))


def features_of_messages(propagation: Messages, edge_features: EdgeFeatures) -> Tensor:
    """The features ``[E, F]`` of the messages of a graph, in the order of their keys."""
    keys = propagation.keys.cpu().numpy()
    receivers, senders = np.divmod(keys, propagation.n)
    features = edge_features.of_messages(senders, receivers)
    return torch.from_numpy(features).to(propagation.keys.device)


def mean_over(senders: Senders, width: int) -> sparse.csr_array:
    """The mean over the senders to each node, as a matrix ``[N, width]``.

    The row of a node to which nobody sends is zero.
    """
    matrix = senders.matrix(width).astype("float32")
    weight_sums = matrix.sum(axis=1)
    matrix.data = matrix.data / weight_sums.repeat(matrix.indptr[1:] - matrix.indptr[:-1])
    return matrix


def merge_factors(factors: Iterable[sparse.csr_array]) -> list[sparse.csr_array]:
    """Multiply adjacent factors whose product has no more entries than they have together.

    Each step of a training then multiplies by fewer entries.
    """
    first_factor, *later_factors = factors
    merged = [first_factor]
    for factor in later_factors:
        previous = merged[-1]
        entry_count = previous.nnz + factor.nnz
        # The product is computed only where that takes little time and memory.
        entries_per_column = np.bincount(previous.indices, minlength=previous.shape[1])
        term_count = entries_per_column @ np.diff(factor.indptr)
        if term_count <= MOST_TERMS_PER_ENTRY * entry_count:
            product = previous @ factor
            if product.nnz <= entry_count:
                merged[-1] = product
                continue
        merged.append(factor)
    return merged
