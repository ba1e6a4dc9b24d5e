"""Means over neighbourhoods and images of permutations, compiled by numba for a CPU.

`pool_rows` multiplies rows of the normalised adjacency by a table, as
`infomax.views.neighbourhoods.Neighbourhoods.pool` does in torch. It reads the rows of the table
where they lie, also on disk, dense, sparse or in half precision. tests/laws/test_batches.py and
tests/views/test_stored_tables.py hold it to the same numbers as torch.

`images` computes `infomax.kernels.random.Permutation`, in the same integers.
"""

from __future__ import annotations

import numpy as np
import torch
from numba import types
from numba.extending import overload
from torch import Tensor

from infomax.kernels.compiling import compiled
from infomax.kernels.host import equal_ranges, ranges_by_entries, run_in_ranges

ONE = np.uint64(1)
LOWEST_32_BITS = np.uint64(0xFFFFFFFF)

MOST_RANGES_PER_THREAD = 8
"""Ranges of rows per thread, at most: a thread that is done takes over some of another's."""
ROWS_PER_RANGE = 256
"""Rows for which a thread gets a further range."""


@compiled
def _image(x, network):
    """Return the image of x under the permutation of a `_network`."""
    keys, n, low_bits, high_bits = network
    x = np.uint64(x)
    low_mask = (ONE << low_bits) - ONE
    high_mask = (ONE << high_bits) - ONE
    while True:
        high_half, low_half = x >> low_bits, x & low_mask
        for step in range(len(keys)):
            h = (
                (high_half if step % 2 else low_half) * np.uint64(0x9E3779B1) + keys[step]
            ) & LOWEST_32_BITS
            h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x85EBCA77)) & LOWEST_32_BITS
            h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE3D)) & LOWEST_32_BITS
            h = h ^ (h >> np.uint64(16))
            if step % 2:
                low_half ^= h & low_mask
            else:
                high_half ^= h & high_mask
        x = (high_half << low_bits) | low_half
        # Else the network is applied again: a permutation of 0 to n - 1 remains.
        if x < n:
            return np.int64(x)


@compiled
def _images(numbers, network, out, first_row, end_row):
    for i in range(first_row, end_row):
        out[i] = _image(numbers[i], network)


@compiled
def _pool_rows(
    graph, nodes, offsets, table, centre, scales_rows, network, images, known_rows, is_known, out,
    first_row, end_row,
):  # fmt: skip
    """Compute rows of the pooled table: of each node a weighted sum over its neighbours and, with
    self-loops, itself.

    The rows of the table are centred, or each is scaled to a sum of 1 if it ``scales_rows``. Rows
    that are known are copied, and those of all neighbours become known.
    """
    starts, senders, edge_weights, left, right, cap, loops = graph

    # The longest list of senders that a row has here; all rows use the same memory for theirs.
    longest = 0
    for i in range(first_row, end_row):
        longest = max(longest, min(starts[nodes[i] + 1] - starts[nodes[i]], cap) + loops)
    row_memory, weight_memory = np.empty(longest, np.int64), np.empty(longest, out.dtype)

    for i in range(first_row, end_row):
        node = nodes[i]
        if len(is_known) and is_known[node]:
            out[i] = known_rows[node]
            continue
        first_entry, degree = starts[node], starts[node + 1] - starts[node]
        count = min(degree, cap)
        # Of too many neighbours one is taken from each of so many intervals of this length.
        interval = degree / count if count else 1.0
        rows, weights = row_memory[: count + loops], weight_memory[: count + loops]

        # The senders and the entries of the normalised adjacency; the node itself comes last.
        if loops:
            rows[count] = node
            weights[count] = left[node] * (right[node] if len(right) else 1)
        for number in range(count):
            entry = first_entry + (
                number if count == degree else np.int64((offsets[i] + number) * interval)
            )
            sender = np.int64(senders[entry])
            rows[number], weights[number] = sender, left[node] * out.dtype.type(interval)
            if len(right):
                weights[number] *= right[sender]
            if len(edge_weights):
                weights[number] *= edge_weights[entry]

        # A shuffled table: the row of each sender is its image.
        if len(images):
            for number in range(count + loops):
                rows[number] = images[rows[number]]
        elif len(network[0]):
            for number in range(count + loops):
                rows[number] = _image(rows[number], network)
        if scales_rows:
            for number in range(count + loops):
                weights[number] *= _inverse_sum(_entries(table, rows[number]))

        out[i] = 0
        _add_rows(out[i], rows, weights, table, centre)
        # With self-loops every row of the table is some node's own, and is checked there.
        for number in range(loops * count, count + loops):
            if not _is_finite(_entries(table, rows[number])):
                out[i] = np.nan
        if len(is_known) and count == degree:
            known_rows[node], is_known[node] = out[i], True


