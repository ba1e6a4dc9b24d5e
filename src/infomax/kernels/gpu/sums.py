"""Sums over blocks, always in the same order: ``partial_sums.sum(0)``."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

ROWS_PER_STEP = 256
COLUMNS_PER_PROGRAM = 16


@triton.jit
def _column_sums(partial_sums, out, row_count, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum some columns over all rows, `ROWS` rows at a time."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first_row in range(0, row_count, ROWS):
        rows = first_row + tl.arange(0, ROWS)
        total += tl.load(
            partial_sums + rows[:, None] * width + columns[None, :],
            (rows < row_count)[:, None] & (columns < width)[None, :],
            0.0,
        )
    tl.store(out + columns, tl.sum(total, 0), columns < width)


def column_sums(partial_sums: Tensor) -> Tensor:
    """Sum over rows in a fixed order, ``[B, W] -> [W]``."""
    out = partial_sums.new_empty(partial_sums.shape[1])
    _column_sums[(triton.cdiv(partial_sums.shape[1], COLUMNS_PER_PROGRAM),)](
        partial_sums, out, *partial_sums.shape, ROWS_PER_STEP, COLUMNS_PER_PROGRAM, num_warps=8
    )
    return out
