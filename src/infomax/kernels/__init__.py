"""Operations that are faster hand-written than by autograd: plain torch here, numba in `cpu`, Triton in `gpu`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import embedding, embedding_bag, softplus

from infomax.kernels.host import on_one_thread
from infomax.kernels.loading import load_triton, numba_kernels, triton_kernels
from infomax.kernels.ranks import Portion
from infomax.kernels.trees import Tree

LARGE = 1 << 19
"""Matrix entries above which loading numba's kernels on a CPU pays; loading takes about a second."""


def prepare(matrix: Tensor) -> Any:
    """Convert a CSR matrix to the form in which `product` is fastest."""
    kernels = _gpu(matrix.values())
    return kernels.Sparse(matrix) if kernels else matrix


def product(matrix: Any, y: Tensor) -> Tensor:
    """Multiply a prepared CSR matrix ``[M, N]`` by a dense ``[N, D]``; `infomax.views.operands` has the gradient."""
    if kernels := _prepared(matrix) or _cpu(y, matrix.shape[0]):
        return kernels.product(matrix, y)  # type: ignore[no-any-return]
    if y.is_cuda:
        return matrix @ y  # type: ignore[no-any-return]
    # With a reduction torch writes the result once; without one it clears it, adds to it and copies it.
    return torch.sparse.mm(matrix, y.contiguous(), reduce="sum")  # type: ignore[no-any-return]


