"""Exact batches: some nodes of the whole graph with their complete neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax import memory
from infomax.errors import check_whole_number
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.random import Permutation
from infomax.kernels.ranks import Portion
from infomax.views.batch_view import BatchSource, BatchView
from infomax.views.propagation import Rule
from infomax.views.stored import StoredTable
from infomax.views.view import Corruption, Sizes, View, Views

NODES_PER_BATCH = 16_384
MOST_NEIGHBOURS = 1_000
"""Neighbours of a node that are taken; of more, so many are sampled."""


class Batches(Views):
    """Batches of nodes with their complete neighbourhoods, each against a corruption of itself.

    Every node gets the same vector as on the whole graph, up to the cap on neighbours. An epoch is
    one step, so the time per epoch does not grow with the number of nodes.

    Args:
        graph: the graph, in memory or on disk.
        rule: the normalisation, or the paths, that the encoder asks for.
        corruption: makes the negative of a batch.
        backend: the kernels, and the device.
        batch: nodes per step.
        cap: neighbours of a node that are taken.
    """

    steps = 1
    corruptions = ("shuffle_features",)
    reads_folders = True
    needs_kernels = True
    divisible = True
    takes_batches = True

    def __init__(
        self,
        graph: Record,
        rule: Rule,
        corruption: Corruption,
        backend: Backend,
        *,
        batch: int = NODES_PER_BATCH,
        cap: int = MOST_NEIGHBOURS,
    ) -> None:
        device = backend.device
        self.source = BatchSource.of(graph, rule, backend, check_whole_number("cap", cap, 1))
        self.corruption = corruption
        self.prepare(1)
        self.n = graph.num_nodes
        self.batch = min(check_whole_number("batch", batch, 1), self.n)
        # Empty where each step draws its nodes.
        self.fixed_nodes = torch.arange(self.n if self.batch == self.n else 0, device=device)
        self.only_batch = torch.zeros(1, dtype=torch.int64, device=device)
        self.next_pair: NextPair | None = None

    @classmethod
    def bytes(
        cls,
        graph: Record,
        sizes: Sizes,
        device: torch.device,
        *,
        batch: int = NODES_PER_BATCH,
        **bound: Any,
    ) -> int:
        """Estimate the peak bytes of a training."""
        num_nodes, num_features, dim = graph.num_nodes, graph.num_features, sizes.dim
        batch = min(check_whole_number("batch", batch, 1), num_nodes)
        weights = memory.weights_bytes(graph, dim)
        activations = 4 * batch * 18 * dim
        if graph.table.mapped:
            on_gpu = device.type == "cuda"
            graph_bytes = memory.resident_bytes(graph) if on_gpu else memory.stored_bytes(graph)
            known_means = memory.BYTES_PER_BLOCK if graph.has_named_types else 0
            rows = 4 * batch * 8 * num_features
            return graph_bytes + known_means + activations + rows + weights
        if graph.table.sparse:
            inputs = 16 * num_nodes * dim
        else:
            inputs = 16 * batch * num_features
        graph_bytes = memory.gathered_bytes(graph, device) + memory.edges_bytes(graph, 24)
        return graph_bytes + activations + inputs + weights

    def prepare(self, layers: int) -> None:
        """Expand as many hops as the encoder has layers."""
        self.depth = layers
        # Several hops, sparse rows and paths differ in shape from batch to batch.
        is_dense = isinstance(self.source.features.get(""), Tensor)
        self.uniform = layers == 1 and is_dense

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """One batch; `pair` draws its nodes."""
        return [self.only_batch]

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """B different random nodes, and a corruption of them.

        From disk, the next pair is read meanwhile where a step waits: for a disk, or for other
        ranks. A rank with one thread reads by itself, so that there are no more threads than cores.
        """
        waits_for_ranks = self.ranks.count > 1 and torch.get_num_threads() > 1
        stored_tables = [
            table for table in self.source.features.values() if isinstance(table, StoredTable)
        ]
        if not any(table.large or waits_for_ranks for table in stored_tables):
            return self._draw(generator)

        # A pair that was read ahead is used only if the generator is where it was expected to be.
        state = generator.get_state()
        current_pair = self.next_pair
        if current_pair is None or not torch.equal(current_pair.state, state):
            current_pair = NextPair(self._draw, state)
        current_pair.reading.result()
        generator.set_state(current_pair.state_after)
        self.next_pair = NextPair(self._draw, current_pair.state_after)
        return current_pair.pair

    def nodes(self, batch: Tensor, positive: View) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes of the batch that `pair` drew."""
        assert isinstance(positive, BatchView)  # noqa: S101  `pair` made it
        nodes = positive.hops.nodes.cpu().numpy()
        return nodes, nodes

    def choose(self, nodes: Tensor) -> None:
        """Make these nodes the batch of every step."""
        self.fixed_nodes = nodes
        self.batch = len(nodes)

    def _draw(self, generator: torch.Generator) -> tuple[View, View]:
        """Draw a pair; with fixed nodes the same numbers are drawn, so that a seed stays a seed."""
        permutation = Permutation.draw(self.n, generator, self.source.backend)
        seed = torch.randint(2**31, (), generator=generator, device=generator.device)
        if len(self.fixed_nodes):
            nodes = self.fixed_nodes
        else:
            nodes = permutation.first(self.batch)
        portion = Portion.of(self.batch, self.ranks)
        view = self.source.view(nodes[portion.rows], self.depth, seed, portion)
        return view, self.corruption(view, generator)


class NextPair:
    """A pair of views that is drawn from a copy of a generator, and read by a thread of its own."""

    def __init__(self, draw: Callable[[torch.Generator], tuple[View, View]], state: Tensor) -> None:
        generator = torch.Generator()
        generator.set_state(state)
        self.state = state
        self.pair = draw(generator)
        self.state_after = generator.get_state()
        self.reading = ThreadPoolExecutor(1).submit(self._read)

    def _read(self) -> None:
        for view in self.pair:
            if isinstance(view, BatchView):
                view.read()
