"""Exact batches: some nodes of the whole graph with their complete neighbourhoods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.errors import whole
from infomax.io import memory
from infomax.io.record import Record
from infomax.kernels import Backend, Place
from infomax.kernels.neighbourhoods import Neighbourhoods
from infomax.kernels.random import Permutation
from infomax.kernels.ranks import Portion
from infomax.views.neighbourhoods import Hops, as_matrix, read_neighbourhoods
from infomax.views.operands import Products, SparseOperand, multiply
from infomax.views.paths import PathBatch, PathSource
from infomax.views.propagation import Rule
from infomax.views.stored import RowsView, StoredTable, gather_rows, pool_rows, rows_of
from infomax.views.view import Corruption, Sizes, View, Views

BATCH, CAP = 16_384, 1_000


@dataclass(frozen=True, eq=False)
class BatchView:
    """A batch of B nodes with their complete neighbourhoods.

    Shapes:
        features: ``[N, F]``, of all nodes of the graph
    """

    hops: Hops
    products: Products
    """Products with the features of all nodes, which may be a `StoredTable`."""
    permutation: Permutation | None = None
    """Node i has the features of node ``permutation(i)``; None: its own."""
    portion: Portion | None = None
    """Where these nodes are one rank's part of a batch: which part."""
    inputs: dict[int, Tensor] = field(default_factory=dict, init=False)
    """Cached P X of the nodes of a hop; a changed copy of the view starts with an empty cache."""

    @property
    def features(self) -> Any:
        """X, before any shuffle."""
        return self.products.features

    @property
    def backend(self) -> Backend:
        """What computes it."""
        return self.hops.graph.backend

    @property
    def nodes(self) -> Tensor:
        """The nodes of the batch, ``[B]``."""
        return self.hops.nodes

    @property
    def sparse(self) -> bool:
        """Whether the rows of X are sparse, in memory or on disk."""
        x = self.features
        return isinstance(x, SparseOperand) or (isinstance(x, StoredTable) and x.sparse)

    def read(self) -> None:
        """Pool the features of the outermost hop, which may read from disk; of sparse ones, read what it needs."""
        if self.sparse:
            _, senders, _ = self.hops.rows(self.hops.depth - 1)
            self.features.gather_sparse(torch.unique(self.carried(senders)), self.backend)
        else:
            self.pool(self.hops.depth - 1)

    def shuffled(self, generator: torch.Generator) -> BatchView:
        """The same neighbourhoods with the features of all nodes of the graph in random order."""
        drawn = Permutation.draw(len(self.hops.graph.left), generator, self.backend)
        return dataclasses.replace(self, permutation=drawn)

    def at(self, k: int) -> BatchLayer:
        """The hop that layer k computes: the outermost one for the first, the batch itself for the last."""
        return BatchLayer(self, self.hops.depth - 1 - k)

    def pool(self, level: int) -> Tensor:
        """Return P X of the nodes of a hop, for dense features; the next hop is never stored."""
        if level not in self.inputs:
            graph, nodes = self.hops.graph, self.hops.levels[level]
            offsets = graph.offsets(nodes, self.hops.seed)
            self.inputs[level] = pool_rows(self.features, graph, nodes, offsets, self.permutation)
        return self.inputs[level]

    def carried(self, nodes: Tensor) -> Tensor:
        """The rows of X that belong to nodes, after the shuffle."""
        return nodes if self.permutation is None else self.permutation(nodes)