def pool_tree(h: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """Return, from H ``[n, d]``, each inner node's own row and the mean over it and its children, ``[m, d]`` each.

    ``share`` ``[m]`` is the weight of the children's mean; the node itself has the rest.
    """
    if kernels := _gpu(h):
        return kernels.PoolTree.apply(h, tree, share)  # type: ignore[no-any-return]
    m = len(tree.first)
    children = torch.zeros_like(h[:m]).index_add(0, tree.parent[tree.roots :], h[tree.roots :])
    return h[:m], torch.lerp(h[:m], children / tree.count[:, None], share[:, None])


def gather_tree(table: Tensor, rows: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """Do as `pool_tree` from a table ``[T, d]``, node i having row ``rows[i]``; the outermost level is not stored.

    The table may be in half precision; the result has the dtype of ``share``. It may be on the host: `reaches_host`.
    """
    if (kernels := _gpu(share)) and not table.requires_grad:
        return kernels.gather_tree(table, rows, tree, share)  # type: ignore[no-any-return]
    own = embedding(rows[: len(tree.first)], table).to(share.dtype)
    children = embedding_bag(rows[tree.roots :], table, tree.first - tree.roots, mode="mean").to(share.dtype)
    return own, torch.lerp(own, children, share[:, None])


def reaches_host(device: torch.device) -> bool:
    """Whether `gather_tree` on a device can read a table in page-locked host memory."""
    return device.type == "cuda" and triton_kernels() is not None


def permutation(n: int, generator: torch.Generator) -> Tensor:
    """Draw a random permutation ``[n]``."""
    if generator.device.type == "cuda" and (kernels := triton_kernels()):
        return kernels.permutations(1, n, generator)[0]  # type: ignore[no-any-return]
    return torch.randperm(n, generator=generator, device=generator.device)


def permutations(count: int, n: int, generator: torch.Generator, rows: slice = slice(None)) -> Tensor:
    """Draw random permutations, ``[count, n]``, and return some rows of them."""
    if generator.device.type == "cuda" and (kernels := triton_kernels()):
        return kernels.permutations(count, n, generator)[rows]  # type: ignore[no-any-return]
    return torch.rand(count, n, generator=generator, device=generator.device)[rows].argsort(dim=1)


def permute(y: Tensor, rows: Tensor) -> Tensor:
    """Return ``y[rows]`` for a permutation; the gradient is a gather too, not a scatter."""
    return _Permute.apply(y, rows)  # type: ignore[no-any-return, no-untyped-call]


def column_sum(x: Tensor) -> Tensor:
    """Sum over rows, ``[N, d] -> [d]``, as a product with ones, which is faster than ``sum(0)`` on a CPU."""
    return x.new_ones(len(x)) @ x


def bias_prelu(bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:
    """Concatenate the parts, add a bias, apply PReLU with one slope: ``[n, d_1], ... -> [n, d_1 + ...]``."""
    if kernels := _gpu(parts[0]):
        return kernels.BiasPReLU.apply(bias, slope, *parts)  # type: ignore[no-any-return]
    z = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    if not torch.is_grad_enabled():
        return torch.prelu(z + bias, slope)
    if z.is_cuda:
        return functional.prelu(z + bias, slope)
    return _BiasPReLU.apply(z, bias, slope)  # type: ignore[no-any-return, no-untyped-call]


@torch.no_grad()
def pair_loss(
    z: Tensor,
    z_negative: Tensor,
    bias: Tensor,
    slope: Tensor,
    weight: Tensor,
    offset: Tensor,
    portion: Portion | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute loss and gradients from the last linear map on: PReLU, sigmoid-mean readout, scores, cross-entropy.

    With h = PReLU(z + b), s = σ(mean h), v = W s, scores h_i·v + o and g_i the gradient of the mean loss by score i,
    the gradient of h_i is g_i v; positives add a row c, from the summary. Only the PReLU's mask needs a matrix.

    With a ``portion``, z and z_negative are this rank's rows of a batch; summary and loss are of the whole batch. Rows
    that the portion calls padding count nowhere, and their gradient is 0.

    Returns:
        loss, discriminator accuracy and summary spread, ``[3]``; and the gradient of the loss by each argument. Those
        by weight and offset are of the whole batch; the others are to be added over the ranks. z and z_negative may be
        overwritten.
    """
    padded = portion is not None and portion.real is not None
    if not padded and (kernels := _gpu(z) or _cpu(z)):
        return kernels.pair_loss(z, z_negative, bias, slope, weight, offset, portion)  # type: ignore[no-any-return]
    portion = portion or Portion(len(z), len(z) + len(z_negative))
    n, total = portion.nodes, portion.total
    real, real_negative = portion.real or (z.new_ones(len(z)), z.new_ones(len(z_negative)))
    u, u_negative = z.add_(bias), z_negative.add_(bias)
    h, h_negative = _leaky(u, slope), _leaky(u_negative, slope)
    summary = torch.sigmoid(portion.sum(real @ h)[0] / n)
    v = weight @ summary
    scores, scores_negative = h @ v + offset, h_negative @ v + offset
    loss = (softplus(-scores) * real).sum() + (softplus(scores_negative) * real_negative).sum()
    right = (real * (scores > 0)).sum() + (real_negative * (scores_negative < 0)).sum()
    g, g_negative = -torch.sigmoid(-scores) * real / total, torch.sigmoid(scores_negative) * real_negative / total
    v_part, offset_part = g @ h + g_negative @ h_negative, g.sum() + g_negative.sum()
    v_grad, offset_grad, loss, right = portion.sum(v_part, offset_part, loss, right)
    c = (v_grad @ weight) * summary * (1 - summary) / n
    c = torch.outer(real, c) if padded else c
    grad, bias_grad, slope_grad = _through(torch.addcmul(c, g[:, None], v, out=h), u, slope)
    grad_negative, bias_more, slope_more = _through(torch.outer(g_negative, v, out=h_negative), u_negative, slope)
    return torch.stack([loss / total, right / total, summary.std(correction=0)]), (
        grad,
        grad_negative,
        bias_grad + bias_more,
        slope_grad + slope_more,
        torch.outer(v_grad, summary),
        offset_grad,
    )


@torch.no_grad()
def shuffle_loss(
    matrix: Any, transpose: Any, rows: Tensor, y: Tensor, *others: Any
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute `pair_loss` of a graph and its shuffle, z = P Y and P Y[rows], with one gradient by Y, not two by z.

    ``matrix`` and ``transpose`` are P ``[N, N]`` and its transpose, prepared; the others are as in `pair_loss`.
    """
    if kernels := _prepared(matrix) or _cpu(y):
        return kernels.shuffle_loss(matrix, transpose, rows, y, *others)  # type: ignore[no-any-return]
    z, z_negative = product(matrix, y), product(matrix, y.index_select(0, rows))
    record, (grad, grad_negative, *gradients) = pair_loss(z, z_negative, *others)
    back = product(transpose, grad_negative).index_select(0, inverse(rows))
    return record, (back.add_(product(transpose, grad)), *gradients)


def inverse(rows: Tensor) -> Tensor:
    """Invert a permutation ``[n]``."""
    return torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))


@torch.no_grad()
def note(
    record: Tensor, sums: Tensor, curve: Tensor, lowest: Tensor, counts: Tensor, steps: int, patience: int, last: bool
) -> None:
    """Add a step's record ``[3]`` to the sums; after an epoch's last step, store its mean. See `Ledger`."""
    if kernels := _gpu(record):
        kernels.note(record, sums, curve, lowest, counts, steps, patience, last)
        return
    sums += record
    if last:
        mean, (epoch, kept, waited) = sums / steps, counts.unbind()
        better = (mean[0] < lowest) & (waited < patience)
        curve.index_copy_(0, epoch.view(1) % len(curve), mean[None])
        lowest.copy_(torch.where(better, mean[0], lowest))
        after = epoch + 1, torch.where(better, epoch, kept), torch.where(better, 0, waited + 1)
        counts.copy_(torch.stack(after))
        sums.zero_()


@torch.no_grad()
def adam(
    weights: list[Tensor],
    gradients: Sequence[Tensor],
    means: list[Tensor],
    variances: list[Tensor],
    count: Tensor,
    lr: float,
    kept: list[Tensor] | None = None,
    waited: Tensor | None = None,
) -> None:
    """Do and count one step of Adam; if ``waited`` is 0 and ``kept`` is given, copy the weights to it beforehand."""
    # The kernels index memory directly: a gradient needs the same layout as its weight.
    gradients = [
        gradient if gradient.stride() == weight.stride() else torch.empty_like(weight).copy_(gradient)
        for weight, gradient in zip(weights, gradients, strict=True)
    ]
    arguments = weights, gradients, means, variances, count, lr, kept, waited
    if kernels := _gpu(weights[0]) or _flat(weights):
        kernels.adam(*arguments)
    elif "infomax.kernels.cpu" in sys.modules and not count.is_cuda:  # torch's threads would slow down ours
        on_one_thread(_adam, *arguments)
    else:
        _adam(*arguments)


def _adam(
    weights: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    variances: list[Tensor],
    count: Tensor,
    lr: float,
    kept: list[Tensor] | None,
    waited: Tensor | None,
) -> None:
    if kept and waited is not None:
        if waited.is_cuda:
            for before, weight in zip(kept, weights, strict=True):
                torch.where(waited == 0, weight, before, out=before)
        elif waited == 0:
            torch._foreach_copy_(kept, weights)
    count += 1
    # The function that `torch.optim.Adam` runs; the class itself first imports a compiler, which takes 1.5 s.
    torch._fused_adam_(
        weights,
        gradients,
        means,
        variances,
        [],
        [count] * len(weights),
        lr=lr,
        beta1=0.9,
        beta2=0.999,
        weight_decay=0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )


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


class _BiasPReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, bias: Tensor, slope: Tensor) -> Tensor:
        u = z + bias
        ctx.save_for_backward(u, slope)
        return _leaky(u, slope)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _through(grads[0], *ctx.saved_tensors)


class _Permute(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        return y.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return grads[0].index_select(0, inverse(rows)), None


def _gpu(x: Tensor) -> ModuleType | None:
    """Return the Triton kernels if x is float32 on a GPU and Triton is installed."""
    return triton_kernels() if x.is_cuda and x.dtype == torch.float32 else None


def _prepared(matrix: Any) -> ModuleType | None:
    """Return the Triton kernels if the matrix is prepared for them."""
    return None if isinstance(matrix, Tensor) else load_triton()


def _cpu(x: Tensor, rows: int = 0) -> ModuleType | None:
    """Return the numba kernels if numba is installed and the work is at least `LARGE` entries on a CPU."""
    return numba_kernels() if not x.is_cuda and max(rows, len(x)) * x.shape[1] >= LARGE else None


def _flat(weights: list[Tensor]) -> ModuleType | None:
    """Return the numba kernels if the weights are contiguous, in float32 on a CPU, and at least `LARGE` numbers."""
    plain = all(w.dtype == torch.float32 and w.is_contiguous() and not w.is_cuda for w in weights)
    return numba_kernels() if plain and sum(w.numel() for w in weights) >= LARGE else None


def triton_for(x: Tensor) -> ModuleType | None:
    """Return the Triton kernels if x is float32 or integer on a GPU and Triton is installed."""
    return triton_kernels() if x.is_cuda and x.dtype in (torch.float32, torch.int32, torch.int64) else None


def worth_compiling(x: Tensor, numbers: int) -> bool:
    """Whether x is on a CPU and the work, in numbers to compute, is large enough to load numba's kernels."""
    return not x.is_cuda and numbers >= LARGE and numba_kernels() is not None
