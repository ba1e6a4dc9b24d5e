"""Sparse times dense where the dense factor is short, and so read many times: X Θ and Xᵀ G of a citation graph.

A row at a time, every entry costs a row of Y from the L2 cache, which is all that such a product waits for. Here each
multiprocessor keeps to one slice of Y's columns, of which the cache beside it holds a good part.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.cuts import Cut, fold

LONGEST = 64
PIECES, CHUNK = 64, 4
SLICES, SHARES = 8, 16
"""Of the columns, of the rows: a program each, all at once on any GPU with 128 multiprocessors."""
SHORT = 1 << 12
"""Rows of Y up to which this pays."""


@dataclass(frozen=True)
class Tiles:
    """A CSR matrix whose rows, cut, are dealt out to tiles of `PIECES`, entry k of all of them side by side.

    Tiles are of pieces alike in length, the longest first, and dealt to and fro so that shares come out alike. What a
    piece has less than its tile is filled with zeros at column 0.

    Shapes:
        pieces: ``[T * PIECES]``, -1 where there is none
        begin: ``[T]``, where a tile's entries are; length: ``[T]``, of its pieces, a multiple of `CHUNK`
        columns, values: ``[sum of length * PIECES]`` and a chunk more, which is read ahead and not used
    """

    cut: Cut
    pieces: Tensor
    begin: Tensor
    length: Tensor
    columns: Tensor
    values: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Tiles:
        """The matrix in tiles."""
        cut = Cut.of(matrix, LONGEST)
        sizes = cut.last - cut.first
        order = sizes.argsort(descending=True)
        rounds = -(-len(order) // (SHARES * PIECES))
        pieces = order.new_full((rounds * SHARES * PIECES,), -1)
        pieces[: len(order)] = order
        pieces = pieces.view(rounds, SHARES, PIECES)
        pieces[1::2] = pieces[1::2].flip(1)
        pieces = pieces.view(-1, PIECES)
        length = torch.where(pieces < 0, 0, sizes[pieces]).amax(1)
        length = (length + CHUNK - 1) // CHUNK * CHUNK
        begin = (length.cumsum(0) - length) * PIECES
        place = torch.empty_like(order)  # where a piece's first entry goes
        place[pieces[pieces >= 0]] = (begin[:, None] + torch.arange(PIECES, device=order.device))[pieces >= 0]
        piece = torch.repeat_interleave(torch.arange(len(order), device=order.device), sizes)
        number = torch.arange(len(piece), device=order.device) - (sizes.cumsum(0) - sizes)[piece]
        size = (int(length.sum()) + CHUNK) * PIECES
        columns, values = torch.zeros(size, dtype=torch.int32, device=order.device), cut.values.new_zeros(size)
        columns[place[piece] + number * PIECES] = cut.columns[cut.first[piece] + number].int()
        values[place[piece] + number * PIECES] = cut.values[cut.first[piece] + number]
        return cls(cut, pieces.view(-1).int(), begin.int(), length.int(), columns, values)


@triton.jit
def _tiled(
    pieces,
    begin,
    length,
    columns,
    values,
    y,
    out,
    tiles,
    d,
    SLICES: tl.constexpr,
    SHARES: tl.constexpr,
    PIECES: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """A share of the tiles times a slice of Y; the next chunk of columns and values is fetched while Y's rows come."""
    i, at = tl.arange(0, PIECES), tl.program_id(0) % SLICES * WIDTH + tl.arange(0, WIDTH)
    for tile in range(tl.program_id(0) // SLICES, tiles, SHARES):
        piece, first, end = tl.load(pieces + tile * PIECES + i), tl.load(begin + tile), tl.load(length + tile)
        total = tl.zeros((PIECES, WIDTH), tl.float32)
        nodes, weights = (), ()
        for step in tl.static_range(CHUNK):
            nodes += (tl.load(columns + first + step * PIECES + i),)
            weights += (tl.load(values + first + step * PIECES + i),)
        for ahead in range(CHUNK, end + CHUNK, CHUNK):
            found, next_nodes, next_weights = (), (), ()
            for step in tl.static_range(CHUNK):
                found += (tl.load(y + nodes[step][:, None] * d + at[None, :]),)
            for step in tl.static_range(CHUNK):
                next_nodes += (tl.load(columns + first + (ahead + step) * PIECES + i),)
                next_weights += (tl.load(values + first + (ahead + step) * PIECES + i),)
            for step in tl.static_range(CHUNK):
                total += found[step] * weights[step][:, None]
            nodes, weights = next_nodes, next_weights
        tl.store(out + piece[:, None].to(tl.int64) * d + at[None, :], total, (piece >= 0)[:, None])


def fits(y: Tensor) -> bool:
    """Whether Y ``[N, d]`` is short, and its slices as wide as a warp reads at once."""
    return len(y) <= SHORT and y.shape[1] in (512, 1024)


def product(matrix: Tiles, y: Tensor) -> Tensor:
    """A matrix ``[M, N]`` times a dense ``[N, d]``."""
    y, d = y.contiguous(), y.shape[1]
    cut, out = matrix.cut, y.new_empty(len(matrix.cut.first), d)
    arrays = matrix.pieces, matrix.begin, matrix.length, matrix.columns, matrix.values
    shape = SLICES, SHARES, PIECES, CHUNK, d // SLICES
    _tiled[(SLICES * SHARES,)](*arrays, y, out, len(matrix.begin), d, *shape, num_warps=32)
    fold(cut, out, out[cut.rows :], None)
    return out[: cut.rows]
