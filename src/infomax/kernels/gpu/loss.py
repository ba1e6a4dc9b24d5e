"""Loss of a pair of views and its gradients, from their last linear map on.

With h = PReLU(u), u = z + b, all that the loss and its gradient need of z are three sums over nodes per column: of
max(u, 0), of min(u, 0) and of [u > 0]. They are taken once over the positives, for the summary, and once weighted by
the gradient g of each score, for the weights. The gradient by z is computed only where it is used.
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

ROWS, COLUMNS = 32, 128
SCORED = 2
"""Rows that a program scores at a time."""
SUMMING, SCORING = 1024, 512
"""Programs per view, approximately; of one warp each, so that none waits for another."""
SQUARE = 4096
"""Entries of W that a program reads at a time."""


@triton.jit
def _activation_sums(z, bias, sums, n, d, repeats, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
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
    sums, slope, weight, summary, v, pull, n, d, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    below = tl.load(sums + d + j, j < d, 0.0)
    s = tl.sigmoid((tl.load(sums + j, j < d, 0.0) + tl.load(slope) * below) / n)
    s = tl.where(j < d, s, 0.0)
    w = tl.load(weight + i[:, None] * d + j[None, :], (i < d)[:, None] & (j < d)[None, :], 0.0)
    tl.store(v + i, tl.sum(w * s[None, :], 1), i < d)
    tl.store(pull + i, tl.sum(w * (s * (1 - s) * below / n)[None, :], 1), i < d)
    tl.store(summary + j, s, (j < d) & (tl.program_id(0) == 0))


@triton.jit
def _scores(
    views,
    last,
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
    z, z_negative = views
    bias, slope, offset = last
    block, j = tl.program_id(0), tl.arange(0, WIDTH)
    label = 1.0
    base, count, first = z, n, 0
    if block >= blocks:
        label = 0.0
        base, count, first = z_negative, n_negative, blocks
        g += n
    sign, share = 2.0 * label - 1.0, 1.0 / total
    b, along = tl.load(bias + j, j < d, 0.0)[None, :], tl.load(v + j, j < d, 0.0)[None, :]
    a, o = tl.load(slope), tl.load(offset)
    above_sum, below_sum = tl.zeros((WIDTH,), tl.float32), tl.zeros((WIDTH,), tl.float32)
    slant_sum = tl.zeros((WIDTH,), tl.float32)
    loss, right, slants = (
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
        tl.zeros((ROWS,), tl.float32),
    )
    for repeat in range(repeats):
        i = ((block - first) * repeats + repeat) * ROWS + tl.arange(0, ROWS)
        inside = (i < count)[:, None] & (j < d)[None, :]
        u = tl.where(
            inside, tl.load(base + i[:, None].to(tl.int64) * d + j[None, :], inside, 0.0) + b, 0.0
        )
        above, below = tl.maximum(u, 0.0), tl.minimum(u, 0.0)
        score = tl.sum((above + a * below) * along, 1) + o
        small = tl.exp(-tl.abs(score))
        slant = tl.where(
            i < count, (tl.where(score > 0, 1.0, small) / (1.0 + small) - label) * share, 0.0
        )
        tl.store(g + i, slant, i < count)
        above_sum += tl.sum(above * slant[:, None], 0)
        below_sum += tl.sum(below * slant[:, None], 0)
        slant_sum += tl.sum(tl.where(u > 0, slant[:, None], 0.0), 0)
        loss += tl.where(i < count, tl.maximum(-sign * score, 0.0) + tl.log(1.0 + small), 0.0)
        right += tl.where((i < count) & (sign * score > 0), 1.0, 0.0)
        slants += slant
    sums += block * (3 * d + 3)
    tl.store(sums + j, above_sum, j < d)
    tl.store(sums + d + j, below_sum, j < d)
    tl.store(sums + 2 * d + j, slant_sum, j < d)
    tl.store(sums + 3 * d, tl.sum(loss) * share)
    tl.store(sums + 3 * d + 1, tl.sum(right) * share)
    tl.store(sums + 3 * d + 2, tl.sum(slants))


@triton.jit
def _finish(
    sums,
    found,
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
    plain, weighed = sums
    summary, v, pull = found
    bias_grad, slope_grad, weight_grad, offset_grad = gradients
    i, j = tl.arange(0, WIDTH), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    a, slant = tl.load(slope), tl.load(weighed + 3 * d + 2)
    below = tl.load(weighed + d + i, i < d, 0.0)
    v_grad = tl.load(weighed + i, i < d, 0.0) + a * below
    w = tl.load(weight + i[:, None] * d + j[None, :], (i < d)[:, None] & (j < d)[None, :], 0.0)
    s = tl.load(summary + j, j < d, 0.0)
    push = tl.sum(w * v_grad[:, None], 0) * s * (1 - s) / n
    tl.store(
        weight_grad + i[:, None] * d + j[None, :],
        v_grad[:, None] * s[None, :],
        (i < d)[:, None] & (j < d)[None, :],
    )
    tl.store(c + j, push, j < d)
    positive, gradient = (
        tl.load(plain + 2 * d + j, j < d, 0.0),
        tl.load(weighed + 2 * d + j, j < d, 0.0),
    )
    through = tl.load(v + j, j < d, 0.0) * (gradient + a * (slant - gradient)) + push * (
        positive + a * (n - positive)
    )
    tl.store(bias_grad + j, through, j < d)
    if tl.program_id(0) == 0:
        all_s = tl.load(summary + i, i < d, 0.0)
        mean = tl.sum(all_s) / d
        away = tl.where(i < d, all_s - mean, 0.0)
        tl.store(record, tl.load(weighed + 3 * d))
        tl.store(record + 1, tl.load(weighed + 3 * d + 1))
        tl.store(record + 2, tl.sqrt(tl.sum(away * away) / d))
        tl.store(offset_grad, slant)
        tl.store(
            slope_grad,
            tl.sum(tl.load(v + i, i < d, 0.0) * below + tl.load(pull + i, i < d, 0.0) * v_grad),
        )


@triton.jit
def _through(z, bias, slope, g, v, c, n, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = (
        tl.program_id(0) * ROWS + tl.arange(0, ROWS),
        tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS),
    )
    inside = (i < n)[:, None] & (j < d)[None, :]
    place = z + i[:, None].to(tl.int64) * d + j[None, :]
    u = tl.load(place, inside, 0.0) + tl.load(bias + j, j < d, 0.0)[None, :]
    grad = tl.load(g + i, i < n, 0.0)[:, None] * tl.load(v + j, j < d, 0.0)[None, :]
    if c is not None:
        grad += tl.load(c + j, j < d, 0.0)[None, :]
    tl.store(place, tl.where(u > 0, grad, grad * tl.load(slope)), inside)


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
    z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None
) -> Judgement:
    """Score two views, ``[N, d]`` and ``[M, d]``; returns the record and all gradients except those by the views.

    With a ``portion`` of a batch, record and gradients are of the whole batch.
    """
    bias, slope, weight, offset = last
    (n, d), m = z.shape, len(z_negative)
    portion = portion or Portion(n, n + m)
    nodes, total = portion.nodes, portion.total
    width = triton.next_power_of_2(d)
    repeats, blocks = _cut(n, ROWS, SUMMING)
    sums = z.new_empty(blocks, 3 * d)
    _activation_sums[blocks, triton.cdiv(d, COLUMNS)](
        z, bias, sums, n, d, repeats, ROWS, COLUMNS, num_warps=1
    )
    (plain,) = portion.sum(column_sums(sums))
    summary, v, pull, c, bias_grad = z.new_empty(5, d)
    strip = max(1, SQUARE // width)
    _direction[(triton.cdiv(d, strip),)](
        plain, slope, weight, summary, v, pull, nodes, d, strip, width, num_warps=8
    )
    repeats, blocks = _cut(n, SCORED, SCORING)
    all_blocks = blocks + triton.cdiv(m, SCORED * repeats)
    g, sums = z.new_empty(n + m), z.new_empty(all_blocks, 3 * d + 3)
    _scores[(all_blocks,)](
        (z, z_negative),
        (bias, slope, offset),
        v,
        g,
        sums,
        n,
        m,
        total,
        blocks,
        d,
        repeats,
        SCORED,
        width,
        num_warps=1,
    )
    (weighed,) = portion.sum(column_sums(sums))
    record, gradients = (
        z.new_empty(3),
        (bias_grad, z.new_empty(1), z.new_empty(d, d), z.new_empty(())),
    )
    found = summary, v, pull
    _finish[(triton.cdiv(d, strip),)](
        (plain, weighed),
        found,
        slope,
        weight,
        record,
        c,
        gradients,
        nodes,
        d,
        strip,
        width,
        num_warps=8,
    )
    return Judgement(record, g, v, c, gradients)


def pair_loss(
    z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None
) -> Outcome:
    """As `Backend.pair_loss`; z and z_negative are overwritten by their gradients."""
    z, z_negative = z.contiguous(), z_negative.contiguous()
    found, (bias, slope, *_) = judge(z, z_negative, *last, portion=portion), last
    for part, g, c in ((z, found.g, found.c), (z_negative, found.g[len(z) :], None)):
        n, d = part.shape
        _through[triton.cdiv(n, ROWS), triton.cdiv(d, COLUMNS)](
            part, bias, slope, g, found.v, c, n, d, ROWS, COLUMNS
        )
    bias_grad, slope_grad, *whole = found.gradients
    if portion is not None and portion.ranks.rank:  # the first rank has them for all
        bias_grad, slope_grad = torch.zeros_like(bias_grad), torch.zeros_like(slope_grad)
    return found.record, (z, z_negative, bias_grad, slope_grad, *whole)


def shuffle_loss(
    matrix: Sparse, transpose: Sparse, rows: Tensor, y: Tensor, *last: Tensor
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z, z_negative, inverse = pair(matrix, y, rows)
    found, (bias, slope, *_) = judge(z, z_negative, *last), last
    judged = bias, slope, found.g, found.v, found.c
    y_grad = pair_gradient(transpose, (z, z_negative), rows, inverse, judged)
    return found.record, (y_grad, *found.gradients)


def _cut(n: int, rows: int, programs: int) -> tuple[int, int]:
    """Return how many groups of rows each program handles so that about ``programs`` cover n rows, and their number."""
    repeats = max(1, triton.cdiv(n, rows * programs))
    return repeats, max(1, triton.cdiv(n, rows * repeats))
