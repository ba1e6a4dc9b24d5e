"""Exact vectors of a graph that stays on disk, computed in blocks of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from infomax.arrays.scaling import Scaler
from infomax.arrays.table import MappedTable
from infomax.graphs import memory
from infomax.graphs.graph import Graph
from infomax.io.atomic import replacing
from infomax.io.folder import ArrayWriter
from infomax.kernels.device import choose_device
from infomax.kernels.neighbourhoods import Neighbourhoods
from infomax.kernels.ranks import Ranks
from infomax.kernels.transfer import to_device
from infomax.parts.encoders import Encoder
from infomax.views.batches import BatchView, Hops, read_neighbourhoods
from infomax.views.operands import multiply, to_gather
from infomax.views.stored import StoredTable, gather_rows, pool_rows
from infomax.views.whole import Products

BLOCK = {"cpu": 1 << 14, "cuda": 1 << 18}
"""Nodes per block."""

Rows = Callable[[int, int], Tensor]
"""A function of (start, stop) that computes the vectors ``[stop - start, d]`` of these nodes."""
Table = Tensor | StoredTable


def folder_device(graph: Graph, name: str) -> torch.device:
    """Choose the device to embed a graph folder on: ``auto`` is the GPU if there is one with room for the graph.

    New nodes that are attached to a folder are embedded on the CPU, which reads only what they need.
    """
    device = choose_device(name)
    if device.type == "cuda" and graph.edges.senders is not None:
        needed = memory.resident_bytes(graph) + 4 * graph.num_nodes * graph.num_features
        if name != "auto" or needed < memory.available_bytes(device):
            memory.require(needed, device)
            return device
    memory.require(memory.stored_bytes(graph), torch.device("cpu"), Ranks.current().on_this_host)
    return torch.device("cpu")


class StoredEncoder:
    """An encoder on a graph folder; it computes the vectors of any nodes.

    A GPU holds the whole graph, with its features in half precision where that rounds little; see `to_gather`.
    """

    def __init__(self, encoder: Encoder, graph: Graph, scaler: Scaler, device: torch.device) -> None:
        self.encoder, self.graph, self.device = deepcopy(encoder).to(device).eval(), graph, device
        self.hoods = read_neighbourhoods(graph, encoder.rule, device, max(graph.num_nodes, 1))
        features = graph.table.scaled(scaler)
        self.table: Table = StoredTable(features) if device.type == "cpu" else to_gather(features, self.hoods.backend)  # type: ignore[assignment]
        self.block = BLOCK[device.type]

    @torch.no_grad()
    def of(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the vectors ``[n, d]`` of some nodes; a deep encoder expands their neighbourhoods hop by hop."""
        out = np.empty((len(nodes), self.encoder.out_dim), np.float32)
        zero = torch.zeros((), dtype=torch.int64, device=self.device)
        for start in range(0, len(nodes), self.block):
            chosen = torch.from_numpy(nodes[start : start + self.block]).to(self.device)
            hops = Hops(self.hoods, chosen, self.encoder.depth, zero)
            view = BatchView(hops, Products(self.table))  # type: ignore[arg-type]
            out[start : start + self.block] = self.encoder(view)[0].cpu().numpy()
        return out

    def layers(self, work: Path, smooth: int) -> Rows:
        """Compute all passes but the last; return a function that computes vectors by the last pass.

        A pass is a layer or a hop of smoothing. Its result is a file in the folder ``work``; existing files are used.
        """
        before: Table | None = None
        for k in range(self.encoder.depth - (0 if smooth else 1)):
            before = self._pass(work / f"layer-{k}.npy", partial(self._layer, k, before))
        if not smooth:
            return partial(self._layer, self.encoder.depth - 1, before)
        assert before is not None  # noqa: S101  smoothing begins with the vectors
        vectors = far = before
        for hop in range(smooth - 1):
            if any((work / f"hop-{later}.npy").exists() for later in range(hop + 1, smooth - 1)):
                continue  # it was needed only for the next hop, and then removed
            far = self._pass(work / f"hop-{hop}.npy", partial(self._pool, far))
            (work / f"hop-{hop - 1}.npy").unlink(missing_ok=True)

        def smoothed(start: int, stop: int) -> Tensor:
            near = gather_rows(vectors, torch.arange(start, stop, device=self.device))
            return normalize(near + self._pool(far, start, stop))

        return smoothed

    @torch.no_grad()
    def _layer(self, k: int, before: Table | None, start: int, stop: int) -> Tensor:
        """Compute rows start to stop of layer k from the layer before; the first layer reads the features."""
        view = RowsView(self.hoods, self.table, torch.arange(start, stop, device=self.device))
        return self.encoder.layer(k, view, before)  # type: ignore[arg-type]

    def _pool(self, table: Table, start: int, stop: int) -> Tensor:
        """Compute rows start to stop of P times a table."""
        nodes = torch.arange(start, stop, device=self.device)
        return pool_rows(table, self.hoods, nodes, torch.zeros(len(nodes), device=self.device))

    def _pass(self, path: Path, rows: Rows) -> Table:
        """Return a table of all nodes in a file; write the file first if it does not exist."""
        if not path.exists():
            with replacing(path) as temporary:
                n, first = self.graph.num_nodes, rows(0, min(self.block, self.graph.num_nodes))
                with ArrayWriter(temporary, np.float32, first.shape[1]) as writer:
                    writer.append(first.cpu().numpy())
                    for start, stop in self.blocks(self.block, n):
                        writer.append(rows(start, stop).cpu().numpy())
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        return StoredTable(MappedTable(array)) if self.device.type == "cpu" else to_device(array, self.device)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Split start to stop into ranges of at most a block."""
        return ((first, min(first + self.block, stop)) for first in range(start, stop, self.block))


class RowsView:
    """A view of some nodes of a graph folder; a layer is computed from a table of the layer before."""

    def __init__(self, hoods: Neighbourhoods, features: Table, nodes: Tensor) -> None:
        self.hoods, self.features, self.nodes, self.backend = hoods, features, nodes, hoods.backend

    def carry(self, h: Table) -> Tensor:
        """H of these nodes."""
        return gather_rows(h, self.nodes)

    def own(self, h: Table | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        return multiply(
            gather_rows(self.features if h is None else h, self.nodes).to(weight.dtype), weight, self.backend
        )

    def pooled(self, h: Table | None, weight: Tensor) -> Tensor:
        """P H Θ of these nodes."""
        offsets = torch.zeros(len(self.nodes), device=self.nodes.device)
        pooled = pool_rows(self.features if h is None else h, self.hoods, self.nodes, offsets)
        return multiply(pooled, weight, self.backend)


def all_vectors(
    encoder: Encoder, graph: Graph, scaler: Scaler, rows: NDArray[np.int64] | None, smooth: int, device: str
) -> NDArray[np.float32]:
    """Compute the vectors of a graph folder in memory: of ``rows``, in ascending order, or of all nodes."""
    n, cpu = graph.num_nodes if rows is None else len(rows), torch.device("cpu")
    memory.require(memory.stored_bytes(graph) + 4 * n * encoder.out_dim, cpu)
    if rows is not None and not smooth:
        return StoredEncoder(encoder, graph, scaler, cpu).of(rows)  # reads only the rows needed
    stored = StoredEncoder(encoder, graph, scaler, folder_device(graph, device))
    with TemporaryDirectory() as work:
        last = stored.layers(Path(work), smooth)
        parts = []
        for start, stop in stored.blocks(0, graph.num_nodes):
            part = last(start, stop).cpu().numpy()
            parts.append(part if rows is None else part[rows[(rows >= start) & (rows < stop)] - start])
    return np.concatenate(parts)
