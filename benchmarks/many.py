"""Milliseconds per step of training on many graphs (PPI): ours and plain torch alternately, in one run."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.command import parser, report
from benchmarks.epoch import COLUMNS
from benchmarks.measure import race
from benchmarks.ours import FOREVER, go_on
from infomax.arrays.scaling import Scaler
from infomax.datasets import load_dataset
from infomax.estimator import build
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.parts.fused import accelerate
from infomax.training.loop import Training
from infomax.training.presets import PRESETS, Preset
from infomax.training.schedule import ConstantRate
from infomax.views import MEAN
from infomax.views.propagation import Propagation

PRESET = PRESETS["many-graphs"]


class Ours:
    """The many-graphs preset, without an end."""

    def __init__(self, graph: Graph, preset: Preset, device: torch.device) -> None:
        model = build(preset, graph.num_features, torch.Generator().manual_seed(0)).to(device)
        backend = Backend.of_training(device, preset.work(graph.num_nodes))
        self.training = Training(
            model,
            preset.views(graph, model.encoder.rule, preset.corruption, backend),
            accelerate(preset.make_method(), model),
            schedule=ConstantRate(preset.make_schedule().peak),
            epochs=FOREVER,
            patience=None,
            generator=torch.Generator(device).manual_seed(1),
            replayable=True,
            backend=backend,
        )

    def train(self, count: int) -> float:
        """Train ``count`` steps, whole epochs of them; returns the mean loss of the last epoch."""
        return go_on(self.training, count // self.training.views.steps)


class Plain:
    """The paper's formulas in plain torch: autograd, sparse products, Adam."""

    def __init__(self, graph: Graph, preset: Preset, device: torch.device) -> None:
        self.model = build(preset, graph.num_features, torch.Generator().manual_seed(0)).to(device)
        parts = [graph.part(graph.groups == group) for group in np.unique(graph.groups)]
        self.matrices = [
            Propagation.of(part, MEAN, Backend(device)).operand.matrix for part in parts
        ]
        self.features = [torch.from_numpy(np.asarray(part.features)).to(device) for part in parts]
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=preset.lr)

    def train(self, count: int) -> float:
        """Train ``count`` steps; returns the mean loss of the last epoch."""
        losses: list[Tensor] = []
        while len(losses) < count:
            order = torch.randperm(len(self.features))
            others = (order + torch.randint(1, len(order), order.shape)) % len(order)
            for one, other in zip(order.tolist(), others.tolist(), strict=True):
                self.optimiser.zero_grad()
                loss = self.loss(one, other)
                loss.backward()
                self.optimiser.step()
                losses.append(loss.detach())
        return float(torch.stack(losses[-len(self.features) :]).mean())

    def loss(self, one: int, other: int) -> Tensor:
        """Compute the loss of one graph against another, whose features have dropout."""
        h = self.encode(self.matrices[one], self.features[one])
        negative = self.encode(self.matrices[other], functional.dropout(self.features[other], 0.5))
        direction = self.model.discriminator.weight @ h.mean(0).sigmoid()
        scores = torch.cat([h @ direction, negative @ direction]) + self.model.discriminator.bias
        targets = torch.cat([torch.ones_like(scores[: len(h)]), torch.zeros_like(scores[len(h) :])])
        return functional.binary_cross_entropy_with_logits(scores, targets)

    def encode(self, matrix: Tensor, x: Tensor) -> Tensor:
        """Compute H: three layers with dense skip connections."""
        encoder = self.model.encoder
        total, h = x @ encoder.skip, x
        for k in range(3):
            out = functional.prelu(
                matrix @ (h @ encoder.weights[k]) + encoder.biases[k], encoder.slopes[k]
            )
            total = h = out + total
        return out


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__)
    options.add_argument(
        "--repeats", type=int, default=5, help="rounds; each gives every contender one turn"
    )
    options.add_argument(
        "--epochs", type=int, default=4, help="epochs, of a step per graph, in a turn"
    )
    options.add_argument("--graphs", type=int, help="only so many of PPI's training graphs")
    options.add_argument("--dim", type=int, default=PRESET.dim)
    settings = options.parse_args(arguments)
    torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision("high")  # as our training loop does on a GPU
    graph, preset = load_dataset("ppi").seen(), dataclasses.replace(PRESET, dim=settings.dim)
    if settings.graphs is not None:
        graph = graph.part(np.isin(graph.groups, np.unique(graph.groups)[: settings.graphs]))
    graph = graph.replace(
        features=Scaler.fit(graph.features, PRESET.scale).transform(graph.features)
    )
    device = torch.device(settings.device)
    contenders = {"ours": Ours(graph, preset, device), "plain torch": Plain(graph, preset, device)}
    rows = race(
        contenders, settings.repeats, settings.epochs * contenders["ours"].training.views.steps
    )
    report(settings, f"A step on many graphs: ppi, d = {settings.dim}", rows, COLUMNS)


if __name__ == "__main__":
    main()
