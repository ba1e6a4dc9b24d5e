"""The kernels of `infomax.kernels.Backend` on a CPU, compiled by numba, with few passes over memory.

Rows are divided among as many threads as torch has. Sums over rows are computed per thread and then over the threads,
so the same number of threads gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from infomax.kernels.compiling import compiled
from infomax.kernels.cpu_products import BLOCK, Empty, pair_gradient, pair_product
from infomax.kernels.cpu_products import product as product
from infomax.kernels.cpu_products import sparse_product as sparse_product
from infomax.kernels.plain import Outcome
from infomax.kernels.ranks import Portion
from infomax.kernels.sharing import equal, share

if TYPE_CHECKING:
    from infomax.kernels import Adam

PIECE = 256
"""Rows that are summed in single precision; a longer sum would lose small terms."""


@compiled
def _activated(z, bias, slope, begin, end):
    """Sum h = PReLU(z + b) over rows, ``[d]``."""
    sums = np.zeros(len(bias))
    for first in range(begin, end, PIECE):
        part = np.zeros_like(bias)
        for i in range(first, min(first + PIECE, end)):
            row = z[i]
            for k in range(len(bias)):
                u = row[k] + bias[k]
                part[k] += u if u > 0 else slope * u
        sums += part
    return sums


@compiled
def _scored(z, bias, slope, v, offset, sign, total, g, begin, end):
    """Return loss, number of correct scores and the sum of g h over rows, ``[d]``; g is the gradient by each score."""
    loss, right, sums, h = 0.0, 0, np.zeros(len(bias)), np.empty_like(bias)
    for first in range(begin, end, PIECE):
        part = np.zeros_like(bias)
        for i in range(first, min(first + PIECE, end)):
            row, score = z[i], offset
            for k in range(len(bias)):
                u = row[k] + bias[k]
                h[k] = u if u > 0 else slope * u
                score += h[k] * v[k]
            margin = sign * float(score)
            small = np.exp(-abs(margin))
            loss += np.log1p(small) + max(-margin, 0.0)
            right += margin > 0
            slant = z.dtype.type(-sign / total * ((small if margin > 0 else 1.0) / (1 + small)))
            g[i] = slant
            for k in range(len(bias)):
                part[k] += slant * h[k]
        sums += part
    return loss, right, sums


@compiled
def _through(z, bias, slope, g, v, c, begin, end):
    """Replace z by its gradient, where that of h is g v + c; return the gradients of bias and slope."""
    sums, slope_grad = np.zeros(len(bias)), 0.0
    for first in range(begin, end, PIECE):
        part = np.zeros_like(bias)
        for i in range(first, min(first + PIECE, end)):
            row, slant, along = z[i], g[i], z.dtype.type(0)
            for k in range(len(bias)):
                u, grad = row[k] + bias[k], slant * v[k] + c[k]
                along += min(u, z.dtype.type(0)) * grad
                row[k] = grad if u > 0 else slope * grad
                part[k] += row[k]
            slope_grad += along
        sums += part
    return sums, slope_grad


@compiled
def _add_prelu(z, bias, slope, share, first, out, begin, end):
    """Add a share of PReLU(z + b) to the result; the first that is added replaces what is there."""
    for i in range(begin, end):
        row, to = z[i], out[i]
        if first:
            to[:] = 0
        for k in range(len(bias)):
            u = row[k] + bias[k]
            to[k] += share * (u if u > 0 else slope * u)


@compiled
def _back_prelu(z, bias, slope, share, grad, begin, end):
    """Replace z by its gradient, from that of the result of `_add_prelu`; return those of bias and slope."""
    sums, slope_grad = np.zeros(len(bias)), 0.0
    for first in range(begin, end, PIECE):
        part = np.zeros_like(bias)
        for i in range(first, min(first + PIECE, end)):
            row, given, along = z[i], grad[i], z.dtype.type(0)
            for k in range(len(bias)):
                u, g = row[k] + bias[k], share * given[k]
                along += min(u, z.dtype.type(0)) * g
                row[k] = g if u > 0 else slope * g
                part[k] += row[k]
            slope_grad += along
        sums += part
    return sums, slope_grad


@compiled
def _descend(weight, grad, mean, variance, kept, keep, rate, scale, begin, end):
    """Do a step of Adam for entries begin to end of flat arrays; if ``keep``, first copy the weights to ``kept``."""
    weight, grad, mean, variance = weight[begin:end], grad[begin:end], mean[begin:end], variance[begin:end]
    if keep:
        kept[begin:end] = weight
    number = weight.dtype.type
    rate, scale, beta, beta_squared, least = number(rate), number(scale), number(0.1), number(0.001), number(1e-8)
    for i in range(len(weight)):
        mean[i] += (grad[i] - mean[i]) * beta
        variance[i] += (grad[i] * grad[i] - variance[i]) * beta_squared
        weight[i] -= rate * mean[i] / (np.sqrt(variance[i]) * scale + least)


def pair_loss(z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None) -> Outcome:
    """As `Backend.pair_loss`; z and z_negative are overwritten by their gradients."""
    bias, slope, weight, offset = last
    portion = portion or Portion(len(z), len(z) + len(z_negative))
    n, total = portion.nodes, portion.total
    b, a, o = bias.numpy(), slope.numpy()[0], offset.numpy()[()]
    # einsum, not BLAS: threads of BLAS keep spinning on the cores that ours need.
    (activated,) = portion.sum(torch.from_numpy(sum(_rows(_activated, (z, b, a)))))
    w, s = weight.numpy(), torch.sigmoid(activated / n).numpy().astype(b.dtype)
    v = np.einsum("ij,j->i", w, s)
    slants = [np.empty(len(part), b.dtype) for part in (z, z_negative)]
    scored = _rows(_scored, (z, b, a, v, o, 1, total, slants[0]), (z_negative, b, a, v, o, -1, total, slants[1]))
    loss, right, v_sum = (sum(parts) for parts in zip(*scored, strict=True))
    slant = float(slants[0].sum(dtype=np.float64) + slants[1].sum(dtype=np.float64))
    v_sum, tally = portion.sum(torch.from_numpy(v_sum), torch.tensor([loss, right, slant], dtype=torch.float64))
    v_grad, (loss, right, offset_grad) = v_sum.numpy().astype(b.dtype), tally.tolist()
    c = np.einsum("i,ij->j", v_grad, w) * s * (1 - s) / b.dtype.type(n)
    through = _rows(_through, (z, b, a, slants[0], v, c), (z_negative, b, a, slants[1], v, np.zeros_like(b)))
    bias_grad, slope_grad = (sum(parts) for parts in zip(*through, strict=True))
    return z.new_tensor([loss / total, right / total, s.std()]), (
        z,
        z_negative,
        torch.from_numpy(bias_grad).to(z.dtype),
        z.new_tensor([slope_grad]),
        torch.from_numpy(np.einsum("i,j->ij", v_grad, s)),
        z.new_tensor(offset_grad).view_as(offset),
    )


def mean_prelu(biases: Sequence[Tensor], slopes: Sequence[Tensor], parts: Sequence[Tensor], empty: Empty) -> Tensor:
    """As `Backend.mean_prelu`; the gradient of each part replaces it."""
    return _MeanPReLU.apply(empty, len(parts), *parts, *biases, *slopes)  # type: ignore[no-any-return, no-untyped-call]


class _MeanPReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, empty: Empty, count: int, *arguments: Tensor) -> Tensor:
        arrays = [argument.numpy() for argument in arguments]
        parts, biases, slopes = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        out = empty(parts[0].shape, parts[0].dtype)
        # Ranges of rows of the result that stay in a core's cache while all parts are added.
        bounds = equal(len(out), max(1, 4 * out.nbytes // (BLOCK * torch.get_num_threads())))
        each = out.dtype.type(1 / count)
        ctx.calls = [(bounds, z, b, a[0], each) for z, b, a in zip(parts, biases, slopes, strict=True)]
        share(_add_prelu, *((*call, at == 0, out) for at, call in enumerate(ctx.calls)))
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        count, grad = len(ctx.calls), grads[0].contiguous()
        found = share(_back_prelu, *((*call, grad.numpy()) for call in ctx.calls))
        sums = [[sum(those) for those in zip(*found[at::count], strict=True)] for at in range(count)]
        parts = (torch.from_numpy(z) for _, z, *_ in ctx.calls)
        biases = (torch.from_numpy(bias).to(grad.dtype) for bias, _ in sums)
        return None, None, *parts, *biases, *(grad.new_tensor([slope]) for _, slope in sums)


def shuffle_loss(
    matrix: Tensor, transpose: Tensor, rows: Tensor, y: Tensor, *last: Tensor, empty: Empty = np.empty
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z = pair_product(matrix, rows, y, empty)
    record, (_, _, *gradients) = pair_loss(*z, *last)  # which overwrites z by its gradient
    return record, (pair_gradient(transpose, rows, z, empty), *gradients)


def adam(state: Adam, gradients: Sequence[Tensor], kept: Sequence[Tensor] | None, waited: Tensor | None) -> None:
    """As `plain.adam`, for contiguous tensors."""
    state.count += 1
    steps = state.count.item()
    rate, scale = state.lr / (1 - 0.9**steps), 1 / math.sqrt(1 - 0.999**steps)
    keep = bool(kept) and waited is not None and waited.item() == 0
    groups = zip(state.weights, gradients, state.means, state.variances, kept or state.weights, strict=True)
    flat = [[tensor.numpy().reshape(-1) for tensor in group] for group in groups]
    share(_descend, *((equal(len(group[0])), *group, keep, rate, scale) for group in flat))


def _rows(kernel: Callable[..., Any], *calls: tuple[Any, ...]) -> list[Any]:
    """Run a kernel on each thread's rows of z, for each z and its arguments; returns the results."""
    return share(kernel, *((equal(len(z)), z.numpy(), *arguments) for z, *arguments in calls))
