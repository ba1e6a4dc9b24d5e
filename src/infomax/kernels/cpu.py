"""The kernels of `infomax.kernels.Backend` on a CPU, compiled by numba, with few passes over
memory.

Rows are divided among as many threads as torch has. Sums over rows are computed per thread and then
over the threads, so the same number of threads gives the same bits.

A kernel below computes rows ``first_row`` to ``end_row``; `run_in_ranges` runs it on each range of
rows. Sparse matrices are CSR: row i has the entries ``starts[i]`` to ``starts[i + 1]``, each with a
column and a value. The functions that `Backend` calls come after the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from infomax.kernels.compiling import compiled
from infomax.kernels.host import equal_ranges, ranges_by_entries, run_in_ranges
from infomax.kernels.plain import Outcome
from infomax.kernels.ranks import Portion

if TYPE_CHECKING:
    from infomax.kernels import Adam

BYTES_PER_BLOCK = 1 << 20
"""Bytes of a dense factor that stay in a core's cache."""
FEWEST_ENTRIES_PER_BLOCK = 4
"""Entries per row and block from which on blocks of the dense factor pay."""
ROWS_PER_SUM = 256
"""Rows that are summed in single precision; a longer sum would lose small terms."""

Empty = Callable[..., np.ndarray]
"""A function of (shape, dtype) that returns an array with arbitrary contents."""

# The kernels.


@compiled
def _add_entries(row, columns, values, y, entry, end, is_new):
    """Add entries, each times a row of y, to a row of a product; if ``is_new``, they replace what
    is there.

    They are added four at a time, to read and write the sum less often. After the last entry the
    last one is repeated, with weight 0.
    """
    last = end - 1
    zero = y.dtype.type(0)
    if is_new and entry == end:
        row[:] = 0
    while entry < end:
        second, third, fourth = min(entry + 1, last), min(entry + 2, last), min(entry + 3, last)
        a = values[entry]
        b = values[second] * (second > entry)
        c = values[third] * (third > second)
        d = values[fourth] * (fourth > third)
        p, q, r, s = y[columns[entry]], y[columns[second]], y[columns[third]], y[columns[fourth]]
        for k in range(len(row)):
            row[k] = (zero if is_new else row[k]) + a * p[k] + b * q[k] + c * r[k] + d * s[k]
        is_new = False
        entry += 4


@compiled
def _product(starts, columns, values, block_height, y, out, first_row, end_row):
    """Multiply a CSR matrix by y: ``out[i] = sum_e values[e] y[columns[e]]``.

    It is done in blocks of ``block_height`` rows of y, which stay in the cache for all these rows
    of the product.
    """
    next_entry = starts[first_row:end_row].copy()
    for block_end in range(block_height, max(len(y), 1) + block_height, block_height):
        for i in range(first_row, end_row):
            entry = end = next_entry[i - first_row]
            while end < starts[i + 1] and columns[end] < block_end:
                end += 1
            _add_entries(out[i], columns, values, y, entry, end, block_end == block_height)
            next_entry[i - first_row] = end


@compiled
def _pair_gradient(starts, columns, values, grad, grad_negative, rows, out, first_row, end_row):
    """Multiply by both gradients and add; row j of the second product belongs to node
    ``rows[j]``."""
    for j in range(first_row, end_row):
        i = rows[j]
        _add_entries(out[i], columns, values, grad, starts[i], starts[i + 1], True)
        _add_entries(out[i], columns, values, grad_negative, starts[j], starts[j + 1], False)


@compiled
def _sparse_product(
    starts, columns, values, x_starts, x_columns, x_values, out, first_row, end_row
):
    """Multiply two sparse matrices; the product is dense."""
    out[first_row:end_row] = 0
    for i in range(first_row, end_row):
        row = out[i]
        for e in range(starts[i], starts[i + 1]):
            for f in range(x_starts[columns[e]], x_starts[columns[e] + 1]):
                row[x_columns[f]] += values[e] * x_values[f]


@compiled
def _activation_sums(z, bias, slope, first_row, end_row):
    """Sum h = PReLU(z + b) over rows, ``[d]``."""
    sums = np.zeros(len(bias))
    for first in range(first_row, end_row, ROWS_PER_SUM):
        part = np.zeros_like(bias)
        for i in range(first, min(first + ROWS_PER_SUM, end_row)):
            row = z[i]
            for k in range(len(bias)):
                u = row[k] + bias[k]
                part[k] += u if u > 0 else slope * u
        sums += part
    return sums


