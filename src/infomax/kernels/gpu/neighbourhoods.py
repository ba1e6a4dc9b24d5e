"""Means over neighbourhoods on a GPU: ``P[nodes] @ table``, or with a permutation
``P[nodes] @ table[permutation]``; see `infomax.views.neighbourhoods`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.permutations import ROUNDS, image

COLUMNS_PER_PROGRAM, NEIGHBOURS_PER_STEP, WARPS = 128, 32, 1
"""Columns and neighbours that a program reads at a time, and its warps: the fastest of 60 choices
at Reddit's shape."""


@triton.jit
def _pool_rows(
    starts, senders, weights, left, right, cap, nodes, offsets, table, keys, n, out, d,
    low: tl.constexpr, high: tl.constexpr, LOOPS: tl.constexpr,
    ROUNDS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Compute some columns of one row of the pooled table; the node itself is added after its
    neighbours."""
    i = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    node = tl.load(nodes + i)
    first = tl.load(starts + node)
    degree = tl.load(starts + node + 1) - first
    count = tl.minimum(degree, cap)
    total = tl.zeros((COLUMNS,), tl.float32)
    for begin in range(0, count + 1, CHUNK):
        number = begin + tl.arange(0, CHUNK)
        interval = 1.0
        if LOOPS:  # known at compile time
            is_itself = number == count
        else:
            is_itself = number < 0
        # Of too many neighbours one is taken from each of `cap` intervals of equal length.
        if offsets is not None:  # noqa: SIM102  this condition is known at compile time
            if degree > cap:
                interval_length = degree.to(tl.float64) / cap
                number = ((tl.load(offsets + i).to(tl.float64) + number) * interval_length).to(
                    tl.int64
                )
                interval = interval_length.to(tl.float32)
        is_neighbour = (begin + tl.arange(0, CHUNK)) < count
        sender = tl.where(
            is_itself, node, tl.load(senders + first + number, is_neighbour, 0).to(tl.int64)
        )
        weight = tl.where(is_neighbour | is_itself, 1.0, 0.0)
        if right is not None:
            weight *= tl.load(right + sender, is_neighbour | is_itself, 0.0)
        if weights is not None:
            weight *= tl.load(weights + first + number, is_neighbour, 1.0)
        weight = tl.where(is_itself, weight, weight * interval)
        row = sender
        if keys is not None:
            row = image(sender, keys, n, low, high, ROUNDS)
        inside = (is_neighbour | is_itself)[:, None] & (columns < d)[None, :]
        x = tl.load(table + row[:, None] * d + columns[None, :], inside, 0.0).to(tl.float32)
        total += tl.sum(x * weight[:, None], 0)
    tl.store(out + i * d + columns, total * tl.load(left + node), columns < d)


def pool_rows(
    graph: Any, nodes: Tensor, offsets: Tensor, table: Tensor, permutation: Any
) -> Tensor:
    """As `Neighbourhoods.pool`, of which ``graph`` is one."""
    d = table.shape[1]
    out = graph.receiver_factors.new_empty(len(nodes), d)
    keys, n, (low, high) = None, 1, (1, 1)
    if permutation is not None:
        keys, n, (low, high) = permutation.keys, permutation.n, permutation.bits
    _pool_rows[len(nodes), triton.cdiv(d, COLUMNS_PER_PROGRAM)](
        graph.starts, graph.senders, graph.weights,
        graph.receiver_factors, graph.sender_factors, graph.cap, nodes,
        offsets if graph.capped else None, table, keys, n, out, d,
        low, high, graph.loops, ROUNDS, COLUMNS_PER_PROGRAM, NEIGHBOURS_PER_STEP, num_warps=WARPS,
    )  # fmt: skip
    return out
