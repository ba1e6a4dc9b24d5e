"""The kernels of `infomax.kernels` on a GPU, in Triton: each reads and writes its matrices once.

Sums over rows are made in two stages, block by block and then over the blocks, so that a result does not depend on the
order in which blocks end: the same seed gives the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.trees import Tree

ROWS, COLUMNS, WIDE = 32, 128, 256
WIDEST = 4096
"""A row of scores is made by one program, which holds it in registers."""


@triton.jit
def _product(starts, columns, values, y, out, d, COLUMNS: tl.constexpr, CHUNK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(first, last, CHUNK):
        for step in tl.static_range(CHUNK):  # unrolled, so that as many rows are on their way at once
            there = begin + step < last
            column = tl.load(columns + begin + step, there, 0).to(tl.int64)
            value = tl.load(values + begin + step, there, 0.0)
            total += tl.load(y + column * d + at, there & (at < d), 0.0) * value
    tl.store(out + row * d + at, total, at < d)


@triton.jit
def _tree_pool(
    table, rows, first, count, share, own, out, d, GATHER: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr
):
    node, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mine = tl.load(table + (tl.load(rows + node) if GATHER else node) * d + at, at < d, 0.0)
    start, children = tl.load(first + node), tl.load(count + node)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, children, CHUNK):
        for step in tl.static_range(CHUNK):
            child, there = start + begin + step, begin + step < children
            row = tl.load(rows + child, there, 0) if GATHER else child
            total += tl.load(table + row * d + at, there & (at < d), 0.0)
    weight = tl.load(share + node)
    tl.store(out + node * d + at, mine * (1 - weight) + total * (weight / children), at < d)
    if GATHER:
        tl.store(own + node * d + at, mine, at < d)


@triton.jit
def _tree_pool_backward(own_grad, grad, parent, count, share, out, inner, d, COLUMNS: tl.constexpr):
    node, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    if node < inner:
        place = node * d + at
        total += tl.load(own_grad + place, at < d, 0.0)
        total += tl.load(grad + place, at < d, 0.0) * (1 - tl.load(share + node))
    above = tl.load(parent + node)
    if above >= 0:
        weight = tl.load(share + above) / tl.load(count + above)
        total += tl.load(grad + above * d + at, at < d, 0.0) * weight
    tl.store(out + node * d + at, total, at < d)


@triton.jit
def _prelu(z, bias, slope, out, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    u = tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    h = tl.where(u > 0, u, u * tl.load(slope))
    tl.store(out + i[:, None].to(tl.int64) * stride + j[None, :], h, inside)


@triton.jit
def _prelu_backward(
    z, bias, slope, grad, out, bias_sums, slope_sums, n, d, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    place = i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(z + place, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    g = tl.load(grad + i[:, None].to(tl.int64) * stride + j[None, :], inside, 0.0)
    below = u <= 0
    through = tl.where(below, g * tl.load(slope), g)
    tl.store(out + place, through, inside)
    tl.store(bias_sums + tl.program_id(0) * d + j, tl.sum(through, 0), j < d)
    tl.store(slope_sums + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), tl.sum(tl.where(below, g * u, 0.0)))


@triton.jit
def _activation_sums(z, bias, slope, sums, n, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    u = tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    h = tl.where(inside & (u > 0), u, tl.where(inside, u * tl.load(slope), 0.0))
    tl.store(sums + tl.program_id(0) * d + j, tl.sum(h, 0), j < d)


@triton.jit
def _scores(
    z,
    bias,
    slope,
    v,
    offset,
    g,
    v_sums,
    measures,
    n,
    d,
    total,
    LABEL: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    block = tl.program_id(0)
    i, j = block * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    inside = (i < n)[:, None] & (j < d)[None, :]
    u = tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    h = tl.where(inside, tl.where(u > 0, u, u * tl.load(slope)), 0.0)
    score = tl.sum(h * tl.load(v + j, j < d, 0.0)[None, :], 1) + tl.load(offset)
    sign = 2.0 * LABEL - 1.0
    loss = tl.maximum(-sign * score, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(score)))
    slant = tl.where(i < n, (tl.sigmoid(score) - LABEL) / total, 0.0)
    tl.store(g + i, slant, i < n)
    tl.store(v_sums + block * d + j, tl.sum(h * slant[:, None], 0), j < d)
    tl.store(measures + block * 3, tl.sum(tl.where(i < n, loss, 0.0)) / total)
    tl.store(measures + block * 3 + 1, tl.sum(tl.where((i < n) & (sign * score > 0), 1.0, 0.0)) / total)
    tl.store(measures + block * 3 + 2, tl.sum(slant))


@triton.jit
def _score_gradient(z, bias, slope, g, v, c, bias_sums, slope_sums, n, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    place = z + i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(place, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    grad = (
        tl.load(g + i, i < n, 0.0)[:, None] * tl.load(v + j, j < d, 0.0)[None, :] + tl.load(c + j, j < d, 0.0)[None, :]
    )
    grad = tl.where(inside, grad, 0.0)
    below = u <= 0
    through = tl.where(below, grad * tl.load(slope), grad)
    tl.store(place, through, inside)
    tl.store(bias_sums + tl.program_id(0) * d + j, tl.sum(through, 0), j < d)
    tl.store(
        slope_sums + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), tl.sum(tl.where(below, grad * u, 0.0))
    )


def cut_rows(matrix: Tensor, length: int = 64) -> tuple[Tensor, ...]:
    """A CSR matrix whose long rows would keep one program busy, as two: its rows cut to pieces, and their sums."""
    starts, (m, n) = matrix.crow_indices(), matrix.shape
    count = starts.diff()
    if m == 0 or int(count.max()) <= 4 * length:
        return (matrix,)
    pieces = (count + length - 1) // length
    ends = pieces.cumsum(0)
    row = torch.repeat_interleave(torch.arange(m, device=starts.device), pieces)
    number = torch.arange(len(row), device=starts.device)
    begin = starts[row] + length * (number - (ends - pieces)[row])
    cut = torch.sparse_csr_tensor(
        torch.cat([begin, starts[-1:]]), matrix.col_indices(), matrix.values(), (len(row), n), check_invariants=False
    )
    sums = torch.sparse_csr_tensor(
        torch.cat([starts[:1], ends]), number, matrix.values().new_ones(len(row)), (m, len(row)), check_invariants=False
    )
    return cut, sums


def product(matrix: Tensor, y: Tensor) -> Tensor:
    """A CSR matrix ``[M, N]`` times a dense ``[N, D]``."""
    y = y.contiguous()
    n, d = matrix.shape[0], y.shape[1]
    out = y.new_empty(n, d)
    grid = (n, triton.cdiv(d, WIDE))
    _product[grid](matrix.crow_indices(), matrix.col_indices(), matrix.values(), y, out, d, WIDE, 8, num_warps=2)
    return out


def gather_tree(table: Tensor, rows: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """As `infomax.kernels.gather_tree`; no gradient."""
    d, inner = table.shape[1], len(tree.first)
    own, out = table.new_empty(inner, d), table.new_empty(inner, d)
    grid = (inner, triton.cdiv(d, WIDE))
    _tree_pool[grid](table, rows, tree.first, tree.count, share, own, out, d, True, WIDE, 5, num_warps=2)
    return own, out


class PoolTree(torch.autograd.Function):
    """As `infomax.kernels.pool_tree`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        ctx.tree, ctx.share, ctx.rows = tree, share, len(h)
        inner, d = len(tree.first), h.shape[1]
        out = h.new_empty(inner, d)
        grid = (inner, triton.cdiv(d, WIDE))
        _tree_pool[grid](h, h, tree.first, tree.count, share, out, out, d, False, WIDE, 5, num_warps=2)
        return h[:inner].clone(), out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:  # noqa: D102
        own_grad, grad = (g.contiguous() for g in grads)
        tree, (inner, d) = ctx.tree, grad.shape
        out = grad.new_empty(ctx.rows, d)
        grid = (ctx.rows, triton.cdiv(d, WIDE))
        _tree_pool_backward[grid](own_grad, grad, tree.parent, tree.count, ctx.share, out, inner, d, WIDE, num_warps=2)
        return out, None, None


