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
from infomax.memory import BYTES
from infomax.views.neighbourhoods import Hops, KnownRows, Neighbourhoods, as_matrix, neighbourhoods
from infomax.views.operands import Products, SparseOperand, multiply
from infomax.views.propagation import NEIGHBOURS, Normalisation, Rule
from infomax.views.steps import Paths, no_path, paths_of, tables_of
from infomax.views.stored import StoredTable, gather_rows, rows_of
from infomax.views.whole import through

Rows = Callable[[int, int], Tensor]
"""A function of (start, stop) that computes the rows ``[stop - start, d]`` of these nodes."""


@dataclass(frozen=True, eq=False)
class BatchSource:
    """Where batches of nodes come from: neighbourhoods along each path, and the features at their ends.

    The paper's graph has one path, whose name is empty: one step, with the normalisation that the encoder asks for.
    """

    node_type: str
    chains: Mapping[str, Sequence[Neighbourhoods]]
    ends: Mapping[str, str]
    """By path, the type at its end."""
    features: Mapping[str, Any]
    """By type, a table of rows in memory or on disk."""
    backend: Backend
    kept: Mapping[str, KnownRows]
    """By path, what is known of the means of its last step, of features in their own order; not of all paths."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend, cap: int | None = None) -> BatchSource:
        """Put neighbourhoods and features on the device; without a cap all neighbours are taken."""
        paths = paths_of(graph, rule)
        weights = NEIGHBOURS if graph.node_type else cast(Normalisation, rule)
        most = cap or max(1, *(nodes.num_nodes for nodes in graph.nodes.values()))
        hoods = cache(lambda step: neighbourhoods(step.senders, weights, backend, most))
        tables = tables_of(graph, paths)
        return cls(
            graph.node_type,
            {name: [hoods(step) for step in path] for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
            {node_type: rows_of(table, backend) for node_type, table in tables.items()},
            backend,
            _room(graph, paths, {node_type: table.shape[1] for node_type, table in tables.items()})
            if graph.node_type
            else {},
        )

    @property
    def n(self) -> int:
        """How many nodes there are, of the type in view."""
        return int(self.features[self.node_type].shape[0])

    def pool(self, table: Any, start: int, stop: int) -> Tensor:
        """Rows start to stop of P H of the paper's graph, of a table H ``[N, d]``."""
        if self.node_type:
            raise no_path()  # there is no way from a type to itself that all such graphs have
        return _mean_rows(table, self.chains[""][0], start, stop)

    def view(
        self, nodes: Tensor, depth: int, seed: Tensor, portion: Portion | None = None
    ) -> BatchView:
        """The view of a batch of nodes; among several types an encoder reads the features in every layer."""
        hops = Hops(self.chains, nodes, 1 if self.node_type else depth, seed)
        return BatchView(
            self,
            hops,
            {node_type: Products(x) for node_type, x in self.features.items()},
            portion=portion,
        )

    def blocks(self, keep: Callable[[str, int, Rows], Any]) -> Callable[[int, int], RowsView]:
        """A function of (start, stop) that returns the view of these nodes; ``keep`` keeps rows that all need."""
        tables = {}
        for path, (_, *others) in self.chains.items():
            table = self.features[self.ends[path]]
            for place, hoods in reversed(list(enumerate(others))):
                table = keep(f"{path}-{place}", len(hoods.left), partial(_mean_rows, table, hoods))
            tables[path] = table
        return lambda start, stop: RowsView(
            self, tables, torch.arange(start, stop, device=self.backend.device)
        )


@dataclass(frozen=True, eq=False)
class BatchView:
    """A batch of B nodes with their complete neighbourhoods, or with all that is on the paths from them."""

    source: BatchSource
    hops: Hops
    products: Mapping[str, Products]
    """By type, products with the features of all nodes, which a view and its negative share."""
    permutations: Mapping[str, Permutation] = field(default_factory=dict)
    """By type, node i has the features of node ``permutation(i)``; none: its own."""
    portion: Portion | None = None
    """Where these nodes are one rank's part of a batch: which part."""
    inputs: dict[tuple[str, int], Tensor] = field(default_factory=dict, init=False)
    """Cached P X by path and hop; a changed copy of the view starts with an empty cache."""

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return self.source.backend

    def is_sparse(self, node_type: str) -> bool:
        """Whether the rows of a type's features are sparse, in memory or on disk."""
        x = self.source.features[node_type]
        return isinstance(x, SparseOperand) or (isinstance(x, StoredTable) and x.sparse)

    def read(self) -> None:
        """Pool the features of the outermost hop, which may read from disk; of sparse ones, read what it needs."""
        level = self.hops.depth - 1
        for path, end in self.source.ends.items():
            x = self.source.features[end]
            if not self.is_sparse(end):
                self.pool(path, level)
            elif isinstance(x, StoredTable):
                _, senders, _ = self.hops.rows(level, path)
                x.gather_sparse(torch.unique(self.carried(end, senders)), self.backend)

    def shuffled(self, generator: torch.Generator) -> BatchView:
        """The same neighbourhoods with the features of all nodes of the graph in random order, within each type."""
        sizes = {node_type: table.shape[0] for node_type, table in self.source.features.items()}
        drawn = {
            node_type: Permutation.draw(n, generator, self.backend)
            for node_type, n in sizes.items()
        }
        return dataclasses.replace(self, permutations=drawn)

    def at(self, k: int) -> BatchLayer:
        """The hop that layer k computes: the outermost one for the first, the batch itself for the last."""
        return BatchLayer(self, max(self.hops.depth - 1 - k, 0))

    def pool(self, path: str, level: int) -> Tensor:
        """Return P X of the nodes of a hop along a path, for dense features; the next hop is never stored."""
        if (path, level) not in self.inputs:
            factors, nodes = self.hops.along(path, level)
            hoods, end = self.source.chains[path][-1], self.source.ends[path]
            drawn = self.permutations.get(end)
            kept = None if drawn else self.source.kept.get(path)
            offsets = hoods.offsets(nodes, self.hops.seed)
            pooled = hoods.pool(nodes, offsets, self.source.features[end], drawn, kept)
            self.inputs[path, level] = through(factors, pooled)
        return self.inputs[path, level]

    def carried(self, node_type: str, nodes: Tensor) -> Tensor:
        """The rows of X that belong to nodes of a type, after the shuffle."""
        return self.permutations[node_type](nodes) if node_type in self.permutations else nodes


