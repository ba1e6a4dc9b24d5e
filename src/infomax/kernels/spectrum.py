"""The leading eigenvectors of a symmetric matrix P of which only products are known.

The search is a subspace iteration. A round multiplies a block of columns by a Chebyshev polynomial
of the matrix, which is small wherever eigenvalues are not wanted, and then takes the best
approximations in the span of the columns (Ritz vectors). Rounds go on until the residuals ||P v - s
v|| are small, however near to each other the eigenvalues are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from infomax.kernels.host import on_one_thread, symmetric_eigen

TOLERANCE = 3e-3
"""The largest residual ||P v - s v|| of an eigenvector that is good enough, where eigenvalues are
at most 1. docs/explanation/evidence.md has what a tolerance costs and gains."""
MOST_PRODUCTS = 200
"""Products with the matrix after which the search ends with what it has."""
SMALLEST_VALUE = 0.02
"""Eigenvalues, of at most 1, below which a direction is left out: new nodes divide by them."""
MOST_DEGREE = 12
LARGEST_RATIO = 1e4
"""The degree of a round's polynomial at most, and by how much more it may enlarge the first
direction than the last.

Rounds of a higher degree need fewer products in exact arithmetic, but a block whose columns differ
by more loses the small ones to rounding: degree 24 and a ratio of 1e6 need up to four times as
many.
"""
TIE_BREAK = 1e-6
"""By how much P is changed at each node, so that eigenvectors of one eigenvalue, as separate parts
of a graph have them, are the same ones whatever the rounding."""
ROWS_PER_BLOCK = {"cpu": 1 << 13, "cuda": 1 << 18}
"""Rows of the columns at a time: on a CPU temporary results stay small, on a GPU there are few
calls."""

Product = Callable[[Tensor, Tensor], None]
"""A function of x ``[N, w]`` and ``out``, to which it writes P x."""


@dataclass(frozen=True, eq=False)
class LeadingVectors:
    """The result of a search.

    Shapes:
        vectors: ``[N, K]``, eigenvectors V times P: column k is V_k s_k; a view of one of the
            arrays of the search
        values: ``[K]``, the eigenvalues s, the largest first
    """

    vectors: Tensor
    values: Tensor
    products: int
    """How many products with the matrix the search took."""
    residual: float
    """The largest ||P v - s v|| of the eigenvectors."""


def leading_vectors(
    product: Product,
    current: Tensor,
    following: Tensor,
    count: int,
    *,
    tolerance: float = TOLERANCE,
    most_products: int = MOST_PRODUCTS,
) -> LeadingVectors:
    """Find the eigenvectors of the largest eigenvalues, at most ``count``, all of them positive.

    Rows are read in order, so that both arrays may be mapped from disk. They are in double
    precision: eigenvectors of near eigenvalues turn by the rounding over the distance of these, so
    single precision would not repeat them.

    Args:
        product: writes P x; the eigenvalues of P are between -1 and 1.
        current: ``[N, w]``, w > K; what to begin with, 1 and -1. It is overwritten.
        following: ``[N, w]``, for work.
        count: eigenvectors at most.
        tolerance: the largest residual at which the search ends.
        most_products: the search ends after so many products, whatever the residuals are.
    """
    tie_signs = current[:, :1].clone()
    products = 0
    while True:
        # The best approximations of eigenvectors in the span of the columns, and their products
        # with P.
        make_orthonormal(current)
        product(current, following)
        products += 1
        values, rotation = symmetric_eigen(_inner_products(current, following))
        _multiply_columns(current, rotation.to(current))
        _multiply_columns(following, rotation.to(current))

        # An eigenvalue is at most the residual away: of random columns all values are near 0, which
        # says nothing yet.
        residuals = _residuals(current, following, values)[-count:]
        may_be_wanted = values[-count:] + residuals > SMALLEST_VALUE
        residual = float(residuals[may_be_wanted].max()) if may_be_wanted.any() else 0.0
        if residual <= tolerance or products >= most_products:
            break

        # Multiply by the polynomial, as a product of its linear factors; `following` holds P x
        # already.
        smallest = max(SMALLEST_VALUE, float(values[0]))
        degree = min(_degree(smallest, float(values[-1])), most_products - products)
        for factor, root in enumerate(_chebyshev_roots(degree)):
            if factor > 0:
                product(current, following)
                products += 1
            shift = (smallest - 1 + (smallest + 1) * root) / 2
            for x_block, product_block in zip(
                _row_blocks(current), _row_blocks(following), strict=True
            ):
                product_block.sub_(x_block, alpha=shift)
            current, following = following, current

    # Eigenvectors of equal eigenvalues could be any rotation of themselves: a tiny change of P
    # decides which they are.
    projected = torch.diag(values) + TIE_BREAK * _inner_products(current, current, tie_signs)
    values, rotation = symmetric_eigen(projected)
    wanted = torch.flip(torch.arange(len(values))[values > SMALLEST_VALUE], (0,))[:count]
    _multiply_columns(following, rotation[:, wanted].to(current))
    vectors = following[:, : len(wanted)]
    vectors *= _largest_entry_signs(vectors)
    return LeadingVectors(vectors, values[wanted].float(), products, residual)


def make_orthonormal(columns: Tensor) -> None:
    """Replace columns ``[N, w]`` by orthonormal ones of the same span; as many are zero as they
    depend on others."""
    _multiply_columns(columns, _orthonormalising(_inner_products(columns, columns)).to(columns))


def _orthonormalising(products: Tensor) -> Tensor:
    """What columns with these inner products ``[w, w]`` are multiplied by to become orthonormal,
    ``[w, w]``."""
    factor, failed = on_one_thread(torch.linalg.cholesky_ex, products)
    lengths = factor.diagonal()
    # Where no column depends on the others: this takes a third of the time.
    if not failed and lengths.min() > 1e-4 * lengths.max():
        identity = torch.eye(len(factor), dtype=factor.dtype)
        inverse: Tensor = on_one_thread(solve_lower, factor, identity).T
        return inverse

    squares, vectors = symmetric_eigen(products)
    independent = squares > 1e-10 * squares[-1]
    inverse_lengths = squares.clamp(min=1e-30).rsqrt()
    return vectors * torch.where(independent, inverse_lengths, torch.zeros_like(squares))


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """X with L X = R, L being a lower triangle."""
    solution: Tensor = torch.linalg.solve_triangular(factor, right, upper=False)
    return solution


def _degree(smallest: float, largest: float) -> int:
    """The degree of the next polynomial, which is small between -1 and ``smallest``; see
    `LARGEST_RATIO`."""
    stretched = (2 * min(largest, 1.0) + 1 - smallest) / (1 + smallest)
    growth = math.acosh(max(stretched, 1 + 1e-9))
    return max(4, min(MOST_DEGREE, int(math.log(2 * LARGEST_RATIO) / growth)))


def _chebyshev_roots(degree: int) -> list[float]:
    """The roots of a Chebyshev polynomial, in an order in which products of the factors stay of a
    size (Leja's)."""
    remaining = [math.cos(math.pi * (number + 0.5) / degree) for number in range(degree)]
    ordered: list[float] = []
    while remaining:

        def distance(root: float) -> float:
            return sum(math.log(abs(root - earlier)) for earlier in ordered)

        farthest = max(remaining, key=distance) if ordered else remaining[0]
        remaining.remove(farthest)
        ordered.append(farthest)
    return ordered


def _residuals(columns: Tensor, products: Tensor, values: Tensor) -> Tensor:
    """The lengths ``[w]`` of P x - s x, of columns x ``[N, w]`` with products P x and values s
    ``[w]``."""
    squares = torch.zeros_like(values)
    for block, product_block in zip(_row_blocks(columns), _row_blocks(products), strict=True):
        difference = product_block - block * values.to(block)
        squares += difference.square_().sum(dim=0).cpu()
    return squares.sqrt()


def _largest_entry_signs(columns: Tensor) -> Tensor:
    """1 or -1 for each column, by which its largest entry becomes positive."""
    largest = columns.new_zeros(columns.shape[1])
    for block in _row_blocks(columns):
        largest_in_block = block.gather(0, block.abs().argmax(0, keepdim=True))[0]
        largest = torch.where(largest_in_block.abs() > largest.abs(), largest_in_block, largest)
    return torch.where(largest < 0, -1.0, 1.0).to(columns)


def _inner_products(x: Tensor, y: Tensor, weights: Tensor | None = None) -> Tensor:
    """x^T y ``[w, w]`` on the CPU; with ``weights [N, 1]``, x^T diag(weights) y."""
    total = np.zeros((x.shape[1], y.shape[1]))
    first = 0
    for x_block, y_block in zip(_row_blocks(x), _row_blocks(y), strict=True):
        if weights is not None:
            y_block = weights[first : first + len(y_block)] * y_block
        total += (x_block.T @ y_block).cpu().numpy()
        first += len(y_block)
    return torch.from_numpy(total)


def _multiply_columns(columns: Tensor, matrix: Tensor) -> None:
    """Multiply columns ``[N, w]`` by a matrix ``[w, k]``, in place."""
    for block in _row_blocks(columns):
        block[:, : matrix.shape[1]] = block @ matrix


def _row_blocks(columns: Tensor) -> Iterator[Tensor]:
    return iter(columns.split(ROWS_PER_BLOCK[columns.device.type]))
