"""Sparse times dense where the dense factor has few rows, each read many times: X Θ and Xᵀ G of a citation graph.

With one program per row, every entry reads a row of Y from the L2 cache, and these reads limit the speed. Here each
program reads one slice of Y's columns only, a good part of which fits into the L1 cache of its multiprocessor.
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
"""Slices of the columns and shares of the rows: one program for each pair, 128 in all."""
SHORT = 1 << 12
"""Rows of Y up to which tiles are faster."""


@dataclass(frozen=True)
class Tiles:
    """A CSR matrix whose cut rows are grouped in tiles of `PIECES` pieces, entry k of all of them contiguous.

    A tile has pieces of similar length, the longest first. Shares take tiles in alternating order, so that all have
    similar work. Pieces shorter than their tile are padded with zeros at column 0.

    Shapes:
        pieces: ``[T * PIECES]``, -1 where there is none
        begin: ``[T]``, where a tile's entries begin; length: ``[T]``, of its pieces, a multiple of `CHUNK`
        columns, values: ``[sum of length * PIECES]`` plus one chunk, which is prefetched and not used
    """

    cut: Cut
    pieces: Tensor
    begin: Tensor
    length: Tensor
    columns: Tensor
    values: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Tiles:
        """Convert a CSR matrix to tiles."""
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
        place[pieces[pieces >= 0]] = (begin[:, None] + torch.arange(PIECES, device=order.device))[
            pieces >= 0
        ]
        piece = torch.repeat_interleave(torch.arange(len(order), device=order.device), sizes)
        number = torch.arange(len(piece), device=order.device) - (sizes.cumsum(0) - sizes)[piece]
        size = (int(length.sum()) + CHUNK) * PIECES
        columns, values = (
            torch.zeros(size, dtype=torch.int32, device=order.device),
            cut.values.new_zeros(size),
        )
        columns[place[piece] + number * PIECES] = cut.columns[cut.first[piece] + number].int()
        values[place[piece] + number * PIECES] = cut.values[cut.first[piece] + number]
        return cls(cut, pieces.view(-1).int(), begin.int(), length.int(), columns, values)


@triton.jit
def _tiled(
    pieces, begin, length, columns, values, y, out, tiles, d,
    SLICES: tl.constexpr, SHARES: tl.constexpr, PIECES: tl.constexpr, CHUNK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Multiply a share of the tiles by a slice of Y; the next columns and values are fetched while Y's rows load."""
    i, at = tl.arange(0, PIECES), tl.program_id(0) % SLICES * WIDTH + tl.arange(0, WIDTH)
    for tile in range(tl.program_id(0) // SLICES, tiles, SHARES):
        piece, first, end = (
            tl.load(pieces + tile * PIECES + i),
            tl.load(begin + tile),
            tl.load(length + tile),
        )
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
    """Whether Y ``[N, d]`` has few rows and a supported width."""
    return len(y) <= SHORT and y.shape[1] in (512, 1024)


def product(matrix: Tiles, y: Tensor) -> Tensor:
    """Multiply a matrix ``[M, N]`` by a dense ``[N, d]``."""
    y, d = y.contiguous(), y.shape[1]
    cut, out = matrix.cut, y.new_empty(len(matrix.cut.first), d)
    arrays = matrix.pieces, matrix.begin, matrix.length, matrix.columns, matrix.values
    shape = SLICES, SHARES, PIECES, CHUNK, d // SLICES
    _tiled[(SLICES * SHARES,)](*arrays, y, out, len(matrix.begin), d, *shape, num_warps=32)
    fold(cut, out, out[cut.rows :], None)
    return out[: cut.rows]
