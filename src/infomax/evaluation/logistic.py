"""Logistic regression for many strengths of regularisation, each fit starting from the one before.

There is one softmax over classes, or one sigmoid per label. The loss is the sum of the cross-entropies plus
``|weights|^2 / (2 C)``, as scikit-learn's; biases are not regularised. So that C means the same for long and for short
vectors, x is centred and divided by one number, the root mean square distance of its rows from their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from infomax.evaluation.lbfgs import minimise

LARGEST_BASIS = 2048
"""Rows or columns up to which the principal axes of a dense x are computed."""
DENSE_BASIS, DENSE = 512, 1 << 24
"""Rows or columns up to which a sparse x of at most so many entries, zeros included, is made dense for that."""
PRECISION = 1e-3
"""Largest entry of the gradient at which a fit ends; scores hardly change after it."""
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


def logistic_path(x: Any, y: NDArray[Any], costs: Iterable[float]) -> Iterator[tuple[float, Regression]]:
    """The regression of rows x ``[n, d]``, an array, a tensor or CSR, for each cost C; infinite: not regularised.

    Where y are codes ``[n]`` it is a softmax over the classes, where y is ``[n, K]`` of 0/1 one sigmoid per label.

    L-BFGS runs on weights whose unit is chosen so that the loss curves about equally along each column. The columns of
    a dense x are rotated to its principal axes before, so it takes tens of passes whatever the shape of x.
    """
    classes, targets = (np.arange(y.shape[1]), y) if y.ndim == 2 else np.unique(y, return_inverse=True)
    problem = _Problem.of(x, targets)
    weights = problem.mean.new_zeros(len(problem.variances) + 1, len(classes))
    for cost in costs:
        weights = problem.minimise(cost, weights)
        yield cost, Regression(*problem.unscaled(weights), classes)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is fitted, in coordinates in which L-BFGS needs few passes.

    Shapes:
        rows: ``[n, r]``, a tensor or CSR, float32; shift: ``[r]``, to be subtracted from each row.
        variances: ``[r]``, the mean square of each shifted column.
        targets: ``[n]``, from 0 to K - 1, or ``[n, K]`` of 0/1.
        mean: ``[d]``; axes: ``[d, r]``, None if r = d: ``rows - shift = (x - mean) @ axes / scale``.
    """

    rows: Any
    shift: Tensor
    variances: Tensor
    targets: Tensor
    mean: Tensor
    axes: Tensor | None
    scale: float

    @classmethod
    def of(cls, x: Any, y: NDArray[Any]) -> _Problem:
        n, d = x.shape
        if sparse.issparse(x) and min(n, d) <= DENSE_BASIS and n * d <= DENSE:
            x = x.toarray()
        x = x if sparse.issparse(x) else torch.as_tensor(x)
        targets = torch.as_tensor(y, dtype=torch.float32 if y.ndim == 2 else None, device=getattr(x, "device", "cpu"))
        if sparse.issparse(x) or min(n, d) > LARGEST_BASIS:
            # The mean is subtracted in the products only: a sparse x would be filled.
            mean, squares = _moments(x)
            variances = (squares - mean**2).clamp(min=0)
            scale = _scale(variances, mean)
            rows = (x / scale).astype(np.float32) if sparse.issparse(x) else (x / scale).float()
            return cls(rows, (mean / scale).float(), variances / scale**2, targets, mean, None, scale)
        mean = x.mean(0, dtype=torch.float64)
        blocks = x.split(BLOCK)  # so that no copy in float64 is large
        if n < d:
            squares, sides = torch.linalg.eigh(_gram((x - mean).T))
        else:
            squares, axes = torch.linalg.eigh(sum(_gram(block - mean) for block in blocks))
        kept = squares > 1e-10 * squares.max()  # along the others, rows differ by rounding
        axes = (x - mean).T @ (sides[:, kept] / squares[kept].sqrt()) if n < d else axes[:, kept]
        scale = _scale(squares[kept] / n, mean)
        rows = torch.cat([(block - mean).float() @ (axes / scale).float() for block in blocks])
        return cls(rows, rows.new_zeros(rows.shape[1]), squares[kept] / n / scale**2, targets, mean, axes, scale)

    def minimise(self, cost: float, start: Tensor) -> Tensor:
        """Weights and, in the last row, biases ``[r + 1, K]`` with the lowest loss."""
        n, one = len(self.targets), self.variances.new_ones(1)
        share = self.targets.double().mean(0) if self.targets.ndim == 2 else self.targets.bincount() / n
        # A label that no node has would let its bias fall for ever: it counts as that of one node.
        curvature = torch.outer(torch.cat([self.variances, one]), (share * (1 - share)).clamp(min=(1 - 1 / n) / n))
        decays = torch.cat([torch.full_like(self.variances, 1 / (cost * n)), 0 * one])[:, None]
        unit = 1 / (curvature + decays).sqrt()

        def loss(flat: Tensor) -> tuple[float, Tensor]:
            values = unit * flat.view_as(unit)
            value, slopes = self.cross_entropy(values.float())
            pull = decays * values
            return float(value / n + (pull * values).sum() / 2), pull.add_(slopes, alpha=1 / n).mul_(unit).flatten()

        return unit * minimise(loss, (start / unit).flatten(), PRECISION).view_as(unit)

    def cross_entropy(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The sum over rows for weights and biases ``[r + 1, K]``, and its gradient."""
        offset = weights[-1] - self.shift @ weights[:-1]
        if isinstance(self.rows, Tensor):
            logits = torch.addmm(offset, self.rows, weights[:-1])
        else:
            logits = torch.from_numpy(self.rows @ weights[:-1].numpy()).add_(offset)
        if self.targets.ndim == 2:
            value = softplus(logits).sub_(logits * self.targets).sum(dtype=torch.float64)
            error = logits.sigmoid_().sub_(self.targets)
        else:
            error = logits.log_softmax(1)
            own = self.targets[:, None]
            value = -error.gather(1, own).sum(dtype=torch.float64)
            error.exp_().scatter_add_(1, own, error.new_full(own.shape, -1.0))
        slopes = self.rows.T @ (error if isinstance(self.rows, Tensor) else error.numpy())
        total = error.sum(0, keepdim=True)
        return value, torch.cat([torch.as_tensor(slopes).addmm_(self.shift[:, None], total, alpha=-1), total])

    def unscaled(self, weights: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``[d, K]`` and biases ``[K]`` for rows as x has them."""
        own = (weights[:-1] if self.axes is None else self.axes @ weights[:-1]) / self.scale
        return own.cpu().numpy(), (weights[-1] - self.mean @ own).cpu().numpy()


def _gram(x: Tensor) -> Tensor:
    """``x.T @ x`` of ``[n, d]``; on a CPU by numpy, which computes one half of it, as torch does not."""
    return torch.from_numpy(x.numpy().T @ x.numpy()) if x.device.type == "cpu" else x.T @ x


def _moments(x: Any) -> tuple[Tensor, Tensor]:
    """Mean and mean square ``[d]`` of each column of ``[n, d]``, a tensor or CSR, in double precision."""
    if isinstance(x, Tensor):
        return x.mean(0, dtype=torch.float64), sum(block.double().square().sum(0) for block in x.split(BLOCK)) / len(x)
    mean = np.asarray(x.mean(axis=0, dtype=np.float64))
    # Not by x.power, which sorts indices that its result shares with x.
    sums = np.bincount(x.indices, np.square(x.data, dtype=np.float64), x.shape[1]).astype(np.float64)
    return torch.from_numpy(mean), torch.from_numpy(sums / x.shape[0])


def _scale(variances: Tensor, mean: Tensor) -> float:
    """Root mean square distance of rows from their mean ``[d]``; 1 if it is only rounding."""
    spread = float(variances.sum())
    return spread**0.5 if spread > 1e-13 * float(mean @ mean) else 1.0
