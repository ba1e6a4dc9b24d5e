"""Bias and PReLU in one pass, with their gradients: ``prelu(cat(parts, dim=1) + bias, slope)``."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.sums import column_sums

ROWS_PER_PROGRAM = 32
COLUMNS_PER_PROGRAM = 128


@triton.jit
def _prelu(z, bias, slope, out, n, d, out_width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Compute a block of rows and columns of a part, ``[n, d]``; the result has ``out_width``
    columns."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    u = (
        tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0)
        + tl.load(bias + j, j < d, 0.0)[None, :]
    )
    h = tl.where(u > 0, u, u * tl.load(slope))
    tl.store(out + i[:, None].to(tl.int64) * out_width + j[None, :], h, inside)


@triton.jit
def _prelu_backward(
    z, bias, slope, grad, z_grad, sums, n, d, grad_width, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Compute the gradient of a block, and its part of the gradients of bias and slope.

    A row of ``sums`` is of a block of rows: d sums for the bias, then a number of each block of
    columns for the slope.
    """
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    offsets = i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(z + offsets, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    h_grad = tl.load(grad + i[:, None].to(tl.int64) * grad_width + j[None, :], inside, 0.0)
    below = u <= 0
    u_grad = tl.where(below, h_grad * tl.load(slope), h_grad)
    tl.store(z_grad + offsets, u_grad, inside)
    sums += tl.program_id(0) * (d + tl.num_programs(1))
    tl.store(sums + j, tl.sum(u_grad, 0), j < d)
    tl.store(sums + d + tl.program_id(1), tl.sum(tl.where(below, h_grad * u, 0.0)))


class BiasPReLU(torch.autograd.Function):
    """Concatenate the parts, add a bias, apply PReLU with one slope: ``[n, d_1], ... ->
    [n, d_1 + ...]``."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:  # noqa: D102
        parts = tuple(part.contiguous() for part in parts)
        ctx.save_for_backward(bias, slope, *parts)
        n, width = len(parts[0]), len(bias)
        out = parts[0].new_empty(n, width)
        first_column = 0
        for part in parts:
            d = part.shape[1]
            _prelu[_grid(n, d)](
                part, bias[first_column:], slope, out[:, first_column:], n, d, width,
                ROWS_PER_PROGRAM, COLUMNS_PER_PROGRAM,
            )  # fmt: skip
            first_column += d
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:  # noqa: D102
        bias, slope, *parts = ctx.saved_tensors
        grad = grads[0].contiguous()
        first_column = 0
        part_grads, bias_grads, slope_grads = [], [], []
        for part in parts:
            n, d = part.shape
            grid = _grid(n, d)
            part_grad, sums = torch.empty_like(part), part.new_empty(grid[0], d + grid[1])
            _prelu_backward[grid](
                part, bias[first_column:], slope, grad[:, first_column:], part_grad, sums,
                n, d, grad.shape[1], ROWS_PER_PROGRAM, COLUMNS_PER_PROGRAM,
            )  # fmt: skip
            bias_grad, slope_grad = column_sums(sums).split([d, grid[1]])
            part_grads.append(part_grad)
            bias_grads.append(bias_grad)
            slope_grads.append(slope_grad)
            first_column += d
        return torch.cat(bias_grads), torch.cat(slope_grads).sum().view(1), *part_grads


def _grid(n: int, d: int) -> tuple[int, int]:
    return triton.cdiv(n, ROWS_PER_PROGRAM), triton.cdiv(d, COLUMNS_PER_PROGRAM)
