"""Sparse times dense: one product, and the two products of a graph and its shuffle."""

from __future__ import annotations

from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu import tiles
from infomax.kernels.gpu.cuts import Cut, blocks, fold, shape

LONGEST = 32
"""Entries of a row that one program sums. The rest of a longer row is cut into pieces for other programs."""


class Sparse:
    """A CSR matrix ``[M, N]`` in the forms that the kernels need; each is computed at first use."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @cached_property
    def cut(self) -> Cut:
        """For one program per row."""
        return Cut.of(self.matrix, LONGEST)

    @cached_property
    def tiles(self) -> tiles.Tiles:
        """For one program per slice of columns and share of rows."""
        return tiles.Tiles.of(self.matrix)


@triton.jit
def _fetch(place, there):
    """Load with volatile semantics, so that the compiler does not move it: many loads start before the first is used.

    Otherwise the compiler moves each load next to its use, and a row waits for its neighbours one after another.
    """
    return tl.load(place, there, 0, volatile=True)


@triton.jit
def _product(
    first,
    last,
    columns,
    values,
    y,
    rows,
    inverse,
    out,
    n,
    d,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Multiply a piece by Y; in a grid of two layers, the second layer multiplies by ``Y[rows]``."""
    piece, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    shuffled = tl.program_id(2) == 1
    begin, end = tl.load(first + piece), tl.load(last + piece)
    total = tl.zeros((COLUMNS,), tl.float32)
    for place in range(begin, end, CHUNK):
        nodes, weights, moved, found = (), (), (), ()
        for step in tl.static_range(CHUNK):
            nodes += (_fetch(columns + place + step, place + step < end).to(tl.int64),)
            weights += (_fetch(values + place + step, place + step < end),)
        if rows is not None:
            for step in tl.static_range(CHUNK):
                moved += (_fetch(rows + nodes[step], (place + step < end) & shuffled),)
        for step in tl.static_range(CHUNK):
            node = nodes[step] if rows is None else tl.where(shuffled, moved[step], nodes[step])
            found += (_fetch(y + node * d + at, (place + step < end) & (at < d)),)
        for step in tl.static_range(CHUNK):
            total += found[step] * weights[step]
    tl.store(
        out + (tl.program_id(2).to(tl.int64) * tl.num_programs(0) + piece) * d + at, total, at < d
    )
    if rows is not None:  # noqa: SIM102  this condition is known at compile time
        if shuffled & (tl.program_id(1) == 0) & (piece < n):
            tl.store(inverse + tl.load(rows + piece), piece)


@triton.jit
def _through(begin, end, columns, values, z, bias, slope, g, v, c, d, at, CHUNK: tl.constexpr):
    """Multiply a piece by the gradient of z, which is computed on the fly."""
    total = tl.zeros_like(v)
    for place in range(begin, end, CHUNK):
        nodes, weights, slants, found = (), (), (), ()
        for step in tl.static_range(CHUNK):
            nodes += (_fetch(columns + place + step, place + step < end).to(tl.int64),)
            weights += (_fetch(values + place + step, place + step < end),)
        for step in tl.static_range(CHUNK):
            slants += (_fetch(g + nodes[step], place + step < end),)
        for step in tl.static_range(CHUNK):
            found += (_fetch(z + nodes[step] * d + at, (place + step < end) & (at < d)),)
        for step in tl.static_range(CHUNK):
            weight = tl.where(found[step] + bias > 0, weights[step], weights[step] * slope)
            total += weight * (slants[step] * v + c)
    return total


@triton.jit
def _pair_gradient(
    pieces, views, inverse, judged, out, n, left, d, COLUMNS: tl.constexpr, CHUNK: tl.constexpr
):
    """Compute rows of both views; then the other pieces of the first view's long rows, then those of the second."""
    first, last, columns, values = pieces
    z, z_negative = views
    bias, slope, g, v, c = judged
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    b, along, push = (
        tl.load(bias + at, at < d, 0.0),
        tl.load(v + at, at < d, 0.0),
        tl.load(c + at, at < d, 0.0),
    )
    a, total = tl.load(slope), tl.zeros((COLUMNS,), tl.float32)
    if row < n + left:
        begin, end = tl.load(first + row), tl.load(last + row)
        total += _through(begin, end, columns, values, z, b, a, g, along, push, d, at, CHUNK)
    if (row < n) | (row >= n + left):
        other = tl.load(inverse + row, row < n, 0) if row < n else row - left
        begin, end = tl.load(first + other), tl.load(last + other)
        total += _through(
            begin, end, columns, values, z_negative, b, a, g + n, along, 0.0, d, at, CHUNK
        )
    tl.store(out + row * d + at, total, at < d)


def product(matrix: Sparse, y: Tensor) -> Tensor:
    """Multiply a matrix ``[M, N]`` by a dense ``[N, d]``."""
    y, d = y.contiguous(), y.shape[1]
    if tiles.fits(y):
        return tiles.product(matrix.tiles, y)
    cut = matrix.cut
    out = y.new_empty(len(cut.first), d)
    _product[len(out), blocks(d)](*cut.pieces, y, None, None, out, cut.rows, d, CHUNK=8, **shape(d))
    fold(cut, out, out[cut.rows :], None)
    return out[: cut.rows]


def pair(matrix: Sparse, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``P Y`` and ``P Y[rows]``, ``[N, d]`` each, and the inverse of the permutation ``rows`` ``[N]``."""
    y, (n, d), cut = y.contiguous(), y.shape, matrix.cut
    z, inverse = y.new_empty(2, len(cut.first), d), torch.empty_like(rows)
    _product[len(cut.first), blocks(d), 2](
        *cut.pieces, y, rows, inverse, z, n, d, CHUNK=4, **shape(d)
    )
    fold(cut, z, z[0, n:], None)
    return z[0, :n], z[1, :n], inverse


def pair_gradient(
    transpose: Sparse,
    views: tuple[Tensor, Tensor],
    rows: Tensor,
    inverse: Tensor,
    judged: tuple[Tensor, ...],
) -> Tensor:
    """Return the gradient by Y ``[N, d]`` of what follows `pair`.

    ``judged`` are bias, slope and what `infomax.kernels.gpu.loss.Judgement` calls g, v and c.
    """
    (n, d), cut = views[0].shape, transpose.cut
    left = len(cut.first) - n
    out = views[0].new_empty(n + 2 * left, d)
    _pair_gradient[len(out), blocks(d)](
        cut.pieces, views, inverse, judged, out, n, left, d, CHUNK=4, **shape(d)
    )
    fold(cut, out, out[n:], None)
    fold(cut, out, out[n + left :], rows)
    return out[:n]
