"""Kernels on several threads: who works on which rows, and passing on the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeAlias

import torch
from numpy.typing import NDArray

from infomax.kernels.host import start_again_after_fork

Kernel: TypeAlias = Callable[..., Any]
Call: TypeAlias = tuple[Any, ...]
"""The bounds of each thread's rows, and the arguments of a kernel before first and last row."""
Answer: TypeAlias = "SimpleQueue[tuple[list[Any], BaseException | None]]"
"""Passes on the results of a thread, or what it raised."""

PATIENCE = 10.0
"""Seconds to wait for a thread's answer that nobody needs any more."""


def equal(n: int) -> list[int]:
    """Divide n rows among as many threads as torch has; returns the bounds."""
    count = torch.get_num_threads()
    return [n * thread // count for thread in range(count + 1)]


def even(starts: NDArray[Any]) -> list[int]:
    """Divide the rows of a CSR matrix among the threads so that each has about as many entries; returns the bounds."""
    return [0, *(int(starts.searchsorted(entry)) for entry in equal(int(starts[-1]))[1:-1]), len(starts) - 1]


def share(kernel: Kernel, *calls: Call) -> list[Any]:
    """Run a kernel on each range of rows of each call; returns the results.

    Thread i works on the i-th range of one call after the other, so that they wait for each other less often.
    """
    count = len(calls[0][0]) - 1
    answers: deque[Answer] = deque(SimpleQueue() for _ in range(1, count))
    for thread, answer in enumerate(answers, start=1):
        _threads(count).put((kernel, calls, thread, answer))
    try:
        results = _part(kernel, calls, 0)
        while answers:
            part, error = answers[0].get()
            answers.popleft()
            if error is not None:
                raise error
            results += part
    finally:
        for answer in answers:  # after an error or a Ctrl-C: no thread should still write when the caller goes on
            with suppress(Empty):  # a Ctrl-C at the wrong moment: the answer is taken already
                answer.get(timeout=PATIENCE)
    return results


def _part(kernel: Kernel, calls: tuple[Call, ...], thread: int) -> list[Any]:
    """Run a kernel on a thread's rows of each call."""
    return [kernel(*arguments, *bounds[thread : thread + 2]) for bounds, *arguments in calls]


@cache
def _threads(count: int) -> SimpleQueue[tuple[Any, ...]]:
    """Start threads that answer what is put into the queue; futures of an executor take twice as long to pass on."""
    questions: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    for _ in range(count):
        Thread(target=_work, args=(questions,), daemon=True).start()
    return questions


def _work(questions: SimpleQueue[tuple[Any, ...]]) -> None:
    while True:
        _answer(*questions.get())  # in a function of its own, so that a waiting thread refers to no array


def _answer(kernel: Kernel, calls: tuple[Call, ...], thread: int, answer: Answer) -> None:
    try:
        answer.put((_part(kernel, calls, thread), None))
    except BaseException as error:
        answer.put(([], error))


start_again_after_fork(_threads)
