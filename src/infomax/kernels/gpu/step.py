"""The end of a step: its record, and Adam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from infomax.kernels import Adam

BLOCK = 1024


@triton.jit
def _add_record(
    record, sums, curve, lowest, counts, capacity, steps, patience,
    K: tl.constexpr, ROOM: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, ROOM)  # K metrics, in room of a power of two
    total = tl.load(sums + i, i < K, 0.0) + tl.load(record + i, i < K, 0.0).to(tl.float64)
    if LAST:
        mean = total / steps
        epoch, kept, waited = tl.load(counts), tl.load(counts + 1), tl.load(counts + 2)
        loss, before = tl.sum(tl.where(i == 0, mean, 0.0)), tl.load(lowest)
        better = (loss < before) & (waited < patience)
        tl.store(sums + i, tl.zeros_like(total), i < K)
        tl.store(curve + epoch % capacity * K + i, mean, i < K)
        tl.store(lowest, tl.where(better, loss, before))
        tl.store(counts, epoch + 1)
        tl.store(counts + 1, tl.where(better, epoch, kept))
        tl.store(counts + 2, tl.where(better, 0, waited + 1))
    else:
        tl.store(sums + i, total, i < K)


@triton.jit
def _power(base, count):
    """Return ``base ** count`` in float64."""
    power = tl.full((), 1.0, tl.float64)
    square = power * base
    while count > 0:
        power = tl.where(count % 2 == 1, power * square, power)
        square *= square
        count //= 2
    return power


@triton.jit
def _count(count, corrections, rates, last_rate):
    steps = tl.load(count) + 1
    tl.store(count, steps)
    tl.store(corrections, (1 - _power(0.9, steps.to(tl.int64))).to(tl.float32))
    tl.store(corrections + 1, tl.sqrt((1 - _power(0.999, steps.to(tl.int64))).to(tl.float32)))
    tl.store(corrections + 2, tl.load(rates + tl.minimum(steps.to(tl.int64) - 1, last_rate)))


@triton.jit
def _adam(
    weights,
    grads,
    means,
    variances,
    kept,
    sizes,
    corrections,
    waited,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for k in tl.static_range(len(sizes)):
        if tl.program_id(1) == k:
            inside = i < sizes[k]
            w, g = tl.load(weights[k] + i, inside), tl.load(grads[k] + i, inside)
            if KEEP:
                tl.store(kept[k] + i, w, inside & (tl.load(waited) == 0))
            m = tl.load(means[k] + i, inside)
            m += (g - m) * (1 - 0.9)
            s = tl.load(variances[k] + i, inside) * 0.999 + g * g * (1 - 0.999)
            tl.store(means[k] + i, m, inside)
            tl.store(variances[k] + i, s, inside)
            rate = tl.load(corrections + 2)
            step = rate / tl.load(corrections) * m / (tl.sqrt(s) / tl.load(corrections + 1) + 1e-8)
            tl.store(weights[k] + i, w - step, inside)


def add_record(
    record: Tensor,
    sums: Tensor,
    curve: Tensor,
    lowest: Tensor,
    counts: Tensor,
    steps: int,
    patience: int,
    last: bool,
) -> None:
    """As `plain.add_record`."""
    sizes = len(sums), max(2, triton.next_power_of_2(len(sums)))
    _add_record[(1,)](
        record, sums, curve, lowest, counts, len(curve), steps, patience, *sizes, last, num_warps=1
    )


def adam(
    state: Adam, gradients: Sequence[Tensor], kept: Sequence[Tensor] | None, waited: Tensor | None
) -> None:
    """As `plain.adam`; all weights in one launch."""
    corrections = state.count.new_empty(3)
    _count[(1,)](state.count, corrections, state.rates, len(state.rates) - 1, num_warps=1)
    arrays = map(
        tuple, (state.weights, gradients, state.means, state.variances, kept or state.weights)
    )
    sizes = tuple(weight.numel() for weight in state.weights)
    keep = bool(kept) and waited is not None
    _adam[triton.cdiv(max(sizes), BLOCK), len(sizes)](
        *arrays, sizes, corrections, waited if keep else state.count, keep, BLOCK
    )
