"""Load compiled kernels when they are first needed, and only where they save more time than loading them takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

_plain = False
"""Whether only kernels that are loaded already are used. Global, since gradients are computed on threads of torch's."""


@contextmanager
def uncompiled(small: bool = True) -> Iterator[None]:
    """If the work in this context is ``small``, load no compiled kernels; those that are loaded already are used."""
    global _plain
    before, _plain = _plain, small
    try:
        yield
    finally:
        _plain = before


def triton_kernels() -> ModuleType | None:
    """Return the Triton kernels; None where Triton is not installed or not worth loading."""
    return None if _plain and "infomax.kernels.gpu" not in sys.modules else load_triton()


def numba_kernels() -> ModuleType | None:
    """Return the numba kernels; None where numba is not installed or not worth loading."""
    return None if _plain and "infomax.kernels.cpu" not in sys.modules else load_numba()


@cache
def load_triton() -> ModuleType | None:
    """Load the Triton kernels, whatever the size of the work."""
    try:
        from infomax.kernels import gpu
    except ImportError:
        return None
    return gpu


@cache
def load_numba() -> ModuleType | None:
    """Load the numba kernels, whatever the size of the work."""
    try:
        from infomax.kernels import cpu
    except (ImportError, OSError):  # OSError: too little memory for the compiler
        return None
    return cpu
