"""Ours, through the loop that `DGI.fit` runs."""

from __future__ import annotations

from contextlib import suppress

import torch

from benchmarks.problem import LEARNING_RATE, Problem
from infomax.estimator import build
from infomax.presets import Preset
from infomax.training import Training

FOREVER = 10**9


class Ours:
    """The whole-graph preset: keeps its history and its best weights as in earnest, but never stops."""

    def __init__(self, problem: Problem) -> None:
        graph, device = problem.graph, problem.device
        preset = Preset(dim=problem.dim)
        model = build(preset, graph.num_features, None)
        with torch.no_grad():
            model.encoder.weights[0].copy_(problem.theta)
            model.discriminator.weight.copy_(problem.bilinear)
        model = model.to(device)
        self.training = Training(
            model,
            preset.views(graph, model.encoder.rule, preset.corruption, device),
            preset.objective,
            lr=LEARNING_RATE,
            epochs=FOREVER,
            patience=FOREVER,
            generator=problem.generator(),
            replayable=True,
        )

    def epochs(self, count: int) -> float:
        """Train so many epochs, read back at once; the loss of the last."""
        self.training.stride = count
        with suppress(_Enough):
            self.training.run(_leave)
        return self.training.history[-1].loss


class _Enough(Exception):  # noqa: N818 - not an error
    """Leaves the loop where it pauses; the next `run` goes on from there."""


def _leave(training: Training) -> None:
    raise _Enough
