"""Our contenders, trained by the loop that `DGI.fit` runs, including its history and early stopping."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from benchmarks.problem import LEARNING_RATE, PatchProblem, Problem
from infomax.estimator import build
from infomax.kernels import Backend
from infomax.parts.fused import accelerate
from infomax.training.loop import Training
from infomax.training.presets import Preset
from infomax.training.schedule import ConstantRate

FOREVER = 10**9


class Ours:
    """The whole-graph preset, without an end."""

    def __init__(self, problem: Problem) -> None:
        graph, device = problem.graph, problem.device
        preset = Preset(dim=problem.dim)
        model = build(preset, graph.num_features, None)
        with torch.no_grad():
            model.encoder.weights[0].copy_(problem.theta)
            model.discriminator.weight.copy_(problem.bilinear)
        model, backend = model.to(device), Backend(device)
        self.training = Training(
            model,
            preset.views(graph, model.encoder.rule, preset.corruption, backend),
            accelerate(preset.make_method(), model),
            schedule=ConstantRate(LEARNING_RATE),
            epochs=FOREVER,
            patience=FOREVER,
            generator=problem.generator(),
            replayable=True,
            backend=backend,
        )

    def train(self, count: int) -> float:
        """Train ``count`` epochs; returns the last loss."""
        return go_on(self.training, count)


class OurPatches:
    """The patches preset, with a given number of steps per epoch."""

    def __init__(self, problem: PatchProblem, steps: int) -> None:
        preset, self.steps = problem.preset, steps
        model = problem.model()
        self.training = Training(
            model,
            _Stretch(problem, steps),
            accelerate(preset.make_method(), model),
            schedule=preset.make_schedule(),
            epochs=FOREVER,
            patience=None,
            generator=problem.generator(),
            replayable=True,
            backend=problem.views.backend,
        )

    def train(self, count: int) -> float:
        """Train one epoch of ``count`` steps; returns their mean loss."""
        if count != self.steps:
            raise ValueError(f"an epoch has {self.steps} steps, not {count}")
        return go_on(self.training, 1)


class OurPatchesInFull(OurPatches):
    """As `OurPatches` without tensor cores: all products in float32."""

    def train(self, count: int) -> float:
        """Train one epoch of ``count`` steps; returns their mean loss."""
        with mock.patch("infomax.training.loop.tensor_cores", nullcontext):
            return super().train(count)


class _Stretch:
    """The regime of a patch problem, with a given number of steps per epoch; all else is the
    regime's own."""

    def __init__(self, problem: PatchProblem, steps: int) -> None:
        self.problem, self.steps = problem, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem.views, name)

    def batches(self, generator: torch.Generator) -> Iterator[Tensor]:
        return self.problem.batches(self.steps, generator)


class _Enough(Exception):  # noqa: N818 - not an error
    """Ends the loop at a pause; the next `run` continues from there."""


def go_on(training: Training, epochs: int) -> float:
    """Train ``epochs`` more epochs; returns the last loss."""
    training.stride, enough = min(training.stride, epochs), len(training.history) + epochs

    def leave(training: Training) -> None:
        if len(training.history) >= enough:
            raise _Enough

    with suppress(_Enough):
        training.run(leave)
    return training.history[-1].loss
