"""Loss of a pair of views and its gradients, from their last linear map on: ``plain.pair_loss``.

With h = PReLU(u), u = z + b, all that the loss and its gradient need of z are three sums over nodes
per column: of max(u, 0), of min(u, 0) and of [u > 0]. They are taken once over the positives, for
the summary, and once weighted by the gradient g of each score, for the weights. The gradient by z
is computed only where it is used.

The kernels in their order: `_activation_sums`, then `_direction` from the sums to the summary s and
v = W s, then `_scores`, then `_finish` from the weighted sums to the gradients of all weights.
`_z_gradient` is the gradient by z. Notation is that of `Backend.pair_loss`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.products import Sparse, pair, pair_gradient
from infomax.kernels.gpu.sums import column_sums
from infomax.kernels.plain import Outcome
from infomax.kernels.ranks import Portion

ROWS_PER_STEP = 32
COLUMNS_PER_PROGRAM = 128
SCORED_ROWS_PER_STEP = 2
SUMMING_PROGRAMS, SCORING_PROGRAMS = 1024, 512
"""Programs per view, approximately; of one warp each, so that none waits for another."""
WEIGHTS_PER_PROGRAM = 4096
"""Entries of W that a program reads at a time."""


@triton.jit
def _activation_sums(z, bias, sums, n, d, repeats, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum max(u, 0), min(u, 0) and [u > 0] over a block of rows, ``[blocks, 3 d]``."""
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    b = tl.load(bias + j, j < d, 0.0)[None, :]
    above, below = tl.zeros((COLUMNS,), tl.float32), tl.zeros((COLUMNS,), tl.float32)
    count = tl.zeros((COLUMNS,), tl.float32)
    for repeat in range(repeats):
        i = (tl.program_id(0) * repeats + repeat) * ROWS + tl.arange(0, ROWS)
        inside = (i < n)[:, None] & (j < d)[None, :]
        u = tl.where(
            inside, tl.load(z + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + b, 0.0
        )
        above += tl.sum(tl.maximum(u, 0.0), 0)
        below += tl.sum(tl.minimum(u, 0.0), 0)
        count += tl.sum((u > 0).to(tl.float32), 0)
    sums += tl.program_id(0) * 3 * d + j
    tl.store(sums, above, j < d)
    tl.store(sums + d, below, j < d)
    tl.store(sums + 2 * d, count, j < d)


@triton.jit
def _direction(
    sums, slope, weight, summary, v, slope_row, n, d, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """Compute the summary s = σ(mean h) and some rows of v = W s.

    ``slope_row`` is W times the derivative of s by the slope: the summary's share of the slope's
    gradient is its product with the gradient of v.
    """
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, WIDTH)
    below = tl.load(sums + d + j, j < d, 0.0)
    s = tl.sigmoid((tl.load(sums + j, j < d, 0.0) + tl.load(slope) * below) / n)
    s = tl.where(j < d, s, 0.0)
    w = tl.load(weight + i[:, None] * d + j[None, :], (i < d)[:, None] & (j < d)[None, :], 0.0)
    tl.store(v + i, tl.sum(w * s[None, :], 1), i < d)
    tl.store(slope_row + i, tl.sum(w * (s * (1 - s) * below / n)[None, :], 1), i < d)
    tl.store(summary + j, s, (j < d) & (tl.program_id(0) == 0))


@triton.jit
def _scores(
    views,
    last_weights,
    v,
    g,
    sums,
    n,
    n_negative,
    total,
    blocks,
    d,
    repeats,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Score a block of rows, h_i v + o; the first ``blocks`` are of the positive.

    It writes g_i, and a row of ``sums``, ``[all blocks, 3 d + 3]``: sums of max(u, 0), min(u, 0)
    and [u > 0], each weighted by g_i; then the loss, the share of right scores and the sum of g_i.
    """
    z, z_negative = views
    bias, slope, offset = last_weights
    block, j = tl.program_id(0), tl.arange(0, WIDTH)
    label = 1.0
    view, count, first_block = z, n, 0
    if block >= blocks:
        label = 0.0
        view, count, first_block = z_negative, n_negative, blocks
        g += n
    sign, share = 2.0 * label - 1.0, 1.0 / total
    b, v_row = tl.load(bias + j, j < d, 0.0)[None, :], tl.load(v + j, j < d, 0.0)[None, :]
    a, o = tl.load(slope), tl.load(offset)
    above_sum, below_sum = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    count_sum = tl.zeros((WIDTH,), tl.float32)
    loss, right, g_sum = (
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
    )
    for repeat in range(repeats):
        i = ((block - first_block) * repeats + repeat) * ROWS + tl.arange(0, ROWS)
        inside = (i < count)[:, None] & (j < d)[None, :]
        u = tl.where(
            inside, tl.load(view + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + b, 0.0
        )
        above, below = tl.maximum(u, 0.0), tl.minimum(u, 0.0)
        score = tl.sum((above + a * below) * v_row, 1) + o
        # The sigmoid of the score less the label, and the softplus, without overflow.
        small = tl.exp(-tl.abs(score))
        g_rows = tl.where(
            i < count, (tl.where(score > 0, 1.0, small) / (1.0 + small) - label) * share, 0.0
        )
        tl.store(g + i, g_rows, i < count)
        above_sum += tl.sum(above * g_rows[:, None], 0)
        below_sum += tl.sum(below * g_rows[:, None], 0)
        count_sum += tl.sum(tl.where(u > 0, g_rows[:, None], 0.0), 0)
        loss += tl.where(i < count, tl.maximum(-sign * score, 0.0) + tl.log(1.0 + small), 0.0)
        right += tl.where((i < count) & (sign * score > 0), 1.0, 0.0)
        g_sum += g_rows
    sums += block * (3 * d + 3)
    tl.store(sums + j, above_sum, j < d)
    tl.store(sums + d + j, below_sum, j < d)
    tl.store(sums + 2 * d + j, count_sum, j < d)
    tl.store(sums + 3 * d, tl.sum(loss) * share)
    tl.store(sums + 3 * d + 1, tl.sum(right) * share)
    tl.store(sums + 3 * d + 2, tl.sum(g_sum))


@triton.jit
def _finish(
    sums,
    directions,
    slope,
    weight,
    record,
    c,
    gradients,
    n,
    d,
    COLUMNS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Compute the record, c, and the gradients of bias, slope, W and offset, from the sums of
    `_activation_sums` and the weighted ones of `_scores`."""
    plain_sums, weighted_sums = sums
    summary, v, slope_row = directions
    bias_grad, slope_grad, weight_grad, offset_grad = gradients
    i, j = tl.arange(0, WIDTH), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    a, g_sum = tl.load(slope), tl.load(weighted_sums + 3 * d + 2)
    below = tl.load(weighted_sums + d + i, i < d, 0.0)
    v_grad = tl.load(weighted_sums + i, i < d, 0.0) + a * below
    w = tl.load(weight + i[:, None] * d + j[None, :], (i < d)[:, None] & (j < d)[None, :], 0.0)
    s = tl.load(summary + j, j < d, 0.0)
    c_part = tl.sum(w * v_grad[:, None], 0) * s * (1 - s) / n
    tl.store(
        weight_grad + i[:, None] * d + j[None, :],
        v_grad[:, None] * s[None, :],
        (i < d)[:, None] & (j < d)[None, :],
    )
    tl.store(c + j, c_part, j < d)
    # The gradient of the bias: of (g_i v + c) through the PReLU, summed over nodes.
    count, weighted_count = (
        tl.load(plain_sums + 2 * d + j, j < d, 0.0),
        tl.load(weighted_sums + 2 * d + j, j < d, 0.0),
    )
    bias_grad_part = tl.load(v + j, j < d, 0.0) * (
        weighted_count + a * (g_sum - weighted_count)
    ) + c_part * (count + a * (n - count))
    tl.store(bias_grad + j, bias_grad_part, j < d)
    if tl.program_id(0) == 0:
        all_s = tl.load(summary + i, i < d, 0.0)
        mean = tl.sum(all_s) / d
        deviation = tl.where(i < d, all_s - mean, 0.0)
        tl.store(record, tl.load(weighted_sums + 3 * d))
        tl.store(record + 1, tl.load(weighted_sums + 3 * d + 1))
        tl.store(record + 2, tl.sqrt(tl.sum(deviation * deviation) / d))
        tl.store(offset_grad, g_sum)
        tl.store(
            slope_grad,
            tl.sum(
                tl.load(v + i, i < d, 0.0) * below + tl.load(slope_row + i, i < d, 0.0) * v_grad
            ),
        )


@triton.jit
def _z_gradient(z, bias, slope, g, v, c, n, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Replace a block of z by its gradient, (g_i v + c) through the PReLU; negatives have no c."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < n)[:, None] & (j < d)[None, :]
    z_block = z + i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(z_block, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    grad = tl.load(g + i, i < n, 0.0)[:, None] * tl.load(v + j, j < d, 0.0)[None, :]
    if c is not None:
        grad += tl.load(c + j, j < d, 0.0)[None, :]
    tl.store(z_block, tl.where(u > 0, grad, grad * tl.load(slope)), inside)


@dataclass(frozen=True)
class Judgement:
    """The outcome of the scores: the step's record and the gradients.

    The gradient of h is ``g_i v`` at node i; positives add a row ``c``, from the summary.

    Shapes:
        record: ``[3]``; g: ``[N + M]``; v, c: ``[d]``
        gradients: of bias ``[d]``, slope ``[1]``, weight ``[d, d]``, offset ``[]``
    """

    record: Tensor
    g: Tensor
    v: Tensor
    c: Tensor
    gradients: tuple[Tensor, ...]


def judge(
    z: Tensor, z_negative: Tensor, *last_weights: Tensor, portion: Portion | None = None
) -> Judgement:
    """Score two views, ``[N, d]`` and ``[M, d]``; returns the record and all gradients except those
    by the views.

    With a ``portion`` of a batch, record and gradients are of the whole batch.
    """
    bias, slope, weight, offset = last_weights
    n, d = z.shape
    m = len(z_negative)
    portion = portion or Portion(n, n + m)
    nodes, total = portion.nodes, portion.total
    width = triton.next_power_of_2(d)
    rows_of_weight = max(1, WEIGHTS_PER_PROGRAM // width)

    # Sums over the positives, then the summary and v.
    repeats, blocks = _blocks_of_rows(n, ROWS_PER_STEP, SUMMING_PROGRAMS)
    sums = z.new_empty(blocks, 3 * d)
    _activation_sums[blocks, triton.cdiv(d, COLUMNS_PER_PROGRAM)](
        z, bias, sums, n, d, repeats, ROWS_PER_STEP, COLUMNS_PER_PROGRAM, num_warps=1
    )
    (plain_sums,) = portion.sum(column_sums(sums))
    summary, v, slope_row, c, bias_grad = z.new_empty(5, d)
    _direction[(triton.cdiv(d, rows_of_weight),)](
        plain_sums, slope, weight, summary, v, slope_row, nodes, d, rows_of_weight, width,
        num_warps=8,
    )  # fmt: skip

    # Scores, and sums weighted by the gradient of each.
    repeats, blocks = _blocks_of_rows(n, SCORED_ROWS_PER_STEP, SCORING_PROGRAMS)
    all_blocks = blocks + triton.cdiv(m, SCORED_ROWS_PER_STEP * repeats)
    g = z.new_empty(n + m)
    sums = z.new_empty(all_blocks, 3 * d + 3)
    _scores[(all_blocks,)](
        (z, z_negative), (bias, slope, offset), v, g, sums, n, m, total, blocks, d, repeats,
        SCORED_ROWS_PER_STEP, width, num_warps=1,
    )  # fmt: skip
    (weighted_sums,) = portion.sum(column_sums(sums))

    # The record, and the gradients of the weights.
    record = z.new_empty(3)
    gradients = bias_grad, z.new_empty(1), z.new_empty(d, d), z.new_empty(())
    _finish[(triton.cdiv(d, rows_of_weight),)](
        (plain_sums, weighted_sums), (summary, v, slope_row), slope, weight, record, c, gradients,
        nodes, d, rows_of_weight, width, num_warps=8,
    )  # fmt: skip
    return Judgement(record, g, v, c, gradients)


def pair_loss(
    z: Tensor, z_negative: Tensor, *last_weights: Tensor, portion: Portion | None = None
) -> Outcome:
    """As `Backend.pair_loss`; z and z_negative are overwritten by their gradients."""
    z = z.contiguous()
    z_negative = z_negative.contiguous()
    judgement = judge(z, z_negative, *last_weights, portion=portion)
    bias, slope, *_ = last_weights
    g, g_negative = judgement.g, judgement.g[len(z) :]
    for view, view_g, c in ((z, g, judgement.c), (z_negative, g_negative, None)):
        n, d = view.shape
        _z_gradient[triton.cdiv(n, ROWS_PER_STEP), triton.cdiv(d, COLUMNS_PER_PROGRAM)](
            view, bias, slope, view_g, judgement.v, c, n, d, ROWS_PER_STEP, COLUMNS_PER_PROGRAM
        )

    # Those of bias and slope are the whole batch's already, and the ranks will be added up: the
    # first rank has them for all.
    bias_grad, slope_grad, *scorer_grads = judgement.gradients
    if portion is not None and portion.ranks.rank:
        bias_grad, slope_grad = torch.zeros_like(bias_grad), torch.zeros_like(slope_grad)
    return judgement.record, (z, z_negative, bias_grad, slope_grad, *scorer_grads)


def shuffle_loss(
    matrix: Sparse, transpose: Sparse, rows: Tensor, y: Tensor, *last_weights: Tensor
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z, z_negative, inverse = pair(matrix, y, rows)
    judgement = judge(z, z_negative, *last_weights)
    bias, slope, *_ = last_weights
    y_grad = pair_gradient(
        transpose,
        (z, z_negative),
        rows,
        inverse,
        (bias, slope, judgement.g, judgement.v, judgement.c),
    )
    return judgement.record, (y_grad, *judgement.gradients)


def _blocks_of_rows(n: int, rows_per_step: int, programs: int) -> tuple[int, int]:
    """Return how many steps each program does so that about ``programs`` of them cover n rows, and
    the number of programs."""
    repeats = max(1, triton.cdiv(n, rows_per_step * programs))
    return repeats, max(1, triton.cdiv(n, rows_per_step * repeats))
