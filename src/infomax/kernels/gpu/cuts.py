"""Long rows of a sparse matrix cut into pieces, so that no program runs much longer than the
others.

A product is then computed in two steps: a sum for each piece, and `fold`, which adds the sums of
the other pieces of a long row to that of its first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor


@dataclass(frozen=True)
class Cut:
    """A CSR matrix ``[M, N]`` whose long rows are cut.

    Piece p has the entries ``first[p] : last[p]``. The first M pieces are the beginnings of the
    rows; the E extra ones continue the H long rows, in order.

    Shapes:
        first, last: ``[M + E]``
        columns, values: ``[entries]``
        long_rows: ``[H]``
        extra_starts: ``[H + 1]``, where the extra pieces of each long row begin, counted from M
    """

    rows: int
    first: Tensor
    last: Tensor
    columns: Tensor
    values: Tensor
    long_rows: Tensor
    extra_starts: Tensor

    @classmethod
    def of(cls, matrix: Tensor, longest: int) -> Cut:
        """Cut the rows of a matrix into pieces of at most ``longest`` entries."""
        starts = matrix.crow_indices()
        row_count = matrix.shape[0]
        begin, end = starts[:-1], starts[1:]
        extra_counts = ((end - begin + longest - 1) // longest - 1).clamp(min=0)
        long_rows = torch.nonzero(extra_counts)[:, 0]
        extra_starts = torch.cat([starts.new_zeros(1), extra_counts[long_rows].cumsum(0)])

        # For each extra piece: its row, and its number among the extra pieces of the row.
        row = torch.repeat_interleave(long_rows, extra_counts[long_rows])
        number = torch.arange(len(row), device=row.device) - torch.repeat_interleave(
            extra_starts[:-1], extra_counts[long_rows]
        )
        extra_begin = begin[row] + longest * (number + 1)
        first = torch.cat([begin, extra_begin])
        last = torch.cat(
            [torch.minimum(begin + longest, end), torch.minimum(extra_begin + longest, end[row])]
        )
        return cls(
            row_count,
            first,
            last,
            matrix.col_indices(),
            matrix.values(),
            long_rows,
            extra_starts,
        )

    @property
    def pieces(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The arrays that a kernel reads."""
        return self.first, self.last, self.columns, self.values


@triton.jit
def _fold(
    out, extra_sums, long_rows, extra_starts, target_rows, layer_rows, d, COLUMNS: tl.constexpr
):
    """Add the extra pieces of a long row i to row i of ``out``, or to row ``target_rows[i]``."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    layer = tl.program_id(2).to(tl.int64) * layer_rows * d
    row = tl.load(long_rows + tl.program_id(0))
    if target_rows is not None:
        row = tl.load(target_rows + row)
    out_row = out + layer + row * d + columns
    total = tl.load(out_row, columns < d, 0.0)
    for piece in range(
        tl.load(extra_starts + tl.program_id(0)), tl.load(extra_starts + tl.program_id(0) + 1)
    ):
        total += tl.load(extra_sums + layer + piece * d + columns, columns < d, 0.0)
    tl.store(out_row, total, columns < d)


def fold(matrix: Cut, out: Tensor, extra_sums: Tensor, target_rows: Tensor | None) -> None:
    """Add the extra pieces of long rows to ``out``, ``[rows, d]`` or several layers of these.

    Args:
        matrix: which rows are long.
        out: the result, of which the first rows hold the sums of the first pieces.
        extra_sums: the sums of the extra pieces, in the memory of ``out``.
        target_rows: ``[rows]``, where a row of the matrix is in ``out``; None: in the same row.
    """
    if len(matrix.long_rows):
        d = out.shape[-1]
        layers = out.shape[0] if out.dim() == 3 else 1
        grid = len(matrix.long_rows), blocks(d), layers
        _fold[grid](
            out, extra_sums, matrix.long_rows, matrix.extra_starts, target_rows, out.shape[-2], d,
            **launch_settings(d),
        )  # fmt: skip


def launch_settings(d: int) -> dict[str, int]:
    """Launch settings of a program that computes one row, or 256 columns of it, with one warp."""
    return {"COLUMNS": min(max(triton.next_power_of_2(d), 32), 256), "num_warps": 1}


def blocks(d: int) -> int:
    """Number of such programs per row."""
    return int(triton.cdiv(d, launch_settings(d)["COLUMNS"]))
