"""Memory and threads on a CPU: reused arrays, torch on a single thread, and kernels on several."""

from __future__ import annotations

import math
import os
import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import chain
from threading import Barrier, Lock
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

T = TypeVar("T")

ROWS_PER_PRODUCT = 512
"""Rows that a thread multiplies at a time, where there are so many."""
FEWEST_ROWS_PER_THREAD = 16
FEWEST_PRODUCTS_PER_THREAD = 1 << 21
"""Rows, and products of two numbers, for which one more thread pays."""
PARTS_PER_THREAD = 4
"""Parts per thread in `row_product`: a thread that is ahead of the others takes over some of
theirs."""


class _Block(np.ndarray[Any, np.dtype[np.uint8]]):
    """Bytes in a class of their own: NumPy then lets a view of an array in it hold that array, and
    not the block."""


class Workspace:
    """Blocks of memory for the large arrays of a training step, reused by the next step.

    Otherwise each step would get fresh pages from the operating system, which cost more than most
    work on them. A block is free again when nothing refers to the array in it, so no array is
    overwritten while it can still be read.
    """

    def __init__(self) -> None:
        self.free: list[_Block] = []
        """Blocks that no array uses, the smallest first."""
        self.returned: deque[_Block] = deque()
        """Free blocks not sorted in yet: an array may be released at any moment, even during
        `_block`."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with arbitrary contents, as ``numpy.empty`` does."""
        block = self._block(math.prod(shape) * np.dtype(dtype).itemsize)
        array: NDArray[Any] = np.ndarray(shape, dtype, block)
        # Views of the array, and tensors that share its memory, hold the array: it is gone when the
        # last of them is.
        weakref.finalize(array, self.returned.append, block)
        return array

    def _block(self, size: int) -> _Block:
        """Return the smallest free block of at least ``size`` bytes; if none, a new block replaces
        the largest."""
        while self.returned:
            insort(self.free, self.returned.popleft(), key=len)
        position = bisect_left(self.free, size, key=len)
        if position < len(self.free):
            return self.free.pop(position)
        del self.free[-1:]
        return _Block(size, np.uint8)


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch and our kernels use so many threads within this context; None: leave their
    number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def on_one_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function on a thread where torch starts no other threads, and return its result.

    Torch's threads wait for more work by spinning, on cores that the threads of our own kernels
    need.
    """
    return run_on_threads(function, [arguments], 1)[0]


def run_on_threads(
    function: Callable[..., T], calls: Iterable[tuple[Any, ...]], count: int | None = None
) -> list[T]:
    """Run several calls at once, and return their results.

    Args:
        function: what is called.
        calls: the arguments of each call.
        count: the number of threads; None: as many as torch has. None of them starts others.
    """
    pool = single_threaded(count or torch.get_num_threads())
    futures = [pool.submit(function, *arguments) for arguments in calls]
    return [future.result() for future in futures]


def symmetric_eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues ``[n]``, ascending, and eigenvectors ``[n, n]`` of a symmetric matrix, in double
    precision.

    MKL fails on some matrices: on more of them in single precision, and where entries are tiny or
    mostly zero. So the largest entry becomes 1 before, and where MKL fails all the same, SciPy's
    slower QR iteration takes over.
    """
    matrix = matrix.cpu().double()
    matrix = (matrix + matrix.T) / 2
    largest_entry = float(matrix.abs().max()) if len(matrix) else 1.0
    if largest_entry == 0:
        size = len(matrix)
        return torch.zeros(size, dtype=matrix.dtype), torch.eye(size, dtype=matrix.dtype)

    scaled_matrix = matrix / largest_entry
    # On one thread: beside other processes, threads wait for each other several times as long as
    # one takes for it all.
    try:
        values, vectors = on_one_thread(torch.linalg.eigh, scaled_matrix)
    except RuntimeError:  # torch.linalg.LinAlgError
        from scipy import linalg

        scipy_values, scipy_vectors = linalg.eigh(scaled_matrix.numpy(), driver="ev")
        values = torch.from_numpy(np.ascontiguousarray(scipy_values))
        vectors = torch.from_numpy(np.ascontiguousarray(scipy_vectors))
    return values * largest_entry, vectors


def leading_eigenvectors(symmetric: NDArray[Any], count: int) -> NDArray[Any]:
    """The eigenvectors ``[n, count]`` of a symmetric matrix ``[n, n]``, that of the largest
    eigenvalue first."""
    _, vectors = symmetric_eigen(torch.from_numpy(symmetric))
    largest_first = vectors.numpy()[:, ::-1]
    return np.ascontiguousarray(largest_first[:, :count], symmetric.dtype)


def row_product(x: Tensor, y: Tensor, empty: Callable[..., NDArray[Any]] = np.empty) -> Tensor:
    """Compute X Y from ``[n, f]`` and ``[f, d]``: each thread multiplies some of the rows, into an
    ``empty`` array.

    The threads of BLAS would spin for a while after the product, on cores that the threads of our
    kernels need next.
    """
    num_rows = len(x)
    num_threads = min(
        torch.get_num_threads(),
        num_rows // FEWEST_ROWS_PER_THREAD,
        num_rows * y.numel() // FEWEST_PRODUCTS_PER_THREAD,
    )
    if num_threads < 2:
        return x @ y

    product = torch.from_numpy(empty((num_rows, y.shape[1]), x.numpy().dtype))
    rows_per_thread = math.ceil(num_rows / num_threads)
    rows_per_part = max(
        min(ROWS_PER_PRODUCT, rows_per_thread),
        math.ceil(num_rows / (num_threads * PARTS_PER_THREAD)),
    )

    def multiply(rows_of_x: Tensor, rows_of_product: Tensor) -> None:
        torch.mm(rows_of_x, y, out=rows_of_product)

    parts = zip(x.split(rows_per_part), product.split(rows_per_part), strict=True)
    run_on_threads(multiply, parts, num_threads)
    return product