class BatchLayer:
    """One hop of a batch, which a layer computes from the next one."""

    def __init__(self, view: BatchView, level: int) -> None:
        self.view, self.hops, self.level, self.backend = view, view.hops, level, view.backend

    def carry(self, h: Tensor) -> Tensor:
        """H of this hop."""
        return h[self.hops.positions[self.level]] if self.level < len(self.hops.positions) else h

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of this hop."""
        if h is not None:
            return self.carry(h) @ weight
        nodes, node_type = self.hops.levels[self.level], self.view.source.node_type
        if not self.view.is_sparse(node_type):
            x = gather_rows(
                self.view.source.features[node_type], self.view.carried(node_type, nodes)
            )
            return multiply(x.to(weight.dtype), weight, self.backend)
        starts = torch.arange(len(nodes) + 1, device=nodes.device)
        return self._sparse(node_type, starts, nodes, weight.new_ones(len(nodes)), weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of this hop, or along a path the mean of means of X Θ of the type at its end."""
        if path not in self.view.source.ends:
            raise no_path()
        if h is not None and not path:
            return self.hops.matrix(self.level) @ (h @ weight)
        end = self.view.source.ends[path]
        if not self.view.is_sparse(end):
            return multiply(self.view.pool(path, self.level), weight, self.backend)
        factors, _ = self.hops.along(path, self.level)
        return through(factors, self._sparse(end, *self.hops.rows(self.level, path), weight))

    def _sparse(
        self, node_type: str, starts: Tensor, senders: Tensor, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Multiply rows of a matrix by X Θ, for sparse X: X Θ of the nodes needed, or of all if that is little more."""
        carried, x = self.view.carried(node_type, senders), self.view.source.features[node_type]
        n, stored = x.shape[0], isinstance(x, StoredTable)
        if n <= len(senders) and not stored:
            product = self.view.products[node_type].of(None, weight, self.backend)
            return as_matrix(starts, carried, values, n, self.backend) @ product
        needed = torch.unique(carried)
        rows: SparseOperand = x.gather_sparse(needed, self.backend) if stored else x.gather(needed)
        return as_matrix(starts, carried, values, needed, self.backend) @ (rows @ weight)


class RowsView:
    """Some nodes of a graph folder, as a layer reads them: from a table of the layer before, or from the features.

    ``tables`` are by path what its first step pools: features, or their means by all other steps, which were kept.
    """

    def __init__(self, source: BatchSource, tables: Mapping[str, Any], nodes: Tensor) -> None:
        self.source, self.tables, self.nodes, self.backend = source, tables, nodes, source.backend

    def carry(self, h: Tensor | StoredTable) -> Tensor:
        """H of these nodes."""
        return gather_rows(h, self.nodes)

    def own(self, h: Tensor | StoredTable | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        table = self.source.features[self.source.node_type] if h is None else h
        return multiply(gather_rows(table, self.nodes).to(weight.dtype), weight, self.backend)

    def pooled(self, h: Tensor | StoredTable | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of these nodes, or along a path the mean of means of X Θ of the type at its end."""
        if path not in self.tables:
            raise no_path()
        table = self.tables[path] if h is None or path else h
        return multiply(
            self.source.chains[path][0].pool(self.nodes, None, table), weight, self.backend
        )


def _room(graph: Record, paths: Paths, widths: Mapping[str, int]) -> dict[str, KnownRows]:
    """Memory for means of the last steps of paths, at most `BYTES`; of long paths first, whose batches need more."""
    room, found = BYTES, dict[Step, KnownRows]()
    for step in (path[-1] for path in sorted(paths.values(), key=len, reverse=True)):
        n, width = graph.nodes[step.node_type].num_nodes, widths[step.sender]
        if step not in found and 4 * n * width <= room:
            room, found[step] = room - 4 * n * width, KnownRows.none(n, width)
    return {name: found[path[-1]] for name, path in paths.items() if path[-1] in found}


def _mean_rows(table: Any, hoods: Neighbourhoods, start: int, stop: int) -> Tensor:
    return hoods.pool(torch.arange(start, stop, device=hoods.left.device), None, table)
