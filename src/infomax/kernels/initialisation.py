"""Random generators from a seed, and Glorot's initialisation of weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn


def generators(seed: int, device: torch.device) -> tuple[torch.Generator, torch.Generator]:
    """Return two independent generators from one seed: on the CPU for initial weights, on the
    device for all else.

    Weights are drawn on the CPU so that a seed gives the same ones on every device.
    """
    weights_seed, draws_seed = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    weights_generator = torch.Generator().manual_seed(int(weights_seed))
    draws_generator = torch.Generator(device).manual_seed(int(draws_seed))
    return weights_generator, draws_generator


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's own generators, for parts that draw from these, such as ``nn.Linear`` and
    dropout; restore them."""
    # The first two numbers of the seed are those of `generators`.
    torch_seed = int(np.random.SeedSequence(seed).generate_state(3, np.uint64)[2])
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus):
        # `torch.manual_seed` would change the generators of all GPUs as well.
        torch.default_generator.manual_seed(torch_seed)
        if gpus:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(torch_seed)
        yield


def states(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's own generators: that of the CPU, and that of a GPU."""
    saved = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        saved["gpu"] = torch.cuda.get_rng_state(device)
    return saved


def restore(saved: dict[str, Tensor], device: torch.device) -> None:
    """Put torch's own generators into `states` that were saved."""
    if "cpu" in saved:
        torch.set_rng_state(saved["cpu"])
    if "gpu" in saved:
        torch.cuda.set_rng_state(saved["gpu"], device)


def glorot(
    shape: tuple[int, ...],
    fans: tuple[int, int] | None = None,
    *,
    generator: torch.Generator | None = None,
) -> nn.Parameter:
    """Draw weights of a shape, uniform within ±sqrt(6 / (fan_in + fan_out)); the fans are the
    shape, if not given."""
    bound = (6 / sum(fans or shape)) ** 0.5
    weights = torch.empty(shape, dtype=torch.float32)
    return nn.Parameter(weights.uniform_(-bound, bound, generator=generator))