def transposed_product(x: Tensor, g: Tensor) -> Tensor:
    """Compute X^T G from ``[n, f]`` and ``[n, d]``: each thread multiplies some of the rows, then
    the parts are added.

    BLAS divides the columns instead, and lets its threads wait for each other after every few
    hundred rows. On cores that other threads use as well, such as those that read the next batch,
    that takes up to thirty times as long. Where there are fewer rows than columns, each thread
    multiplies some of the columns: the parts would be large.
    """
    if len(x) < x.shape[1]:
        return row_product(x.T, g)
    num_threads = min(torch.get_num_threads(), len(x) // ROWS_PER_PRODUCT)
    if num_threads < 2:
        return x.T @ g

    rows_per_thread = math.ceil(len(x) / num_threads)

    def multiply(rows_of_x: Tensor, rows_of_g: Tensor) -> NDArray[Any]:
        return (rows_of_x.T @ rows_of_g).numpy()

    parts = zip(x.split(rows_per_thread), g.split(rows_per_thread), strict=True)
    total, *addends = run_on_threads(multiply, parts, num_threads)
    for addend in addends:
        total += addend  # by NumPy: torch would share such a short sum among all its threads
    return torch.from_numpy(total)


def equal_ranges(n: int, per_thread: int = 1) -> list[int]:
    """Divide n rows into so many ranges for each of torch's threads; returns the bounds."""
    num_ranges = per_thread * torch.get_num_threads()
    return [n * bound // num_ranges for bound in range(num_ranges + 1)]


def ranges_by_entries(starts: NDArray[Any], per_thread: int = 1) -> list[int]:
    """Divide the rows of a CSR matrix into ranges with about as many entries each; returns the
    bounds."""
    inner_bounds_in_entries = equal_ranges(int(starts[-1]), per_thread)[1:-1]
    inner_bounds = starts.searchsorted(inner_bounds_in_entries).tolist()
    return [0, *inner_bounds, len(starts) - 1]


def run_in_ranges(kernel: Callable[..., Any], *calls: tuple[Any, ...]) -> list[Any]:
    """Run a kernel on each range of rows of each call; returns the results, in the order of the
    ranges.

    A thread takes the next range when it is done with one, and works on it in all calls before it
    takes another.

    Args:
        kernel: a compiled function, whose last two arguments are the first row of a range and the
            row after its last.
        calls: each the bounds of the ranges, and the other arguments of the kernel.
    """
    num_ranges = len(calls[0][0]) - 1
    waiting_ranges = deque(range(num_ranges))
    results: list[list[Any]] = [[]] * num_ranges

    def work() -> None:
        while True:
            try:
                number = waiting_ranges.popleft()
            except IndexError:
                return
            results[number] = [
                kernel(*arguments, bounds[number], bounds[number + 1])
                for bounds, *arguments in calls
            ]

    # This thread works as well, so the pool gets one piece of work less.
    num_threads = min(num_ranges, torch.get_num_threads())
    futures = [single_threaded(num_threads).submit(work) for _ in range(num_threads - 1)]
    try:
        work()
    finally:
        # After an error or a Ctrl-C no thread should still write when the caller goes on.
        waiting_ranges.clear()
        errors = [future.exception() for future in futures if not future.cancel()]
        calls = ()  # a thread may keep `work` for a moment, but no arrays
    for error in filter(None, errors):
        raise error
    return list(chain.from_iterable(results))


def single_threaded(count: int) -> ThreadPoolExecutor:
    """A pool of so many threads, on which torch starts no others and keeps nothing for gradients.

    Pools are kept, one for each count: a thread costs more to start than most work on it.
    """
    with _starting:
        return _started(count)


@cache
def _started(count: int) -> ThreadPoolExecutor:
    global_thread_count = torch.get_num_threads()
    pool = ThreadPoolExecutor(count)
    all_have_started = Barrier(count)

    def prepare() -> None:
        # Asking gives a new thread the global number, which would otherwise happen later.
        torch.get_num_threads()
        all_have_started.wait()
        torch.set_num_threads(1)
        # As where they are asked from; a gradient may be in a tensor that requires one.
        torch.set_grad_enabled(False)

    for future in [pool.submit(prepare) for _ in range(count)]:
        future.result()
    # This sets the global number; the threads of the pool keep their own.
    torch.set_num_threads(global_thread_count)
    return pool


_starting = Lock()
"""Held while a pool starts, since that changes a number which all threads share for a moment."""

# A forked process has none of the threads of its parent, so it must start its own.
# Windows does not have the function, so it is asked for by name.
_register_at_fork = getattr(os, "register_at_fork", None)
if _register_at_fork is not None:
    _register_at_fork(after_in_child=_started.cache_clear)
