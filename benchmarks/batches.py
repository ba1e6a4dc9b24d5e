"""Milliseconds per step of training in exact batches: ours and the same formulas in eager torch, alternately."""

from __future__ import annotations

import dataclasses
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, embedding_bag, prelu

from benchmarks.command import CannotRun, assemble, parser, report
from benchmarks.measure import race
from benchmarks.ours import FOREVER, go_on
from benchmarks.problem import LEARNING_RATE, load
from infomax.estimator import build
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.ranks import ALONE, Ranks
from infomax.parts.fused import accelerate
from infomax.training.loop import Training
from infomax.training.presets import PRESETS
from infomax.training.schedule import ConstantRate
from infomax.views import Batches

STEPS = {"cpu": 4, "cuda": 128}
"""Steps per timed turn."""

COLUMNS = {
    "contender": "{contender}",
    "median ms": "{median_ms:.2f}",
    "p10 - p90": "{p10_ms:.2f} - {p90_ms:.2f}",
    "ratio": "{ratio:.2f}",
    "nodes/s": "{nodes_s:,.0f}",
    "last loss": "{loss:.4f}",
}


class OurBatches:
    """The batches preset, trained by the loop that `DGI.fit` runs."""

    def __init__(
        self, graph: Graph, dim: int, batch: int, device: torch.device, ranks: Ranks = ALONE
    ) -> None:
        preset = dataclasses.replace(PRESETS["batches"], dim=dim)
        model = build(preset, graph.num_features, torch.Generator().manual_seed(0)).to(device)
        backend = Backend(device)
        self.views = Batches(graph, model.encoder.rule, preset.corruption, backend, batch=batch)
        self.views.divide(ranks)
        self.training = Training(
            model,
            self.views,
            accelerate(preset.make_method(), model),
            schedule=ConstantRate(LEARNING_RATE),
            epochs=FOREVER,
            patience=None,
            generator=torch.Generator(device).manual_seed(0),
            replayable=True,
            ranks=ranks,
            backend=backend,
        )

    def train(self, count: int) -> float:
        """Train ``count`` steps; returns the last loss."""
        return go_on(self.training, count)


class PlainBatches:
    """Eager torch: neighbours gathered and summed by `embedding_bag`, autograd, torch's fused
    Adam."""

    def __init__(self, ours: OurBatches, device: torch.device) -> None:
        if not isinstance(ours.views.source.features[""], Tensor):
            raise CannotRun("it takes dense features")
        self.views, self.device = ours.views, device
        in_dim, dim = ours.training.model.encoder.weights[0].shape
        model = build(dataclasses.replace(PRESETS["batches"], dim=dim), in_dim, torch.Generator())
        self.model = model.to(device)
        self.table = self.views.source.features[""].to(torch.float32)
        self.optimiser = torch.optim.Adam(self.model.parameters(), LEARNING_RATE, fused=True)
        self.generator = torch.Generator(device).manual_seed(0)

    def train(self, count: int) -> float:
        """Train ``count`` steps; returns the last loss."""
        for _ in range(count):
            loss = self.step()
        return float(loss)

    def step(self) -> Tensor:
        """Do one step; returns its loss."""
        n, batch = self.views.n, self.views.batch
        nodes = torch.randint(n, (batch,), generator=self.generator, device=self.device)
        starts, senders, values = self.views.source.chains[""][0].rows(
            nodes, torch.zeros(batch, device=self.device)
        )
        shuffled = torch.randperm(n, generator=self.generator, device=self.device)[senders]
        pool = partial(
            embedding_bag,
            offsets=starts,
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        )
        encoder, discriminator = self.model.encoder, self.model.discriminator
        h = [
            prelu(
                pool(rows, self.table)[:, : len(encoder.weights[0])] @ encoder.weights[0]
                + encoder.biases[0],
                slope,
            )
            for rows in (senders, shuffled)
            for slope in (encoder.slopes[0],)
        ]
        summary = torch.sigmoid(h[0].mean(0))
        scores = torch.cat([discriminator(part, summary) for part in h])
        loss = binary_cross_entropy_with_logits(
            scores, (torch.arange(2 * batch, device=self.device) < batch).float()
        )
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return loss.detach()


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    options = parser(__doc__, dataset="generated-reddit", peers=("plain",))
    options.add_argument(
        "--scale", type=float, help="size of generated-reddit, as a multiple of Reddit's nodes"
    )
    options.add_argument("--dim", type=int, default=512)
    options.add_argument("--batch", type=int, default=4096, help="nodes per step")
    options.add_argument("--steps", type=int, help="steps per turn; default: 4, on a GPU 128")
    options.add_argument(
        "--repeats", type=int, default=10, help="rounds; each gives every contender one turn"
    )
    settings = options.parse_args(arguments)
    settings.steps = settings.steps or STEPS[settings.device]
    torch.set_num_threads(settings.threads)
    torch.set_float32_matmul_precision("high")
    graph = load(settings.dataset, **({} if settings.scale is None else {"scale": settings.scale}))
    device = torch.device(settings.device)
    ours = OurBatches(graph, settings.dim, settings.batch, device)
    left_out: dict[str, str] = {}
    peers = assemble(
        {name: lambda: PlainBatches(ours, device) for name in settings.peers}, left_out
    )
    rows = race({"ours": ours, **peers}, settings.repeats, settings.steps)
    for row in rows:
        row["nodes_s"] = 1000 * ours.views.batch / row["median_ms"]
    title = f"A step: {settings.dataset}, {graph.num_nodes:,} nodes, batch {ours.views.batch:,}, {settings.dim} wide"
    report(settings, title, rows, COLUMNS, left_out=left_out)


if __name__ == "__main__":
    main()
