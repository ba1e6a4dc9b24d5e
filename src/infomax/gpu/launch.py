"""Kernels in close succession: the next one is let in while the last one still runs, and waits for it inside.

Hopper and later can do so. An epoch on a small graph is twenty kernels of a few microseconds; without, each of them
would add half a microsecond of nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

OVERLAP = tl.constexpr(torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0))


@triton.jit
def follow():
    """Let the next kernel in, and wait until all before this one are done: what every kernel begins with."""
    if OVERLAP:
        tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, False, 1)
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, False, 1)


class kernel:  # noqa: N801  a decorator
    """`triton.jit` for a function that begins with `follow`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.jitted = triton.jit(function)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        """The kernel on a grid."""
        return partial(self.jitted[grid], launch_pdl=OVERLAP.value)
