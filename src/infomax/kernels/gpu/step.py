"""The end of a step: its record, and Adam, as in ``kernels/plain.py``; each is one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from infomax.kernels import Adam

WEIGHTS_PER_PROGRAM = 1024


@triton.jit
def _add_record(
    record, sums, curve, lowest, counts, capacity, steps, patience,
    K: tl.constexpr, ROOM: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """Add a record to the sums; after the last step of an epoch, store their mean."""
    i = tl.arange(0, ROOM)  # K metrics, in room of a power of two
    total = tl.load(sums + i, i < K, 0.0) + tl.load(record + i, i < K, 0.0).to(tl.float64)
    if LAST:
        mean = total / steps
        epoch, kept_epoch, waited = tl.load(counts), tl.load(counts + 1), tl.load(counts + 2)
        loss, lowest_before = tl.sum(tl.where(i == 0, mean, 0.0)), tl.load(lowest)
        is_better = (loss < lowest_before) & (waited < patience)
        tl.store(sums + i, tl.zeros_like(total), i < K)
        tl.store(curve + epoch % capacity * K + i, mean, i < K)
        tl.store(lowest, tl.where(is_better, loss, lowest_before))
        tl.store(counts, epoch + 1)
        tl.store(counts + 1, tl.where(is_better, epoch, kept_epoch))
        tl.store(counts + 2, tl.where(is_better, 0, waited + 1))
    else:
        tl.store(sums + i, total, i < K)


@triton.jit
def _power(base, count):
    """Return ``base ** count`` in float64, by squares."""
    power = tl.full((), 1.0, tl.float64)
    square = power * base
    while count > 0:
        power = tl.where(count % 2 == 1, power * square, power)
        square *= square
        count //= 2
    return power


@triton.jit
def _count_step(count, corrections, rates, last_rate):
    """Count a step, and write what all weights need in it: two corrections for the bias of the
    running means, and the learning rate."""
    steps = tl.load(count) + 1
    tl.store(count, steps)
    tl.store(corrections, (1 - _power(0.9, steps.to(tl.int64))).to(tl.float32))
    tl.store(corrections + 1, tl.sqrt((1 - _power(0.999, steps.to(tl.int64))).to(tl.float32)))
    tl.store(corrections + 2, tl.load(rates + tl.minimum(steps.to(tl.int64) - 1, last_rate)))


@triton.jit
def _adam(
    weights,
    gradients,
    means,
    variances,
    kept,
    sizes,
    corrections,
    waited,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Change a block of one of the weights, which are tuples of arrays."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for k in tl.static_range(len(sizes)):
        if tl.program_id(1) == k:
            inside = i < sizes[k]
            weight, gradient = tl.load(weights[k] + i, inside), tl.load(gradients[k] + i, inside)
            if KEEP:
                tl.store(kept[k] + i, weight, inside & (tl.load(waited) == 0))
            mean = tl.load(means[k] + i, inside)
            mean += (gradient - mean) * (1 - 0.9)
            variance = tl.load(variances[k] + i, inside) * 0.999 + gradient * gradient * (1 - 0.999)
            tl.store(means[k] + i, mean, inside)
            tl.store(variances[k] + i, variance, inside)
            rate = tl.load(corrections + 2)
            change = (
                rate
                / tl.load(corrections)
                * mean
                / (tl.sqrt(variance) / tl.load(corrections + 1) + 1e-8)
            )
            tl.store(weights[k] + i, weight - change, inside)


def add_record(
    record: Tensor,
    sums: Tensor,
    curve: Tensor,
    lowest: Tensor,
    counts: Tensor,
    steps: int,
    patience: int,
    is_last: bool,
) -> None:
    """As `plain.add_record`."""
    metric_count = len(sums)
    room = max(2, triton.next_power_of_2(len(sums)))
    _add_record[(1,)](
        record, sums, curve, lowest, counts, len(curve), steps, patience,
        metric_count, room, is_last, num_warps=1,
    )  # fmt: skip


def adam(
    state: Adam, gradients: Sequence[Tensor], kept: Sequence[Tensor] | None, waited: Tensor | None
) -> None:
    """As `plain.adam`; all weights in one launch."""
    corrections = state.count.new_empty(3)
    _count_step[(1,)](state.count, corrections, state.rates, len(state.rates) - 1, num_warps=1)
    arrays = map(
        tuple, (state.weights, gradients, state.means, state.variances, kept or state.weights)
    )
    sizes = tuple(weight.numel() for weight in state.weights)
    keeps = bool(kept) and waited is not None
    _adam[triton.cdiv(max(sizes), WEIGHTS_PER_PROGRAM), len(sizes)](
        *arrays, sizes, corrections, waited if keeps else state.count, keeps, WEIGHTS_PER_PROGRAM
    )
