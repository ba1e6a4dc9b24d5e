"""Pooling over trees of sampled neighbours, in Triton; ``trees.py`` has the same in plain torch.

tests/kernels/test_gpu.py compares both, on a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax_paper.trees import Tree

COLUMNS_PER_PROGRAM = 256
CHILDREN_PER_STEP = 5


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
    """Compute some columns of the mean at one node; with `GATHER` node i has row ``rows[i]`` of the
    table, and this row is written to ``own``."""
    node = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    own_row = tl.load(
        table + (tl.load(rows + node) if GATHER else node) * d + columns, columns < d, 0.0
    ).to(tl.float32)
    first_child, child_count = tl.load(first + node), tl.load(count + node)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, child_count, CHUNK):
        for step in tl.static_range(CHUNK):
            child, is_child = first_child + begin + step, begin + step < child_count
            row = tl.load(rows + child, is_child, 0) if GATHER else child
            total += tl.load(table + row * d + columns, is_child & (columns < d), 0.0).to(
                tl.float32
            )
    weight = tl.load(share + node)
    tl.store(
        out + node * d + columns,
        own_row * (1 - weight) + total * (weight / child_count),
        columns < d,
    )
    if GATHER:
        tl.store(own + node * d + columns, own_row, columns < d)


@triton.jit
def _tree_pool_backward(own_grad, grad, parent, count, share, out, inner, d, COLUMNS: tl.constexpr):
    """Compute some columns of the gradient of one node, from those of its own row, its mean, and
    the mean of its parent."""
    node = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    if node < inner:
        offsets = node * d + columns
        total += tl.load(own_grad + offsets, columns < d, 0.0)
        total += tl.load(grad + offsets, columns < d, 0.0) * (1 - tl.load(share + node))
    parent_node = tl.load(parent + node)
    if parent_node >= 0:
        weight = tl.load(share + parent_node) / tl.load(count + parent_node)
        total += tl.load(grad + parent_node * d + columns, columns < d, 0.0) * weight
    tl.store(out + node * d + columns, total, columns < d)


def gather_tree(table: Tensor, rows: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """As `infomax_paper.trees.gather_tree`; no gradient."""
    d = table.shape[1]
    inner = len(tree.first)
    own = share.new_empty(inner, d)
    out = share.new_empty(inner, d)
    grid = (inner, triton.cdiv(d, COLUMNS_PER_PROGRAM))
    warps = table.element_size() // 2  # 16 bytes per thread
    _tree_pool[grid](
        table, rows, tree.first, tree.count, share, own, out, d,
        True, COLUMNS_PER_PROGRAM, CHILDREN_PER_STEP, num_warps=warps,
    )  # fmt: skip
    return own, out


class PoolTree(torch.autograd.Function):
    """As `infomax_paper.trees.pool_tree`."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        h = h.contiguous()
        ctx.tree = tree
        ctx.share = share
        ctx.rows = len(h)
        inner, d = len(tree.first), h.shape[1]
        out = h.new_empty(inner, d)
        grid = (inner, triton.cdiv(d, COLUMNS_PER_PROGRAM))
        # Nothing is gathered, so `rows` and `own` are not used.
        _tree_pool[grid](
            h, h, tree.first, tree.count, share, out, out, d,
            False, COLUMNS_PER_PROGRAM, CHILDREN_PER_STEP, num_warps=2,
        )  # fmt: skip
        return h[:inner].clone(), out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:  # noqa: D102
        own_grad, grad = (gradient.contiguous() for gradient in grads)
        tree = ctx.tree
        inner, d = grad.shape
        out = grad.new_empty(ctx.rows, d)
        grid = (ctx.rows, triton.cdiv(d, COLUMNS_PER_PROGRAM))
        _tree_pool_backward[grid](
            own_grad, grad, tree.parent, tree.count, ctx.share, out, inner, d,
            COLUMNS_PER_PROGRAM, num_warps=2,
        )  # fmt: skip
        return out, None, None
