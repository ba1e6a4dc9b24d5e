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

from infomax.graphs.graph import Graph
from infomax.graphs.scaling import Scaler
from infomax.io.atomic import replacing
from infomax.io.folder import ArrayWriter
from infomax.kernels.neighbourhoods import Neighbourhoods
from infomax.parts.encoders import Encoder
from infomax.training.embedding import evaluating
from infomax.views.batches import BatchView, Hops, read_neighbourhoods
from infomax.views.stored import StoredTable
from infomax.views.whole import Products

BLOCK = 1 << 14
"""Nodes per block."""


class StoredEncoder:
    """An encoder on a graph folder; it computes the vectors of any nodes on the CPU."""

    def __init__(self, encoder: Encoder, graph: Graph, scaler: Scaler) -> None:
        self.encoder, self.graph = deepcopy(encoder).cpu(), graph
        self.hoods = read_neighbourhoods(graph, encoder.rule, torch.device("cpu"), max(graph.num_nodes, 1))
        self.table = StoredTable(scaler.transform(graph.features))

    @torch.no_grad()
    def of(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Compute the vectors ``[n, d]`` of some nodes; a deep encoder expands their neighbourhoods hop by hop."""
        out = np.empty((len(nodes), self.encoder.out_dim), np.float32)
        zero = torch.zeros((), dtype=torch.int64)
        with evaluating(self.encoder):
            for start in range(0, len(nodes), BLOCK):
                hops = Hops(self.hoods, torch.from_numpy(nodes[start : start + BLOCK]), self.encoder.depth, zero)
                view = BatchView(hops, Products(self.table))  # type: ignore[arg-type]
                out[start : start + BLOCK] = self.encoder(view)[0].numpy()
        return out

    @torch.no_grad()
    def layers(self, work: Path, smooth: int) -> Callable[[int, int], NDArray[np.float32]]:
        """Compute all passes but the last; return a function of (start, stop) that computes vectors by the last pass.

        A pass is a layer or a hop of smoothing. Its result is a file in the folder ``work``; existing files are used.
        """
        tables: list[StoredTable] = []
        for k in range(self.encoder.depth - (0 if smooth else 1)):
            tables = [self._pass(work / f"layer-{k}.npy", partial(self._layer, k, tables))]
        vectors = tables[-1] if smooth else None
        far = vectors
        for hop in range(smooth - 1):
            if any((work / f"hop-{later}.npy").exists() for later in range(hop + 1, smooth - 1)):
                continue  # it was needed only for the next hop, and then removed
            source = far
            assert source is not None  # noqa: S101  smoothing begins with the vectors
            far = self._pass(work / f"hop-{hop}.npy", partial(self._pool, source))
            (work / f"hop-{hop - 1}.npy").unlink(missing_ok=True)

        def last(start: int, stop: int) -> NDArray[np.float32]:
            if vectors is None or far is None:
                return self._layer(self.encoder.depth - 1, tables, start, stop)
            near = torch.from_numpy(np.array(vectors.array[start:stop]))
            return normalize(near + torch.from_numpy(self._pool(far, start, stop))).numpy()

        return last

    def _layer(self, k: int, before: list[StoredTable], start: int, stop: int) -> NDArray[np.float32]:
        """Compute rows start to stop of layer k from the layer before; the first layer reads the features."""
        view = RowsView(self.hoods, self.table, torch.arange(start, stop))
        with torch.no_grad(), evaluating(self.encoder):
            h = before[-1] if before else None
            return self.encoder.layer(k, view, h).numpy()  # type: ignore[arg-type]

    def _pool(self, table: StoredTable, start: int, stop: int) -> NDArray[np.float32]:
        """Compute rows start to stop of P times a table."""
        nodes = torch.arange(start, stop)
        return table.pool(self.hoods, nodes, torch.zeros(len(nodes))).numpy()

    def _pass(self, path: Path, rows: Callable[[int, int], NDArray[np.float32]]) -> StoredTable:
        """Return a table of all nodes in a file; write the file first if it does not exist."""
        if not path.exists():
            with replacing(path) as temporary:
                n, first = self.graph.num_nodes, rows(0, min(BLOCK, self.graph.num_nodes))
                with ArrayWriter(temporary, np.float32, first.shape[1]) as writer:
                    writer.append(first)
                    for start in range(BLOCK, n, BLOCK):
                        writer.append(rows(start, min(start + BLOCK, n)))
        return StoredTable(np.load(path, mmap_mode="r", allow_pickle=False))


class RowsView:
    """A view of some nodes of a graph on disk; a layer is computed from the stored layer before."""

    def __init__(self, hoods: Neighbourhoods, features: StoredTable, nodes: Tensor) -> None:
        self.hoods, self.features, self.nodes = hoods, features, nodes

    def carry(self, h: StoredTable) -> Tensor:
        """H of these nodes."""
        return h.gather(self.nodes)

    def own(self, h: StoredTable | None, weight: Tensor) -> Tensor:
        """H Θ of these nodes."""
        return self.carry(h or self.features) @ weight

    def pooled(self, h: StoredTable | None, weight: Tensor) -> Tensor:
        """P H Θ of these nodes."""
        return (h or self.features).pool(self.hoods, self.nodes, torch.zeros(len(self.nodes))) @ weight


def all_vectors(
    encoder: Encoder, graph: Graph, scaler: Scaler, rows: NDArray[np.int64] | None, smooth: int
) -> NDArray[np.float32]:
    """Compute the vectors of a graph folder in memory: of ``rows``, in ascending order, or of all nodes."""
    stored = StoredEncoder(encoder, graph, scaler)
    n = graph.num_nodes
    if not smooth and (encoder.depth == 1 or rows is not None):
        return stored.of(np.arange(n) if rows is None else rows)
    with TemporaryDirectory() as work:
        last = stored.layers(Path(work), smooth)
        parts = []
        for start, stop in blocks(0, n):
            part = last(start, stop)
            parts.append(part if rows is None else part[rows[(rows >= start) & (rows < stop)] - start])
    return np.concatenate(parts)


def blocks(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split start to stop into ranges of at most `BLOCK`."""
    return ((first, min(first + BLOCK, stop)) for first in range(start, stop, BLOCK))
