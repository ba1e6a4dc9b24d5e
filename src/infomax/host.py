"""What a GPU sees to by itself and a CPU does not: memory is used again, threads keep out of each other's way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

Blocks = list[np.ndarray[Any, Any]]
"""Blocks of bytes that nobody uses at present."""

_free: ContextVar[Blocks | None] = ContextVar("free", default=None)


@contextmanager
def recycling(blocks: Blocks) -> Iterator[None]:
    """Within it `empty` hands out these blocks, which come back when nobody looks at them any more.

    The system takes large blocks back, and fresh pages cost more than the work on them.
    """
    token = _free.set(blocks)
    try:
        yield
    finally:
        _free.reset(token)


def empty(rows: int, columns: int, like: Tensor) -> Tensor:
    """A matrix of any content, ``[rows, columns]``, on a CPU."""
    free, size = _free.get(), rows * columns * like.element_size()
    if free is None:
        return like.new_empty(rows, columns)
    free.sort(key=len)
    fitting = next((place for place, block in enumerate(free) if len(block) >= size), None)
    if fitting is None:
        del free[-1:]  # too small: it makes room, so that there are never more blocks than were in use at once
    block = np.empty(size, np.uint8) if fitting is None else free.pop(fitting)
    used = block[:size]  # what the tensor holds on to, and nobody else
    finalize(used, free.append, block).atexit = False
    return torch.from_numpy(used).view(like.dtype).view(rows, columns)


@contextmanager
def single_thread() -> Iterator[None]:
    """Torch on one thread, for little things: its others wait for more by spinning, on cores that we need ourselves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
