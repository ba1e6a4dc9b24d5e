"""The factors of a path: means over the neighbours in each step, and in which order they are multiplied."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.arrays.adjacency import Senders
from infomax.views.operands import Operand, SparseOperand

SPARSE = 4
"""How many times as long a product with a sparse matrix takes per entry as one with a dense matrix."""


def pools_first(last: SparseOperand, x: Operand, weight: Tensor) -> bool:
    """Whether (P X) Θ is less work than P (X Θ) for the last factor P ``[M, N]`` of a path, in a step.

    X Θ is computed for both views together, with a gradient; P X needs no gradient, and that of a view without a
    shuffle is known.
    """
    features, dim = weight.shape
    own = x.numel() if isinstance(x, Tensor) else SPARSE * x.entries
    pooling = SPARSE * last.entries
    return 4 * dim * last.shape[0] * features + pooling * features < 2 * dim * own + 4 * dim * pooling


def pool_features(last: SparseOperand, x: Operand, dim: int, rows: Tensor | None = None) -> Tensor:
    """P X, dense, ``[M, F]``; with ``rows``, of these rows of X. It stands for a product of width ``dim``."""
    if isinstance(x, Tensor):
        return last @ (x if rows is None else x[rows])
    if kernels := last.backend.numba(x.shape[0] * dim):
        return kernels.sparse_product(last.matrix, x.matrix, rows)  # type: ignore[no-any-return]
    matrix = last.scipy
    if rows is not None:  # other columns of P, which is smaller than X
        matrix = sparse.csr_array((matrix.data, rows.numpy()[matrix.indices], matrix.indptr), shape=matrix.shape)
    return torch.from_numpy((matrix @ x.scipy).toarray())


def mean_over(senders: Senders, width: int) -> sparse.csr_array:
    """The mean over those that send to each node, as a matrix ``[N, width]``; zero where nobody does."""
    matrix = senders.matrix(width).astype("float32")
    total = matrix.sum(axis=1)
    matrix.data = matrix.data / total.repeat(matrix.indptr[1:] - matrix.indptr[:-1])
    return matrix


def merged(factors: Iterable[sparse.csr_array]) -> list[sparse.csr_array]:
    """Multiply adjacent factors whose product has no more entries than they have together, so it is less work."""
    first, *others = factors
    found = [first]
    for right in others:
        left, together = found[-1], found[-1].nnz + right.nnz
        # Only where the product takes little time and memory is it computed at all.
        few = np.bincount(left.indices, minlength=left.shape[1]) @ np.diff(right.indptr) <= 2 * together
        if few and (both := left @ right).nnz <= together:
            found[-1] = both
        else:
            found.append(right)
    return found