@compiled
def _scores(z, bias, slope, v, offset, sign, total, g, first_row, end_row):
    """Score rows, h_i v + o, and write g_i, the gradient of the mean loss by each score.

    ``sign`` is 1 for positives and -1 for negatives, ``total`` the number of both. Returns the sum
    of the losses, the number of scores with the right sign, and the sum of g_i h_i, ``[d]``.
    """
    loss, right_count, sums, h = 0.0, 0, np.zeros(len(bias)), np.empty_like(bias)
    for first in range(first_row, end_row, ROWS_PER_SUM):
        part = np.zeros_like(bias)
        for i in range(first, min(first + ROWS_PER_SUM, end_row)):
            row, score = z[i], offset
            for k in range(len(bias)):
                u = row[k] + bias[k]
                h[k] = u if u > 0 else slope * u
                score += h[k] * v[k]
            # softplus(-margin) and its derivative, without overflow.
            margin = sign * float(score)
            small = np.exp(-abs(margin))
            loss += np.log1p(small) + max(-margin, 0.0)
            right_count += margin > 0
            g_i = z.dtype.type(-sign / total * ((small if margin > 0 else 1.0) / (1 + small)))
            g[i] = g_i
            for k in range(len(bias)):
                part[k] += g_i * h[k]
        sums += part
    return loss, right_count, sums


@compiled
def _loss_gradient(z, bias, slope, g, v, c, first_row, end_row):
    """Replace z by its gradient, where that of h_i is g_i v + c.

    Returns the gradients of the bias, ``[d]``, and of the slope.
    """
    sums, slope_grad = np.zeros(len(bias)), 0.0
    for first in range(first_row, end_row, ROWS_PER_SUM):
        part = np.zeros_like(bias)
        for i in range(first, min(first + ROWS_PER_SUM, end_row)):
            row, g_i, slope_grad_of_row = z[i], g[i], z.dtype.type(0)
            for k in range(len(bias)):
                u, h_grad = row[k] + bias[k], g_i * v[k] + c[k]
                slope_grad_of_row += min(u, z.dtype.type(0)) * h_grad
                row[k] = h_grad if u > 0 else slope * h_grad
                part[k] += row[k]
            slope_grad += slope_grad_of_row
        sums += part
    return sums, slope_grad


@compiled
def _add_prelu(z, bias, slope, weight, is_first, out, first_row, end_row):
    """Add a weight times PReLU(z + b) to the result; the first part replaces what is there."""
    for i in range(first_row, end_row):
        row, out_row = z[i], out[i]
        if is_first:
            out_row[:] = 0
        for k in range(len(bias)):
            u = row[k] + bias[k]
            out_row[k] += weight * (u if u > 0 else slope * u)


@compiled
def _prelu_gradient(z, bias, slope, weight, grad, first_row, end_row):
    """Replace z by its gradient, from that of the result of `_add_prelu`.

    Returns the gradients of the bias, ``[d]``, and of the slope.
    """
    sums, slope_grad = np.zeros(len(bias)), 0.0
    for first in range(first_row, end_row, ROWS_PER_SUM):
        part = np.zeros_like(bias)
        for i in range(first, min(first + ROWS_PER_SUM, end_row)):
            row, grad_row, slope_grad_of_row = z[i], grad[i], z.dtype.type(0)
            for k in range(len(bias)):
                u, h_grad = row[k] + bias[k], weight * grad_row[k]
                slope_grad_of_row += min(u, z.dtype.type(0)) * h_grad
                row[k] = h_grad if u > 0 else slope * h_grad
                part[k] += row[k]
            slope_grad += slope_grad_of_row
        sums += part
    return sums, slope_grad


@compiled
def _adam(weight, grad, mean, variance, kept, keeps, rate, scale, first_entry, end_entry):
    """Do a step of Adam on some entries of flat arrays; if it ``keeps``, first copy the weights."""
    weight = weight[first_entry:end_entry]
    grad = grad[first_entry:end_entry]
    mean = mean[first_entry:end_entry]
    variance = variance[first_entry:end_entry]
    if keeps:
        kept[first_entry:end_entry] = weight
    number = weight.dtype.type
    rate, scale = number(rate), number(scale)
    one_minus_beta1, one_minus_beta2, epsilon = number(0.1), number(0.001), number(1e-8)
    for i in range(len(weight)):
        mean[i] += (grad[i] - mean[i]) * one_minus_beta1
        variance[i] += (grad[i] * grad[i] - variance[i]) * one_minus_beta2
        weight[i] -= rate * mean[i] / (np.sqrt(variance[i]) * scale + epsilon)


# The functions that `Backend` calls.