class BiasPReLU(torch.autograd.Function):
    """PReLU with one slope over the parts side by side plus a bias, ``[n, d_1], ... -> [n, d_1 + ...]``."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:  # noqa: D102
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
            out, (bias_sums, slope_sums) = torch.empty_like(part), _sums(part, grid)
            _prelu_backward[grid](
                part, bias[at:], slope, grad[:, at:], out, bias_sums, slope_sums, n, d, grad.shape[1], ROWS, COLUMNS
            )
            outs.append(out)
            bias_grads.append(bias_sums.sum(0))
            slope_grads.append(slope_sums.sum())
            at += d
        return torch.cat(bias_grads), torch.stack(slope_grads).sum().view(1), *outs


def contrast(
    z: Tensor, z_negative: Tensor, bias: Tensor, slope: Tensor, weight: Tensor, offset: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As `infomax.kernels.contrast`; z and z_negative are overwritten by their gradients."""
    n, d = z.shape
    total = n + len(z_negative)
    sums = z.new_empty(triton.cdiv(n, ROWS), d)
    _activation_sums[_grid(n, d)](z, bias, slope, sums, n, d, ROWS, COLUMNS)
    summary = torch.sigmoid(sums.sum(0) / n)
    v = weight @ summary
    width = triton.next_power_of_2(d)
    tall = max(1, 8192 // width)
    blocks = [triton.cdiv(len(part), tall) for part in (z, z_negative)]
    g, v_sums, measures = z.new_empty(total), z.new_empty(sum(blocks), d), z.new_empty(sum(blocks), 3)
    cuts = (slice(0, n), slice(0, blocks[0])), (slice(n, total), slice(blocks[0], None))
    for label, part, (rows, block), count in zip((1, 0), (z, z_negative), cuts, blocks, strict=True):
        _scores[(count,)](
            part,
            bias,
            slope,
            v,
            offset,
            g[rows],
            v_sums[block],
            measures[block],
            len(part),
            d,
            total,
            label,
            tall,
            width,
        )
    v_grad, (loss, accuracy, offset_grad) = v_sums.sum(0), measures.sum(0)
    weight_grad = torch.outer(v_grad, summary)
    c = (v_grad @ weight) * summary * (1 - summary) / n
    bias_grads, slope_grads = [], []
    for part, (rows, _), push in zip((z, z_negative), cuts, (c, torch.zeros_like(c)), strict=True):
        grid = _grid(len(part), d)
        bias_sums, slope_sums = _sums(part, grid)
        _score_gradient[grid](part, bias, slope, g[rows], v, push, bias_sums, slope_sums, len(part), d, ROWS, COLUMNS)
        bias_grads.append(bias_sums.sum(0))
        slope_grads.append(slope_sums.sum())
    gradients = (z, z_negative, sum(bias_grads), sum(slope_grads).view(1), weight_grad, offset_grad)
    return torch.stack([loss, accuracy, summary.std(correction=0)]), gradients


def _grid(n: int, d: int) -> tuple[int, int]:
    return triton.cdiv(n, ROWS), triton.cdiv(d, COLUMNS)


def _sums(part: Tensor, grid: tuple[int, int]) -> tuple[Tensor, Tensor]:
    return part.new_empty(grid[0], part.shape[1]), part.new_empty(grid)
