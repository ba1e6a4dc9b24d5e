"""Memory and threads on a CPU: reused arrays, and torch on a single thread."""

from __future__ import annotations

import math
import os
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Barrier, Lock
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

T = TypeVar("T")

ROWS = 512
"""Rows that a thread multiplies at a time, where there are so many."""
FEWEST_ROWS, FEWEST = 16, 1 << 21
"""Rows, and products of two numbers, for which one more thread pays."""
PER_THREAD = 4
"""Parts per thread in `row_product`: a thread that is ahead of the others takes over some of theirs."""


class Workspace:
    """Blocks of memory for the large arrays of a training step, reused by the next step.

    Otherwise each step would get fresh pages from the operating system, which cost more than most work on them. A block
    is free again when nothing refers to the array in it, so no array is overwritten while it can still be read.
    """

    def __init__(self) -> None:
        self.free: list[NDArray[np.uint8]] = []
        """Blocks that no array uses, the smallest first."""
        self.returned: deque[NDArray[np.uint8]] = deque()
        """Free blocks not sorted in yet: an array may be released at any moment, even during `_block`."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with arbitrary contents, as `numpy.empty` does."""
        dtype = np.dtype(dtype)
        return np.asarray(_Loan(self._block(math.prod(shape) * dtype.itemsize), shape, dtype, self.returned))

    def _block(self, size: int) -> NDArray[np.uint8]:
        """Return the smallest free block of at least ``size`` bytes; if none, a new block replaces the largest."""
        while self.returned:
            insort(self.free, self.returned.popleft(), key=len)
        position = bisect_left(self.free, size, key=len)
        if position < len(self.free):
            return self.free.pop(position)
        del self.free[-1:]
        return np.empty(size, np.uint8)


class _Loan:
    """A block in use by an array, its views and tensors that share its memory: all of them refer to this object."""

    def __init__(
        self, block: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any], returned: deque[NDArray[np.uint8]]
    ) -> None:
        self.block, self.returned = block, returned
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": block.__array_interface__["data"],
            "version": 3,
        }

    def __del__(self) -> None:
        self.returned.append(self.block)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch and our kernels use so many threads within this context; None: as many as they do."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def on_one_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function on a thread where torch starts no other threads, and return its result.

    Torch's threads wait for more work by spinning, on cores that the threads of our own kernels need.
    """
    return _single_threaded(1).submit(function, *arguments).result()


def leading(symmetric: NDArray[Any], count: int) -> NDArray[Any]:
    """The eigenvectors ``[n, count]`` of a symmetric matrix ``[n, n]`` with the largest eigenvalues, the largest first.

    In double precision: MKL does not always converge in single. On one thread: beside other processes, NumPy's wait for
    each other several times as long as one of them takes for it all.
    """
    _, vectors = on_one_thread(torch.linalg.eigh, torch.from_numpy(symmetric).double())
    return np.ascontiguousarray(vectors.numpy()[:, ::-1][:, :count], symmetric.dtype)


def row_product(x: Tensor, y: Tensor, empty: Callable[..., NDArray[Any]] = np.empty) -> Tensor:
    """Compute X Y from ``[n, f]`` and ``[f, d]``: each thread multiplies some of the rows, into an ``empty`` array.

    The threads of BLAS would spin for a while after the product, on cores that the threads of our kernels need next.
    """
    count = min(torch.get_num_threads(), len(x) // FEWEST_ROWS, len(x) * y.numel() // FEWEST)
    if count < 2:
        return x @ y
    out = torch.from_numpy(empty((len(x), y.shape[1]), x.numpy().dtype))
    rows = max(min(ROWS, -(-len(x) // count)), -(-len(x) // (count * PER_THREAD)))
    groups = zip(x.split(rows), out.split(rows), strict=True)
    for part in [_single_threaded(count).submit(torch.mm, a, y, out=b) for a, b in groups]:
        part.result()
    return out


def transposed_product(x: Tensor, g: Tensor) -> Tensor:
    """Compute X^T G from ``[n, f]`` and ``[n, d]``: each thread multiplies some of the rows, then the parts are added.

    BLAS divides the columns instead, and lets its threads wait for each other after every few hundred rows. On cores
    that other threads use as well, such as those that read the next batch, that takes up to thirty times as long.
    Where there are fewer rows than columns, each thread multiplies some of the columns: the parts would be large.
    """
    if len(x) < x.shape[1]:
        return row_product(x.T, g)
    count = min(torch.get_num_threads(), len(x) // ROWS)
    if count < 2:
        return x.T @ g
    pool, rows = _single_threaded(count), -(-len(x) // count)
    parts = [pool.submit(torch.matmul, a.T, b) for a, b in zip(x.split(rows), g.split(rows), strict=True)]
    total = parts[0].result().numpy()
    for part in parts[1:]:
        total += part.result().numpy()  # torch would share such a short sum among all its threads
    return torch.from_numpy(total)


def _single_threaded(count: int) -> ThreadPoolExecutor:
    with _starting:
        return _started(count)


@cache
def _started(count: int) -> ThreadPoolExecutor:
    threads = torch.get_num_threads()
    pool, together = ThreadPoolExecutor(count), Barrier(count)

    def prepare() -> None:
        torch.get_num_threads()  # gives a new thread the global number, which would otherwise happen later
        together.wait()
        torch.set_num_threads(1)

    for prepared in [pool.submit(prepare) for _ in range(count)]:
        prepared.result()
    torch.set_num_threads(threads)  # the global number; the threads of the pool keep their own
    return pool


_starting = Lock()


def start_again_after_fork(pool: Any) -> None:
    """Forget a cached thread pool in a forked process, where its threads do not exist; Windows cannot fork."""
    register = getattr(os, "register_at_fork", None)
    if register is not None:
        register(after_in_child=pool.cache_clear)


start_again_after_fork(_started)
