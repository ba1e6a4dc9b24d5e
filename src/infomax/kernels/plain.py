"""The kernels of `infomax.kernels.Backend` in plain torch, on any device and in any precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import embedding_bag, softplus

from infomax.kernels.ranks import Portion

if TYPE_CHECKING:
    from infomax.kernels import Adam

Outcome: TypeAlias = tuple[Tensor, tuple[Tensor, ...]]
"""The record of a step ``[3]``, and the gradients of its loss."""
ENTRIES_PER_PIECE = 64
"""Entries of a row that a GPU adds one after the other."""


@dataclass(frozen=True)
class Pieces:
    """A CSR matrix ``[M, N]`` on a GPU, its rows cut into pieces; cuSPARSE adds in any order, these in the same always.

    Shapes:
        columns, values: ``[entries]``
        first: ``[pieces]``, the first entry of each piece; some pieces after the last may be empty
        rows: ``[M]``, the first piece of each row
    """

    shape: torch.Size
    columns: Tensor
    values: Tensor
    first: Tensor
    rows: Tensor

    @classmethod
    def of(cls, matrix: Tensor) -> Pieces:
        """Cut the rows of a matrix; the number of pieces depends on shapes only, so that no step waits for the host."""
        starts, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        num_rows, num_entries = len(starts) - 1, len(columns)
        pieces_of_row = (starts.diff() + ENTRIES_PER_PIECE - 1) // ENTRIES_PER_PIECE
        last_piece_of_row = pieces_of_row.cumsum(0)
        first_piece_of_row = last_piece_of_row - pieces_of_row

        most_pieces = num_rows + num_entries // ENTRIES_PER_PIECE
        pieces = torch.arange(most_pieces, device=starts.device)
        row_of_piece = torch.searchsorted(last_piece_of_row, pieces, right=True)
        row_of_piece = row_of_piece.clamp(max=num_rows - 1)
        number_in_row = pieces - first_piece_of_row[row_of_piece]
        first_entry = starts[row_of_piece] + ENTRIES_PER_PIECE * number_in_row
        first_entry = first_entry.clamp(max=num_entries)
        return cls(matrix.shape, columns, values, first_entry, first_piece_of_row)

    def product(self, y: Tensor) -> Tensor:
        """The product ``[M, D]`` with y ``[N, D]``."""
        sums = embedding_bag(
            self.columns, y, self.first, mode="sum", per_sample_weights=self.values.to(y.dtype)
        )
        return embedding_bag(torch.arange(len(sums), device=y.device), sums, self.rows, mode="sum")


def product(matrix: Tensor | Pieces, y: Tensor) -> Tensor:
    """As `Backend.product`."""
    if isinstance(matrix, Pieces):
        return matrix.product(y)
    if y.dim() == 3:
        return torch.stack([product(matrix, part) for part in y])
    # With a reduction torch writes the result once; without one it clears it, adds to it and copies it.
    return torch.sparse.mm(matrix, y.contiguous(), reduce="sum")  # type: ignore[no-any-return]


def linear(
    y: Tensor, product: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a product of a constant matrix and y; ``back`` is the product of its transpose and a gradient."""
    return _Linear.apply(y, product, back)  # type: ignore[no-any-return, no-untyped-call]


def permute(y: Tensor, rows: Tensor) -> Tensor:
    """Return ``y[rows]`` for a permutation; the gradient is a gather too, not a scatter."""
    return linear(
        y, lambda y: y.index_select(0, rows), lambda grad: grad.index_select(0, inverse(rows))
    )


def column_sum(x: Tensor) -> Tensor:
    """Sum over rows, ``[N, d] -> [d]``, as a product with ones, which is faster than ``sum(0)`` on a CPU."""
    return x.new_ones(len(x)) @ x


