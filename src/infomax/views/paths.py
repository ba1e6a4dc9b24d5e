"""A graph of several types of nodes: each path of relations is pooled along, by means of means."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from infomax.arrays.relations import Step, named_path
from infomax.arrays.table import Table
from infomax.errors import InputError
from infomax.io.memory import BYTES
from infomax.io.record import Record
from infomax.kernels import Backend, Place
from infomax.kernels.neighbourhoods import KnownRows, Neighbourhoods
from infomax.kernels.plain import permute
from infomax.kernels.random import Permutation
from infomax.kernels.ranks import Portion
from infomax.views.factors import mean_over, merged, pool_features, pooled_first, through
from infomax.views.neighbourhoods import as_matrix, distinct, neighbourhoods
from infomax.views.operands import Products, SparseOperand, multiply, operand, to_multiply
from infomax.views.propagation import NEIGHBOURS, Rule
from infomax.views.stored import RowsView, StoredTable, gather_rows, pool_rows, rows_of
from infomax.views.view import AllNodes

Paths = Mapping[str, Sequence[Step]]
Rows = Callable[[int, int], Tensor]
"""A function of (start, stop) that computes the rows ``[stop - start, d]`` of these nodes."""


def paths_of(graph: Record, rule: Rule) -> Paths:
    """The paths that an encoder asks for; raise InputError if it asks for none, or the graph does not have them."""
    if not isinstance(rule, tuple):
        raise InputError("encoder", "PathMean, for a graph of several types of nodes", "one for a single type")
    return {name: named_path(graph.relations, name) for name in rule}


def tables_of(graph: Record, paths: Paths) -> dict[str, Table]:
    """The features of the types at which paths end, and of the type of the graph."""
    ends = sorted({path[-1].sender for path in paths.values()} | {graph.kind})
    return {kind: graph.nodes[kind].table for kind in ends}


class AlongPaths(Protocol):
    """Some nodes of a graph of several types, as a layer reads them; see `LayerView`."""

    def along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means along a path of X Θ of the type at its end, ``[m, d']``."""

    def pooled(self, h: Any, weight: Tensor) -> Tensor:
        """Refuse: without a path it is not said over which neighbours."""
        raise InputError("encoder", "one that pools along paths", "one that pools over all neighbours")

    def pool(self: Any, *_: Any) -> Tensor:
        """Refuse: there is no way from a type to itself that all such graphs have."""
        raise InputError("smooth", "0, in a graph of several types of nodes", "more", "Leave it out.")


@dataclass(frozen=True, eq=False)
class PathView(AllNodes, AlongPaths):
    """The view of all nodes of a type, along paths.

    Shapes:
        chains: by path, its factors: the mean over the neighbours of each node, ``[N, N_1]``, ``[N_1, N_2]``...
        rows: by type, a permutation: the row of the features for each node; none: its own
    """

    kind: str
    products: Mapping[str, Products]
    """By type, products with its features."""
    chains: Mapping[str, Sequence[SparseOperand]]
    ends: Mapping[str, str]
    """By path, the type at its end."""
    backend: Backend
    n: int
    rows: Mapping[str, Tensor] = field(default_factory=dict)
    known: dict[str, Tensor] = field(default_factory=dict)
    """By path, its features pooled by the last factors, in their own order, which all steps share."""
    both: bool = False
    """Whether it stands for two views: all features in their own order, then shuffled; ``[2 N, d]``, not ``[N, d]``."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, place: Place) -> PathView:
        """Build the view of a graph on the device; paths share their factors."""
        backend, paths = Backend.of(place), paths_of(graph, rule)
        mean = cache(lambda step: mean_over(step.senders, graph.nodes[step.sender].num_nodes))
        factors = cache(lambda steps: [cast(SparseOperand, operand(one, backend)) for one in merged(map(mean, steps))])
        return cls(
            graph.kind,
            {kind: Products(to_multiply(table, backend)) for kind, table in tables_of(graph, paths).items()},
            {name: factors(tuple(path)) for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
            backend,
            graph.num_nodes,
        )

    def fresh(self) -> PathView:
        """The same view without cached products, for a step with other weights."""
        products = {kind: Products(known.features) for kind, known in self.products.items()}
        return dataclasses.replace(self, products=products)

    def shuffled(self, generator: torch.Generator) -> PathView:
        """The same paths with the rows of the features in random order, within each type."""
        sizes = {kind: known.features.shape[0] for kind, known in self.products.items()}
        return dataclasses.replace(self, rows={k: self.backend.permutation(n, generator) for k, n in sizes.items()})

    def beside(self, negative: PathView) -> PathView | None:
        """Both views as one, on a CPU; None if the negative is not this view with all features shuffled."""
        alike = negative.products is self.products and negative.rows and not self.rows
        return dataclasses.replace(negative, both=True) if alike and self.backend.device.type == "cpu" else None

    def blocks(self) -> Callable[[int, int], PathBlock]:
        """A function of (start, stop) that returns the view of these nodes; all share what is computed for all."""
        view = self.fresh()
        known: dict[Tensor, Tensor] = {}
        return lambda start, stop: PathBlock(view, start, stop, known)

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ."""
        return self._features(self.kind, weight) if h is None else h @ weight

    def along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        chain, end = self.chains[path], self.ends[path]
        known, rows = self.products[end], self.rows.get(end)
        if count := pooled_first(chain, known.features, weight) if self.backend.device.type == "cpu" else 0:
            y = multiply(self._pooled(path, chain[-count:], weight.shape[1]), weight, self.backend)
            y = y.unflatten(0, (2, -1)) if self.both else y
        elif self.both and rows is not None:
            count, y = 1, chain[-1].pair(known.of(None, weight, self.backend), rows)
        else:
            y = self._features(end, weight)
        y = through(chain[: len(chain) - count], y)
        return y.flatten(0, 1) if self.both else y

    def before_last(self, path: str, weight: Tensor) -> Tensor:
        """All means along a path but those of its first step, ``[N_1, d]``."""
        return through(self.chains[path][1:], self._features(self.ends[path], weight))

    def _pooled(self, path: str, factors: Sequence[SparseOperand], dim: int) -> Tensor:
        """The features at the end of a path, pooled by its last factors."""
        x, rows = self.products[self.ends[path]].features, self.rows.get(self.ends[path])
        if path not in self.known and (self.both or rows is None):
            self.known[path] = pool_features(factors, x, dim)
        if rows is None:
            return self.known[path]
        shuffled = pool_features(factors, x, dim, rows)
        # By NumPy: torch's threads would spin afterwards, on cores that those of our kernels need.
        return torch.from_numpy(np.concatenate([self.known[path], shuffled])) if self.both else shuffled

    def _features(self, kind: str, weight: Tensor) -> Tensor:
        y = self.products[kind].of(None, weight, self.backend)
        return permute(y, self.rows[kind]) if kind in self.rows else y


