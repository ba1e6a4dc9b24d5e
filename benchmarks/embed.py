"""Seconds to embed all nodes exactly: ours and the peers alternately, from host to host and on the device only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from benchmarks.command import CannotRun, assemble, parser, report
from benchmarks.measure import PEAK, spread, timed, with_peak
from benchmarks.patch_peers import Skip
from benchmarks.problem import load
from infomax import DGI
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.training.embed import Embedder
from infomax.training.recipe import Recipe
from infomax.views import WholeView
from infomax_paper.patches import PATCHES

COLUMNS = {
    "contender": "{contender}",
    "first s": "{first_s:.2f}",
    "median s": "{median_s:.2f}",
    "p10 - p90": "{p10_s:.2f} - {p90_s:.2f}",
    "ratio": "{ratio:.2f}",
    "device s": "{device_s:.3f}",
    "its ratio": "{device_ratio:.2f}",
    "difference": "{difference:.0e}",
}


class Contender(ABC):
    """One way to embed a graph with a fitted model of the patches preset."""

    def __init__(self, model: DGI, graph: Graph) -> None:
        self.model, self.graph, self.device = model, graph, next(model.model_.parameters()).device

    @abstractmethod
    def prepare(self) -> Any:
        """Put the input of `compute` on the device."""

    @abstractmethod
    def compute(self, prepared: Any) -> Tensor:
        """Compute H of every node ``[N, 2 d]``, on the device."""

    def scaled(self) -> Graph:
        """The graph with features scaled by the model's scaler."""
        features = self.model.scaler_.transform(self.graph.features)
        return self.graph.replace(features=features)

    @torch.no_grad()
    def embed(self) -> NDArray[np.float32]:
        """Compute H of every node ``[N, 2 d]``, from host to host."""
        return self.compute(self.prepare()).cpu().numpy()


class Ours(Contender):
    """`DGI.transform`; on the device only, its computation there."""

    def prepare(self) -> WholeView:
        """The view of the graph."""
        encoder = self.model.model_.encoder
        backend = Backend.of_embedding(self.device, self.graph.num_nodes * encoder.out_dim)
        return WholeView.of(self.scaled(), encoder.rule, backend)

    def compute(self, prepared: WholeView) -> Tensor:
        """Layer by layer, in blocks of nodes."""
        recipe = Recipe(self.model.model_.encoder, self.model.scaler_)
        engine = Embedder(recipe, prepared, self.graph.table)
        return torch.cat([engine.rows(*block) for block in engine.blocks()])

    def embed(self) -> NDArray[np.float32]:
        """Call `DGI.transform`, as a user does."""
        return self.model.transform(self.graph).vectors


class Plain(Contender):
    """Layer by layer over the whole graph at once, with torch's own CSR product."""

    def prepare(self) -> tuple[Tensor, Tensor]:
        """The features, and ``D^-1 (A + I)`` as CSR."""
        looped = sparse.csr_array(
            self.graph.adjacency + sparse.eye_array(self.graph.num_nodes, dtype=np.float32)
        )
        mean = sparse.csr_array(sparse.diags_array(1 / looped.sum(1)) @ looped, dtype=np.float32)
        parts = (
            torch.from_numpy(part).to(self.device)
            for part in (mean.indptr, mean.indices, mean.data)
        )
        propagation = torch.sparse_csr_tensor(*parts, size=mean.shape, check_invariants=False)
        return torch.from_numpy(self.scaled().features).to(self.device), propagation

    def compute(self, prepared: tuple[Tensor, Tensor]) -> Tensor:
        """The encoder's formula, layer by layer."""
        h, propagation = prepared
        encoder = self.model.model_.encoder
        for own, pooled, bias, slope in zip(
            encoder.own, encoder.pooled, encoder.biases, encoder.slopes, strict=True
        ):
            h = nn.functional.prelu(
                torch.cat([h @ own, propagation @ (h @ pooled)], dim=1) + bias, slope
            )
        return h


