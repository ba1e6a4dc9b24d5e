"""Bias and PReLU in one pass, with their gradients."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.sums import column_sums

ROWS, COLUMNS = 32, 128


@triton.jit
def _prelu(z, bias, slope, out, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = (
        tl.program_id(0) * ROWS + tl.arange(0, ROWS),
        tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS),
    )
    inside = (i < n)[:, None] & (j < d)[None, :]
    u = (
        tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0)
        + tl.load(bias + j, j < d, 0.0)[None, :]
    )
    h = tl.where(u > 0, u, u * tl.load(slope))
    tl.store(out + i[:, None].to(tl.int64) * stride + j[None, :], h, inside)


@triton.jit
def _prelu_backward(
    z, bias, slope, grad, out, sums, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i, j = (
        tl.program_id(0) * ROWS + tl.arange(0, ROWS),
        tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS),
    )
    inside = (i < n)[:, None] & (j < d)[None, :]
    place = i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(z + place, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    g = tl.load(grad + i[:, None].to(tl.int64) * stride + j[None, :], inside, 0.0)
    below = u <= 0
    through = tl.where(below, g * tl.load(slope), g)
    tl.store(out + place, through, inside)
    sums += tl.program_id(0) * (d + tl.num_programs(1))
    tl.store(sums + j, tl.sum(through, 0), j < d)
    tl.store(sums + d + tl.program_id(1), tl.sum(tl.where(below, g * u, 0.0)))


class BiasPReLU(torch.autograd.Function):
    """Concatenate the parts, add a bias, apply PReLU with one slope: ``[n, d_1], ... -> [n, d_1 + ...]``."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:  # noqa: D102
        parts = tuple(part.contiguous() for part in parts)
        ctx.save_for_backward(bias, slope, *parts)
        n, width = len(parts[0]), len(bias)
        out = parts[0].new_empty(n, width)
        at = 0
        for part in parts:
            d = part.shape[1]
            _prelu[_grid(n, d)](part, bias[at:], slope, out[:, at:], n, d, width, ROWS, COLUMNS)
            at += d
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:  # noqa: D102
        bias, slope, *parts = ctx.saved_tensors
        grad, at, outs, bias_grads, slope_grads = grads[0].contiguous(), 0, [], [], []
        for part in parts:
            n, d = part.shape
            grid = _grid(n, d)
            out, sums = torch.empty_like(part), part.new_empty(grid[0], d + grid[1])
            _prelu_backward[grid](
                part, bias[at:], slope, grad[:, at:], out, sums, n, d, grad.shape[1], ROWS, COLUMNS
            )
            bias_grad, slope_grad = column_sums(sums).split([d, grid[1]])
            outs.append(out)
            bias_grads.append(bias_grad)
            slope_grads.append(slope_grad)
            at += d
        return torch.cat(bias_grads), torch.cat(slope_grads).sum().view(1), *outs


def _grid(n: int, d: int) -> tuple[int, int]:
    return triton.cdiv(n, ROWS), triton.cdiv(d, COLUMNS)
