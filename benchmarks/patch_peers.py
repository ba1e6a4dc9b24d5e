"""Peers for training in patches: the same formulas in plain torch, and PyG's loader and convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.command import CannotRun
from benchmarks.problem import PatchProblem
from infomax.parts.methods import Model


class PlainPatches:
    """The formulas written directly: whole levels gathered, means, linear maps, autograd.

    A level has the ``fan_out`` drawn neighbours of each node of the level above; level 0 has the B
    centres.
    """

    def __init__(self, problem: PatchProblem, dtype: torch.dtype = torch.float32) -> None:
        self.problem, self.generator = problem, problem.generator()
        features, self.starts, self.senders = problem.tables
        self.features = features.to(dtype)
        self.fan_out = problem.views.fan_out
        self.model = problem.model().to(dtype)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=problem.preset.lr, fused=True)

    def draw(self, nodes: Tensor, count: int) -> Tensor:
        """Draw neighbours with replacement, ``[n] -> [n * count]``; an isolated node draws
        itself."""
        chance = torch.rand(len(nodes), count, generator=self.generator, device=nodes.device)
        first, degree = self.starts[nodes][:, None], self.degree(nodes)[:, None]
        place = first + (chance * degree).long().clamp_(max=degree - 1)
        return torch.where(
            degree == 0, nodes[:, None], self.senders[place.clamp_(0, len(self.senders) - 1)]
        ).view(-1)

    def degree(self, nodes: Tensor) -> Tensor:
        """Count the neighbours of each node."""
        return self.starts[nodes + 1] - self.starts[nodes]

    def encode(self, levels: list[Tensor]) -> Tensor:
        """Compute H of the centres ``[B, 2 d]``: a layer maps each node, and the mean over it and
        its neighbours."""
        encoder = self.model.encoder
        h = [self.features[level] for level in levels]
        for own, pooled, bias, slope in zip(
            encoder.own, encoder.pooled, encoder.biases, encoder.slopes, strict=True
        ):
            means = [
                (x + below.view(len(x), -1, x.shape[1]).sum(1)) / (len(below) // len(x) + 1)
                for x, below in pairwise(h)
            ]
            h = [
                nn.functional.prelu(torch.cat([x @ own, mean @ pooled], dim=1) + bias, slope)
                for x, mean in zip(h, means, strict=False)
            ]
        return h[0]

    def pair(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Draw the nodes of patches around B centres, level by level; returns them and a shuffle,
        ``[B, P]`` each."""
        levels = [centres]
        for count in self.fan_out:
            levels.append(self.draw(levels[-1], count))
        patches = torch.cat([level.view(len(centres), -1) for level in levels], dim=1)
        order = torch.rand(patches.shape, generator=self.generator, device=centres.device).argsort(
            dim=1
        )
        return patches, patches.gather(1, order)

    def loss(self, centres: Tensor) -> Tensor:
        """Cross-entropy of the batch and its patches with shuffled features."""
        sizes = list(accumulate(self.fan_out, mul, initial=1))
        levels, shuffled = (
            [part.reshape(-1) for part in side.split(sizes, dim=1)] for side in self.pair(centres)
        )
        h, h_negative = self.encode(levels), self.encode(shuffled)
        score = self.model.discriminator.weight @ h.mean(0).sigmoid()
        logits = torch.cat([h @ score, h_negative @ score]) + self.model.discriminator.bias
        targets = torch.cat([logits.new_ones(len(h)), logits.new_zeros(len(h))])
        return nn.functional.binary_cross_entropy_with_logits(logits, targets)

    def train(self, count: int) -> float:
        """Train ``count`` steps, with tensor cores as ours; returns their mean loss."""
        torch.set_float32_matmul_precision("high")
        total = torch.zeros((), device=self.problem.device)
        for centres in self.problem.batches(count, self.generator):
            self.optimiser.zero_grad()
            loss = self.loss(centres)
            loss.backward()
            self.optimiser.step()
            total += loss.detach()
        torch.set_float32_matmul_precision("highest")
        return float(total) / count


class Skip(nn.Module):
    """The encoder of the patches preset over PyG's `SAGEConv`, with a model's weights.

    Equal to ours if the adjacency has self-loops; PyG's samples have none.
    """

    def __init__(self, model: Model) -> None:
        from torch_geometric.nn import SAGEConv

        super().__init__()
        encoder, device = model.encoder, model.encoder.own[0].device
        self.own, self.biases, self.slopes = encoder.own, encoder.biases, encoder.slopes
        shapes = [weight.shape for weight in encoder.pooled]
        self.pooled = nn.ModuleList(
            SAGEConv(*shape, root_weight=False, bias=False) for shape in shapes
        ).to(device)
        with torch.no_grad():
            for convolve, weight in zip(self.pooled, encoder.pooled, strict=True):
                convolve.lin_l.weight.copy_(weight.T)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """``[N, F] -> [N, 2 d]``."""
        for own, pooled, bias, slope in zip(
            self.own, self.pooled, self.biases, self.slopes, strict=True
        ):
            x = nn.functional.prelu(torch.cat([x @ own, pooled(x, adjacency)], dim=1) + bias, slope)
        return x


class PyGLoader:
    """PyG's `DeepGraphInfomax` on what its `NeighborLoader` samples; the features are on the device
    already."""

    def __init__(self, problem: PatchProblem) -> None:
        from torch_geometric import typing as found
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.nn import DeepGraphInfomax

        if not (found.WITH_PYG_LIB or found.WITH_TORCH_SPARSE):
            raise CannotRun(
                "PyG's NeighborLoader needs pyg-lib or torch-sparse, and neither is installed"
            )
        matrix, self.device, self.features = (
            problem.graph.adjacency,
            problem.device,
            problem.tables[0],
        )
        edges = torch.from_numpy(np.stack(matrix.nonzero()).astype(np.int64))
        self.loader = NeighborLoader(
            Data(edge_index=edges, num_nodes=problem.graph.num_nodes),
            num_neighbors=list(problem.views.fan_out),
            batch_size=problem.views.batch,
            shuffle=True,
            num_workers=torch.get_num_threads() if self.device.type == "cuda" else 0,
        )
        self.drawn = self._drawn()
        model = problem.model()
        self.model = DeepGraphInfomax(
            2 * problem.preset.dim,
            _Centres(Skip(model)),
            summary=lambda h, *inputs: h.mean(0).sigmoid(),
            corruption=lambda x, *inputs: (x[torch.randperm(len(x), device=x.device)], *inputs),
        ).to(self.device)
        with torch.no_grad():
            self.model.weight.copy_(model.discriminator.weight)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=problem.preset.lr, fused=True)

    def train(self, count: int) -> float:
        """Train ``count`` steps, with tensor cores as ours; returns their mean loss."""
        torch.set_float32_matmul_precision("high")
        total = torch.zeros((), device=self.device)
        for _ in range(count):
            batch = next(self.drawn)
            x = self.features[batch.n_id.to(self.device)]
            self.optimiser.zero_grad()
            loss = self.model.loss(
                *self.model(x, batch.edge_index.to(self.device), batch.batch_size)
            )
            loss.backward()
            self.optimiser.step()
            total += loss.detach() / 2  # PyG adds the means of the two classes
        torch.set_float32_matmul_precision("highest")
        return float(total) / count

    def _drawn(self) -> Iterator:
        while True:
            yield from self.loader


class _Centres(nn.Module):
    """H of the centres of a sample, which PyG puts first."""

    def __init__(self, encoder: Skip) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor, adjacency: Tensor, count: int) -> Tensor:
        return self.encoder(x, adjacency)[:count]