class PyG(Contender):
    """PyG's `SAGEConv` over the whole graph, the adjacency as CSR with self-loops."""

    def prepare(self) -> tuple[Skip, Tensor, Tensor]:
        """The module, the features and the adjacency."""
        looped = sparse.csr_array(
            self.graph.adjacency + sparse.eye_array(self.graph.num_nodes, dtype=np.float32)
        )
        parts = (
            torch.from_numpy(part).to(self.device)
            for part in (looped.indptr, looped.indices, looped.data)
        )
        adjacency = torch.sparse_csr_tensor(*parts, size=looped.shape, check_invariants=False)
        return (
            Skip(self.model.model_),
            torch.from_numpy(self.scaled().features).to(self.device),
            adjacency,
        )

    def compute(self, prepared: tuple[Skip, Tensor, Tensor]) -> Tensor:
        """PyG's forward pass."""
        module, features, adjacency = prepared
        return module(features, adjacency)


PEERS: dict[str, type[Contender]] = {"plain": Plain, "pyg": PyG}


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="generated-reddit", peers=tuple(PEERS))
    options.add_argument(
        "--scale", type=float, help="size of generated-reddit, as a multiple of Reddit's nodes"
    )
    options.add_argument(
        "--dim", type=int, default=512, help="features per side; vectors are twice as wide"
    )
    options.add_argument("--repeats", type=int, default=5, help="calls after the first")
    settings = options.parse_args(arguments)
    torch.set_num_threads(settings.threads)
    graph = load(settings.dataset, **({} if settings.scale is None else {"scale": settings.scale}))
    model = DGI(
        preset=PATCHES, dim=settings.dim, epochs=0, device=settings.device, vectors="paper"
    ).fit(graph)
    makers = {"ours": Ours} | {name: PEERS[name] for name in settings.peers}
    rows, left_out = race(
        {name: make(model, graph) for name, make in makers.items()}, settings.repeats
    )
    title = f"Embedding {graph.num_nodes:,} nodes of {settings.dataset}, {graph.num_edges:,} edges, exactly"
    report(
        settings,
        f"{title}, {2 * settings.dim} wide",
        rows,
        COLUMNS | PEAK[settings.device],
        left_out=left_out,
    )
    print(
        "first s, median s: from host to host; difference: the largest, relative to the largest entry of ours"
    )


def race(
    contenders: dict[str, Contender], repeats: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure the contenders alternately; returns one row per contender that can run, and why the
    others cannot."""
    left_out: dict[str, str] = {}
    firsts = assemble(
        {name: lambda one=one: first(one) for name, one in contenders.items()}, left_out
    )
    whole: dict[str, list[float]] = {name: [] for name in firsts}
    device: dict[str, list[float]] = {name: [] for name in firsts}
    for _ in range(repeats):
        for name in firsts:
            whole[name].append(timed(contenders[name].embed)[0])
            device[name].append(on_device(contenders[name]))
    ours = firsts["ours"]["vectors"]
    rows = [
        {
            "contender": name,
            **row,
            **spread(whole[name], "s"),
            "device_s": float(np.median(device[name])),
        }
        for name, row in firsts.items()
    ]
    for row in rows:
        row["ratio"], row["device_ratio"] = (
            row[key] / rows[0][key] for key in ("median_s", "device_s")
        )
        row["difference"] = float(np.abs(row.pop("vectors") - ours).max() / np.abs(ours).max())
    return rows, left_out


def first(contender: Contender) -> dict[str, Any]:
    """Measure the first call: seconds, peak memory, vectors."""
    try:
        (seconds, vectors), peak = with_peak(lambda: timed(contender.embed), contender.device.type)
    except torch.OutOfMemoryError:
        raise CannotRun("the whole graph at once does not fit this GPU") from None
    return {"first_s": seconds, "peak_gb": peak, "vectors": vectors}


@torch.no_grad()
def on_device(contender: Contender) -> float:
    """Seconds of the computation only, with all data on the device."""
    prepared = contender.prepare()
    return timed(lambda: contender.compute(prepared))[0]


if __name__ == "__main__":
    main()
