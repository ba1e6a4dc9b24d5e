"""The leading eigenvectors of a symmetric matrix that is only known by its products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from infomax.kernels.host import on_one_thread, symmetric_eigen

ROUNDS, DEGREE = 3, 6
"""Rounds of the subspace iteration, and the degree of the polynomial of P that each multiplies by.

The 128 largest eigenvalues of DBLP add up to 70.7, of which 2, 3 and 4 rounds find 68.5, 70.2 and 70.6. Powers of
P (P + I) find 69.5 in as many products as 4 rounds. On validation nodes 4 rounds are no better than 3.
"""
LEAST = 0.02
"""Eigenvalues, of at most 1, below which a direction is left out: new nodes divide by them."""
TIES = 1e-6
"""By how much P is changed at each node, so that eigenvectors of one eigenvalue, as separate parts of a graph have
them, are the same ones whatever the rounding."""
_ROWS = 1 << 16

Product = Callable[[Tensor, Tensor], None]
"""A function of x ``[N, w]`` and ``out``, to which it writes P x."""


def leading_vectors(
    product: Product, now: Tensor, then: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """P V ``[N, K]`` and eigenvalues ``[K]``, V being eigenvectors of the K largest eigenvalues, all positive.

    K is at most ``count``. A round multiplies by the Chebyshev polynomial that is small between -1 and the least of the
    eigenvalues found so far, as a product of its linear factors. Rows are read in order, so that both arrays may be
    mapped from disk. They are in double precision: eigenvectors of near eigenvalues turn by the rounding over the
    distance of these, so that single precision would not repeat them.

    Shapes:
        now, then: ``[N, w]``, w > K; the first holds what to begin with, 1 and -1, and both are overwritten
    """
    apart = now[:, :1].clone()
    for _ in range(ROUNDS):
        make_orthonormal(now)
        product(now, then)
        least = max(LEAST, float(symmetric_eigen(_products(now, then))[0][0]))
        for at in range(DEGREE):
            if at:
                product(now, then)
            root = (least - 1 + (least + 1) * math.cos(math.pi * (at + 0.5) / DEGREE)) / 2
            for here, there in zip(_blocks(now), _blocks(then), strict=True):
                there.sub_(here, alpha=root)
            now, then = then, now
    make_orthonormal(now)
    product(now, then)
    small = _products(now, then) + TIES * _products(now, now, apart)
    values, vectors = symmetric_eigen(small)
    kept = torch.flip(torch.arange(len(values))[values > LEAST], (0,))[:count]
    _replace(then, vectors[:, kept].to(now))
    found = then[:, : len(kept)]
    found *= _signs(found)
    return found, values[kept].float()


def make_orthonormal(columns: Tensor) -> None:
    """Replace columns ``[N, w]`` by orthonormal ones of the same span; as many are zero as they depend on others."""
    _replace(columns, _orthonormal(_products(columns, columns)).to(columns))


def _orthonormal(products: Tensor) -> Tensor:
    """What columns with these inner products ``[w, w]`` are multiplied by to become orthonormal, ``[w, w]``."""
    factor, failed = on_one_thread(torch.linalg.cholesky_ex, products)
    lengths = factor.diagonal()
    if (
        not failed and lengths.min() > 1e-4 * lengths.max()
    ):  # in a third of the time of what follows
        identity = torch.eye(len(factor), dtype=factor.dtype)
        turn: Tensor = on_one_thread(solve_lower, factor, identity).T
    else:
        squares, vectors = symmetric_eigen(products)
        kept = squares > 1e-10 * squares[-1]
        turn = vectors * torch.where(
            kept, squares.clamp(min=1e-30).rsqrt(), torch.zeros_like(squares)
        )
    return turn


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """X with L X = R, L being a lower triangle."""
    solution: Tensor = torch.linalg.solve_triangular(factor, right, upper=False)
    return solution


def _signs(columns: Tensor) -> Tensor:
    """1 or -1 for each column, by which its largest entry becomes positive."""
    largest = columns.new_zeros(columns.shape[1])
    for block in _blocks(columns):
        best = block.gather(0, block.abs().argmax(0, keepdim=True))[0]
        largest = torch.where(best.abs() > largest.abs(), best, largest)
    return torch.where(largest < 0, -1.0, 1.0).to(columns)


def _products(x: Tensor, y: Tensor, by: Tensor | None = None) -> Tensor:
    """x^T y ``[w, w]`` on the CPU; with ``by [N, 1]``, x^T diag(by) y."""
    total = np.zeros((x.shape[1], y.shape[1]))
    each = [None] * -(-len(x) // _ROWS) if by is None else _blocks(by)
    for here, there, factor in zip(_blocks(x), _blocks(y), each, strict=True):
        total += (here.T @ (there if factor is None else factor * there)).cpu().numpy()
    return torch.from_numpy(total)


def _replace(columns: Tensor, turn: Tensor) -> None:
    """Multiply columns ``[N, w]`` by a matrix ``[w, k]``, in place."""
    for block in _blocks(columns):
        block[:, : turn.shape[1]] = block @ turn


def _blocks(columns: Tensor) -> Iterator[Tensor]:
    return iter(columns.split(_ROWS))