# What follows has a different form for dense and sparse tables, and for half precision. Numba takes
# the form by the types of the arguments, when it compiles.


def _entries(table, row):
    """Return the numbers of a row: all of a dense table, and of a sparse one those that are
    stored."""


@overload(_entries)
def _entries_of(table, row):
    def stored_entries(table, row):
        starts, _, entries = table
        return entries[starts[row] : starts[row + 1]]

    def all_entries(table, row):
        return table[row]

    return stored_entries if isinstance(table, types.BaseTuple) else all_entries


def _number(x):
    """Return a number in single precision.

    An integer is the 16 bits of a number in half precision, which numba lacks.
    """


@overload(_number)
def _number_of(x):
    def from_half_precision(x):
        bits = np.uint32(x)
        shifted_bits = ((bits & np.uint32(0x8000)) << np.uint32(16)) | (
            (bits & np.uint32(0x7FFF)) << np.uint32(13)
        )
        # The exponent of half precision has another bias: 15, not 127.
        return np.uint32(shifted_bits).view(np.float32) * np.float32(2.0**112)

    def as_it_is(x):
        return x

    return from_half_precision if isinstance(x, types.Integer) else as_it_is


def _is_finite(row):
    """Return whether a row in half precision is finite.

    Its numbers do not show that once they are single precision; in all other rows they do.
    """


@overload(_is_finite)
def _is_finite_row(row):
    def half_precision_is_finite(row):
        largest = np.uint16(0)
        for k in range(len(row)):
            # Without the sign; exponents of infinity and NaN are the largest.
            largest = max(largest, np.uint16(row[k] << 1))
        return largest < np.uint16(0xF800)

    def unknown(row):
        return True

    return half_precision_is_finite if isinstance(row.dtype, types.Integer) else unknown


@compiled
def _inverse_sum(row):
    """Return 1 / the sum of a row, or 0 where the sum is 0."""
    total = np.float32(0)
    for k in range(len(row)):
        total += _number(row[k])
    return 1 / total if total != 0 else 0 * total


def _add_rows(total, rows, weights, table, centre):
    """Add weighted rows of a table, each less a centre."""


@overload(_add_rows)
def _add_rows_of(total, rows, weights, table, centre):
    def add_sparse(total, rows, weights, table, centre):
        return _add_sparse(total, rows, weights, table, centre)

    def add_dense(total, rows, weights, table, centre):
        return _add_dense(total, rows, weights, table, centre)

    return add_sparse if isinstance(table, types.BaseTuple) else add_dense


@compiled
def _add_sparse(total, rows, weights, table, centre):
    """Add weighted rows of a sparse table; the centre is empty where it is zero."""
    starts, columns, entries = table
    for e in range(len(rows)):
        weight = weights[e]
        for entry in range(starts[rows[e]], starts[rows[e] + 1]):
            total[columns[entry]] += weight * _number(entries[entry])
        for k in range(len(centre)):
            total[k] -= weight * centre[k]


@compiled
def _add_dense(total, rows, weights, table, centre):
    """Add weighted rows of a dense table; four at a time, so that memory is asked for all four
    while it is slow."""
    e = 0
    while e + 4 <= len(rows):
        a, b, c, d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        p, q, r, s = table[rows[e]], table[rows[e + 1]], table[rows[e + 2]], table[rows[e + 3]]
        for k in range(len(total)):
            m = centre[k]
            first_two = a * (_number(p[k]) - m) + b * (_number(q[k]) - m)
            total[k] += first_two + c * (_number(r[k]) - m) + d * (_number(s[k]) - m)
        e += 4
    while e < len(rows):
        a, p = weights[e], table[rows[e]]
        for k in range(len(total)):
            total[k] += a * (_number(p[k]) - centre[k])
        e += 1


