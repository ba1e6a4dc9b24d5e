"""Milliseconds per epoch on a graph of several types of nodes: ours and PyG alternately, in one run."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.command import assemble, parser, report
from benchmarks.epoch import COLUMNS, STRETCH
from benchmarks.measure import race
from benchmarks.ours import FOREVER, go_on
from benchmarks.peers import PyG
from benchmarks.problem import LEARNING_RATE, load
from infomax.arrays.relations import Step, named_path
from infomax.estimator import assembly
from infomax.graphs.graph import Graph
from infomax.kernels.ranks import Ranks
from infomax.parts.encoders import PathMean
from infomax.training.presets import PAPER_PRESETS, PRESETS
from infomax_paper.heterogeneous import PATHS

WHAT = {
    "ours": "ours: means of means along each path, one linear map, bias and PReLU per path, the mean over paths",
    "pyg": "pyg: the same by torch_geometric.nn.SimpleConv(aggr='mean') per step and DeepGraphInfomax, edge_index",
    "pyg-csr": "pyg-csr: the same, each relation as a CSR tensor",
    "pyg-hetero": "pyg-hetero: HeteroConv of SAGEConv(aggr='mean') over all relations both ways, as many layers as the "
    "longest path has steps, all types of nodes in each layer: another model, of the same width",
}


class Ours:
    """The preset for several types, through the loop that `DGI.fit` runs, without an end."""

    def __init__(self, graph: Graph, dim: int, device: str, paths: tuple[str, ...]) -> None:
        paper = PAPER_PRESETS["types"]
        preset = dataclasses.replace(paper, dim=dim, epochs=FOREVER, patience=FOREVER)
        preset = dataclasses.replace(preset, encoder=partial(PathMean, paths=graph.paths(paths)))
        # As one of many trainings, which use compiled kernels.
        self.training, self.scaler = assembly.assemble(
            graph, preset, 0, torch.device(device), Ranks.current(), work=math.inf
        )

    def train(self, count: int) -> float:
        """Train ``count`` epochs; returns the last loss."""
        return go_on(self.training, count)


class PyGPaths(PyG):
    """The same model in PyG, with the initial weights and, on a CPU, the corruptions of ours.

    Shapes:
        x: by type, ``[N, F]``, dense
        adjacency: by receiving and sending type, edges ``[2, E]`` or a CSR tensor
    """

    def __init__(self, graph: Graph, ours: Ours, *, csr: bool = False) -> None:
        model, device, self.kind = ours.training.model, ours.training.device, graph.node_type
        self.paths = {name: named_path(graph.relations, name) for name in model.encoder.paths}
        self.generator = ours.training.generator.clone_state()
        scaled = graph.scaled(ours.scaler)
        self.x = {kind: _dense(scaled.target(kind)).to(device) for kind in self.types(graph)}
        self.adjacency = {
            (step.node_type, step.sender): _edges(step, graph, csr=csr).to(device)
            for step in self.steps(graph)
        }
        self.model = self.infomax(self.encoder(graph, model), model.discriminator.weight).to(device)
        with torch.no_grad():
            self.embed()  # initialises layers that learn their widths from the data
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, fused=True)

    def types(self, graph: Graph) -> list[str]:
        """The types whose features are read."""
        return sorted({path[-1].sender for path in self.paths.values()})

    def steps(self, graph: Graph) -> list[Step]:
        """The steps along which nodes receive."""
        return [step for path in self.paths.values() for step in path]

    def encoder(self, graph: Graph, model: Any) -> nn.Module:
        """Build the encoder with the weights of ours."""
        return _Paths(self.paths, model.encoder)

    def infomax(self, encoder: nn.Module, bilinear: Tensor) -> nn.Module:
        """PyG's module around an encoder."""
        from torch_geometric.nn import DeepGraphInfomax

        model = DeepGraphInfomax(
            len(bilinear),
            encoder,
            summary=lambda h, *inputs: h.mean(0).sigmoid(),
            corruption=lambda x, adjacency: (self.shuffled_types(), adjacency),
        )
        with torch.no_grad():
            model.weight.copy_(bilinear)
        return model

    def shuffled_types(self) -> dict[str, Tensor]:
        """The rows of X in random order, within each type."""
        orders = {
            kind: torch.randperm(len(x), generator=self.generator, device=x.device)
            for kind, x in self.x.items()
        }
        return {kind: x[orders[kind]] for kind, x in self.x.items()}


