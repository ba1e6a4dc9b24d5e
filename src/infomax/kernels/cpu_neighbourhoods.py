"""Neighbourhoods and permutations on a CPU; see `infomax.views.neighbourhoods`, `infomax.kernels.random`."""

from __future__ import annotations

import numpy as np
import torch
from numba import types
from numba.extending import overload
from torch import Tensor

from infomax.kernels.compiling import compiled
from infomax.kernels.host import equal, even, share

ONE = np.uint64(1)
LOW = np.uint64(0xFFFFFFFF)

RANGES, ROWS = 8, 256
"""Ranges per thread when rows are pooled, at most; and rows for which a thread gets a further range."""


@compiled
def _image(x, network):
    """Return the image of x under the permutation of a `_network`."""
    keys, n, low, high = network
    x = np.uint64(x)
    lower, upper = (ONE << low) - ONE, (ONE << high) - ONE
    while True:
        left, right = x >> low, x & lower
        for step in range(len(keys)):
            h = ((left if step % 2 else right) * np.uint64(0x9E3779B1) + keys[step]) & LOW
            h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x85EBCA77)) & LOW
            h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE3D)) & LOW
            h = h ^ (h >> np.uint64(16))
            if step % 2:
                right ^= h & lower
            else:
                left ^= h & upper
        x = (left << low) | right
        if x < n:
            return np.int64(x)


@compiled
def _images(numbers, network, out, begin, end):
    for i in range(begin, end):
        out[i] = _image(numbers[i], network)


@compiled
def _pool_rows(
    graph, nodes, offsets, table, centre, by_rows, network, images, kept, known, out, begin, end
):
    """Compute rows begin to end of the pooled table; its rows are centred, or scaled to a sum of 1 if ``by_rows``."""
    starts, senders, weights, left, right, cap, loops = graph
    most = 0
    for i in range(begin, end):
        most = max(most, min(starts[nodes[i] + 1] - starts[nodes[i]], cap) + loops)
    all_rows, all_shares = np.empty(most, np.int64), np.empty(most, out.dtype)
    for i in range(begin, end):
        node = nodes[i]
        if len(known) and known[node]:
            out[i] = kept[node]
            continue
        first, degree = starts[node], starts[node + 1] - starts[node]
        count = min(degree, cap)
        stretch = degree / count if count else 1.0
        rows, shares = all_rows[: count + loops], all_shares[: count + loops]
        if loops:
            rows[count], shares[count] = node, left[node] * (right[node] if len(right) else 1)
        for place in range(count):
            at = first + (place if count == degree else np.int64((offsets[i] + place) * stretch))
            sender = np.int64(senders[at])
            rows[place], shares[place] = sender, left[node] * out.dtype.type(stretch)
            if len(right):
                shares[place] *= right[sender]
            if len(weights):
                shares[place] *= weights[at]
        if len(images):
            for place in range(count + loops):
                rows[place] = images[rows[place]]
        elif len(network[0]):
            for place in range(count + loops):
                rows[place] = _image(rows[place], network)
        if by_rows:
            for place in range(count + loops):
                shares[place] *= _inverse_sum(_entries(table, rows[place]))
        out[i] = 0
        _add_rows(out[i], rows, shares, table, centre)
        for place in range(loops * count, count + loops):  # of all nodes' own rows each is one
            if not _finite(_entries(table, rows[place])):
                out[i] = np.nan
        if len(known) and count == degree:
            kept[node], known[node] = out[i], True


def _entries(table, row):
    """Return the numbers of a row: all of a dense table, and of a sparse one those that are stored."""


@overload(_entries)
def _entries_of(table, row):
    def stored(table, row):
        starts, _, entries = table
        return entries[starts[row] : starts[row + 1]]

    return stored if isinstance(table, types.BaseTuple) else lambda table, row: table[row]


def _number(x):
    """Return a number in single precision; an integer is the 16 bits of one in half precision, which numba lacks."""


@overload(_number)
def _number_of(x):
    def halved(x):
        bits = np.uint32(x)
        moved = ((bits & np.uint32(0x8000)) << np.uint32(16)) | (
            (bits & np.uint32(0x7FFF)) << np.uint32(13)
        )
        return np.uint32(moved).view(np.float32) * np.float32(
            2.0**112
        )  # half precision has a smaller exponent

    return halved if isinstance(x, types.Integer) else lambda x: x


def _finite(row):
    """Return whether a row in half precision is finite, which its numbers do not show; those of others do."""


@overload(_finite)
def _finite_row(row):
    def halved(row):
        most = np.uint16(0)
        for k in range(len(row)):
            most = max(most, np.uint16(row[k] << 1))
        return most < np.uint16(0xF800)

    return halved if isinstance(row.dtype, types.Integer) else lambda row: True


