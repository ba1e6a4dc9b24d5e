"""Batches of nodes of one of several types, with all that is on the paths from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from infomax.arrays.relations import Step
from infomax.io.memory import BYTES
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.neighbourhoods import KnownRows, Neighbourhoods
from infomax.kernels.random import Permutation
from infomax.kernels.ranks import Portion
from infomax.views.factors import through
from infomax.views.neighbourhoods import as_matrix, distinct, neighbourhoods
from infomax.views.operands import SparseOperand, multiply
from infomax.views.propagation import NEIGHBOURS, Rule
from infomax.views.steps import Paths, no_path, paths_of, tables_of
from infomax.views.stored import RowsView, StoredTable, gather_rows, pool_rows, rows_of
from infomax.views.view import AllNodes

Rows = Callable[[int, int], Tensor]
"""A function of (start, stop) that computes the rows ``[stop - start, d]`` of these nodes."""


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

    def pool(self, table: Any, nodes: Tensor) -> Tensor:
        """Refuse: there is no way from a type to itself that all such graphs have."""
        raise no_path()

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
class PathBatch(AllNodes):
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

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        if path not in self.source.ends:
            raise no_path()
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

    def pooled(self, h: Any, weight: Tensor, path: str = "") -> Tensor:
        """The mean of means along a path of X Θ of the type at its end."""
        if path not in self.firsts:
            raise no_path()
        return self.firsts[path].pooled(None, weight)


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
