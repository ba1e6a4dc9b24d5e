"""Sparse times dense: alone, and a graph beside its shuffle."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.gpu.launch import follow, kernel

LONGEST = 32
"""Entries of a row that one program adds up. What a longer one has left is cut to pieces, added up beside it."""


@dataclass(frozen=True)
class Cut:
    """A CSR matrix ``[M, N]`` whose long rows are cut.

    Piece p has the entries ``first[p] : last[p]``. The first M pieces begin the rows; the other E are what is left of
    the H long rows, in order.

    Shapes:
        first, last: ``[M + E]``; columns, values: ``[nnz]``
        long: ``[H]``, the long rows; left: ``[H + 1]``, where the pieces left of each begin, counted from M
    """

    rows: int
    first: Tensor
    last: Tensor
    columns: Tensor
    values: Tensor
    long: Tensor
    left: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Cut:
        """The matrix, cut."""
        starts, m = matrix.crow_indices(), matrix.shape[0]
        begin, end = starts[:-1], starts[1:]
        pieces = ((end - begin + LONGEST - 1) // LONGEST - 1).clamp(min=0)
        long = torch.nonzero(pieces)[:, 0]
        left = torch.cat([starts.new_zeros(1), pieces[long].cumsum(0)])
        row = torch.repeat_interleave(long, pieces[long])
        number = torch.arange(len(row), device=row.device) - torch.repeat_interleave(left[:-1], pieces[long])
        more = begin[row] + LONGEST * (number + 1)
        first = torch.cat([begin, more])
        last = torch.cat([torch.minimum(begin + LONGEST, end), torch.minimum(more + LONGEST, end[row])])
        return cls(m, first, last, matrix.col_indices(), matrix.values(), long, left)

    @property
    def pieces(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What a kernel reads."""
        return self.first, self.last, self.columns, self.values


@triton.jit
def _fetch(place, there):
    """Volatile, so that the compiler leaves loads where they are written: many on their way before the first is needed.

    Left alone, it puts each beside its use, and a row then waits for its neighbours one after another.
    """
    return tl.load(place, there, 0, volatile=True)


@kernel
def _product(first, last, columns, values, y, rows, inverse, out, n, d, COLUMNS: tl.constexpr, CHUNK: tl.constexpr):
    """A piece times Y; the second half of a grid of two layers times ``Y[rows]``."""
    follow()
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
    tl.store(out + (tl.program_id(2).to(tl.int64) * tl.num_programs(0) + piece) * d + at, total, at < d)
    if rows is not None:  # noqa: SIM102  the one is known when compiling
        if shuffled & (tl.program_id(1) == 0) & (piece < n):
            tl.store(inverse + tl.load(rows + piece), piece)


@kernel
def _fold(out, spare, long, left, target, height, d, COLUMNS: tl.constexpr):
    """Add what is left of a long row to it: to row ``target[i]`` of ``out`` instead of i where there is a target."""
    follow()
    at = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    layer = tl.program_id(2).to(tl.int64) * height * d
    row = tl.load(long + tl.program_id(0))
    if target is not None:
        row = tl.load(target + row)
    place = out + layer + row * d + at
    total = tl.load(place, at < d, 0.0)
    for piece in range(tl.load(left + tl.program_id(0)), tl.load(left + tl.program_id(0) + 1)):
        total += tl.load(spare + layer + piece * d + at, at < d, 0.0)
    tl.store(place, total, at < d)


@triton.jit
def _through(begin, end, columns, values, z, bias, slope, g, v, c, d, at, CHUNK: tl.constexpr):
    """A piece times the gradient of z, which is made on the way."""
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


@kernel
def _pair_gradient(
    first,
    last,
    columns,
    values,
    z,
    z_negative,
    inverse,
    bias,
    slope,
    g,
    v,
    c,
    out,
    n,
    left,
    d,
    COLUMNS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Rows of both views; then the pieces left of the one, and those left of the other."""
    follow()
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    b, along, push = tl.load(bias + at, at < d, 0.0), tl.load(v + at, at < d, 0.0), tl.load(c + at, at < d, 0.0)
    a, total = tl.load(slope), tl.zeros((COLUMNS,), tl.float32)
    if row < n + left:
        begin, end = tl.load(first + row), tl.load(last + row)
        total += _through(begin, end, columns, values, z, b, a, g, along, push, d, at, CHUNK)
    if (row < n) | (row >= n + left):
        other = tl.load(inverse + row, row < n, 0) if row < n else row - left
        begin, end = tl.load(first + other), tl.load(last + other)
        total += _through(begin, end, columns, values, z_negative, b, a, g + n, along, 0.0, d, at, CHUNK)
    tl.store(out + row * d + at, total, at < d)


def product(matrix: Cut, y: Tensor) -> Tensor:
    """A matrix ``[M, N]`` times a dense ``[N, D]``."""
    y, d = y.contiguous(), y.shape[1]
    out = y.new_empty(len(matrix.first), d)
    _product[_grid(out)](*matrix.pieces, y, None, None, out, matrix.rows, d, CHUNK=8, **_shape(d))
    fold(matrix, out, out[matrix.rows :], None)
    return out[: matrix.rows]


def pair(matrix: Cut, y: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """``P Y`` and ``P Y[rows]``, ``[N, d]`` each, and the inverse of the permutation ``rows`` ``[N]``."""
    y, (n, d) = y.contiguous(), y.shape
    z, inverse = y.new_empty(2, len(matrix.first), d), torch.empty_like(rows)
    _product[*_grid(z[0]), 2](*matrix.pieces, y, rows, inverse, z, n, d, CHUNK=8, **_shape(d))
    fold(matrix, z, z[0, n:], None)
    return z[0, :n], z[1, :n], inverse


def pair_gradient(
    transpose: Cut,
    z: Tensor,
    z_negative: Tensor,
    rows: Tensor,
    inverse: Tensor,
    bias: Tensor,
    slope: Tensor,
    g: Tensor,
    v: Tensor,
    c: Tensor,
) -> Tensor:
    """The gradient of Y ``[N, d]`` behind `pair`; see `infomax.gpu.contrast.Judgement`."""
    (n, d), left = z.shape, len(transpose.first) - transpose.rows
    out = z.new_empty(n + 2 * left, d)
    _pair_gradient[_grid(out)](
        *transpose.pieces, z, z_negative, inverse, bias, slope, g, v, c, out, n, left, d, CHUNK=8, **_shape(d)
    )
    fold(transpose, out, out[n:], None)
    fold(transpose, out, out[n + left :], rows)
    return out[:n]


def fold(matrix: Cut, out: Tensor, spare: Tensor, target: Tensor | None) -> None:
    """Add what is left of long rows to ``out``, ``[rows, d]`` or several of them."""
    if len(matrix.long):
        d, layers = out.shape[-1], out.shape[0] if out.dim() == 3 else 1
        grid = (len(matrix.long), triton.cdiv(d, _columns(d)), layers)
        shape = _shape(d)
        _fold[grid](out, spare, matrix.long, matrix.left, target, out.shape[-2], d, **shape)


def _columns(d: int) -> int:
    return min(max(triton.next_power_of_2(d), 32), 512)


def _grid(out: Tensor) -> tuple[int, int]:
    return len(out), triton.cdiv(out.shape[1], _columns(out.shape[1]))


def _shape(d: int) -> dict[str, int]:
    """Four columns a thread: 16 bytes, the most that one load brings."""
    return {"COLUMNS": _columns(d), "num_warps": max(_columns(d) // 128, 1)}
