"""Neighbourhoods and permutations on a GPU; see `infomax.kernels.neighbourhoods`, `infomax.kernels.random`."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.permutations import BLOCK, ROUNDS, _stir

COLUMNS, CHUNK, WARPS = 128, 32, 1
"""Columns and neighbours that a program reads at a time, and its warps: the fastest of 60 choices at Reddit's shape."""


@triton.jit
def _image(x, keys, n, low: tl.constexpr, high: tl.constexpr, ROUNDS: tl.constexpr):
    """Return the images of numbers below n."""
    x = _stir(x, keys, low, high, ROUNDS)
    while tl.max((x >= n).to(tl.int32), 0) > 0:
        x = tl.where(x >= n, _stir(x, keys, low, high, ROUNDS), x)
    return x


@triton.jit
def _first_images(
    keys, out, n, count, low: tl.constexpr, high: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = _image(tl.where(i < count, i, 0).to(tl.int64), keys, n, low, high, ROUNDS)
    tl.store(out + i, x, i < count)


@triton.jit
def _pool_rows(
    starts,
    senders,
    weights,
    left,
    right,
    cap,
    nodes,
    offsets,
    table,
    keys,
    n,
    out,
    d,
    low: tl.constexpr,
    high: tl.constexpr,
    LOOPS: tl.constexpr,
    ROUNDS: tl.constexpr,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
):
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
        weight = tl.load(right + sender, there | itself, 0.0)
        if weights is not None:
            weight *= tl.load(weights + first + place, there, 1.0)
        weight = tl.where(itself, weight, weight * stretch)
        row = sender
        if keys is not None:
            row = _image(sender, keys, n, low, high, ROUNDS)
        inside = (there | itself)[:, None] & (at < d)[None, :]
        x = tl.load(table + row[:, None] * d + at[None, :], inside, 0.0).to(tl.float32)
        total += tl.sum(x * weight[:, None], 0)
    tl.store(out + i * d + at, total * tl.load(left + node), at < d)


def first_images(keys: Tensor, n: int, count: int, low: int, high: int) -> Tensor:
    """As `Permutation.first`."""
    out = torch.empty(count, dtype=torch.int64, device=keys.device)
    _first_images[(triton.cdiv(count, BLOCK),)](keys, out, n, count, low, high, ROUNDS, BLOCK, num_warps=1)
    return out


def pool_rows(hoods: Any, nodes: Tensor, offsets: Tensor, table: Tensor, permutation: Any) -> Tensor:
    """As `Neighbourhoods.pool`."""
    d = table.shape[1]
    out = hoods.left.new_empty(len(nodes), d)
    keys, (low, high) = (None, (1, 1)) if permutation is None else (permutation.keys, permutation.bits)
    _pool_rows[len(nodes), triton.cdiv(d, COLUMNS)](
        hoods.starts,
        hoods.senders,
        hoods.weights,
        hoods.left,
        hoods.right,
        hoods.cap,
        nodes,
        offsets if hoods.capped else None,
        table,
        keys,
        len(hoods.left),
        out,
        d,
        low,
        high,
        hoods.loops,
        ROUNDS,
        COLUMNS,
        CHUNK,
        num_warps=WARPS,
    )
    return out
