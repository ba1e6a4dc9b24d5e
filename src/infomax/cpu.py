"""The kernels of `infomax.kernels` on a CPU, compiled by numba: each reads and writes its matrices once.

Rows are shared out among as many threads as torch has. Sums over rows are made a thread at a time and then over the
threads, so the same number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

PIECE = 256
"""Rows that are added up in single precision; a longer sum would lose its small terms."""


def _compiled(function):
    """The function, compiled; the machine code is kept beside this file or in the user's cache, if one can be written.

    Sums may be reordered, so that they run on vector units; a NaN stays one.
    """
    settings = {"nogil": True, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
    try:
        return njit(cache=True, **settings)(function)
    except RuntimeError:  # nowhere to keep it
        return njit(**settings)(function)


@_compiled
def _product(starts, columns, values, y, source, out, target, add, begin, end):
    """Rows begin to end; four entries at a time, so that a row of the result is read and written less often."""
    for i in range(begin, end):
        row = out[target[i]]
        if not add:
            row[:] = 0
        e, stop = starts[i], starts[i + 1]
        while e + 4 <= stop:
            a, b, c, d = values[e], values[e + 1], values[e + 2], values[e + 3]
            p, q = y[source[columns[e]]], y[source[columns[e + 1]]]
            r, s = y[source[columns[e + 2]]], y[source[columns[e + 3]]]
            for k in range(len(row)):
                row[k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
            e += 4
        while e < stop:
            a, p = values[e], y[source[columns[e]]]
            for k in range(len(row)):
                row[k] += a * p[k]
            e += 1


@_compiled
def _activated(z, bias, slope, begin, end):
    """The sum of h = PReLU(z + b) over rows, ``[d]``."""
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


@_compiled
def _scored(z, bias, slope, v, offset, sign, total, g, begin, end):
    """Loss and number of right scores, and g h over rows, ``[d]``; g is the gradient by each score."""
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


@_compiled
def _through(z, bias, slope, g, v, c, begin, end):
    """Turn z into its gradient, that of h being g v + c; the gradients of bias and slope."""
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


def product(
    matrix: Tensor,
    y: Tensor,
    *,
    source: Tensor | None = None,
    out: Tensor | None = None,
    target: Tensor | None = None,
) -> Tensor:
    """A CSR matrix ``[M, N]`` times a dense ``[N, D]``; times ``y[source]`` where there is one.

    With ``out`` ``[M, D]`` the result is added to that, row i to row ``target[i]``.
    """
    csr = [part.numpy() for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values())]
    result = y.new_empty(matrix.shape[0], y.shape[1]) if out is None else out
    straight = torch.arange(max(matrix.shape)).numpy()
    places = [straight if rows is None else rows.numpy() for rows in (source, target)]
    shares = np.linspace(0, len(csr[2]), torch.get_num_threads() + 1)[1:-1]
    bounds = [0, *np.searchsorted(csr[0], shares).tolist(), len(result)]
    y = y.contiguous()
    _share(_product, bounds, *csr, y.numpy(), places[0], result.numpy(), places[1], out is not None)
    return result


def contrast(
    z: Tensor, z_negative: Tensor, bias: Tensor, slope: Tensor, weight: Tensor, offset: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As `infomax.kernels.contrast`; z and z_negative are overwritten by their gradients."""
    n, total = len(z), len(z) + len(z_negative)
    b, a, o = bias.numpy(), slope.numpy()[0], offset.numpy()[()]
    summary = torch.sigmoid(torch.from_numpy(sum(_rows(_activated, z, b, a)) / n).to(z.dtype))
    v = weight @ summary
    slants = [np.empty(len(part), b.dtype) for part in (z, z_negative)]
    scored = _rows(_scored, z, b, a, v.numpy(), o, 1, total, slants[0])
    scored += _rows(_scored, z_negative, b, a, v.numpy(), o, -1, total, slants[1])
    loss, right, v_sum = (sum(parts) for parts in zip(*scored, strict=True))
    v_grad = torch.from_numpy(v_sum).to(z.dtype)
    c = (v_grad @ weight) * summary * (1 - summary) / n
    through = _rows(_through, z, b, a, slants[0], v.numpy(), c.numpy())
    through += _rows(_through, z_negative, b, a, slants[1], v.numpy(), np.zeros_like(b))
    bias_grad, slope_grad = (sum(parts) for parts in zip(*through, strict=True))
    offset_grad = float(slants[0].sum(dtype=np.float64) + slants[1].sum(dtype=np.float64))
    return z.new_tensor([loss / total, right / total, float(summary.std(correction=0))]), (
        z,
        z_negative,
        torch.from_numpy(bias_grad).to(z.dtype),
        z.new_tensor([slope_grad]),
        torch.outer(v_grad, summary),
        z.new_tensor(offset_grad).view_as(offset),
    )


def shuffle_contrast(
    matrix: Tensor, transpose: Tensor, rows: Tensor, y: Tensor, *others: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As `infomax.kernels.shuffle_contrast`; nothing is gathered before it is used."""
    z, z_negative = product(matrix, y), product(matrix, y, source=rows)
    record, (grad, grad_negative, *gradients) = contrast(z, z_negative, *others)
    back = product(transpose, grad)
    return record, (product(transpose, grad_negative, out=back, target=rows), *gradients)


def _rows(kernel: Callable[..., Any], z: Tensor, *arguments: Any) -> list[Any]:
    """What a kernel finds in each thread's rows of z."""
    bounds = np.linspace(0, len(z), torch.get_num_threads() + 1).astype(np.int64).tolist()
    return _share(kernel, bounds, z.numpy(), *arguments)


def _share(kernel: Callable[..., Any], bounds: list[int], *arguments: Any) -> list[Any]:
    """A kernel on each range of rows, a thread a range."""
    own, *others = pairwise(bounds)
    futures = [_threads(len(bounds)).submit(kernel, *arguments, *rows) for rows in others]
    return [kernel(*arguments, *own), *(future.result() for future in futures)]


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count)
