"""Neighbourhoods on a GPU; see `infomax.views.neighbourhoods`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.permutations import ROUNDS, image

COLUMNS, CHUNK, WARPS = 128, 32, 1
"""Columns and neighbours that a program reads at a time, and its warps: the fastest of 60 choices at Reddit's shape."""


@triton.jit
def _pool_rows(
    starts, senders, weights, left, right, cap, nodes, offsets, table, keys, n, out, d,
    low: tl.constexpr, high: tl.constexpr, LOOPS: tl.constexpr,
    ROUNDS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Compute some columns of one row of the pooled table; the node itself is added after its neighbours."""
    i, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    node = tl.load(nodes + i)
    first = tl.load(starts + node)
    degree = tl.load(starts + node + 1) - first
    count = tl.minimum(degree, cap)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, count + 1, CHUNK):
        place = begin + tl.arange(0, CHUNK)
        stretch = 1.0
        if LOOPS:  # known at compile time
            itself = place == count
        else:
            itself = place < 0
        if offsets is not None:  # noqa: SIM102  this condition is known at compile time
            if degree > cap:
                wide = degree.to(tl.float64) / cap
                place = ((tl.load(offsets + i).to(tl.float64) + place) * wide).to(tl.int64)
                stretch = wide.to(tl.float32)
        there = (begin + tl.arange(0, CHUNK)) < count
        sender = tl.where(itself, node, tl.load(senders + first + place, there, 0).to(tl.int64))
        weight = tl.where(there | itself, 1.0, 0.0)
        if right is not None:
            weight *= tl.load(right + sender, there | itself, 0.0)
        if weights is not None:
            weight *= tl.load(weights + first + place, there, 1.0)
        weight = tl.where(itself, weight, weight * stretch)
        row = sender
        if keys is not None:
            row = image(sender, keys, n, low, high, ROUNDS)
        inside = (there | itself)[:, None] & (at < d)[None, :]
        x = tl.load(table + row[:, None] * d + at[None, :], inside, 0.0).to(tl.float32)
        total += tl.sum(x * weight[:, None], 0)
    tl.store(out + i * d + at, total * tl.load(left + node), at < d)


def pool_rows(
    hoods: Any, nodes: Tensor, offsets: Tensor, table: Tensor, permutation: Any
) -> Tensor:
    """As `Neighbourhoods.pool`."""
    d = table.shape[1]
    out = hoods.left.new_empty(len(nodes), d)
    keys, n, (low, high) = None, 1, (1, 1)
    if permutation is not None:
        keys, n, (low, high) = permutation.keys, permutation.n, permutation.bits
    _pool_rows[len(nodes), triton.cdiv(d, COLUMNS)](
        hoods.starts, hoods.senders, hoods.weights, hoods.left, hoods.right, hoods.cap, nodes,
        offsets if hoods.capped else None, table, keys, n, out, d,
        low, high, hoods.loops, ROUNDS, COLUMNS, CHUNK, num_warps=WARPS,
    )  # fmt: skip
    return out
