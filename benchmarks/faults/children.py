"""Processes that may be killed or may crash."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from typing import Any

Trials = Iterator[tuple[int, list[str]]]
"""How many trials were made since the last, and the faults found in them."""

# The last two are what a training would import at its first step: half a second per process.
PRELOADED = [
    "benchmarks.faults.folders",
    "benchmarks.faults.values",
    "benchmarks.faults.kills",
    "benchmarks.faults.mixed",
    "benchmarks.faults.mutations",
    "benchmarks.faults.parts",
    "benchmarks.faults.crafted",
    "filelock",
    "torch.fx.experimental.symbolic_shapes",
]


def start(work: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """A process of its own that does the work. Where possible it is forked from one that has
    imported everything."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
    else:
        context = multiprocessing.get_context("spawn")
    process: BaseProcess = context.Process(target=work, args=arguments)
    process.start()
    return process


def run(work: Callable[..., Any], *arguments: Any) -> int:
    """The exit code of a process that does the work."""
    process = start(work, *arguments)
    process.join()
    return process.exitcode or 0