class PathBlock(AlongPaths):
    """Nodes start to stop of a `PathView`; ``known`` has, by weight, what all blocks share."""

    def __init__(self, view: PathView, start: int, stop: int, known: dict[Tensor, Tensor]) -> None:
        self.view, self.start, self.stop, self.known, self.backend = view, start, stop, known, view.backend

    def carry(self, h: Tensor) -> Tensor:
        """The rows of H of these nodes."""
        return h[self.start : self.stop]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        return self.carry(self.view.own(h, weight))

    def along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means of these nodes."""
        if weight not in self.known:
            self.known[weight] = self.view.before_last(path, weight)
        return self.view.chains[path][0].rows(self.start, self.stop) @ self.known[weight]


@dataclass(frozen=True, eq=False)
class PathSource:
    """Where batches of a type come from: neighbourhoods along each path, and the features at their ends."""

    kind: str
    chains: Mapping[str, Sequence[Neighbourhoods]]
    ends: Mapping[str, str]
    features: Mapping[str, Any]
    """By type, a table of rows in memory or on disk."""
    backend: Backend
    kept: Mapping[str, KnownRows]
    """By path, what is known of the means of its last step, of features in their own order; not of all paths."""
    uniform = False
    pool = AlongPaths.pool

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend, cap: int) -> PathSource:
        """Put the neighbourhoods and the features of a graph on the device."""
        paths = paths_of(graph, rule)
        hoods = cache(lambda step: neighbourhoods(step.senders, NEIGHBOURS, backend, cap))
        tables = tables_of(graph, paths)
        return cls(
            graph.kind,
            {name: [hoods(step) for step in path] for name, path in paths.items()},
            {name: path[-1].sender for name, path in paths.items()},
            {kind: rows_of(table, backend) for kind, table in tables.items()},
            backend,
            _room(graph, paths, {kind: table.shape[1] for kind, table in tables.items()}),
        )

    def view(self, nodes: Tensor, depth: int, seed: Tensor, portion: Portion | None = None) -> PathBatch:
        """The view of a batch of nodes."""
        return PathBatch(self, nodes, seed, portion)

    def of_rows(self, keep: Callable[[str, int, Rows], Any]) -> Callable[[Tensor], PathRows]:
        """A function that returns the view of some nodes; ``keep`` keeps the rows that it needs of all nodes."""
        tables = {}
        for path, (_, *others) in self.chains.items():
            table = self.features[self.ends[path]]
            for place, hoods in reversed(list(enumerate(others))):
                table = keep(f"{path}-{place}", len(hoods.left), partial(_mean_rows, table, hoods))
            tables[path] = table
        return lambda nodes: PathRows(self, tables, nodes)

    @property
    def on_disk(self) -> list[StoredTable]:
        """The features that are read from disk."""
        return [table for table in self.features.values() if isinstance(table, StoredTable)]


@dataclass(frozen=True, eq=False)
class PathBatch(AllNodes, AlongPaths):
    """A batch of B nodes of a type with all that is on the paths from them."""

    source: PathSource
    nodes: Tensor
    seed: Tensor
    """Decides which neighbours are sampled for a node with more than the cap."""
    portion: Portion | None = None
    permutations: Mapping[str, Permutation] = field(default_factory=dict)
    """By type, node i has the features of node ``permutation(i)``; none: its own."""
    levels: dict[str, tuple[list[SparseOperand], Tensor]] = field(default_factory=dict)
    """By path, all factors but the last, and the nodes before the last step; a view and its negative share them."""
    inputs: dict[str, Tensor] = field(default_factory=dict, init=False)
    """By path, the pooled features, where they are dense."""

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return self.source.backend

    def shuffled(self, generator: torch.Generator) -> PathBatch:
        """The same paths with the features of all nodes in random order, within each type."""
        sizes = {kind: table.shape[0] for kind, table in self.source.features.items()}
        drawn = {kind: Permutation.draw(n, generator, self.backend) for kind, n in sizes.items()}
        return dataclasses.replace(self, permutations=drawn)

    def read(self) -> None:
        """Pool the features of all paths, which may read from disk."""
        for path, end in self.source.ends.items():
            if not isinstance(self.source.features[end], SparseOperand):
                self._pool(path)

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of the batch."""
        if h is not None:
            return h @ weight
        kind, carried = self.source.kind, self._carried(self.source.kind, self.nodes)
        table = self.source.features[kind]
        if isinstance(table, SparseOperand):
            return table.gather(carried) @ weight
        return multiply(gather_rows(table, carried).to(weight.dtype), weight, self.backend)

    def along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        end = self.source.ends[path]
        table = self.source.features[end]
        if not isinstance(table, SparseOperand):
            return multiply(self._pool(path), weight, self.backend)
        factors, nodes = self._level(path)
        hoods = self.source.chains[path][-1]
        starts, senders, values = hoods.rows(nodes, hoods.offsets(nodes, self.seed))
        carried = self._carried(end, senders)
        needed = torch.unique(carried)
        y = as_matrix(starts, carried, values, needed, self.backend) @ (table.gather(needed) @ weight)
        return through(factors, y)

    def _pool(self, path: str) -> Tensor:
        if path not in self.inputs:
            factors, nodes = self._level(path)
            end, hoods = self.source.ends[path], self.source.chains[path][-1]
            table, drawn = self.source.features[end], self.permutations.get(end)
            kept = None if drawn else self.source.kept.get(path)
            pooled = pool_rows(table, hoods, nodes, hoods.offsets(nodes, self.seed), drawn, kept)
            self.inputs[path] = through(factors, pooled)
        return self.inputs[path]

    def _level(self, path: str) -> tuple[list[SparseOperand], Tensor]:
        if path not in self.levels:
            factors, nodes = [], self.nodes
            for hoods, following in pairwise(self.source.chains[path]):
                starts, senders, values = hoods.rows(nodes, hoods.offsets(nodes, self.seed))
                nodes, places = distinct(senders, len(following.left))
                factors.append(as_matrix(starts, places, values, len(nodes), self.backend))
            self.levels[path] = factors, nodes
        return self.levels[path]

    def _carried(self, kind: str, nodes: Tensor) -> Tensor:
        return self.permutations[kind](nodes) if kind in self.permutations else nodes


