"""Time and memory of contenders, which take turns; each starts and ends with an idle device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from infomax.memory import peak_bytes

WARM_UP = 2
"""Turns per contender that are not counted."""

PEAK: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"peak GB": "{peak_gb:.2f}"}}
"""The table column of `with_peak`, by device."""

REST = 0.05
"""Seconds to wait before a turn on a CPU: threads of the contender before keep spinning for some 10
ms."""

Result = TypeVar("Result")


class Contender(Protocol):
    """Ours or a peer."""

    def train(self, count: int) -> float:
        """Train ``count`` epochs or steps; returns the loss."""


def race(contenders: Mapping[str, Contender], repeats: int, stretch: int) -> list[dict[str, Any]]:
    """One row per contender: ms per epoch or step, ratio to the first, and the loss, which shows
    that all did the same.

    Contenders alternate; a turn is ``stretch`` epochs or steps, timed together.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    losses = {}
    for turn in range(WARM_UP + repeats):
        for name, contender in contenders.items():
            time.sleep(
                0 if torch.cuda.is_initialized() else REST
            )  # not on a GPU, whose clock rate would drop
            seconds, losses[name] = timed(lambda contender=contender: contender.train(stretch))
            if turn >= WARM_UP:
                times[name].append(1000 * seconds / stretch)
    rows = [
        {"contender": name, **spread(times[name], "ms"), "loss": losses[name]}
        for name in contenders
    ]
    return [row | {"ratio": row["median_ms"] / rows[0]["median_ms"]} for row in rows]


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds of a call, and its result."""
    synchronise()
    began = time.perf_counter()
    result = function()
    synchronise()
    return time.perf_counter() - began, result


def spread(values: list[float], unit: str) -> dict[str, Any]:
    """Return median, 10th and 90th percentile, and the values."""
    p10, median, p90 = np.percentile(values, [10, 50, 90]).tolist()
    return {f"median_{unit}": median, f"p10_{unit}": p10, f"p90_{unit}": p90, unit: values}


def with_peak(function: Callable[[], Result], device: str) -> tuple[Result, float | None]:
    """Return a call's result, and its peak GPU memory in GB beyond what was allocated before.

    On a CPU it is None: contenders in one process cannot be told apart; see `benchmarks.memory`.
    """
    if device != "cuda":
        return function(), None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function()
    synchronise()
    return result, (torch.cuda.max_memory_allocated() - before) / 2**30


def peak_resident_gb() -> float:
    """Return the peak resident memory of the process so far, in GB."""
    return peak_bytes() / 2**30


def synchronise() -> None:
    """Wait for the GPU, if one is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