def product(
    matrix: Tensor,
    y: Tensor,
    empty: Empty = np.empty,
    *,
    bytes_per_block: int = BYTES_PER_BLOCK,
    fewest_entries: int = FEWEST_ENTRIES_PER_BLOCK,
) -> Tensor:
    """As `Backend.product`; columns ascend."""
    factors = [y] if y.dim() == 2 else list(y)
    heights = [_block_height(matrix, factor, bytes_per_block, fewest_entries) for factor in factors]
    pairs = [
        ((*_csr(matrix), height), factor) for factor, height in zip(factors, heights, strict=True)
    ]
    products = _products(empty, *pairs)
    return products[0] if y.dim() == 2 else products


def pair_product(matrix: Tensor, rows: Tensor, y: Tensor, empty: Empty = np.empty) -> Tensor:
    """As `Backend.pair_product`; a shuffle renumbers columns, without copying Y."""
    starts, columns, values = _csr(matrix)
    matrix_in_blocks = starts, columns, values, _block_height(matrix, y)
    # Renumbered columns do not ascend, so all rows of Y are one block.
    shuffled_matrix = starts, rows.numpy()[columns], values, max(len(y), 1)
    return _products(empty, (matrix_in_blocks, y), (shuffled_matrix, y))


def pair_gradient(transpose: Tensor, rows: Tensor, grad: Tensor, empty: Empty = np.empty) -> Tensor:
    """As `Backend.pair_gradient`; a shuffle renumbers rows."""
    starts, columns, values = _csr(transpose)
    gradient, gradient_negative = grad.contiguous().numpy()
    out = empty((transpose.shape[0], grad.shape[2]), gradient.dtype)
    run_in_ranges(
        _pair_gradient,
        (
            ranges_by_entries(starts),
            starts, columns, values, gradient, gradient_negative, rows.numpy(), out,
        ),
    )  # fmt: skip
    return torch.from_numpy(out)


def sparse_product(matrix: Tensor, x: Tensor, rows: Tensor | None) -> Tensor:
    """P X of CSR matrices, dense, ``[M, F]``; with ``rows``, of these rows of X."""
    starts, columns, values = _csr(matrix)
    if rows is not None:
        columns = rows.numpy()[columns]
    out = np.empty((len(starts) - 1, x.shape[1]), values.dtype)
    bounds = ranges_by_entries(starts)
    run_in_ranges(_sparse_product, (bounds, starts, columns, values, *_csr(x), out))
    return torch.from_numpy(out)


def _products(empty: Empty, *factors: tuple[tuple[Any, ...], Tensor]) -> Tensor:
    """Multiply B matrices of M rows by a dense y ``[N, D]`` each: ``[B, M, D]``.

    A matrix is row starts, columns, values and the height of the blocks of y. Its columns must
    ascend if there is more than one block.
    """
    calls_without_result = [(*matrix, y.contiguous().numpy()) for matrix, y in factors]
    starts = factors[0][0][0]
    y_array = calls_without_result[0][-1]
    out = empty((len(factors), len(starts) - 1, y_array.shape[1]), y_array.dtype)
    bounds = ranges_by_entries(starts)
    calls = [
        (bounds, *arguments, result)
        for arguments, result in zip(calls_without_result, out, strict=True)
    ]
    run_in_ranges(_product, *calls)
    return torch.from_numpy(out)


