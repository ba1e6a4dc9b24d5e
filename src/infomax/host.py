"""What a GPU sees to by itself and a CPU does not: memory is used again, threads keep out of each other's way."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

FREE, MAPPED, MAPPINGS = -1, -3, -4
"""Settings of glibc: free bytes that it keeps, bytes from which on a block is mapped, and how many of those may be."""


@contextmanager
def hoarding(*, large: bool) -> Iterator[None]:
    """Have the C library keep freed memory for whoever asks next, and give it back at the end. On glibc, that is.

    It would give it back at once, and fresh pages cost more than most work on them. Blocks above 32 MB are kept if
    ``large``: faster still, but it takes up to half as much memory again, since gaps are left between them.
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
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "gnu_get_libc_version") else None
    except (OSError, TypeError):  # a system without a library of the process
        return None


@contextmanager
def single_thread() -> Iterator[None]:
    """Torch on one thread, for little things: its others wait for more by spinning, on cores that we need ourselves."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
