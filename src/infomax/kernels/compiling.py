"""How kernels for a CPU are compiled, and loaded when they were compiled before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys


class _MachineCode(FunctionCache):
    """The machine code of a kernel on disk, loaded without the tables that only a compiler needs.

    Numba would fill these tables first, which takes 0.25 s; a kernel that is not on disk yet still
    has them filled.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for the types of its arguments; None if it was not compiled before."""
        try:
            guarded, load = self._guard_against_spurious_io_errors(), self._load_overload
        except AttributeError:  # a numba that has renamed them: its own way, which fills the tables
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        rtsys.initialize(target_context)  # the memory of arrays that a kernel makes
        with guarded:
            return load(sig, target_context)  # type: ignore[no-untyped-call]


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function; the machine code is cached beside its file or in the user's cache, if one
    is writable.

    Sums may be reordered and nothing is raised for a division by zero, so that loops use vector
    instructions; NaN is preserved.
    """
    kernel: Any = njit(
        nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )(function)
    with suppress(RuntimeError):  # no writable cache
        if hasattr(kernel, "_cache"):
            kernel._cache = _MachineCode(function)  # type: ignore[no-untyped-call]
        else:
            kernel.enable_caching()
    return kernel
