"""Ours, through the loop that `DGI.fit` runs: its history and its best weights are kept as in earnest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from unittest import mock

import torch
from torch import Tensor

from benchmarks.problem import LEARNING_RATE, PatchProblem, Problem
from infomax.estimator import build
from infomax.presets import Preset
from infomax.training.loop import Training

FOREVER = 10**9


class Ours:
    """The whole-graph preset, never stopping."""

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

    def train(self, count: int) -> float:
        """Train so many epochs; the loss of the last."""
        return _go_on(self.training, count)


class OurPatches:
    """The patches preset, with epochs of so many steps."""

    def __init__(self, problem: PatchProblem, steps: int) -> None:
        preset, self.steps = problem.preset, steps
        self.training = Training(
            problem.model(),
            _Stretch(problem, steps),
            preset.objective,
            lr=preset.lr,
            epochs=FOREVER,
            patience=None,
            generator=problem.generator(),
            replayable=True,
        )

    def train(self, count: int) -> float:
        """Train so many steps, which is an epoch; their mean loss."""
        if count != self.steps:
            raise ValueError(f"an epoch has {self.steps} steps, not {count}")
        return _go_on(self.training, 1)


class OurPatchesInFull(OurPatches):
    """The same without tensor cores: all products in float32."""

    def train(self, count: int) -> float:
        """Train so many steps, which is an epoch; their mean loss."""
        with mock.patch("infomax.training.loop.tensor_cores", nullcontext):
            return super().train(count)


class _Stretch:
    """The regime of a patch problem, with epochs of so many steps."""

    def __init__(self, problem: PatchProblem, steps: int) -> None:
        self.problem, self.pair, self.uniform, self.steps = problem, problem.views.pair, problem.views.uniform, steps

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        return self.problem.batches(self.steps, generator)


class _Enough(Exception):  # noqa: N818 - not an error
    """Leaves the loop where it pauses; the next `run` goes on from there."""


def _go_on(training: Training, epochs: int) -> float:
    """Train so many epochs more; the last loss."""
    training.stride, enough = min(training.stride, epochs), len(training.history) + epochs

    def leave(training: Training) -> None:
        if len(training.history) >= enough:
            raise _Enough

    with suppress(_Enough):
        training.run(leave)
    return training.history[-1].loss
