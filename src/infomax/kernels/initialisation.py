"""Random generators from a seed, and Glorot's initialisation of weights."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


def generators(seed: int, device: torch.device) -> tuple[torch.Generator, torch.Generator]:
    """Return two independent generators from one seed: on the CPU for initial weights, on the device for all else.

    Weights are drawn on the CPU so that a seed gives the same ones on every device.
    """
    first, second = (int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64))
    return torch.Generator().manual_seed(first), torch.Generator(device).manual_seed(second)


def glorot(
    shape: tuple[int, ...], fans: tuple[int, int] | None = None, *, generator: torch.Generator | None = None
) -> nn.Parameter:
    """Draw weights of a shape, uniform within ±sqrt(6 / (fan_in + fan_out)); the fans are the shape, if not given."""
    bound = (6 / sum(fans or shape)) ** 0.5
    return nn.Parameter(torch.empty(shape, dtype=torch.float32).uniform_(-bound, bound, generator=generator))
