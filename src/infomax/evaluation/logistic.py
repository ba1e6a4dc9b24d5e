"""Logistic regression for many strengths of regularisation, each fit starting from the one before.

The loss is the sum of the cross-entropies plus ``|weights|^2 / (2 C)``, as scikit-learn's; biases are not regularised.
So that C means the same for long and for short vectors, x is centred and divided by one number, the root mean square
distance of its rows from their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.evaluation.lbfgs import minimise

LARGEST_BASIS = 2048
"""Rows or columns up to which the principal axes of a dense x are computed."""
DENSE_BASIS, DENSE = 512, 1 << 24
"""Rows or columns up to which a sparse x of at most so many entries, zeros included, is made dense for that."""
PRECISION = 1e-3
"""Largest entry of the gradient at which a fit ends; accuracies hardly change after it."""
BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear classifier: ``weights`` ``[d, K]``, ``bias`` ``[K]`` and the codes ``[K]`` of the classes."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    classes: NDArray[Any]

    def logits(self, x: Any) -> NDArray[np.float64]:
        """Logits ``[n, K]`` of rows ``[n, d]``, dense or CSR."""
        logits: NDArray[np.float64] = x @ self.weights + self.bias
        return logits

    def predict(self, x: Any) -> NDArray[Any]:
        """Codes ``[n]`` of rows ``[n, d]``."""
        codes: NDArray[Any] = self.classes[self.logits(x).argmax(axis=1)]
        return codes


def logistic_path(x: Any, codes: NDArray[Any], costs: Iterable[float]) -> Iterator[tuple[float, Regression]]:
    """The regression of rows x ``[n, d]``, dense or CSR, on codes ``[n]`` for each cost C.

    L-BFGS runs on weights whose unit is chosen so that the loss curves about equally along each column. The columns of
    a dense x are rotated to its principal axes before, so it takes tens of passes whatever the shape of x.
    """
    classes, targets = np.unique(codes, return_inverse=True)
    problem = _Problem.of(x, targets)
    weights = np.zeros((problem.rows.shape[1] + 1, len(classes)))
    for cost in costs:
        weights = problem.minimise(cost, weights)
        yield cost, Regression(*problem.unscaled(weights), classes)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is fitted, in coordinates in which L-BFGS needs few passes.

    Shapes:
        rows: ``[n, r]``, dense or CSR, float32; shift: ``[r]``, to be subtracted from each row.
        variances: ``[r]``, the mean square of each shifted column.
        targets: ``[n]``, from 0 to K - 1.
        mean: ``[d]``; axes: ``[d, r]``, None if r = d: ``rows - shift = (x - mean) @ axes / scale``.
    """

    rows: Any
    shift: NDArray[np.float32]
    variances: NDArray[np.float64]
    targets: NDArray[np.int64]
    mean: NDArray[np.float64]
    axes: NDArray[np.float64] | None
    scale: float

    @classmethod
    def of(cls, x: Any, targets: NDArray[np.int64]) -> _Problem:
        n, d = x.shape
        if sparse.issparse(x) and min(n, d) <= DENSE_BASIS and n * d <= DENSE:
            x = x.toarray()
        mean = np.asarray(x.mean(axis=0, dtype=np.float64))
        if sparse.issparse(x) or min(n, d) > LARGEST_BASIS:
            # The mean is subtracted in the products only: a sparse x would be filled.
            variances = np.maximum(_mean_squares(x) - mean**2, 0)
            scale = _scale(variances, mean)
            rows, shift = (x / scale).astype(np.float32), (mean / scale).astype(np.float32)
            return cls(rows, shift, variances / scale**2, targets, mean, None, scale)
        blocks = [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]  # so that no copy in float64 is large
        if n < d:
            squares, sides = np.linalg.eigh((x - mean) @ (x - mean).T)
        else:
            squares, axes = np.linalg.eigh(sum((x[block] - mean).T @ (x[block] - mean) for block in blocks))
        kept = squares > 1e-10 * squares.max(initial=0)  # along the others, rows differ by rounding
        axes = (x - mean).T @ (sides[:, kept] / np.sqrt(squares[kept])) if n < d else axes[:, kept]
        scale = _scale(squares[kept] / n, mean)
        rows = np.concatenate([(x[block] - mean) @ axes / scale for block in blocks], dtype=np.float32)
        shift = np.zeros(len(axes.T), dtype=np.float32)
        return cls(rows, shift, squares[kept] / n / scale**2, targets, mean, axes, scale)

    def minimise(self, cost: float, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights and, in the last row, biases ``[r + 1, K]`` with the lowest loss."""
        n, decay = len(self.targets), 1 / (cost * len(self.targets))
        share = np.bincount(self.targets) / n
        curvature = np.outer(np.append(self.variances, 1), share * (1 - share))
        decays = np.append(np.full(len(self.variances), decay), 0)[:, None]
        unit = 1 / np.sqrt(curvature + decays)
        everyone, transposed = np.arange(n), self.rows.T

        def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            values = unit * flat.reshape(unit.shape)
            weights = values.astype(np.float32)
            logits = self.rows @ weights[:-1] + (weights[-1] - self.shift @ weights[:-1])
            logits -= logits.max(axis=1, keepdims=True)
            own = logits[everyone, self.targets].sum(dtype=np.float64)
            np.exp(logits, out=logits)
            total = logits.sum(axis=1, keepdims=True)
            value = (np.log(total).sum(dtype=np.float64) - own) / n + np.vdot(decays * values, values) / 2
            logits /= total
            logits[everyone, self.targets] -= 1
            error = logits.sum(axis=0)
            slopes = np.vstack([transposed @ logits - np.outer(self.shift, error), error])
            return float(value), (unit * (slopes / n + decays * values)).ravel()

        best: NDArray[np.float64] = unit * minimise(loss, (start / unit).ravel(), PRECISION).reshape(unit.shape)
        return best

    def unscaled(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``[d, K]`` and biases ``[K]`` for rows as x has them."""
        own = (weights[:-1] if self.axes is None else self.axes @ weights[:-1]) / self.scale
        return own, weights[-1] - self.mean @ own


def _mean_squares(x: Any) -> NDArray[np.float64]:
    """Mean square ``[d]`` of each column of ``[n, d]``, dense or CSR."""
    if sparse.issparse(x):  # not by x.power, which sorts indices that its result shares with x
        sums = np.bincount(x.indices, np.square(x.data, dtype=np.float64), x.shape[1]).astype(np.float64)
    else:
        sums = np.einsum("nd,nd->d", x, x, dtype=np.float64)
    squares: NDArray[np.float64] = sums / x.shape[0]
    return squares


def _scale(variances: NDArray[np.float64], mean: NDArray[np.float64]) -> float:
    """Root mean square distance of rows from their mean ``[d]``; 1 if it is only rounding."""
    spread = float(variances.sum())
    return spread**0.5 if spread > 1e-13 * (mean @ mean) else 1.0
