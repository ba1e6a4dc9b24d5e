"""Sums over blocks, always in the same order."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

ROWS, COLUMNS = 256, 16


@triton.jit
def _total(parts, out, blocks, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for begin in range(0, blocks, ROWS):
        i = begin + tl.arange(0, ROWS)
        total += tl.load(
            parts + i[:, None] * width + j[None, :],
            (i < blocks)[:, None] & (j < width)[None, :],
            0.0,
        )
    tl.store(out + j, tl.sum(total, 0), j < width)


def column_sums(parts: Tensor) -> Tensor:
    """Sum over rows in a fixed order, ``[B, W] -> [W]``."""
    out = parts.new_empty(parts.shape[1])
    _total[(triton.cdiv(parts.shape[1], COLUMNS),)](
        parts, out, *parts.shape, ROWS, COLUMNS, num_warps=8
    )
    return out
