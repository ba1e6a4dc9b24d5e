"""What a GPU sees to by itself and a CPU does not: memory is used again, threads keep out of each other's way."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch

FREE, MAPPED, MAPPINGS = -1, -3, -4
"""Settings of glibc: free bytes that it keeps, bytes from which on a block is mapped, and how many of those may be."""


@contextmanager
def hoarding(*, large: bool) -> Iterator[None]:
    """Have the C library keep freed memory for whoever asks next, and give it back at the end.

    It would give it back at once, and fresh pages cost more than most work on them. Only glibc is asked to, and only
    where the environment does not tell it otherwise. Blocks above 32 MB are kept if ``large``: faster still, but it
    takes up to two thirds more memory, since gaps are left between them.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(FREE, 2**31 - 1)
    library.mallopt(MAPPED, 1 << 25)
    library.mallopt(MAPPINGS, 0 if large else 1 << 16)
    try:
        yield
    finally:  # what glibc arrives at by itself, unless these are set
        library.mallopt(FREE, 1 << 26)
        library.mallopt(MAPPINGS, 1 << 16)
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ):
        return None
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "gnu_get_libc_version") else None
    except (OSError, TypeError):  # a system without a library of the process
        return None


def alone(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function on a thread where torch takes no others to help.

    Those would wait for more to do by spinning, on cores that our own threads need.
    """
    _hermitage().submit(function, *arguments).result()


def _hermitage() -> ThreadPoolExecutor:
    with _founding:
        return _founded()


@cache
def _founded() -> ThreadPoolExecutor:
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(1)
    pool.submit(torch.get_num_threads).result()  # or it would take the number that all others have, later
    pool.submit(torch.set_num_threads, 1).result()
    torch.set_num_threads(threads)  # of the others; that thread keeps its own
    return pool


_founding = Lock()
os.register_at_fork(after_in_child=_founded.cache_clear)  # threads stay behind
