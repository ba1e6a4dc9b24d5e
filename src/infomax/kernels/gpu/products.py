"""Sparse times dense: one product, ``matrix @ y``, and the two products of a graph and its shuffle,
``matrix @ y`` and ``matrix @ y[rows]``, with their gradient by y."""

from __future__ import annotations

from functools import cached_property

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu import tiles
from infomax.kernels.gpu.cuts import Cut, blocks, fold, launch_settings

LONGEST_PIECE = 32
"""Entries of a row that one program sums. The rest of a longer row is cut into pieces for other
programs."""


class Sparse:
    """A CSR matrix ``[M, N]`` in the forms that the kernels need; each is computed at first use."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @cached_property
    def cut(self) -> Cut:
        """For one program per row."""
        return Cut.of(self.matrix, LONGEST_PIECE)

    @cached_property
    def tiles(self) -> tiles.Tiles:
        """For one program per slice of columns and share of rows."""
        return tiles.Tiles.of(self.matrix)


@triton.jit
def _fetch(address, inside):
    """Load with volatile semantics, so that the compiler does not move it: many loads start before
    the first is used.

    Otherwise the compiler moves each load next to its use, and a row waits for its neighbours one
    after another.
    """
    return tl.load(address, inside, 0, volatile=True)


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
    """Multiply a piece by Y; in a grid of two layers, the second layer multiplies by ``Y[rows]``.

    With ``rows`` ``[n]``, their inverse is written, too.
    """
    piece = tl.program_id(0).to(tl.int64)
    y_columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    shuffled = tl.program_id(2) == 1
    begin, end = tl.load(first + piece), tl.load(last + piece)
    total = tl.zeros((COLUMNS,), tl.float32)
    for entry in range(begin, end, CHUNK):
        nodes, weights, shuffled_nodes, y_rows = (), (), (), ()
        for step in tl.static_range(CHUNK):
            nodes += (_fetch(columns + entry + step, entry + step < end).to(tl.int64),)
            weights += (_fetch(values + entry + step, entry + step < end),)
        if rows is not None:
            for step in tl.static_range(CHUNK):
                shuffled_nodes += (_fetch(rows + nodes[step], (entry + step < end) & shuffled),)
        for step in tl.static_range(CHUNK):
            node = (
                nodes[step]
                if rows is None
                else tl.where(shuffled, shuffled_nodes[step], nodes[step])
            )
            y_rows += (_fetch(y + node * d + y_columns, (entry + step < end) & (y_columns < d)),)
        for step in tl.static_range(CHUNK):
            total += y_rows[step] * weights[step]
    tl.store(
        out + (tl.program_id(2).to(tl.int64) * tl.num_programs(0) + piece) * d + y_columns,
        total,
        y_columns < d,
    )
    if rows is not None:  # noqa: SIM102  this condition is known at compile time
        if shuffled & (tl.program_id(1) == 0) & (piece < n):
            tl.store(inverse + tl.load(rows + piece), piece)


@triton.jit
def _through_piece(
    begin, end, columns, values, z, bias, slope, g, v, c, d, z_columns, CHUNK: tl.constexpr
):
    """Multiply a piece by the gradient of z, (g_i v + c) through the PReLU, computed on the fly."""
    total = tl.zeros_like(v)
    for entry in range(begin, end, CHUNK):
        nodes, weights, node_gradients, z_rows = (), (), (), ()
        for step in tl.static_range(CHUNK):
            nodes += (_fetch(columns + entry + step, entry + step < end).to(tl.int64),)
            weights += (_fetch(values + entry + step, entry + step < end),)
        for step in tl.static_range(CHUNK):
            node_gradients += (_fetch(g + nodes[step], entry + step < end),)
        for step in tl.static_range(CHUNK):
            z_rows += (
                _fetch(z + nodes[step] * d + z_columns, (entry + step < end) & (z_columns < d)),
            )
        for step in tl.static_range(CHUNK):
            weight = tl.where(z_rows[step] + bias > 0, weights[step], weights[step] * slope)
            total += weight * (node_gradients[step] * v + c)
    return total


@triton.jit
def _pair_gradient(
    pieces, views, inverse, judgement, out, n, extra, d,
    COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Compute rows of both views; then the extra pieces of the first view's long rows, then those
    of the second."""
    first, last, columns, values = pieces
    z, z_negative = views
    bias, slope, g, v, c = judgement
    row = tl.program_id(0).to(tl.int64)
    z_columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    bias_part = tl.load(bias + z_columns, z_columns < d, 0.0)
    v_part = tl.load(v + z_columns, z_columns < d, 0.0)
    c_part = tl.load(c + z_columns, z_columns < d, 0.0)
    slope_value = tl.load(slope)
    total = tl.zeros((COLUMNS,), tl.float32)
    if row < n + extra:
        begin, end = tl.load(first + row), tl.load(last + row)
        total += _through_piece(
            begin, end, columns, values, z, bias_part, slope_value, g, v_part, c_part, d,
            z_columns, CHUNK,
        )  # fmt: skip
    if (row < n) | (row >= n + extra):
        piece = tl.load(inverse + row, row < n, 0) if row < n else row - extra
        begin, end = tl.load(first + piece), tl.load(last + piece)
        total += _through_piece(
            begin, end, columns, values, z_negative, bias_part, slope_value, g + n, v_part, 0.0, d,
            z_columns, CHUNK,
        )  # fmt: skip
    tl.store(out + row * d + z_columns, total, z_columns < d)


