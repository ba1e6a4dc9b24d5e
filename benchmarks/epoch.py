"""Seconds a whole-graph epoch: ours and the peers by turns, in one run."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
import torch

from benchmarks.command import parse, parser, report
from benchmarks.ours import Ours
from benchmarks.peers import PEERS
from benchmarks.problem import Problem, load

STRETCH = {"cpu": 1, "cuda": 32}
"""Epochs timed as one: on a GPU the loop reads back every 32, so nobody waits for the device in between."""

WARM_UP = 2


class Contender(Protocol):
    """Ours or a peer."""

    def epochs(self, count: int) -> float:
        """Train so many epochs; the loss of the last."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=15, help="rounds; each gives every contender one turn")
    settings = parse(options, arguments)
    torch.set_num_threads(settings.threads)
    problem = Problem.of(load(settings.dataset), settings.dim, settings.device)
    contenders: dict[str, Contender] = {"ours": Ours(problem)} | {name: PEERS[name](problem) for name in settings.peers}
    settings.stretch = STRETCH[settings.device]
    rows = race(contenders, settings.repeats, settings.stretch)
    columns = {
        "median ms": "{median_ms:.2f}",
        "p10 - p90": "{p10_ms:.2f} - {p90_ms:.2f}",
        "ratio": "{ratio:.2f}",
        "last loss": "{loss:.4f}",
    }
    report(settings, rows, columns)


def race(contenders: dict[str, Contender], repeats: int, stretch: int) -> list[dict[str, Any]]:
    """A row a contender: milliseconds an epoch, ratio to ours, and the last loss, which tells that all did the same."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    losses = {}
    for turn in range(WARM_UP + repeats):
        for name, contender in contenders.items():
            seconds, losses[name] = timed(contender, stretch)
            if turn >= WARM_UP:
                times[name].append(1000 * seconds / stretch)
    ours = np.median(times["ours"])
    rows = []
    for name, values in times.items():
        p10, median, p90 = np.percentile(values, [10, 50, 90]).tolist()
        rows.append(
            {
                "contender": name,
                "median_ms": median,
                "p10_ms": p10,
                "p90_ms": p90,
                "ratio": float(median / ours),
                "loss": losses[name],
                "ms": values,
            }
        )
    return rows


def timed(contender: Contender, count: int) -> tuple[float, float]:
    """Seconds for so many epochs, from an idle device to an idle device, and the last loss."""
    synchronise()
    began = time.perf_counter()
    loss = contender.epochs(count)
    synchronise()
    return time.perf_counter() - began, loss


def synchronise() -> None:
    """Wait for the GPU, if one is in use."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
