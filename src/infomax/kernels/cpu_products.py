"""Products with a sparse matrix on a CPU, compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infomax.kernels.compiling import compiled
from infomax.kernels.sharing import even, share

BLOCK, FEWEST = 1 << 20, 4
"""Bytes of a dense factor that stay in a core's cache; entries per row and block above which such blocks pay."""

Empty = Callable[..., np.ndarray]
"""A function of (shape, dtype) that returns an array with arbitrary contents."""


@compiled
def _add(row, columns, values, y, e, stop, fresh):
    """Add entries e to stop to a row of a product; if ``fresh``, they replace what is there.

    They are added four at a time, to read and write the sum less often; the last is repeated, with weight 0.
    """
    last, nothing = stop - 1, y.dtype.type(0)
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
    back, parts = _csr(transpose), grad.contiguous().numpy()
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
    return tuple(part.numpy() for part in (matrix.crow_indices(), matrix.col_indices(), matrix.values()))