class PathRows(RowsView):
    """Some nodes of a graph folder, as a layer reads them; the means along a path but for the first step are kept."""

    def __init__(self, source: PathSource, tables: Mapping[str, Any], nodes: Tensor) -> None:
        self.firsts = {path: RowsView(hoods, tables[path], nodes) for path, (hoods, *_) in source.chains.items()}
        super().__init__(next(iter(self.firsts.values())).hoods, source.features[source.kind], nodes)

    def along(self, path: str, weight: Tensor) -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        return self.firsts[path].pooled(None, weight)

    pooled = AlongPaths.pooled


def _room(graph: Record, paths: Paths, widths: Mapping[str, int]) -> dict[str, KnownRows]:
    """Memory for means of the last steps of paths, at most `BYTES`; of long paths first, whose batches need more."""
    room, found = BYTES, dict[Step, KnownRows]()
    for step in (path[-1] for path in sorted(paths.values(), key=len, reverse=True)):
        n, width = graph.nodes[step.kind].num_nodes, widths[step.sender]
        if step not in found and 4 * n * width <= room:
            room, found[step] = room - 4 * n * width, KnownRows.none(n, width)
    return {name: found[path[-1]] for name, path in paths.items() if path[-1] in found}


def _mean_rows(table: Any, hoods: Neighbourhoods, start: int, stop: int) -> Tensor:
    return pool_rows(table, hoods, torch.arange(start, stop, device=hoods.left.device))