def images(numbers: Tensor, keys: Tensor, n: int, low_bits: int, high_bits: int) -> Tensor:
    """As ``Permutation.__call__``."""
    flat = numbers.reshape(-1).numpy()
    out = np.empty(len(flat), np.int64)
    network = _network(keys, n, low_bits, high_bits)
    run_in_ranges(_images, (equal_ranges(len(flat)), flat, network, out))
    return torch.from_numpy(out).view(numbers.shape)


def pool_rows(
    graph,
    nodes: Tensor,
    offsets: Tensor,
    table,
    permutation,
    known_rows=None,
    centre=None,
    scales_rows: bool = False,
) -> Tensor:
    """As `Neighbourhoods.pool`.

    Args:
        graph: the `Neighbourhoods`.
        nodes: ``[B]``.
        offsets: ``[B]``, from 0 to 1.
        table: a tensor ``[N, F]``, or of a sparse table starts ``[N + 1]``, columns ``[S]``,
            entries ``[S]``, and F.
        permutation: of the rows of the table, or None.
        known_rows: the products that are known already, or None.
        centre: ``[F]``, subtracted from every row of the table; None: nothing is.
        scales_rows: whether every row of the table is first scaled to a sum of 1.
    """
    is_sparse = isinstance(table, tuple)
    if is_sparse:
        table_starts, table_columns, entries, width = table
        n = len(table_starts) - 1
    else:
        entries = table.contiguous().numpy()
        n, width = entries.shape
    in_half_precision = entries.dtype == np.float16
    dtype = np.float32 if in_half_precision else entries.dtype

    node_rows = nodes.numpy()
    out = np.empty((len(node_rows), width), dtype)
    if known_rows is None:
        known_values, is_known = out[:0], np.empty(0, np.bool_)
    else:
        known_values, is_known = known_rows

    # Ranges with about as many rows to read each.
    starts = graph.starts.numpy()
    rows_to_read = np.minimum(starts[node_rows + 1] - starts[node_rows], graph.cap) + 1
    if len(is_known):
        rows_to_read[is_known[node_rows]] = 1
    read_starts = np.concatenate([[0], rows_to_read.cumsum()])
    ranges_per_thread = min(MOST_RANGES_PER_THREAD, 1 + len(node_rows) // ROWS_PER_RANGE)
    bounds = ranges_by_entries(read_starts, ranges_per_thread)

    # The images of all nodes, where these are fewer than the images that are needed.
    all_images = np.empty(0, np.int32)
    if permutation is None:
        network = _network(torch.empty(0, dtype=torch.int32), n, 1, 1)
    else:
        network = _network(permutation.keys, permutation.n, *permutation.bits)
        if read_starts[-1] >= permutation.n:
            all_images = permutation.images.numpy()

    # An empty array stands for None, since the kernel is compiled for one type of each argument.
    nothing = np.empty(0, np.float32)
    graph_arrays = (
        starts,
        graph.senders.numpy(),
        nothing if graph.weights is None else graph.weights.numpy(),
        graph.receiver_factors.numpy(),
        nothing if graph.sender_factors is None else graph.sender_factors.numpy(),
        graph.cap,
        int(graph.loops),
    )
    if centre is None:
        centre = np.zeros(width, dtype)
    if is_sparse and not centre.any():
        centre = centre[:0]
    if in_half_precision:
        entries = entries.view(np.uint16)
    table_arrays = (table_starts, table_columns, entries) if is_sparse else entries

    run_in_ranges(
        _pool_rows,
        (
            bounds, graph_arrays, node_rows, offsets.numpy(), table_arrays, centre, scales_rows,
            network, all_images, known_values, is_known, out,
        ),
    )  # fmt: skip
    return torch.from_numpy(out)


def _network(keys: Tensor, n: int, low_bits: int, high_bits: int):
    """The numbers of a `Permutation` as numba takes them: without a sign."""
    unsigned_keys = keys.numpy().astype(np.int64).astype(np.uint64) & LOWEST_32_BITS
    return unsigned_keys, np.uint64(n), np.uint64(low_bits), np.uint64(high_bits)
