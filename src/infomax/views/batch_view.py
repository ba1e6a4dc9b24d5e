"""Batches of nodes with all that they receive from along paths, and rows of nodes on disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

import torch
from torch import Tensor

from infomax.arrays.relations import Step
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.random import Permutation
from infomax.kernels.ranks import Portion
from infomax.memory import BYTES_PER_BLOCK
from infomax.views.neighbourhoods import Hops, KnownRows, Neighbourhoods, as_matrix, neighbourhoods
from infomax.views.operands import Products, SparseOperand, multiply
from infomax.views.propagation import NEIGHBOURS, Normalisation, Rule
from infomax.views.steps import Paths, no_path, paths_of, tables_of
from infomax.views.stored import StoredTable, gather_rows, rows_of
from infomax.views.view import WithoutEdges
from infomax.views.whole import through

Rows = Callable[[int, int], Tensor]
"""A function of (start, stop) that computes the rows ``[stop - start, d]`` of these nodes."""


@dataclass(frozen=True, eq=False)
class BatchSource:
    """Where batches of nodes come from: neighbourhoods along paths, and features at their ends.

    The paper's graph has one path, whose name is empty: one step, with the normalisation that the
    encoder asks for.
    """

    node_type: str
    chains: Mapping[str, Sequence[Neighbourhoods]]
    """By path, the neighbourhoods of each of its steps."""
    end_types: Mapping[str, str]
    """By path, the type at its end."""
    features: Mapping[str, Any]
    """By type, a table of rows in memory or on disk."""
    backend: Backend
    known_means: Mapping[str, KnownRows]
    """By path, the means of its last step, of features in their own order; not of all paths."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend, cap: int | None = None) -> BatchSource:
        """Put neighbourhoods and features on the device; without a cap all neighbours are taken."""
        paths = paths_of(graph, rule)
        normalisation = NEIGHBOURS if graph.has_named_types else cast(Normalisation, rule)
        most_nodes = max(1, *(nodes.num_nodes for nodes in graph.nodes.values()))
        neighbour_cap = most_nodes if cap is None else cap

        @cache
        def neighbourhoods_of(step: Step) -> Neighbourhoods:
            return neighbourhoods(step.senders, normalisation, backend, neighbour_cap)

        tables = tables_of(graph, paths)
        known_means: dict[str, KnownRows] = {}
        if graph.has_named_types:
            widths = {node_type: table.shape[1] for node_type, table in tables.items()}
            known_means = _room_for_means(graph, paths, widths)
        return cls(
            graph.node_type,
            {name: [neighbourhoods_of(step) for step in path] for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
            {node_type: rows_of(table, backend) for node_type, table in tables.items()},
            backend,
            known_means,
        )

    @property
    def has_named_types(self) -> bool:
        """Whether the graph has several types of nodes, whose names are not empty."""
        return self.node_type != ""

    @property
    def n(self) -> int:
        """How many nodes there are, of the type in view."""
        return int(self.features[self.node_type].shape[0])

    def pool(self, table: Any, start: int, stop: int) -> Tensor:
        """Rows start to stop of P H of the paper's graph, of a table H ``[N, d]``."""
        if self.has_named_types:
            raise no_path()  # there is no way from a type to itself that all such graphs have
        return _mean_rows(table, self.chains[""][0], start, stop)

    def view(
        self, nodes: Tensor, depth: int, seed: Tensor, portion: Portion | None = None
    ) -> BatchView:
        """The view of a batch of nodes.

        Args:
            nodes: ``[B]``.
            depth: the layers of the encoder.
            seed: decides which neighbours are sampled.
            portion: which part of a batch the nodes are, where ranks share it.
        """
        # Among several types an encoder reads the features in every layer, so one hop is enough.
        hop_count = 1 if self.has_named_types else depth
        hops = Hops(self.chains, nodes, hop_count, seed)
        products = {node_type: Products(x) for node_type, x in self.features.items()}
        return BatchView(self, hops, products, portion=portion)

    def blocks(self, keep: Callable[[str, int, Rows], Any]) -> Callable[[int, int], RowsView]:
        """A function of (start, stop) that returns the view of these nodes.

        Args:
            keep: keeps rows that all blocks need, by a name, their number and a function that
                computes some of them; returns a table.
        """
        tables: dict[str, Any] = {}
        for path, (_, *further_steps) in self.chains.items():
            # From the end of the path: the means of each step are the table of the one before.
            table = self.features[self.end_types[path]]
            for number, step in reversed(list(enumerate(further_steps))):
                rows = partial(_mean_rows, table, step)
                table = keep(f"{path}-{number}", len(step.receiver_factors), rows)
            tables[path] = table

        def view_of(start: int, stop: int) -> RowsView:
            nodes = torch.arange(start, stop, device=self.backend.device)
            return RowsView(self, tables, nodes)

        return view_of


@dataclass(frozen=True, eq=False)
class BatchView:
    """A batch of B nodes with their complete neighbourhoods, or with all nodes on their paths."""

    source: BatchSource
    hops: Hops
    products: Mapping[str, Products]
    """By type, products with the features of all nodes, which a view and its negative share."""
    permutations: Mapping[str, Permutation] = field(default_factory=dict)
    """By type: node i has the features of node ``permutation(i)``; without one, its own."""
    portion: Portion | None = None
    """Where these nodes are one rank's part of a batch: which part."""
    inputs: dict[tuple[str, int], Tensor] = field(default_factory=dict, init=False)
    """Cached P X by path and hop; a changed copy of the view starts with an empty cache."""

    @property
    def backend(self) -> Backend:
        """The kernels that compute products of the view."""
        return self.source.backend

    def is_sparse(self, node_type: str) -> bool:
        """Whether the rows of a type's features are sparse, in memory or on disk."""
        x = self.source.features[node_type]
        return isinstance(x, SparseOperand) or (isinstance(x, StoredTable) and x.sparse)

    def read(self) -> None:
        """Read from disk what the step needs: dense features are pooled, of sparse ones read."""
        outermost = self.hops.depth - 1
        for path, end_type in self.source.end_types.items():
            x = self.source.features[end_type]
            if not self.is_sparse(end_type):
                self.pool(path, outermost)
            elif isinstance(x, StoredTable):
                _, senders, _ = self.hops.rows(outermost, path)
                feature_rows = torch.unique(self.feature_rows(end_type, senders))
                x.gather_sparse(feature_rows, self.backend)

    def shuffled(self, generator: torch.Generator) -> BatchView:
        """The same neighbourhoods, the features of all nodes in random order within each type."""
        permutations = {
            node_type: Permutation.draw(table.shape[0], generator, self.backend)
            for node_type, table in self.source.features.items()
        }
        return dataclasses.replace(self, permutations=permutations)

    def at(self, k: int) -> BatchLayer:
        """The hop that layer k computes: the outermost for the first, the batch for the last."""
        return BatchLayer(self, max(self.hops.depth - 1 - k, 0))

    def pool(self, path: str, level: int) -> Tensor:
        """Return P X of the nodes of a hop along a path, for dense features.

        The features of the next hop are never stored.
        """
        if (path, level) in self.inputs:
            return self.inputs[path, level]

        factors, nodes = self.hops.along(path, level)
        last_step = self.source.chains[path][-1]
        end_type = self.source.end_types[path]
        permutation = self.permutations.get(end_type)
        # Known means are those of features in their own order.
        known_means = None if permutation else self.source.known_means.get(path)
        offsets = last_step.offsets(nodes, self.hops.seed)
        features = self.source.features[end_type]
        pooled = last_step.pool(nodes, offsets, features, permutation, known_means)
        self.inputs[path, level] = through(factors, pooled)
        return self.inputs[path, level]

    def feature_rows(self, node_type: str, nodes: Tensor) -> Tensor:
        """The rows of X that nodes of a type have, after the shuffle."""
        if node_type not in self.permutations:
            return nodes
        return self.permutations[node_type](nodes)


class BatchLayer(WithoutEdges):
    """One hop of a batch, which a layer computes from the next one."""

    def __init__(self, view: BatchView, level: int) -> None:
        self.view = view
        self.hops = view.hops
        self.level = level
        self.backend = view.backend

    def carry(self, h: Tensor) -> Tensor:
        """H of this hop."""
        if self.level < len(self.hops.positions):
            return h[self.hops.positions[self.level]]
        return h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of this hop."""
        if h is not None:
            return self.carry(h) @ weight
        nodes = self.hops.levels[self.level]
        node_type = self.view.source.node_type
        if not self.view.is_sparse(node_type):
            features = self.view.source.features[node_type]
            x = gather_rows(features, self.view.feature_rows(node_type, nodes))
            return multiply(x.to(weight.dtype), weight, self.backend)

        # As a product with a matrix that has one 1 per row, at the node itself.
        starts = torch.arange(len(nodes) + 1, device=nodes.device)
        values = weight.new_ones(len(nodes))
        return self._pool_sparse(node_type, starts, nodes, values, weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of this hop, or along a path the mean of means of X Θ of the type at its end."""
        if path not in self.view.source.end_types:
            raise no_path()
        if h is not None and not path:
            return self.hops.matrix(self.level) @ (h @ weight)
        end_type = self.view.source.end_types[path]
        if not self.view.is_sparse(end_type):
            return multiply(self.view.pool(path, self.level), weight, self.backend)
        factors, _ = self.hops.along(path, self.level)
        rows_of_step = self.hops.rows(self.level, path)
        return through(factors, self._pool_sparse(end_type, *rows_of_step, weight))

    def _pool_sparse(
        self, node_type: str, starts: Tensor, senders: Tensor, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Multiply rows of a matrix by X Θ, for sparse X.

        X Θ is computed of the nodes needed, or of all nodes if that is little more.
        """
        x = self.view.source.features[node_type]
        feature_rows = self.view.feature_rows(node_type, senders)
        row_count = x.shape[0]
        is_stored = isinstance(x, StoredTable)
        if row_count <= len(senders) and not is_stored:
            x_theta = self.view.products[node_type].of(None, weight, self.backend)
            return as_matrix(starts, feature_rows, values, row_count, self.backend) @ x_theta

        needed_rows = torch.unique(feature_rows)
        rows: SparseOperand
        rows = x.gather_sparse(needed_rows, self.backend) if is_stored else x.gather(needed_rows)
        matrix = as_matrix(starts, feature_rows, values, needed_rows, self.backend)
        return matrix @ (rows @ weight)


class RowsView(WithoutEdges):
    """Some nodes of a graph folder, as a layer reads them.

    Args:
        source: the graph.
        tables: by path the table that its first step pools: features, or their means by all other
            steps, which were kept.
        nodes: ``[B]``.
    """

    def __init__(self, source: BatchSource, tables: Mapping[str, Any], nodes: Tensor) -> None:
        self.source = source
        self.tables = tables
        self.nodes = nodes
        self.backend = source.backend

    def carry(self, h: Tensor | StoredTable) -> Tensor:
        """H of these nodes."""
        return gather_rows(h, self.nodes)

    def own(self, h: Tensor | StoredTable | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        table = self.source.features[self.source.node_type] if h is None else h
        rows = gather_rows(table, self.nodes)
        return multiply(rows.to(weight.dtype), weight, self.backend)

    def pooled(self, h: Tensor | StoredTable | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of these nodes, or along a path the mean of means of X Θ of the type at its end."""
        if path not in self.tables:
            raise no_path()
        table = self.tables[path] if h is None or path else h
        pooled_rows = self.source.chains[path][0].pool(self.nodes, None, table)
        return multiply(pooled_rows, weight, self.backend)


def _room_for_means(
    graph: Record, paths: Paths, widths: Mapping[str, int], most_bytes: int = BYTES_PER_BLOCK
) -> dict[str, KnownRows]:
    """Memory for means of the last steps of paths, at most so many bytes.

    Long paths come first: their batches need more of these means.
    """
    remaining_bytes = most_bytes
    means_of_step: dict[Step, KnownRows] = {}
    for path in sorted(paths.values(), key=len, reverse=True):
        step = path[-1]
        row_count = graph.nodes[step.node_type].num_nodes
        width = widths[step.sender]
        needed_bytes = 4 * row_count * width
        if step not in means_of_step and needed_bytes <= remaining_bytes:
            remaining_bytes -= needed_bytes
            means_of_step[step] = KnownRows.none(row_count, width)
    return {
        name: means_of_step[path[-1]] for name, path in paths.items() if path[-1] in means_of_step
    }


def _mean_rows(table: Any, step: Neighbourhoods, start: int, stop: int) -> Tensor:
    """Rows start to stop of the means of a step, of a table ``[n, d]``."""
    return step.pool(torch.arange(start, stop, device=step.receiver_factors.device), None, table)
