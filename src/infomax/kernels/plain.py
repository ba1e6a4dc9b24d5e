"""The kernels of `infomax.kernels.Backend` in plain torch, on any device and in any precision.

These are the definitions: the kernels of numba and Triton compute the same, up to rounding.
"""

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
    """A CSR matrix ``[M, N]`` on a GPU, its rows cut into pieces.

    cuSPARSE adds the entries of a row in any order; sums over pieces always have the same order.

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
        """Cut the rows of a matrix; the number of pieces depends on shapes only, so that no step
        waits for the host."""
        starts = matrix.crow_indices()
        columns = matrix.col_indices()
        num_rows = len(starts) - 1
        num_entries = len(columns)
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
        return cls(matrix.shape, columns, matrix.values(), first_entry, first_piece_of_row)

    def product(self, y: Tensor) -> Tensor:
        """The product ``[M, D]`` with y ``[N, D]``: sums of the pieces, then sums of these."""
        sums = embedding_bag(
            self.columns, y, self.first, mode="sum", per_sample_weights=self.values.to(y.dtype)
        )
        all_pieces = torch.arange(len(sums), device=y.device)
        return embedding_bag(all_pieces, sums, self.rows, mode="sum")


def product(matrix: Tensor | Pieces, y: Tensor) -> Tensor:
    """As `Backend.product`."""
    if isinstance(matrix, Pieces):
        return matrix.product(y)
    if y.dim() == 3:
        return torch.stack([product(matrix, part) for part in y])
    # With a reduction torch writes the result once; without one it clears, adds and copies it.
    return torch.sparse.mm(matrix, y.contiguous(), reduce="sum")  # type: ignore[no-any-return]


def linear(
    y: Tensor, product: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a product of a constant matrix and y; ``back`` is the product of its transpose and a
    gradient."""
    return _Linear.apply(y, product, back)  # type: ignore[no-any-return, no-untyped-call]


def permute(y: Tensor, rows: Tensor) -> Tensor:
    """Return ``y[rows]`` for a permutation; the gradient is a gather too, not a scatter."""

    def gather(y: Tensor) -> Tensor:
        return y.index_select(0, rows)

    def gather_back(grad: Tensor) -> Tensor:
        return grad.index_select(0, inverse(rows))

    return linear(y, gather, gather_back)


def column_sum(x: Tensor) -> Tensor:
    """Sum over rows, ``[N, d] -> [d]``, as a product with ones, which is faster than ``sum(0)`` on
    a CPU."""
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
    z: Tensor, z_negative: Tensor, *last_weights: Tensor, portion: Portion | None = None
) -> Outcome:
    """As `Backend.pair_loss`: the closed form of the paper's loss and of its gradient."""
    bias, slope, weight, offset = last_weights
    has_padding = portion is not None and portion.node_mask is not None
    portion = portion or Portion(len(z), len(z) + len(z_negative))
    n, total = portion.nodes, portion.total
    # 1 for a node, 0 for padding.
    node_mask, node_mask_negative = portion.node_mask or (
        z.new_ones(len(z)),
        z.new_ones(len(z_negative)),
    )

    # Forward: H, H~, the summary s, v = W s, and the scores.
    u = z.add_(bias)
    u_negative = z_negative.add_(bias)
    h = _prelu(u, slope)
    h_negative = _prelu(u_negative, slope)
    summary = torch.sigmoid(portion.sum(node_mask @ h)[0] / n)
    v = weight @ summary
    scores = h @ v + offset
    scores_negative = h_negative @ v + offset

    # Cross-entropy, and how many scores have the right sign.
    loss = (softplus(-scores) * node_mask).sum() + (
        softplus(scores_negative) * node_mask_negative
    ).sum()
    right = (node_mask * (scores > 0)).sum() + (node_mask_negative * (scores_negative < 0)).sum()

    # Backward: g, the gradient of the mean loss by each score; then through v, and the summary.
    g = -torch.sigmoid(-scores) * node_mask / total
    g_negative = torch.sigmoid(scores_negative) * node_mask_negative / total
    v_part = g @ h + g_negative @ h_negative
    offset_part = g.sum() + g_negative.sum()
    v_grad, offset_grad, loss, right = portion.sum(v_part, offset_part, loss, right)
    summary_row = (v_grad @ weight) * summary * (1 - summary) / n
    if has_padding:
        summary_row = torch.outer(node_mask, summary_row)

    # Through the PReLU; H and H~ are not needed any more, so their memory takes the gradients.
    h_grad = torch.addcmul(summary_row, g[:, None], v, out=h)
    z_grad, bias_grad, slope_grad = _through_prelu(h_grad, u, slope)
    h_negative_grad = torch.outer(g_negative, v, out=h_negative)
    z_negative_grad, bias_grad_negative, slope_grad_negative = _through_prelu(
        h_negative_grad, u_negative, slope
    )

    record = torch.stack([loss / total, right / total, summary.std(correction=0)])
    return record, (
        z_grad,
        z_negative_grad,
        bias_grad + bias_grad_negative,
        slope_grad + slope_grad_negative,
        torch.outer(v_grad, summary),
        offset_grad,
    )


def shuffle_loss(
    matrix: Tensor, transpose: Tensor, rows: Tensor, y: Tensor, *last_weights: Tensor
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z, z_negative = pair_product(matrix, rows, y)
    record, gradients = pair_loss(z, z_negative, *last_weights)
    z_grad, z_negative_grad, *other_gradients = gradients
    y_grad = pair_gradient(transpose, rows, (z_grad, z_negative_grad))
    return record, (y_grad, *other_gradients)


def pair_product(matrix: Tensor, rows: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """As `Backend.pair_product`."""
    return product(matrix, y), product(matrix, y.index_select(0, rows))


def pair_gradient(transpose: Tensor, rows: Tensor, grads: Iterable[Tensor]) -> Tensor:
    """As `Backend.pair_gradient`."""
    grad, grad_negative = grads
    y_grad_negative = product(transpose, grad_negative).index_select(0, inverse(rows))
    return y_grad_negative.add_(product(transpose, grad))


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
    is_last: bool,
) -> None:
    """Add a step's record ``[k]`` to the sums; after an epoch's last step, store its mean.

    The arrays are those of a `Ledger`. Nothing branches on a value, so that no step waits for a
    GPU.
    """
    sums += record
    if not is_last:
        return

    mean = sums / steps
    epoch, kept_epoch, waited = counts.unbind()
    # After the patience is over nothing is kept any more: the loop has not read that yet.
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
    # The function that `torch.optim.Adam` runs; the class first imports a compiler, in 1.5 s.
    torch._fused_adam_(
        state.weights, gradients, state.means, state.variances, [], [state.count] * len(gradients),
        lr=rate, beta1=0.9, beta2=0.999, weight_decay=0, eps=1e-8, amsgrad=False, maximize=False,
    )  # fmt: skip


def _prelu(u: Tensor, slope: Tensor) -> Tensor:
    """Apply PReLU; on a CPU by the kernel for a scalar slope, which is faster than ``prelu``."""
    if u.is_cuda:
        return torch.prelu(u, slope)
    return functional.leaky_relu(u, slope.item())


def _through_prelu(grad: Tensor, u: Tensor, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a PReLU's input u, of its bias and of its slope, from that of its
    result."""
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
        return _prelu(u, slope)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, slope = ctx.saved_tensors
        return _through_prelu(grads[0], u, slope)
