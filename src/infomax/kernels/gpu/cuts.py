"""Long rows of a sparse matrix cut into pieces, so that no program runs much longer than the others."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Cut:
    """A CSR matrix ``[M, N]`` whose long rows are cut.

    Piece p has the entries ``first[p] : last[p]``. The first M pieces are the beginnings of the rows; the other E are
    the rest of the H long rows, in order.

    Shapes:
        first, last: ``[M + E]``; columns, values: ``[nnz]``
        long: ``[H]``, the long rows; left: ``[H + 1]``, where the other pieces of each begin, counted from M
    """

    rows: int
    first: Tensor
    last: Tensor
    columns: Tensor
    values: Tensor
    long: Tensor
    left: Tensor

    @classmethod
    def of(cls, matrix: Tensor, longest: int) -> Cut:
        """Cut the rows of a matrix into pieces of at most ``longest`` entries."""
        starts, m = matrix.crow_indices(), matrix.shape[0]
        begin, end = starts[:-1], starts[1:]
        pieces = ((end - begin + longest - 1) // longest - 1).clamp(min=0)
        long = torch.nonzero(pieces)[:, 0]
        left = torch.cat([starts.new_zeros(1), pieces[long].cumsum(0)])
        row = torch.repeat_interleave(long, pieces[long])
        number = torch.arange(len(row), device=row.device) - torch.repeat_interleave(
            left[:-1], pieces[long]
        )
        more = begin[row] + longest * (number + 1)
        first = torch.cat([begin, more])
        last = torch.cat(
            [torch.minimum(begin + longest, end), torch.minimum(more + longest, end[row])]
        )
        return cls(m, first, last, matrix.col_indices(), matrix.values(), long, left)

    @property
    def pieces(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The arrays that a kernel reads."""
        return self.first, self.last, self.columns, self.values


@triton.jit
def _fold(out, spare, long, left, target, height, d, COLUMNS: tl.constexpr):
    """Add the other pieces of long row i to row i of ``out``, or to row ``target[i]`` if there is a target."""
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


def fold(matrix: Cut, out: Tensor, spare: Tensor, target: Tensor | None) -> None:
    """Add the other pieces of long rows to ``out``, ``[rows, d]`` or several of these."""
    if len(matrix.long):
        d, layers = out.shape[-1], out.shape[0] if out.dim() == 3 else 1
        grid = len(matrix.long), blocks(d), layers
        _fold[grid](out, spare, matrix.long, matrix.left, target, out.shape[-2], d, **shape(d))


def shape(d: int) -> dict[str, int]:
    """Launch settings of a program that computes one row, or 256 columns of it, with one warp."""
    return {"COLUMNS": min(max(triton.next_power_of_2(d), 32), 256), "num_warps": 1}


def blocks(d: int) -> int:
    """Number of such programs per row."""
    return int(triton.cdiv(d, shape(d)["COLUMNS"]))
