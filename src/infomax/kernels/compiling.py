"""How kernels for a CPU are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function; the machine code is cached beside its file or in the user's cache, if one is writable.

    Sums may be reordered and nothing is raised for a division by zero, so that loops use vector instructions; NaN is
    preserved.
    """
    fast = {"reassoc", "contract", "nsz", "arcp"}
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fast}
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # no writable cache
        return njit(**settings)(function)
