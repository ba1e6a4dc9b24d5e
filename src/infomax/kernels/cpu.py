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
from infomax.kernels.host import equal, even, share
from infomax.kernels.plain import Outcome
from infomax.kernels.ranks import Portion

if TYPE_CHECKING:
    from infomax.kernels import Adam

BLOCK, FEWEST = 1 << 20, 4
"""Bytes of a dense factor that stay in a core's cache; entries per row and block above which such blocks pay."""

Empty = Callable[..., np.ndarray]
"""A function of (shape, dtype) that returns an array with arbitrary contents."""
PIECE = 256
"""Rows that are summed in single precision; a longer sum would lose small terms."""


@compiled
def _add(row, columns, values, y, e, stop, fresh):
    """Add entries e to stop to a row of a product; if ``fresh``, they replace what is there.

    They are added four at a time, to read and write the sum less often; the last is repeated, with weight 0.
    """
    last = stop - 1
    nothing = y.dtype.type(0)
    if fresh and e == stop:
        row[:] = 0
    while e < stop:
        f, g, h = min(e + 1, last), min(e + 2, last), min(e + 3, last)
        a, b, c, d = values[e], values[f] * (f > e), values[g] * (g > f), values[h] * (h > g)
        p, q, r, s = y[columns[e]], y[columns[f]], y[columns[g]], y[columns[h]]
        for k in range(len(row)):
            row[k] = (nothing if fresh else row[k]) + a * p[k] + b * q[k] + c * r[k] + d * s[k]
        fresh = False
        e += 4


@compiled
def _product(starts, columns, values, height, y, out, begin, end):
    """Compute rows begin to end of a product, in blocks of rows of y that stay in the cache for all these rows."""
    reached = starts[begin:end].copy()
    for border in range(height, max(len(y), 1) + height, height):
        for i in range(begin, end):
            e = stop = reached[i - begin]
            while stop < starts[i + 1] and columns[stop] < border:
                stop += 1
            _add(out[i], columns, values, y, e, stop, border == height)
            reached[i - begin] = stop


@compiled
def _pair_gradient(starts, columns, values, grad, grad_negative, rows, out, begin, end):
    """Multiply by both gradients and add; row j of the second product belongs to node ``rows[j]``."""
    for j in range(begin, end):
        i = rows[j]
        _add(out[i], columns, values, grad, starts[i], starts[i + 1], True)
        _add(out[i], columns, values, grad_negative, starts[j], starts[j + 1], False)


@compiled
def _sparse_product(starts, columns, values, x_starts, x_columns, x_values, out, begin, end):
    """Compute rows begin to end of a product of sparse matrices, which is dense."""
    out[begin:end] = 0
    for i in range(begin, end):
        row = out[i]
        for e in range(starts[i], starts[i + 1]):
            for f in range(x_starts[columns[e]], x_starts[columns[e] + 1]):
                row[x_columns[f]] += values[e] * x_values[f]


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
    weight, grad, mean, variance = (
        weight[begin:end],
        grad[begin:end],
        mean[begin:end],
        variance[begin:end],
    )
    if keep:
        kept[begin:end] = weight
    number = weight.dtype.type
    rate, scale = number(rate), number(scale)
    one_minus_beta1, one_minus_beta2, epsilon = number(0.1), number(0.001), number(1e-8)
    for i in range(len(weight)):
        mean[i] += (grad[i] - mean[i]) * one_minus_beta1
        variance[i] += (grad[i] * grad[i] - variance[i]) * one_minus_beta2
        weight[i] -= rate * mean[i] / (np.sqrt(variance[i]) * scale + epsilon)


def product(matrix: Tensor, y: Tensor, empty: Empty = np.empty) -> Tensor:
    """As `Backend.product`; columns ascend."""
    if y.dim() == 2:
        return _products(empty, (_blocked(matrix, y), y))[0]
    return _products(empty, *((_blocked(matrix, part), part) for part in y))


def pair_product(matrix: Tensor, rows: Tensor, y: Tensor, empty: Empty = np.empty) -> Tensor:
    """As `Backend.pair_product`; a shuffle renumbers columns, without copying Y."""
    starts, columns, values, height = _blocked(matrix, y)
    shuffled = starts, rows.numpy()[columns], values, max(len(y), 1)
    return _products(empty, ((starts, columns, values, height), y), (shuffled, y))


def pair_gradient(transpose: Tensor, rows: Tensor, grad: Tensor, empty: Empty = np.empty) -> Tensor:
    """As `Backend.pair_gradient`; a shuffle renumbers rows."""
    back = _csr(transpose)
    parts = grad.contiguous().numpy()
    out = empty((transpose.shape[0], grad.shape[2]), parts.dtype)
    share(_pair_gradient, (even(back[0]), *back, *parts, rows.numpy(), out))
    return torch.from_numpy(out)


def sparse_product(matrix: Tensor, x: Tensor, rows: Tensor | None) -> Tensor:
    """P X of CSR matrices, dense, ``[M, F]``; with ``rows``, of these rows of X."""
    starts, columns, values = _csr(matrix)
    columns = columns if rows is None else rows.numpy()[columns]
    out = np.empty((len(starts) - 1, x.shape[1]), values.dtype)
    share(_sparse_product, (even(starts), starts, columns, values, *_csr(x), out))
    return torch.from_numpy(out)


