"""Sparse times dense where the dense factor has few rows, each read many times: X Θ and Xᵀ G of a
citation graph.

With one program per row, every entry reads a row of Y from the L2 cache, and these reads limit the
speed. Here each program reads one slice of Y's columns only, a good part of which fits into the L1
cache of its multiprocessor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from infomax.kernels.gpu.cuts import Cut, fold

LONGEST_PIECE = 64
"""Entries of a row that one lane of a program adds; a longer row is cut."""
PIECES_PER_TILE = 64
ENTRIES_PER_STEP = 4
"""Entries of each piece whose loads are on their way together."""
COLUMN_SLICES, ROW_SHARES = 8, 16
"""Slices of the columns and shares of the rows: one program for each pair, 128 in all."""
MOST_ROWS = 1 << 12
"""Rows of Y up to which tiles are faster."""
WIDTHS = (512, 1024)


@dataclass(frozen=True)
class Tiles:
    """A CSR matrix whose cut rows are grouped in T tiles of `PIECES_PER_TILE` pieces, entry k of
    all of them contiguous.

    A tile has pieces of similar length, the longest first. Shares take tiles in alternating order,
    so that all have similar work. Pieces shorter than their tile are padded with zeros at column 0.

    Shapes:
        pieces: ``[T * PIECES_PER_TILE]``, the number of each piece in the cut, -1 where there is
            none
        begin: ``[T]``, where the entries of a tile begin
        length: ``[T]``, of its pieces, a multiple of `ENTRIES_PER_STEP`
        columns, values: ``[sum of length * PIECES_PER_TILE]`` plus one step, which is prefetched
            and not used
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
        cut = Cut.of(matrix, LONGEST_PIECE)
        sizes = cut.last - cut.first
        order = sizes.argsort(descending=True)
        device = order.device

        # Deal the pieces out in rounds, every other round in reverse: [rounds, shares, pieces].
        rounds = -(-len(order) // (ROW_SHARES * PIECES_PER_TILE))
        pieces = order.new_full((rounds * ROW_SHARES * PIECES_PER_TILE,), -1)
        pieces[: len(order)] = order
        pieces = pieces.view(rounds, ROW_SHARES, PIECES_PER_TILE)
        pieces[1::2] = pieces[1::2].flip(1)
        pieces = pieces.view(-1, PIECES_PER_TILE)
        length = torch.where(pieces < 0, 0, sizes[pieces]).amax(1)
        length = (length + ENTRIES_PER_STEP - 1) // ENTRIES_PER_STEP * ENTRIES_PER_STEP
        begin = (length.cumsum(0) - length) * PIECES_PER_TILE

        # Where the first entry of each piece goes; the next ones follow a whole row of pieces
        # later.
        first_target = torch.empty_like(order)
        is_piece = pieces >= 0
        targets = begin[:, None] + torch.arange(PIECES_PER_TILE, device=device)
        first_target[pieces[is_piece]] = targets[is_piece]

        # For each entry: its piece, and its number in the piece.
        piece = torch.repeat_interleave(torch.arange(len(order), device=device), sizes)
        number = torch.arange(len(piece), device=device) - (sizes.cumsum(0) - sizes)[piece]
        target = first_target[piece] + number * PIECES_PER_TILE
        source = cut.first[piece] + number

        size = (int(length.sum()) + ENTRIES_PER_STEP) * PIECES_PER_TILE
        columns = torch.zeros(size, dtype=torch.int32, device=device)
        values = cut.values.new_zeros(size)
        columns[target] = cut.columns[source].int()
        values[target] = cut.values[source]
        return cls(cut, pieces.view(-1).int(), begin.int(), length.int(), columns, values)


@triton.jit
def _tiled_product(
    pieces, begin, length, columns, values, y, out, tiles, d,
    SLICES: tl.constexpr, SHARES: tl.constexpr, PIECES: tl.constexpr, CHUNK: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Multiply a share of the tiles by a slice of Y; the next columns and values are fetched while
    Y's rows load."""
    i = tl.arange(0, PIECES)
    y_columns = tl.program_id(0) % SLICES * WIDTH + tl.arange(0, WIDTH)
    for tile in range(tl.program_id(0) // SLICES, tiles, SHARES):
        piece = tl.load(pieces + tile * PIECES + i)
        first = tl.load(begin + tile)
        end = tl.load(length + tile)
        total = tl.zeros((PIECES, WIDTH), tl.float32)
        nodes, weights = (), ()
        for step in tl.static_range(CHUNK):
            nodes += (tl.load(columns + first + step * PIECES + i),)
            weights += (tl.load(values + first + step * PIECES + i),)
        for next_entry in range(CHUNK, end + CHUNK, CHUNK):
            y_rows, next_nodes, next_weights = (), (), ()
            for step in tl.static_range(CHUNK):
                y_rows += (tl.load(y + nodes[step][:, None] * d + y_columns[None, :]),)
            for step in tl.static_range(CHUNK):
                next_nodes += (tl.load(columns + first + (next_entry + step) * PIECES + i),)
                next_weights += (tl.load(values + first + (next_entry + step) * PIECES + i),)
            for step in tl.static_range(CHUNK):
                total += y_rows[step] * weights[step][:, None]
            nodes, weights = next_nodes, next_weights
        tl.store(
            out + piece[:, None].to(tl.int64) * d + y_columns[None, :],
            total,
            (piece >= 0)[:, None],
        )


def fits(y: Tensor) -> bool:
    """Whether Y ``[N, d]`` has few rows and a supported width."""
    return len(y) <= MOST_ROWS and y.shape[1] in WIDTHS


def product(matrix: Tiles, y: Tensor) -> Tensor:
    """Multiply a matrix ``[M, N]`` by a dense ``[N, d]``."""
    y = y.contiguous()
    d = y.shape[1]
    cut = matrix.cut
    out = y.new_empty(len(cut.first), d)
    _tiled_product[(COLUMN_SLICES * ROW_SHARES,)](
        matrix.pieces, matrix.begin, matrix.length, matrix.columns, matrix.values, y, out,
        len(matrix.begin), d,
        COLUMN_SLICES, ROW_SHARES, PIECES_PER_TILE, ENTRIES_PER_STEP, d // COLUMN_SLICES,
        num_warps=32,
    )  # fmt: skip
    fold(cut, out, out[cut.rows :], None)
    return out[: cut.rows]
