"""Pooling over trees of sampled neighbours, in Triton."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax_paper.trees import Tree

WIDE = 256


@triton.jit
def _tree_pool(
    table,
    rows,
    first,
    count,
    share,
    own,
    out,
    d,
    GATHER: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    node, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mine = tl.load(table + (tl.load(rows + node) if GATHER else node) * d + at, at < d, 0.0).to(
        tl.float32
    )
    start, children = tl.load(first + node), tl.load(count + node)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, children, CHUNK):
        for step in tl.static_range(CHUNK):
            child, there = start + begin + step, begin + step < children
            row = tl.load(rows + child, there, 0) if GATHER else child
            total += tl.load(table + row * d + at, there & (at < d), 0.0).to(tl.float32)
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


def gather_tree(table: Tensor, rows: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """As `infomax_paper.trees.gather_tree`; no gradient."""
    d, inner = table.shape[1], len(tree.first)
    own, out = share.new_empty(inner, d), share.new_empty(inner, d)
    grid = (inner, triton.cdiv(d, WIDE))
    warps = table.element_size() // 2  # 16 bytes per thread
    _tree_pool[grid](
        table, rows, tree.first, tree.count, share, own, out, d, True, WIDE, 5, num_warps=warps
    )
    return own, out


class PoolTree(torch.autograd.Function):
    """As `infomax_paper.trees.pool_tree`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        h = h.contiguous()
        ctx.tree, ctx.share, ctx.rows = tree, share, len(h)
        inner, d = len(tree.first), h.shape[1]
        out = h.new_empty(inner, d)
        grid = (inner, triton.cdiv(d, WIDE))
        _tree_pool[grid](
            h, h, tree.first, tree.count, share, out, out, d, False, WIDE, 5, num_warps=2
        )
        return h[:inner].clone(), out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:  # noqa: D102
        own_grad, grad = (g.contiguous() for g in grads)
        tree, (inner, d) = ctx.tree, grad.shape
        out = grad.new_empty(ctx.rows, d)
        grid = (ctx.rows, triton.cdiv(d, WIDE))
        _tree_pool_backward[grid](
            own_grad, grad, tree.parent, tree.count, ctx.share, out, inner, d, WIDE, num_warps=2
        )
        return out, None, None
