"""Glorot's initialisation, drawn on the CPU: one seed, one start, on any device."""

from __future__ import annotations

import torch
from torch import nn


def glorot(
    shape: tuple[int, int], fans: tuple[int, int] | None = None, *, generator: torch.Generator | None = None
) -> nn.Parameter:
    """Uniform ``[fan_in, fan_out]`` within sqrt(6 / (fan_in + fan_out)); ``fans`` where the shape hides them."""
    bound = (6 / sum(fans or shape)) ** 0.5
    return nn.Parameter(torch.empty(shape, dtype=torch.float32).uniform_(-bound, bound, generator=generator))