@compiled
def _inverse_sum(row):
    """Return 1 / the sum of a row, or 0 where the sum is 0."""
    total = np.float32(0)
    for k in range(len(row)):
        total += _number(row[k])
    return 1 / total if total != 0 else 0 * total


def _add_rows(total, rows, shares, table, centre):
    """Add shares of rows of a table, each less a centre."""


@overload(_add_rows)
def _add_rows_of(total, rows, shares, table, centre):
    if isinstance(table, types.BaseTuple):
        return lambda total, rows, shares, table, centre: _add_sparse(
            total, rows, shares, table, centre
        )
    return lambda total, rows, shares, table, centre: _add_dense(total, rows, shares, table, centre)


@compiled
def _add_sparse(total, rows, shares, table, centre):
    """Add shares of rows of a sparse table; the centre is empty where it is zero."""
    starts, columns, entries = table
    for e in range(len(rows)):
        share = shares[e]
        for at in range(starts[rows[e]], starts[rows[e] + 1]):
            total[columns[at]] += share * _number(entries[at])
        for k in range(len(centre)):
            total[k] -= share * centre[k]


@compiled
def _add_dense(total, rows, shares, table, centre):
    """Add shares of rows of a dense table; four at a time, so that memory is asked for all four while it is slow."""
    e = 0
    while e + 4 <= len(rows):
        a, b, c, d = shares[e], shares[e + 1], shares[e + 2], shares[e + 3]
        p, q, r, s = table[rows[e]], table[rows[e + 1]], table[rows[e + 2]], table[rows[e + 3]]
        for k in range(len(total)):
            m = centre[k]
            near = a * (_number(p[k]) - m) + b * (_number(q[k]) - m)
            total[k] += near + c * (_number(r[k]) - m) + d * (_number(s[k]) - m)
        e += 4
    while e < len(rows):
        a, p = shares[e], table[rows[e]]
        for k in range(len(total)):
            total[k] += a * (_number(p[k]) - centre[k])
        e += 1


def images(numbers: Tensor, keys: Tensor, n: int, low: int, high: int) -> Tensor:
    """As `Permutation.__call__`."""
    flat = numbers.reshape(-1).numpy()
    out = np.empty(len(flat), np.int64)
    share(_images, (equal(len(flat)), flat, _network(keys, n, low, high), out))
    return torch.from_numpy(out).view(numbers.shape)


def pool_rows(
    hoods,
    nodes: Tensor,
    offsets: Tensor,
    table,
    permutation,
    kept=None,
    centre=None,
    by_rows: bool = False,
) -> Tensor:
    """As `Neighbourhoods.pool`; every row of the table is first scaled to a sum of 1, or a ``centre`` subtracted.

    The table is a tensor ``[N, F]``, or of a sparse one starts ``[N + 1]``, columns ``[S]``, entries ``[S]``, and F.
    """
    *places, rows = table[:-1] if isinstance(table, tuple) else [table.contiguous().numpy()]
    n, width = (len(places[0]) - 1, table[-1]) if places else rows.shape
    starts, chosen = hoods.starts.numpy(), nodes.numpy()
    weights, right = (
        np.empty(0, np.float32) if one is None else one.numpy()
        for one in (hoods.weights, hoods.right)
    )
    if permutation is None:
        network = _network(torch.empty(0, dtype=torch.int32), n, 1, 1)
    else:
        network = _network(permutation.keys, permutation.n, *permutation.bits)
    half = rows.dtype == np.float16
    out = np.empty((len(chosen), width), np.float32 if half else rows.dtype)
    kept, known = (out[:0], np.empty(0, np.bool_)) if kept is None else kept
    degrees = np.minimum(starts[chosen + 1] - starts[chosen], hoods.cap) + 1
    if len(known):
        degrees[known[chosen]] = 1
    reached = np.concatenate([[0], degrees.cumsum()])
    # The images of all nodes, where that are fewer than are needed.
    all_images = permutation is not None and reached[-1] >= permutation.n
    images = permutation.images.numpy() if all_images else np.empty(0, np.int32)
    graph = (
        starts,
        hoods.senders.numpy(),
        weights,
        hoods.left.numpy(),
        right,
        hoods.cap,
        int(hoods.loops),
    )
    bounds = even(reached, min(RANGES, 1 + len(chosen) // ROWS))
    centre = np.zeros(width, out.dtype) if centre is None else centre
    centre = centre if centre.any() or not places else centre[:0]
    rows = rows.view(np.uint16) if half else rows
    rest = centre, by_rows, network, images, kept, known, out
    share(
        _pool_rows,
        (bounds, graph, chosen, offsets.numpy(), (*places, rows) if places else rows, *rest),
    )
    return torch.from_numpy(out)


def _network(keys: Tensor, n: int, low: int, high: int):
    words = keys.numpy().astype(np.int64).astype(np.uint64) & LOW
    return words, np.uint64(n), np.uint64(low), np.uint64(high)
