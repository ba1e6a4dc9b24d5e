"""Load compiled kernels when they are first needed, and only where they save more time than loading them takes.

Compiled kernels draw other shuffles on a GPU, and all of them round differently. So whether they are used depends on
the work alone, not on what the process did before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType

_plain: ContextVar[bool | None] = ContextVar("plain", default=None)
"""Whether this thread uses no compiled kernels; None: it is in no context of `uncompiled`."""
_contexts: list[bool] = []
"""The same of all contexts, in any thread: torch computes gradients on threads of its own, which are in none."""
_always: ContextVar[bool] = ContextVar("always", default=False)
"""Whether compiled kernels are used for small work, too."""


@contextmanager
def uncompiled(small: bool = True) -> Iterator[None]:
    """If the work in this context is ``small``, use no compiled kernels, except in a context of `compiled`."""
    plain = small and not _always.get()
    token = _plain.set(plain)
    _contexts.append(plain)
    try:
        yield
    finally:
        _contexts.remove(plain)
        _plain.reset(token)


@contextmanager
def compiled() -> Iterator[None]:
    """Use compiled kernels for small work, too: there is so much of it that loading them pays."""
    token = _always.set(True)
    try:
        yield
    finally:
        _always.reset(token)


def _none_wanted() -> bool:
    """Whether no compiled kernels are used in this thread."""
    mine = _plain.get()
    return any(_contexts) if mine is None else mine


def triton_kernels() -> ModuleType | None:
    """Return the Triton kernels; None where Triton is not installed or not worth loading."""
    return None if _none_wanted() else load_triton()


def numba_kernels() -> ModuleType | None:
    """Return the numba kernels; None where numba is not installed or not worth loading."""
    return None if _none_wanted() else load_numba()


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
