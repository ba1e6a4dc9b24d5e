"""Time and memory: contenders by turns, from an idle device to an idle device."""

from __future__ import annotations

import ctypes
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

WARM_UP = 2
"""Turns that are not counted."""

Result = TypeVar("Result")


class Contender(Protocol):
    """Ours or a peer."""

    def train(self, count: int) -> float:
        """Train so many epochs or steps; the loss."""


def race(contenders: Mapping[str, Contender], repeats: int, stretch: int) -> list[dict[str, Any]]:
    """A row a contender: ms an epoch or step, ratio to the first, and the loss, which tells that all did the same.

    Round robin; a turn is ``stretch`` epochs or steps, timed as one.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    losses = {}
    for turn in range(WARM_UP + repeats):
        for name, contender in contenders.items():
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


def with_peak(function: Callable[[], Result], device: str) -> tuple[Result, float]:
    """A call's result, and the most gigabytes held during it beyond what was held before.

    On a GPU: allocated memory. On a CPU: the resident set, which Linux tells, elsewhere NaN; right to about 0.1 GB,
    since small blocks that were freed before may be taken again unseen.
    """
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        result = function()
        synchronise()
        return result, (torch.cuda.max_memory_allocated() - before) / 2**30
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident_gb("VmRSS")
    result = function()
    return result, resident_gb("VmHWM") - before


def resident_gb(which: str) -> float:
    """The resident set in gigabytes: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith(which)), math.nan)


def synchronise() -> None:
    """Wait for the GPU, if one is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