def bias_prelu(bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:
    """As `Backend.bias_prelu`."""
    z = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    if not torch.is_grad_enabled():
        return torch.prelu(z + bias, slope)
    if z.is_cuda:
        return functional.prelu(z + bias, slope)
    return _BiasPReLU.apply(z, bias, slope)  # type: ignore[no-any-return, no-untyped-call]


def pair_loss(
    z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None
) -> Outcome:
    """As `Backend.pair_loss`."""
    bias, slope, weight, offset = last
    is_padded = portion is not None and portion.real is not None
    portion = portion or Portion(len(z), len(z) + len(z_negative))
    n, total = portion.nodes, portion.total
    # 1 for a node, 0 for padding.
    real, real_negative = portion.real or (z.new_ones(len(z)), z.new_ones(len(z_negative)))

    # Forward: H, H~, the summary s, v = W s, and the scores.
    u = z.add_(bias)
    u_negative = z_negative.add_(bias)
    h = _leaky(u, slope)
    h_negative = _leaky(u_negative, slope)
    summary = torch.sigmoid(portion.sum(real @ h)[0] / n)
    v = weight @ summary
    scores = h @ v + offset
    scores_negative = h_negative @ v + offset

    # Cross-entropy, and how many scores have the right sign.
    loss = (softplus(-scores) * real).sum() + (softplus(scores_negative) * real_negative).sum()
    right = (real * (scores > 0)).sum() + (real_negative * (scores_negative < 0)).sum()

    # Backward: g, the gradient of the mean loss by each score; then through v, and through the summary.
    g = -torch.sigmoid(-scores) * real / total
    g_negative = torch.sigmoid(scores_negative) * real_negative / total
    v_part = g @ h + g_negative @ h_negative
    offset_part = g.sum() + g_negative.sum()
    v_grad, offset_grad, loss, right = portion.sum(v_part, offset_part, loss, right)
    summary_row = (v_grad @ weight) * summary * (1 - summary) / n
    if is_padded:
        summary_row = torch.outer(real, summary_row)

    # Through the PReLU; H and H~ are not needed any more, so their memory takes the gradients.
    h_grad = torch.addcmul(summary_row, g[:, None], v, out=h)
    grad, bias_grad, slope_grad = _through(h_grad, u, slope)
    h_negative_grad = torch.outer(g_negative, v, out=h_negative)
    grad_negative, bias_more, slope_more = _through(h_negative_grad, u_negative, slope)

    record = torch.stack([loss / total, right / total, summary.std(correction=0)])
    return record, (
        grad,
        grad_negative,
        bias_grad + bias_more,
        slope_grad + slope_more,
        torch.outer(v_grad, summary),
        offset_grad,
    )


def shuffle_loss(
    matrix: Tensor, transpose: Tensor, rows: Tensor, y: Tensor, *last: Tensor
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    record, (grad, grad_negative, *gradients) = pair_loss(*pair_product(matrix, rows, y), *last)
    return record, (pair_gradient(transpose, rows, (grad, grad_negative)), *gradients)


def pair_product(matrix: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """As `Backend.pair_product`."""
    return product(matrix, y), product(matrix, y.index_select(0, rows))


def pair_gradient(transpose: Tensor, rows: Tensor, grads: Iterable[Tensor]) -> Tensor:
    """As `Backend.pair_gradient`."""
    grad, grad_negative = grads
    return (
        product(transpose, grad_negative)
        .index_select(0, inverse(rows))
        .add_(product(transpose, grad))
    )


def inverse(rows: Tensor) -> Tensor:
    """Invert a permutation ``[n]``."""
    return torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))


def add_record(
    record: Tensor,
    sums: Tensor,
    curve: Tensor,
    lowest: Tensor,
    counts: Tensor,
    steps: int,
    patience: int,
    last: bool,
) -> None:
    """Add a step's record ``[k]`` to the sums; after an epoch's last step, store its mean. See `Ledger`."""
    sums += record
    if not last:
        return

    mean = sums / steps
    epoch, kept_epoch, waited = counts.unbind()
    is_better = (mean[0] < lowest) & (waited < patience)
    curve.index_copy_(0, epoch.view(1) % len(curve), mean[None])
    lowest.copy_(torch.where(is_better, mean[0], lowest))
    next_kept_epoch = torch.where(is_better, epoch, kept_epoch)
    next_waited = torch.where(is_better, 0, waited + 1)
    counts.copy_(torch.stack([epoch + 1, next_kept_epoch, next_waited]))
    sums.zero_()


def adam(
    state: Adam, gradients: list[Tensor], kept: list[Tensor] | None, waited: Tensor | None
) -> None:
    """As `Adam.step`."""
    if kept and waited is not None:
        if waited.is_cuda:
            for before, weight in zip(kept, state.weights, strict=True):
                torch.where(waited == 0, weight, before, out=before)
        elif waited == 0:
            torch._foreach_copy_(kept, state.weights)
    rate = state.next_rate()
    state.count += 1
    # The function that `torch.optim.Adam` runs; the class itself first imports a compiler, which takes 1.5 s.
    torch._fused_adam_(
        state.weights, gradients, state.means, state.variances, [], [state.count] * len(gradients),
        lr=rate, beta1=0.9, beta2=0.999, weight_decay=0, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip


def _leaky(u: Tensor, slope: Tensor) -> Tensor:
    """Apply PReLU; on a CPU by the kernel for a scalar slope, which is faster than ``prelu``."""
    return torch.prelu(u, slope) if u.is_cuda else functional.leaky_relu(u, slope.item())


def _through(grad: Tensor, u: Tensor, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a PReLU's input, of its bias and of its slope."""
    slope_grad = torch.dot(grad.reshape(-1), u.clamp(max=0).reshape(-1)).view(1)
    if u.is_cuda:
        grad = torch.where(u > 0, grad, grad * slope)
    else:
        grad = torch.ops.aten.leaky_relu_backward(grad, u, slope.item(), False)
    return grad, column_sum(grad), slope_grad


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, y: Tensor, product: Callable[..., Tensor], back: Callable[..., Tensor]
    ) -> Tensor:
        ctx.back = back
        return product(y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(grads[0]), None, None


class _BiasPReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor, slope: Tensor) -> Tensor:
        u = z + bias
        ctx.save_for_backward(u, slope)
        return _leaky(u, slope)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _through(grads[0], *ctx.saved_tensors)
