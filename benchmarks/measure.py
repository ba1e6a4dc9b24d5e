"""Time and memory: contenders by turns, from an idle device to an idle device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from infomax.machine import peak_bytes

WARM_UP = 2
"""Turns that are not counted."""

PEAK: dict[str, dict[str, str]] = {"cpu": {}, "cuda": {"peak GB": "{peak_gb:.2f}"}}
"""The column of `with_peak`."""

REST = 0.05
"""Seconds before a turn on a CPU: threads of the contender before wait for more work by spinning, some 10 ms long."""

Result = TypeVar("Result")


class Contender(Protocol):
    """Ours or a peer."""

    def train(self, count: int) -> float:
        """Train so many epochs or steps; the loss."""


def race(contenders: Mapping[str, Contender], repeats: int, stretch: int) -> list[dict[str, Any]]:
    """One row per contender: ms per epoch or step, ratio to the first, and the loss, which shows that all did the same.

    Round robin; a turn is ``stretch`` epochs or steps, timed as one.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    losses = {}
    for turn in range(WARM_UP + repeats):
        for name, contender in contenders.items():
            time.sleep(0 if torch.cuda.is_initialized() else REST)  # a GPU would only fall asleep
            seconds, losses[name] = timed(lambda contender=contender: contender.train(stretch))
            if turn >= WARM_UP:
                times[name].append(1000 * seconds / stretch)
    rows = [{"contender": name, **spread(times[name], "ms"), "loss": losses[name]} for name in contenders]
    return [row | {"ratio": row["median_ms"] / rows[0]["median_ms"]} for row in rows]


def timed(function: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds that a call takes, and its result."""
    synchronise()
    began = time.perf_counter()
    result = function()
    synchronise()
    return time.perf_counter() - began, result


def spread(values: list[float], unit: str) -> dict[str, Any]:
    """Median, 10th and 90th percentile, and the values themselves."""
    p10, median, p90 = np.percentile(values, [10, 50, 90]).tolist()
    return {f"median_{unit}": median, f"p10_{unit}": p10, f"p90_{unit}": p90, unit: values}


def with_peak(function: Callable[[], Result], device: str) -> tuple[Result, float | None]:
    """A call's result, and the most gigabytes of a GPU held during it beyond what was held before.

    On a CPU None: within one process nobody can tell whose a page is; see `benchmarks.memory`.
    """
    if device != "cuda":
        return function(), None
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function()
    synchronise()
    return result, (torch.cuda.max_memory_allocated() - before) / 2**30


def peak_resident_gb() -> float:
    """The largest resident set so far."""
    return peak_bytes() / 2**30


def synchronise() -> None:
    """Wait for the GPU, if one is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
