"""What a method is: the loss of a pair of views, and the parts that are trained beside the encoder.

Deep Graph Infomax is a method, in ``deep_graph_infomax.py``; ``recipes/bgrl.py`` is another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from infomax.views import View

Part = Callable[..., Any]
"""A class or a function that makes or is a part: an encoder, a corruption, a readout, ..."""


class Model(nn.Module):
    """An encoder, and what a method trains beside it, such as ``readout`` and ``discriminator``."""

    encoder: Any
    readout: Any
    discriminator: Any

    def __init__(self, encoder: nn.Module, **parts: nn.Module) -> None:
        super().__init__()
        self.add_module("encoder", encoder)
        for name, part in parts.items():
            self.add_module(name, part)


class Method:
    """The parts that are trained, and their loss. Your own method defines `loss`, and overrides
    whatever else differs."""

    metrics: tuple[str, ...] = ("loss",)
    """The names of what `loss` returns, in history, log and report of a training."""
    repeats_the_same_work: bool = False
    """Whether all steps run the same kernels, so that a GPU can replay a recorded step, and several
    processes can share a step."""

    def build(self, encoder: nn.Module, generator: torch.Generator | None) -> Model:
        """Return the encoder with the other parts of the method, initialised by the generator."""
        return Model(encoder)

    def loss(self, model: Any, pair: tuple[View, View]) -> Tensor:
        """Return the metrics of a step, one number each: first the loss, which has a gradient."""
        raise NotImplementedError

    def after_step(self, model: Any) -> None:
        """Change weights that the optimiser does not train, after each of its steps."""

    def guessing_loss(self, device: torch.device) -> float | None:
        """Return the loss of a model that knows nothing; None where there is no such number."""
        return None


def describe_output(value: Any) -> str:
    """What a part has returned, for a message: type and shape."""
    if not isinstance(value, Tensor):
        return f"one of type {type(value).__name__}"
    without_gradient = "" if value.requires_grad else " without a gradient"
    return f"{value.dtype} of shape {list(value.shape)}{without_gradient}"
