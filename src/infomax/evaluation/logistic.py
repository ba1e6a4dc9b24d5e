"""Logistic regression for many strengths of regularisation, each fit starting from the one before.

There is one softmax over classes, or one sigmoid per label. The loss is the sum of the cross-entropies plus
``|weights|^2 / (2 C)``, as scikit-learn's; biases are not regularised. So that C means the same for long and for short
vectors, x is centred and divided by one number, the root mean square distance of its rows from their mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import one_hot, softplus

LARGEST_BASIS = 2048
"""Rows or columns up to which the principal axes of a dense x are computed."""
DENSE_BASIS, DENSE = 512, 1 << 24
"""Rows or columns up to which a sparse x of at most so many entries, zeros included, is made dense for that."""
PRECISION = 1e-3
"""Largest entry of the gradient at which a fit ends; scores hardly change after it."""
BLOCK = 16_384
MEMORY, STEPS, HALVINGS = 10, 500, 20
ENOUGH = 1e-4
"""Share of the decrease promised by the slope that a step must give (Armijo)."""

_Frame: TypeAlias = tuple[Any, Tensor, Tensor | None, float, Tensor]
"""The first fields of a `_Problem`."""


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear classifier: ``weights`` ``[d, K]``, ``bias`` ``[K]`` and the codes ``[K]`` of the classes."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    classes: NDArray[Any]

    def logits(self, x: Any) -> Any:
        """Logits ``[n, K]`` of rows ``[n, d]``, an array, a tensor or CSR, in their precision."""
        if isinstance(x, Tensor):
            weights, bias = (
                torch.as_tensor(part, dtype=x.dtype).to(x.device)
                for part in (self.weights, self.bias)
            )
            return torch.addmm(bias, x, weights)
        return x @ self.weights.astype(x.dtype) + self.bias.astype(x.dtype)

    def predict(self, x: Any) -> NDArray[Any]:
        """Codes ``[n]`` of rows ``[n, d]``."""
        codes: NDArray[Any] = self.classes[
            np.asarray(torch.as_tensor(self.logits(x)).argmax(1).cpu())
        ]
        return codes


def logistic_path(
    x: Any, y: NDArray[Any], costs: Iterable[float], device: str | torch.device | None = None
) -> Iterator[tuple[float, Regression]]:
    """The regression of rows x ``[n, d]``, an array, a tensor or CSR, for each cost C; infinite: not regularised.

    Where y are codes ``[n]`` it is a softmax over the classes, where y is ``[n, K]`` of 0/1 one sigmoid per label.
    L-BFGS runs on weights whose unit is chosen so that the loss curves about equally along each column. The columns of
    a dense x are rotated to its principal axes before, so it takes tens of passes whatever the shape of x.
    """
    device = torch.device(device or (x.device if isinstance(x, Tensor) else "cpu"))
    many = y.ndim == 2
    classes = np.arange(y.shape[1]) if many else np.unique(y)
    targets = y if many else classes.searchsorted(y)
    problem = _Problem.of(
        x, torch.as_tensor(targets, dtype=torch.float32 if many else torch.int64).to(device)
    )
    weights = problem.variances.new_zeros(len(problem.variances) + 1, len(classes))
    for cost in costs:
        weights = problem.minimise(cost, weights)
        yield cost, Regression(*problem.unscaled(weights), classes)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is fitted, in coordinates in which L-BFGS needs few passes: ``rows - shift = (x - mean) @ axes / scale``.

    Shapes:
        rows: ``[n, r]``, float32; or sparse, and the transpose of that.
        mean: ``[d]``; axes: ``[d, r]``, None if r = d: then ``shift [r]`` is to be subtracted from each row.
        variances: ``[r]``, the mean square of each shifted column.
        targets: ``[n]``, from 0 to K - 1, or ``[n, K]`` of 0/1.
    """

    rows: Any
    mean: Tensor
    axes: Tensor | None
    scale: float
    variances: Tensor
    targets: Tensor

    @classmethod
    def of(cls, x: Any, targets: Tensor) -> _Problem:
        (n, d), device = x.shape, targets.device
        if sparse.issparse(x) and min(n, d) <= DENSE_BASIS and n * d <= DENSE:
            x = x.toarray()
        if not sparse.issparse(x):
            x = torch.as_tensor(x).to(device)
            return cls(*(_as_it_is if min(n, d) > LARGEST_BASIS else _rotated)(x), targets)
        rows, mean, axes, scale, variances = _as_it_is(x)
        rows = [
            each if device.type == "cpu" else _on(device, each)
            for each in (rows, sparse.csr_array(rows.T))
        ]
        return cls(rows, mean.to(device), axes, scale, variances.to(device), targets)

    @cached_property
    def shift(self) -> Tensor | None:
        return None if self.axes is not None else (self.mean / self.scale).float()

    def minimise(self, cost: float, start: Tensor) -> Tensor:
        """Weights and, in the last row, biases ``[r + 1, K]`` with the lowest loss."""
        n = len(self.targets)
        one = self.variances.new_ones(1)
        hits = self.targets if self.targets.ndim == 2 else one_hot(self.targets, start.shape[1])
        share = hits.double().mean(0)
        # A label that no node has would let its bias fall for ever: it counts as that of one node.
        curvature = torch.cat([self.variances, one])[:, None] * (share * (1 - share)).clamp(
            min=(1 - 1 / n) / n
        )
        decays = torch.cat([torch.full_like(self.variances, 1 / (cost * n)), 0 * one])[:, None]
        unit = 1 / (curvature + decays).sqrt()

        def loss(flat: Tensor) -> tuple[float, Tensor]:
            values = unit * flat.view_as(unit)
            value, slopes = self.cross_entropy(values.float())
            pull = decays * values
            total = value / n + (pull * values).sum() / 2
            return float(total), pull.add_(slopes, alpha=1 / n).mul_(unit).flatten()

        return unit * minimise(loss, (start / unit).flatten(), PRECISION).view_as(unit)

    def cross_entropy(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The sum over rows for weights and biases ``[r + 1, K]``, and its gradient."""
        own, offset = weights[:-1], weights[-1]
        if self.shift is not None:
            offset = offset - self.shift @ own
        if isinstance(self.rows, Tensor):
            logits = torch.addmm(offset, self.rows, own)
        else:
            logits = _product(self.rows[0], own).add_(offset)
        if self.targets.ndim == 2:
            value = softplus(logits).sub_(logits * self.targets).sum(dtype=torch.float64)
            error = logits.sigmoid_().sub_(self.targets)
        else:
            error = logits.log_softmax(1)
            true = self.targets[:, None]
            value = -error.gather(1, true).sum(dtype=torch.float64)
            error.exp_().scatter_add_(1, true, error.new_full((), -1.0).expand(true.shape))
        total = error.sum(0, keepdim=True)
        if isinstance(self.rows, Tensor):
            slopes = (
                error.T @ self.rows
            ).T  # the short matrix first: half as long as the other way round
        else:
            slopes = _product(self.rows[1], error)
        if self.shift is not None:
            slopes = torch.addmm(slopes, self.shift[:, None], total, alpha=-1)
        return value, torch.cat([slopes, total])

    def unscaled(self, weights: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``[d, K]`` and biases ``[K]`` for rows as x has them, from ``[r + 1, K]``."""
        own = (weights[:-1] if self.axes is None else self.axes @ weights[:-1]) / self.scale
        return own.cpu().numpy(), (weights[-1] - self.mean @ own).cpu().numpy()


def minimise(
    loss: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, precision: float
) -> Tensor:
    """The point ``[n]`` at which no entry of the gradient exceeds the precision, or the loss hardly falls any more.

    By L-BFGS (Nocedal, 1980), for a smooth convex function; importing SciPy's takes 0.3 s, as long as an evaluation.
    The square of the precision is the relative decrease of the loss at which the search ends.
    """
    point, (value, slope) = start, loss(start)
    past: deque[tuple[Tensor, Tensor, Tensor]] = deque(maxlen=MEMORY)
    unit = 1 / slope.norm().clamp(min=1)
    for _ in range(STEPS):
        if float(slope.abs().max()) <= precision:
            break
        direction = _direction(slope, past, unit)
        promised = ENOUGH * float(slope @ direction)
        step = 1.0
        for _ in range(HALVINGS):
            new = torch.sub(point, direction, alpha=step)
            new_value, new_slope = loss(new)
            if new_value <= value - step * promised:
                break
            step /= 2
        else:  # rounding hides what is left to gain
            break
        moved = new - point
        change = new_slope - slope
        gained = value - new_value
        curved = moved @ change
        if curved > 0:  # else the step tells nothing
            unit = curved / (change @ change)
            past.append((moved, change, 1 / curved))
        point, value, slope = new, new_value, new_slope
        if gained <= precision**2 * max(1.0, abs(value)):
            break
    return point


def _direction(slope: Tensor, past: deque[tuple[Tensor, Tensor, Tensor]], unit: Tensor) -> Tensor:
    """The slope times the inverse of the curvature, as past steps tell it; ``unit`` is what they begin from."""
    direction = slope.clone()
    shares = []
    for moved, change, inverse in reversed(past):
        shares.append(inverse * (moved @ direction))
        direction -= shares[-1] * change
    direction *= unit
    for (moved, change, inverse), share in zip(past, reversed(shares), strict=True):
        direction += (share - inverse * (change @ direction)) * moved
    return direction


def _product(matrix: Any, y: Tensor) -> Tensor:
    """A sparse ``[m, p]``, of SciPy or on a device, by ``[p, K]``."""
    return matrix @ y if isinstance(matrix, Tensor) else torch.from_numpy(matrix @ y.numpy())


def _on(device: torch.device, csr: Any) -> Tensor:
    """A SciPy CSR matrix on a device."""
    starts, columns = (
        torch.as_tensor(part, dtype=torch.int64) for part in (csr.indptr, csr.indices)
    )
    return torch.sparse_csr_tensor(starts, columns, torch.from_numpy(csr.data), csr.shape).to(
        device
    )


def _as_it_is(x: Any) -> _Frame:
    """The coordinates of x ``[n, d]``, a tensor or CSR, themselves."""
    mean, squares = _moments(x)
    variances = (squares - mean**2).clamp(min=0)
    scale = _scale(variances, mean)
    rows = (x / scale).astype(np.float32) if sparse.issparse(x) else (x / scale).float()
    return rows, mean, None, scale, variances / scale**2


def _rotated(x: Tensor) -> _Frame:
    """The coordinates of x ``[n, d]`` along its principal axes."""
    mean, (n, d) = x.mean(0, dtype=torch.float64), x.shape
    if n < d:
        centred = x - mean
        squares, sides = torch.linalg.eigh(_gram(centred.T))
        kept = squares > 1e-10 * squares.max()
        axes = centred.T @ (sides[:, kept] / squares[kept].sqrt())
    else:
        mean = mean.to(x.dtype).double()  # what is subtracted in the precision of x
        gram = sum((_gram(block) for block in _centred(x, mean)), x.new_zeros(()))
        try:
            _, axes = torch.linalg.eigh(gram)
        except (
            RuntimeError
        ):  # MKL does not converge in single precision where many columns are constant
            _, axes = torch.linalg.eigh(gram.double())
    rows = torch.cat([block @ axes.float() for block in _centred(x, mean)])
    variances = (
        torch.stack([block.double().square().sum(0) for block in rows.split(BLOCK)]).sum(0) / n
    )
    kept = variances > 1e-10 * variances.max()  # along the others, rows differ by rounding
    scale = _scale(variances, mean)
    rows = rows if kept.all() else rows[:, kept]
    return rows.div_(scale), mean, axes[:, kept].double(), scale, variances[kept] / scale**2


def _centred(x: Tensor, mean: Tensor) -> Iterator[Tensor]:
    """Blocks of x ``[n, d]`` without their mean ``[d]``, in single precision."""
    return ((block - mean.to(x.dtype)).float() for block in x.split(BLOCK))


def _gram(x: Tensor) -> Tensor:
    """``x.T @ x`` of ``[n, d]``; on a CPU by numpy, which computes one half of it, as torch does not."""
    return torch.from_numpy(x.numpy().T @ x.numpy()) if x.device.type == "cpu" else x.T @ x


def _moments(x: Any) -> tuple[Tensor, Tensor]:
    """Mean and mean square ``[d]`` of each column of ``[n, d]``, a tensor or CSR, in double precision."""
    if isinstance(x, Tensor):
        return x.mean(0, dtype=torch.float64), sum(
            block.double().square().sum(0) for block in x.split(BLOCK)
        ) / len(x)
    mean = np.asarray(x.mean(axis=0, dtype=np.float64))
    # Not by x.power, which sorts indices that its result shares with x.
    sums = np.bincount(x.indices, np.square(x.data, dtype=np.float64), x.shape[1]).astype(
        np.float64
    )
    return torch.from_numpy(mean), torch.from_numpy(sums / x.shape[0])


def _scale(variances: Tensor, mean: Tensor) -> float:
    """Root mean square distance of rows from their mean ``[d]``; 1 if it is only rounding."""
    spread = float(variances.sum())
    return spread**0.5 if spread > 1e-13 * float(mean @ mean) else 1.0
