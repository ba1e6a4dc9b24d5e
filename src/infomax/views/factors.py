"""The factors of a path: means over the neighbours in each step, and in which order they are multiplied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from infomax.arrays.adjacency import Senders
from infomax.views.operands import Operand, SparseOperand
from infomax.views.propagation import Messages

Factor = Messages | SparseOperand
"""One step of a path as a matrix ``[N_1, N_2]``."""
SPARSE = 10 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 4
"""How many times as long a product with a sparse matrix takes per entry as one with a dense matrix.

The one waits for memory, the other for arithmetic, of which wide vector units do more. So machines may multiply in
another order; the vectors are equal up to rounding.
"""


def pooled_first(chain: Sequence[SparseOperand], x: Operand, weight: Tensor) -> int:
    """How many factors, from the last, are best applied to X before Θ in a step: P (Q (X Θ)), P ((Q X) Θ), (P Q X) Θ.

    X Θ is computed for both views together, with a gradient; Q X needs no gradient, and that of a view without a
    shuffle is known.
    """
    features, dim = weight.shape

    def work(count: int) -> int:
        later = len(chain) - count
        own = x.numel() if isinstance(x, Tensor) else SPARSE * x.entries
        product = 4 * dim * chain[later].shape[0] * features if count else 2 * dim * own
        widths = [4 * dim] * later + [features] * count
        return product + SPARSE * sum(one.entries * width for one, width in zip(chain, widths, strict=True))

    return min(range(len(chain) + 1), key=work)


def pool_features(factors: Sequence[SparseOperand], x: Operand, dim: int, rows: Tensor | None = None) -> Tensor:
    """P Q X, dense, ``[M, F]``; with ``rows``, of these rows of X. It replaces a product of width ``dim``."""
    *others, last = factors
    if isinstance(x, Tensor):
        return through(factors, x if rows is None else x[rows])
    if kernels := last.backend.numba(x.shape[0] * dim):
        return through(others, kernels.sparse_product(last.matrix, x.matrix, rows))
    matrix = last.scipy
    if rows is not None:  # other columns of Q, which is smaller than X
        matrix = sparse.csr_array((matrix.data, rows.numpy()[matrix.indices], matrix.indptr), shape=matrix.shape)
    return through(others, torch.from_numpy((matrix @ x.scipy).toarray()))


def through(factors: Sequence[Factor], y: Tensor) -> Tensor:
    """P Q Y."""
    for factor in reversed(factors):
        y = factor @ y
    return y


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
