"""Kernels on several threads: who works on which rows, and passing on the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

import torch
from numpy.typing import NDArray

from infomax.kernels.host import start_again_after_fork

Kernel: TypeAlias = Callable[..., Any]
Call: TypeAlias = tuple[Any, ...]
"""The bounds of the ranges of rows, and the arguments of a kernel before first and last row."""
Task: TypeAlias = tuple[int, Kernel, tuple[Call, ...]]
"""The number of a range of rows, a kernel, and the calls of which it is a range."""
Answer: TypeAlias = tuple[int, list[Any], BaseException | None]
"""The number of a range, and the results of the calls or what was raised."""

PATIENCE = 10.0
"""Seconds to wait for a thread's answer that nobody needs any more."""


def equal(n: int, per_thread: int = 1) -> list[int]:
    """Divide n rows into so many ranges for each of torch's threads; returns the bounds."""
    count = per_thread * torch.get_num_threads()
    return [n * part // count for part in range(count + 1)]


def even(starts: NDArray[Any], per_thread: int = 1) -> list[int]:
    """Divide the rows of a CSR matrix into ranges with about as many entries each; returns the bounds."""
    entries = equal(int(starts[-1]), per_thread)[1:-1]
    return [0, *starts.searchsorted(entries).tolist(), len(starts) - 1]


def share(kernel: Kernel, *calls: Call) -> list[Any]:
    """Run a kernel on each range of rows of each call; returns the results, in the order of the ranges.

    A thread takes the next range when it is done with one, and works on it in all calls before it takes another.
    """
    count = len(calls[0][0]) - 1
    tasks = deque((number, kernel, calls) for number in range(count))
    answers: SimpleQueue[Answer] = SimpleQueue()
    threads = min(count, torch.get_num_threads())
    for _ in range(1, threads):
        _threads(threads).put((tasks, answers))
    results: list[list[Any]] = [[]] * count
    missing = count
    try:
        _work(tasks, answers)
        while missing:
            number, part, error = answers.get()
            missing -= 1
            if error is not None:
                raise error
            results[number] = part
    finally:  # after an error or a Ctrl-C: no thread should still write when the caller goes on
        with suppress(IndexError):
            while missing:
                tasks.pop()
                missing -= 1
        with suppress(Empty):  # a Ctrl-C at the wrong moment: the answer is taken already
            for _ in range(missing):
                answers.get(timeout=PATIENCE)
    return list(chain.from_iterable(results))


def _work(tasks: deque[Task], answers: SimpleQueue[Answer]) -> None:
    """Do tasks until none is left. A task is not kept in a variable: it refers to arrays."""
    with suppress(IndexError):
        while True:
            answers.put(_answer(*tasks.popleft()))


def _answer(number: int, kernel: Kernel, calls: tuple[Call, ...]) -> Answer:
    try:
        return number, [kernel(*arguments, *bounds[number : number + 2]) for bounds, *arguments in calls], None
    except BaseException as error:
        return number, [], error


@cache
def _threads(count: int) -> SimpleQueue[tuple[Any, ...]]:
    """Start threads that do what is put into the queue; futures of an executor take twice as long to pass on."""
    waiting: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    for _ in range(count):
        Thread(target=_wait, args=(waiting,), daemon=True).start()
    return waiting


def _wait(waiting: SimpleQueue[tuple[Any, ...]]) -> None:
    while True:
        _work(*waiting.get())


start_again_after_fork(_threads)