def _products(empty: Empty, *factors: tuple[tuple[Any, ...], Tensor]) -> Tensor:
    """Multiply B matrices of M rows, each as `_blocked` describes it, by a y ``[N, D]`` each: ``[B, M, D]``.

    Columns must ascend if there is more than one block.
    """
    parts = [(*matrix, y.contiguous().numpy()) for matrix, y in factors]
    starts, *_, y = parts[0]
    out = empty((len(parts), len(starts) - 1, y.shape[1]), y.dtype)
    share(_product, *((even(starts), *part, to) for part, to in zip(parts, out, strict=True)))
    return torch.from_numpy(out)


def _blocked(matrix: Tensor, y: Tensor) -> tuple[Any, ...]:
    """Return row starts, columns and values of a matrix, and the height of the blocks of y for a product with it."""
    starts, columns, values = _csr(matrix)
    height = max(1, BLOCK // (y.element_size() * y.shape[1]))
    pieces = matrix.shape[0] * -(-len(y) // height)
    return starts, columns, values, height if len(values) >= FEWEST * pieces else max(len(y), 1)


def _csr(matrix: Tensor) -> tuple[np.ndarray, ...]:
    return tuple(
        part.numpy() for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values())
    )


def pair_loss(
    z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None
) -> Outcome:
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
    scored = _rows(
        _scored,
        (z, b, a, v, o, 1, total, slants[0]),
        (z_negative, b, a, v, o, -1, total, slants[1]),
    )
    loss, right, v_sum = (sum(parts) for parts in zip(*scored, strict=True))
    slant = float(slants[0].sum(dtype=np.float64) + slants[1].sum(dtype=np.float64))
    v_sum, tally = portion.sum(
        torch.from_numpy(v_sum), torch.tensor([loss, right, slant], dtype=torch.float64)
    )
    v_grad, (loss, right, offset_grad) = v_sum.numpy().astype(b.dtype), tally.tolist()
    c = np.einsum("i,ij->j", v_grad, w) * s * (1 - s) / b.dtype.type(n)
    through = _rows(
        _through, (z, b, a, slants[0], v, c), (z_negative, b, a, slants[1], v, np.zeros_like(b))
    )
    bias_grad, slope_grad = (sum(parts) for parts in zip(*through, strict=True))
    return z.new_tensor([loss / total, right / total, s.std()]), (
        z,
        z_negative,
        torch.from_numpy(bias_grad).to(z.dtype),
        z.new_tensor([slope_grad]),
        torch.from_numpy(np.einsum("i,j->ij", v_grad, s)),
        z.new_tensor(offset_grad).view_as(offset),
    )


class MeanPReLU(torch.autograd.Function):
    """As `Backend.mean_prelu`: parts, biases, slopes; the gradient of each part replaces it."""

    @staticmethod
    def forward(ctx: Any, empty: Empty, count: int, *arguments: Tensor) -> Tensor:  # noqa: D102
        arrays = [argument.numpy() for argument in arguments]
        parts, biases, slopes = arrays[:count], arrays[count : 2 * count], arrays[2 * count :]
        out = empty(parts[0].shape, parts[0].dtype)
        # Ranges of rows of the result that stay in a core's cache while all parts are added.
        bounds = equal(len(out), max(1, 4 * out.nbytes // (BLOCK * torch.get_num_threads())))
        each = out.dtype.type(1 / count)
        ctx.calls = [
            (bounds, z, b, a[0], each) for z, b, a in zip(parts, biases, slopes, strict=True)
        ]
        share(_add_prelu, *((*call, at == 0, out) for at, call in enumerate(ctx.calls)))
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        count, grad = len(ctx.calls), grads[0].contiguous()
        found = share(_back_prelu, *((*call, grad.numpy()) for call in ctx.calls))
        sums = [
            [sum(those) for those in zip(*found[at::count], strict=True)] for at in range(count)
        ]
        parts = (torch.from_numpy(z) for _, z, *_ in ctx.calls)
        biases = (torch.from_numpy(bias).to(grad.dtype) for bias, _ in sums)
        return None, None, *parts, *biases, *(grad.new_tensor([slope]) for _, slope in sums)


def shuffle_loss(
    matrix: Tensor,
    transpose: Tensor,
    rows: Tensor,
    y: Tensor,
    *last: Tensor,
    empty: Empty = np.empty,
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z = pair_product(matrix, rows, y, empty)
    record, (_, _, *gradients) = pair_loss(*z, *last)  # which overwrites z by its gradient
    return record, (pair_gradient(transpose, rows, z, empty), *gradients)


def adam(
    state: Adam, gradients: Sequence[Tensor], kept: Sequence[Tensor] | None, waited: Tensor | None
) -> None:
    """As `plain.adam`, for contiguous tensors."""
    learning_rate = state.next_rate()
    state.count += 1
    steps = state.count.item()
    rate, scale = learning_rate / (1 - 0.9**steps), 1 / math.sqrt(1 - 0.999**steps)
    keep = bool(kept) and waited is not None and waited.item() == 0
    groups = zip(
        state.weights, gradients, state.means, state.variances, kept or state.weights, strict=True
    )
    flat = [[tensor.numpy().reshape(-1) for tensor in group] for group in groups]
    share(_descend, *((equal(len(group[0])), *group, keep, rate, scale) for group in flat))


def _rows(kernel: Callable[..., Any], *calls: tuple[Any, ...]) -> list[Any]:
    """Run a kernel on each thread's rows of z, for each z and its arguments; returns the results."""
    return share(kernel, *((equal(len(z)), z.numpy(), *arguments) for z, *arguments in calls))