def product(matrix: Sparse, y: Tensor) -> Tensor:
    """Multiply a matrix ``[M, N]`` by a dense ``[N, d]``."""
    y = y.contiguous()
    d = y.shape[1]
    if tiles.fits(y):
        return tiles.product(matrix.tiles, y)
    cut = matrix.cut
    out = y.new_empty(len(cut.first), d)
    _product[len(out), blocks(d)](
        *cut.pieces, y, None, None, out, cut.rows, d, CHUNK=8, **launch_settings(d)
    )
    fold(cut, out, out[cut.rows :], None)
    return out[: cut.rows]


def pair(matrix: Sparse, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``P Y`` and ``P Y[rows]``, ``[N, d]`` each, and the inverse of the permutation
    ``rows`` ``[N]``."""
    y = y.contiguous()
    n, d = y.shape
    cut = matrix.cut
    z = y.new_empty(2, len(cut.first), d)
    inverse = torch.empty_like(rows)
    _product[len(cut.first), blocks(d), 2](
        *cut.pieces, y, rows, inverse, z, n, d, CHUNK=4, **launch_settings(d)
    )
    # Sums of extra pieces of both views; the second's lie as far behind its rows as the first's.
    fold(cut, z, z[0, n:], None)
    return z[0, :n], z[1, :n], inverse


def pair_gradient(
    transpose: Sparse,
    views: tuple[Tensor, Tensor],
    rows: Tensor,
    inverse: Tensor,
    judgement: tuple[Tensor, ...],
) -> Tensor:
    """Return the gradient by Y ``[N, d]`` of what follows `pair`.

    Args:
        transpose: the transpose of P.
        views: ``P Y`` and ``P Y[rows]``.
        rows: the permutation ``[N]``.
        inverse: its inverse.
        judgement: bias, slope, and g, v and c of `infomax.kernels.gpu.loss.Judgement`.
    """
    n, d = views[0].shape
    cut = transpose.cut
    extra = len(cut.first) - n
    out = views[0].new_empty(n + 2 * extra, d)
    _pair_gradient[len(out), blocks(d)](
        cut.pieces, views, inverse, judgement, out, n, extra, d, CHUNK=4, **launch_settings(d)
    )
    fold(cut, out, out[n:], None)
    # Row i of the product with the shuffled view is the gradient of row rows[i] of Y.
    fold(cut, out, out[n + extra :], rows)
    return out[:n]