def _block_height(
    matrix: Tensor,
    y: Tensor,
    bytes_per_block: int = BYTES_PER_BLOCK,
    fewest_entries: int = FEWEST_ENTRIES_PER_BLOCK,
) -> int:
    """The rows of y in a block; all of them where a row of the matrix has few entries in a
    block."""
    height = max(1, bytes_per_block // (y.element_size() * y.shape[1]))
    block_count = -(-len(y) // height)
    if len(matrix.values()) >= fewest_entries * matrix.shape[0] * block_count:
        return height
    return max(len(y), 1)


def _csr(matrix: Tensor) -> tuple[np.ndarray, ...]:
    """Row starts, columns and values."""
    arrays = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    return tuple(array.numpy() for array in arrays)


def pair_loss(
    z: Tensor, z_negative: Tensor, *last_weights: Tensor, portion: Portion | None = None
) -> Outcome:
    """As `Backend.pair_loss`; z and z_negative are overwritten by their gradients."""
    bias, slope, weight, offset = last_weights
    portion = portion or Portion(len(z), len(z) + len(z_negative))
    n, total = portion.nodes, portion.total
    b, a, o = bias.numpy(), slope.numpy()[0], offset.numpy()[()]

    # Forward: the summary s, and v = W s. einsum, not BLAS: threads of BLAS keep spinning on the
    # cores that ours need.
    h_sum = sum(_run_on_rows(_activation_sums, (z, b, a)))
    (h_sum_of_batch,) = portion.sum(torch.from_numpy(h_sum))
    s = torch.sigmoid(h_sum_of_batch / n).numpy().astype(b.dtype)
    w = weight.numpy()
    v = np.einsum("ij,j->i", w, s)

    # Scores and loss, and g, the gradient of the loss by each score.
    g = np.empty(len(z), b.dtype)
    g_negative = np.empty(len(z_negative), b.dtype)
    results = _run_on_rows(
        _scores,
        (z, b, a, v, o, 1, total, g),
        (z_negative, b, a, v, o, -1, total, g_negative),
    )
    loss, right_count, v_grad_sum = (sum(parts) for parts in zip(*results, strict=True))
    offset_grad = float(g.sum(dtype=np.float64) + g_negative.sum(dtype=np.float64))
    scalars = torch.tensor([loss, right_count, offset_grad], dtype=torch.float64)
    v_grad_of_batch, scalars_of_batch = portion.sum(torch.from_numpy(v_grad_sum), scalars)
    loss, right_count, offset_grad = scalars_of_batch.tolist()

    # Backward through v and the summary: c, which is added to the gradient of each h.
    v_grad = v_grad_of_batch.numpy().astype(b.dtype)
    c = np.einsum("i,ij->j", v_grad, w) * s * (1 - s) / b.dtype.type(n)

    # Backward through the PReLU.
    no_c = np.zeros_like(b)
    results = _run_on_rows(
        _loss_gradient, (z, b, a, g, v, c), (z_negative, b, a, g_negative, v, no_c)
    )
    bias_grad, slope_grad = (sum(parts) for parts in zip(*results, strict=True))

    return z.new_tensor([loss / total, right_count / total, s.std()]), (
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
        ranges_per_thread = 4 * out.nbytes // (BYTES_PER_BLOCK * torch.get_num_threads())
        bounds = equal_ranges(len(out), max(1, ranges_per_thread))
        weight = out.dtype.type(1 / count)
        ctx.calls = [
            (bounds, part, bias, slope[0], weight)
            for part, bias, slope in zip(parts, biases, slopes, strict=True)
        ]
        calls = [(*call, number == 0, out) for number, call in enumerate(ctx.calls)]
        run_in_ranges(_add_prelu, *calls)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # noqa: D102
        count, grad = len(ctx.calls), grads[0].contiguous()
        calls = [(*call, grad.numpy()) for call in ctx.calls]
        results = run_in_ranges(_prelu_gradient, *calls)

        # The results come range by range, and within a range part by part.
        part_grads, bias_grads, slope_grads = [], [], []
        for number, (_, part, *_) in enumerate(ctx.calls):
            bias_sums, slope_sums = zip(*results[number::count], strict=True)
            part_grads.append(torch.from_numpy(part))
            bias_grads.append(torch.from_numpy(sum(bias_sums)).to(grad.dtype))
            slope_grads.append(grad.new_tensor([sum(slope_sums)]))
        return None, None, *part_grads, *bias_grads, *slope_grads


def shuffle_loss(
    matrix: Tensor,
    transpose: Tensor,
    rows: Tensor,
    y: Tensor,
    *last_weights: Tensor,
    empty: Empty = np.empty,
) -> Outcome:
    """As `Backend.shuffle_loss`."""
    z = pair_product(matrix, rows, y, empty)
    # This overwrites both halves of z by their gradients.
    record, (_, _, *other_gradients) = pair_loss(*z, *last_weights)
    y_grad = pair_gradient(transpose, rows, z, empty)
    return record, (y_grad, *other_gradients)


def adam(
    state: Adam, gradients: Sequence[Tensor], kept: Sequence[Tensor] | None, waited: Tensor | None
) -> None:
    """As `plain.adam`, for contiguous tensors."""
    learning_rate = state.next_rate()
    state.count += 1
    steps = state.count.item()
    rate = learning_rate / (1 - 0.9**steps)
    scale = 1 / math.sqrt(1 - 0.999**steps)
    keeps = bool(kept) and waited is not None and waited.item() == 0

    tensors_by_weight = zip(
        state.weights, gradients, state.means, state.variances, kept or state.weights, strict=True
    )
    calls = []
    for tensors in tensors_by_weight:
        flat_arrays = [tensor.numpy().reshape(-1) for tensor in tensors]
        bounds = equal_ranges(len(flat_arrays[0]))
        calls.append((bounds, *flat_arrays, keeps, rate, scale))
    run_in_ranges(_adam, *calls)


def _run_on_rows(kernel: Callable[..., Any], *calls: tuple[Any, ...]) -> list[Any]:
    """Run a kernel on each thread's rows of z, for each z and its arguments; returns the
    results."""
    calls_in_ranges = [(equal_ranges(len(z)), z.numpy(), *arguments) for z, *arguments in calls]
    return run_in_ranges(kernel, *calls_in_ranges)