class _Paths(nn.Module):
    """One linear map per path, then the means along it; bias, PReLU, and the mean over paths."""

    def __init__(self, paths: dict[str, list[Step]], ours: PathMean) -> None:
        from torch_geometric.nn import SimpleConv

        super().__init__()
        self.paths, self.mean = paths, SimpleConv(aggr="mean")
        self.sizes = {
            (step.node_type, step.sender): (_width(step), len(step.senders.indptr) - 1)
            for path in paths.values()
            for step in path
        }
        self.weights = nn.ParameterList(weight.detach().clone() for weight in ours.weights)
        self.biases = nn.ParameterList(bias.detach().clone() for bias in ours.biases)
        self.slopes = nn.ModuleList(nn.PReLU() for _ in paths)

    def forward(self, x: dict[str, Tensor], adjacency: dict[tuple[str, str], Tensor]) -> Tensor:
        found = []
        for path, weight, bias, slope in zip(
            self.paths.values(), self.weights, self.biases, self.slopes, strict=True
        ):
            h = x[path[-1].sender] @ weight
            for step in reversed(path):
                ends = step.node_type, step.sender
                edges = adjacency[ends]
                h = self.mean(
                    (h, None),
                    edges,
                    size=self.sizes[ends] if edges.layout == torch.strided else None,
                )
            found.append(slope(h + bias))
        return torch.stack(found).mean(0)


class PyGHetero(PyGPaths):
    """PyG's `HeteroConv` of `SAGEConv`, as its examples write such encoders."""

    def types(self, graph: Graph) -> list[str]:
        """All types."""
        return list(graph.types)

    def steps(self, graph: Graph) -> list[Step]:
        """Both directions of every relation."""
        return [
            Step(relation, kind)
            for relation in graph.relations
            for kind in (relation.source, relation.target)
        ]

    def encoder(self, graph: Graph, model: Any) -> nn.Module:
        """Build the layers; the weights are PyG's own."""
        depth = max(map(len, self.paths.values()))
        return _Layers(list(self.adjacency), self.kind, model.encoder.out_dim, depth)


class _Layers(nn.Module):
    """Layers over all types; the vectors of one."""

    def __init__(self, ends: list[tuple[str, str]], kind: str, dim: int, depth: int) -> None:
        from torch_geometric.nn import HeteroConv, SAGEConv

        super().__init__()
        self.kind = kind
        self.layers = nn.ModuleList(
            HeteroConv(
                {(sender, "to", to): SAGEConv((-1, -1), dim, aggr="mean") for to, sender in ends},
                aggr="mean",
            )
            for _ in range(depth)
        )
        self.slopes = nn.ModuleList(nn.PReLU() for _ in range(depth))

    def forward(self, x: dict[str, Tensor], adjacency: dict[tuple[str, str], Tensor]) -> Tensor:
        edges = {(sender, "to", to): those for (to, sender), those in adjacency.items()}
        for layer, slope in zip(self.layers, self.slopes, strict=True):
            x = {kind: slope(h) for kind, h in layer(x, edges).items()}
        return x[self.kind]


def _dense(graph: Graph) -> Tensor:
    """The features ``[N, F]``."""
    return torch.from_numpy(graph.features.toarray() if graph.table.sparse else graph.features)


def _width(step: Step) -> int:
    """How many nodes may send along a step."""
    relation = step.relation
    return (
        len(
            (
                relation.edges.receivers
                if step.node_type == relation.target
                else relation.edges.senders
            ).indptr
        )
        - 1
    )


def _edges(step: Step, graph: Graph, *, csr: bool) -> Tensor:
    """The edges of a step, from senders to receivers: ``[2, E]``, or a CSR tensor with a row per
    receiver."""
    matrix = step.senders.matrix(_width(step))
    if csr:
        parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, size=matrix.shape)
    receivers, senders = (torch.from_numpy(end).long() for end in matrix.tocoo().coords)
    return torch.stack([senders, receivers])


PEERS = {"pyg": PyGPaths, "pyg-csr": partial(PyGPaths, csr=True), "pyg-hetero": PyGHetero}


def main(
    arguments: list[str] | None = None, graph: Graph | None = None, paths: tuple[str, ...] = ()
) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="heco-acm", peers=tuple(PEERS))
    options.add_argument(
        "--dim", type=int, default=PRESETS["types"].dim, help="width; default: the preset's"
    )
    options.add_argument(
        "--repeats", type=int, default=10, help="rounds; each gives every contender one turn"
    )
    settings = options.parse_args(arguments)
    settings.stretch = STRETCH[settings.device]
    torch.set_num_threads(settings.threads)
    graph, paths = (
        (load(settings.dataset), PATHS[settings.dataset]) if graph is None else (graph, paths)
    )
    ours, left_out = Ours(graph, settings.dim, settings.device, paths), dict[str, str]()
    makers = {name: lambda name=name: PEERS[name](graph, ours) for name in settings.peers}
    contenders = {"ours": ours, **assemble(makers, left_out)}
    rows = race(contenders, settings.repeats, settings.stretch)
    report(
        settings,
        f"An epoch: {settings.dataset}, d = {settings.dim}",
        rows,
        COLUMNS,
        left_out=left_out,
    )
    print(
        f"paths: {', '.join(paths)}; whole graph, corrupt, encode twice, score, backward, Adam",
        *WHAT.values(),
        sep="\n",
    )


if __name__ == "__main__":
    main()