class BatchLayer:
    """One hop of a batch, which a layer computes from the next one."""

    def __init__(self, view: BatchView, level: int) -> None:
        self.view, self.hops, self.level, self.backend = view, view.hops, level, view.backend

    def carry(self, h: Tensor) -> Tensor:
        """H of this hop."""
        return h[self.hops.positions[self.level]]

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of this hop."""
        if h is not None:
            return self.carry(h) @ weight
        nodes, x = self.hops.levels[self.level], self.view.features
        if not self.view.sparse:
            return multiply(gather_rows(x, self.view.carried(nodes)).to(weight.dtype), weight, self.backend)
        starts = torch.arange(len(nodes) + 1, device=nodes.device)
        return self._sparse(starts, nodes, weight.new_ones(len(nodes)), weight)

    def pooled(self, h: Tensor | None, weight: Tensor, path: str = "") -> Tensor:
        """P H Θ of this hop."""
        if h is not None:
            return self.hops.matrix(self.level) @ (h @ weight)
        if not self.view.sparse:
            return multiply(self.view.pool(self.level), weight, self.backend)
        return self._sparse(*self.hops.rows(self.level), weight)

    def _sparse(self, starts: Tensor, senders: Tensor, values: Tensor, weight: Tensor) -> Tensor:
        """Multiply rows of a matrix by X Θ, for sparse X: X Θ of the nodes needed, or of all if that is little more."""
        carried, n, x = self.view.carried(senders), len(self.hops.graph.left), self.view.features
        stored = isinstance(x, StoredTable)
        if n <= len(senders) and not stored:
            return as_matrix(starts, carried, values, n, self.backend) @ self.view.products.of(
                None, weight, self.backend
            )
        needed = torch.unique(carried)
        rows: SparseOperand = x.gather_sparse(needed, self.backend) if stored else x.gather(needed)
        return as_matrix(starts, carried, values, needed, self.backend) @ (rows @ weight)


@dataclass(frozen=True, eq=False)
class HopSource:
    """Where batches of a graph of one type come from: the neighbourhoods and the features of all nodes."""

    hoods: Neighbourhoods
    features: Any
    """Rows in memory or on disk, ``[N, F]``."""

    @classmethod
    def of(cls, graph: Record, rule: Rule, backend: Backend, cap: int) -> HopSource:
        """Put them on the device."""
        return cls(read_neighbourhoods(graph, rule, backend, cap), rows_of(graph.table, backend))

    @property
    def backend(self) -> Backend:
        """What computes the views."""
        return self.hoods.backend

    @property
    def uniform(self) -> bool:
        """Whether the views of one hop are equal in shape."""
        return isinstance(self.features, Tensor)

    @property
    def on_disk(self) -> list[StoredTable]:
        """The features that are read from disk."""
        return [self.features] if isinstance(self.features, StoredTable) else []

    def pool(self, table: Any, nodes: Tensor) -> Tensor:
        """The rows of P H of some nodes, of a table H ``[N, d]``."""
        return pool_rows(table, self.hoods, nodes)

    def of_rows(self, keep: Any) -> Callable[[Tensor], RowsView]:
        """A function that returns the view of some nodes, which reads what it needs."""
        return partial(RowsView, self.hoods, self.features)

    def view(self, nodes: Tensor, depth: int, seed: Tensor, portion: Portion | None = None) -> BatchView:
        """The view of a batch of nodes."""
        return BatchView(Hops(self.hoods, nodes, depth, seed), Products(self.features), portion=portion)


def batch_source(graph: Record, rule: Rule, backend: Backend, cap: int | None = None) -> HopSource | PathSource:
    """Where batches of a graph come from, or of one of its types; without a cap all neighbours are taken."""
    most = max(nodes.num_nodes for nodes in graph.nodes.values())
    return (PathSource if graph.kind else HopSource).of(graph, rule, backend, cap or max(most, 1))


class NextPair:
    """A pair of views that is drawn from a copy of a generator, and read by a thread of its own."""

    def __init__(self, draw: Callable[[torch.Generator], tuple[View, View]], state: Tensor) -> None:
        self.state, copy = state, torch.Generator()
        copy.set_state(state)
        self.pair, self.after = draw(copy), copy.get_state()
        self.reading = ThreadPoolExecutor(1).submit(self._read)

    def _read(self) -> None:
        for view in self.pair:
            if isinstance(view, BatchView | PathBatch):
                view.read()

    def result(self) -> tuple[tuple[View, View], Tensor]:
        """Wait for the pair; return it, and the state of the generator after drawing it."""
        self.reading.result()
        return self.pair, self.after


class Batches(Views):
    """Batches of nodes with their complete neighbourhoods, each against a corruption of itself.

    Every node gets the same vector as on the whole graph, up to the cap on neighbours. An epoch is one step, so the
    time per epoch does not grow with the number of nodes.
    """

    steps = 1
    corruptions = ("shuffle_features",)
    reads_folders = True
    needs_kernels = True
    divisible = True

    def __init__(
        self, graph: Record, rule: Rule, corruption: Corruption, place: Place, *, batch: int = BATCH, cap: int = CAP
    ) -> None:
        backend = Backend.of(place)
        device = backend.device
        self.source = batch_source(graph, rule, backend, whole("cap", cap, 1))
        self.corruption = corruption
        self.prepare(1)
        self.n, self.batch = graph.num_nodes, min(whole("batch", batch, 1), graph.num_nodes)
        self.everything = torch.arange(self.n if self.batch == self.n else 0, device=device)
        self.turn = torch.zeros(1, dtype=torch.int64, device=device)
        self.ahead: NextPair | None = None

    @classmethod
    def bytes(cls, graph: Record, sizes: Sizes, device: torch.device, *, batch: int = BATCH, **bound: Any) -> int:
        """Estimate the peak bytes of a training."""
        n, f, d = graph.num_nodes, graph.num_features, sizes.dim
        batch, weights = min(whole("batch", batch, 1), n), memory.weights_bytes(graph, d)
        if graph.table.mapped:
            held = memory.resident_bytes(graph) if device.type == "cuda" else memory.stored_bytes(graph)
            kept = memory.BYTES if graph.kind else 0
            return held + kept + 4 * batch * (18 * d + 8 * f) + weights
        inputs = 16 * n * d if graph.table.sparse else 16 * batch * f
        held = memory.gathered_bytes(graph, device) + memory.edges_bytes(graph, 24)
        return held + 4 * batch * 18 * d + inputs + weights

    def prepare(self, layers: int) -> None:
        """Expand as many hops as the encoder has layers."""
        self.depth = layers
        self.uniform = layers == 1 and self.source.uniform  # several hops and sparse rows differ in shape

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch; `pair` draws its nodes."""
        return [self.turn]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """B different random nodes, and a corruption of them.

        From disk, the next pair is read meanwhile where a step waits: for a disk, or for other ranks. A rank with one
        thread reads by itself, so that there are no more threads than cores.
        """
        among_others = self.ranks.count > 1 and torch.get_num_threads() > 1
        if not any(table.large or among_others for table in self.source.on_disk):
            return self._draw(generator)
        state = generator.get_state()
        if self.ahead is None or not torch.equal(self.ahead.state, state):
            self.ahead = NextPair(self._draw, state)
        pair, after = self.ahead.result()
        generator.set_state(after)
        self.ahead = NextPair(self._draw, after)
        return pair

    def nodes(self, batch: Tensor, positive: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes of the batch that `pair` drew."""
        assert isinstance(positive, BatchView | PathBatch)  # noqa: S101  `pair` made it
        nodes = positive.nodes.cpu().numpy()
        return nodes, nodes

    def choose(self, nodes: Tensor) -> None:
        """Make these nodes the batch of every step."""
        self.everything, self.batch = nodes, len(nodes)

    def _draw(self, generator: torch.Generator) -> tuple[View, View]:
        drawn = Permutation.draw(self.n, generator, self.source.backend)
        seed = torch.randint(2**31, (), generator=generator, device=generator.device)
        nodes = self.everything if len(self.everything) else drawn.first(self.batch)
        portion = Portion.of(self.batch, self.ranks)
        view = self.source.view(nodes[portion.rows], self.depth, seed, portion)
        return view, self.corruption(view, generator)
