"""Logistic regression for many strengths of regularisation, each fit starting from the one before.

There is one softmax over classes, or one sigmoid per label. The loss is the sum of the
cross-entropies plus ``|weights|^2 / (2 C)``, as scikit-learn's; biases are not regularised. So that
C means the same for long and for short vectors, x is centred and divided by one number, the root
mean square distance of its rows from their mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import one_hot, softplus

STEPS_REMEMBERED = 10
"""Past steps by which L-BFGS knows the curvature."""
MOST_STEPS = 500
"""Steps of L-BFGS after which a fit ends in any case."""
MOST_HALVINGS = 20
"""How often a step that gives too little is halved."""
SUFFICIENT_SHARE = 1e-4
"""Share of the decrease promised by the slope that a step must give (Armijo)."""
SMALLEST_VARIANCE = 1e-10
"""The variance along an axis, as a share of the largest, that is only rounding."""


@dataclass(frozen=True)
class RegressionSettings:
    """When a fit ends, and which coordinates it is fitted in."""

    precision: float = 1e-3
    """Largest entry of the gradient at which a fit ends; scores hardly change after it."""
    largest_basis: int = 2048
    """Rows or columns up to which the principal axes of a dense x are computed."""
    largest_sparse_basis: int = 512
    """The same of a sparse x, which is made dense for that ..."""
    most_dense_entries: int = 1 << 24
    """... if it has at most so many entries, zeros included."""
    rows_per_block: int = 16_384
    """Rows that are taken in double precision, or centred, at a time."""


SETTINGS = RegressionSettings()


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear classifier: weights ``[d, K]``, biases ``[K]`` and codes ``[K]`` of the classes."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    classes: NDArray[Any]

    def logits(self, x: Any) -> Any:
        """Logits ``[n, K]`` of rows ``[n, d]``, an array, a tensor or CSR, in their precision."""
        if not isinstance(x, Tensor):
            return x @ self.weights.astype(x.dtype) + self.bias.astype(x.dtype)
        weights = torch.as_tensor(self.weights, dtype=x.dtype).to(x.device)
        bias = torch.as_tensor(self.bias, dtype=x.dtype).to(x.device)
        return torch.addmm(bias, x, weights)

    def predict(self, x: Any) -> NDArray[Any]:
        """Codes ``[n]`` of rows ``[n, d]``."""
        best_classes = torch.as_tensor(self.logits(x)).argmax(1)
        codes: NDArray[Any] = self.classes[np.asarray(best_classes.cpu())]
        return codes


def logistic_path(
    x: Any,
    y: NDArray[Any],
    costs: Iterable[float],
    device: str | torch.device | None = None,
    settings: RegressionSettings = SETTINGS,
) -> Iterator[tuple[float, Regression]]:
    """The regression of rows x for each cost C, which is infinite for no regularisation.

    L-BFGS runs on weights whose unit is chosen so that the loss curves about equally along each
    column. The columns of a dense x are rotated to its principal axes before, so it takes tens of
    passes whatever the shape of x.

    Args:
        x: rows ``[n, d]``, an array, a tensor or CSR.
        y: codes ``[n]``, for a softmax over the classes; or ``[n, K]`` of 0/1, for one sigmoid per
            label.
        costs: each C; neighbouring ones should be near each other, since each fit starts from the
            one before.
        device: where to compute. None: where x is.
        settings: when a fit ends, and in which coordinates.
    """
    if device is None:
        device = x.device if isinstance(x, Tensor) else "cpu"
    device = torch.device(device)

    if y.ndim == 2:
        classes = np.arange(y.shape[1])
        targets = torch.as_tensor(y, dtype=torch.float32).to(device)
    else:
        classes = np.unique(y)
        targets = torch.as_tensor(classes.searchsorted(y), dtype=torch.int64).to(device)

    coordinates = _coordinates(x, device, settings)
    problem = _Problem(coordinates, targets, settings.precision)
    variances = coordinates.variances
    weights = variances.new_zeros(len(variances) + 1, len(classes))
    for cost in costs:
        weights = problem.minimise(cost, weights)
        yield cost, Regression(*coordinates.unscaled(weights), classes)


class _Coordinates(NamedTuple):
    """Coordinates of x in which L-BFGS needs few passes.

    ``rows - shift`` is ``(x - mean) @ axes / scale``. Subtracting the shift from sparse rows would
    make them dense, so it is left to the products.

    Shapes:
        rows: ``[n, r]`` float32, a tensor or sparse.
        transpose: ``[r, n]``, of sparse rows only.
        mean: ``[d]``.
        axes: ``[d, r]``; None if the axes are the columns of x, and rows have a shift.
        variances: ``[r]``, the mean square of each shifted column.
    """

    rows: Any
    transpose: Any
    mean: Tensor
    axes: Tensor | None
    scale: float
    variances: Tensor

    @property
    def shift(self) -> Tensor | None:
        """What is to be subtracted from each row, ``[r]``; None if the rows are centred."""
        if self.axes is not None:
            return None
        return (self.mean / self.scale).float()

    def times(self, weights: Tensor, offset: Tensor) -> Tensor:
        """``rows @ weights + offset``, ``[n, K]``."""
        if isinstance(self.rows, Tensor):
            return torch.addmm(offset, self.rows, weights)
        return _sparse_product(self.rows, weights).add_(offset)

    def transpose_times(self, error: Tensor) -> Tensor:
        """``rows.T @ error``, ``[r, K]``."""
        if isinstance(self.rows, Tensor):
            # The short matrix first takes half as long as the other way round.
            return (error.T @ self.rows).T
        return _sparse_product(self.transpose, error)

    def unscaled(self, weights: Tensor) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``[d, K]`` and biases ``[K]`` for x as it was, from ``[r + 1, K]``."""
        slopes = weights[:-1]
        if self.axes is not None:
            slopes = self.axes @ slopes
        slopes = slopes / self.scale
        bias = weights[-1] - self.mean @ slopes
        return slopes.cpu().numpy(), bias.cpu().numpy()


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is fitted: targets ``[n]`` from 0 to K - 1, or ``[n, K]`` of 0/1."""

    coordinates: _Coordinates
    targets: Tensor
    precision: float

    @property
    def has_many_labels(self) -> bool:
        return self.targets.ndim == 2

    @cached_property
    def shift(self) -> Tensor | None:
        return self.coordinates.shift

    def minimise(self, cost: float, start: Tensor) -> Tensor:
        """Weights and, in the last row, biases ``[r + 1, K]`` with the lowest loss."""
        n = len(self.targets)
        variances = self.coordinates.variances
        one = variances.new_ones(1)
        indicators = self.targets
        if not self.has_many_labels:
            indicators = one_hot(self.targets, start.shape[1])
        class_shares = indicators.double().mean(0)

        # The unit of a weight is one over the root of the loss's curvature along it. A label that
        # no node has would let its bias fall for ever: it counts as that of one node.
        class_curvature = (class_shares * (1 - class_shares)).clamp(min=(1 - 1 / n) / n)
        curvature = torch.cat([variances, one])[:, None] * class_curvature
        decays = torch.cat([torch.full_like(variances, 1 / (cost * n)), 0 * one])[:, None]
        unit = 1 / (curvature + decays).sqrt()

        def loss(flat: Tensor) -> tuple[float, Tensor]:
            """The mean loss per row, and its gradient, at weights in their units."""
            values = unit * flat.view_as(unit)
            cross_entropy, gradient = self.cross_entropy(values.float())
            decay_gradient = decays * values
            total = cross_entropy / n + (decay_gradient * values).sum() / 2
            total_gradient = decay_gradient.add_(gradient, alpha=1 / n)
            return float(total), total_gradient.mul_(unit).flatten()

        return unit * minimise(loss, (start / unit).flatten(), self.precision).view_as(unit)

    def cross_entropy(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The sum over rows for weights and biases ``[r + 1, K]``, and its gradient."""
        coefficients = weights[:-1]
        offset = weights[-1]
        if self.shift is not None:
            offset = offset - self.shift @ coefficients
        logits = self.coordinates.times(coefficients, offset)

        # The gradient with respect to the logits is prediction minus target.
        if self.has_many_labels:
            value = softplus(logits).sub_(logits * self.targets).sum(dtype=torch.float64)
            error = logits.sigmoid_().sub_(self.targets)
        else:
            error = logits.log_softmax(1)
            true_class = self.targets[:, None]
            value = -error.gather(1, true_class).sum(dtype=torch.float64)
            minus_one = error.new_full((), -1.0).expand(true_class.shape)
            error.exp_().scatter_add_(1, true_class, minus_one)

        bias_gradient = error.sum(0, keepdim=True)
        gradient = self.coordinates.transpose_times(error)
        if self.shift is not None:
            gradient = torch.addmm(gradient, self.shift[:, None], bias_gradient, alpha=-1)
        return value, torch.cat([gradient, bias_gradient])


# L-BFGS


def minimise(
    loss: Callable[[Tensor], tuple[float, Tensor]], start: Tensor, precision: float
) -> Tensor:
    """The point ``[n]`` at which a smooth convex function is lowest, by L-BFGS (Nocedal, 1980).

    It is our own since importing SciPy's takes 0.3 s, as long as an evaluation.

    Args:
        loss: the value and the gradient at a point.
        start: the point to start from.
        precision: the search ends where no entry of the gradient exceeds it, or where the relative
            decrease of the loss is at most precision squared.
    """
    point = start
    value, gradient = loss(start)
    past_steps: deque[_PastStep] = deque(maxlen=STEPS_REMEMBERED)
    inverse_hessian_scale = 1 / gradient.norm().clamp(min=1)
    for _ in range(MOST_STEPS):
        if float(gradient.abs().max()) <= precision:
            break

        # Halve the step until it meets Armijo's condition: the loss falls by at least a share of
        # what the gradient promises for a step of this size.
        ascent_direction = _ascent_direction(gradient, past_steps, inverse_hessian_scale)
        required_decrease = SUFFICIENT_SHARE * float(gradient @ ascent_direction)
        step_size = 1.0
        for _ in range(MOST_HALVINGS):
            new_point = torch.sub(point, ascent_direction, alpha=step_size)
            new_value, new_gradient = loss(new_point)
            if new_value <= value - step_size * required_decrease:
                break
            step_size /= 2
        else:
            break  # rounding hides what is left to gain

        # Where the function does not curve along the step, the step tells nothing of its Hessian.
        moved = new_point - point
        gradient_change = new_gradient - gradient
        curvature = moved @ gradient_change
        if curvature > 0:
            inverse_hessian_scale = curvature / (gradient_change @ gradient_change)
            past_steps.append(_PastStep(moved, gradient_change, 1 / curvature))

        decrease = value - new_value
        point = new_point
        value = new_value
        gradient = new_gradient
        if decrease <= precision**2 * max(1.0, abs(value)):
            break
    return point


class _PastStep(NamedTuple):
    """A step of the search: how far the point moved, and how the gradient changed."""

    moved: Tensor
    gradient_change: Tensor
    inverse_curvature: Tensor


def _ascent_direction(
    gradient: Tensor, past_steps: deque[_PastStep], inverse_hessian_scale: Tensor
) -> Tensor:
    """The gradient times the inverse Hessian, as past steps tell it; a step subtracts it.

    The estimate starts as the identity times ``inverse_hessian_scale``, and each past step corrects
    it.
    """
    ascent_direction = gradient.clone()
    shares = []
    for step in reversed(past_steps):
        shares.append(step.inverse_curvature * (step.moved @ ascent_direction))
        ascent_direction -= shares[-1] * step.gradient_change
    ascent_direction *= inverse_hessian_scale
    for step, share in zip(past_steps, reversed(shares), strict=True):
        correction = step.inverse_curvature * (step.gradient_change @ ascent_direction)
        ascent_direction += (share - correction) * step.moved
    return ascent_direction


# Coordinates


def _coordinates(x: Any, device: torch.device, settings: RegressionSettings) -> _Coordinates:
    """The coordinates to fit x ``[n, d]`` in: its principal axes, or its columns if it is large."""
    n, d = x.shape
    is_small = min(n, d) <= settings.largest_sparse_basis and n * d <= settings.most_dense_entries
    if sparse.issparse(x) and is_small:
        x = x.toarray()
    if sparse.issparse(x):
        return _sparse_columns(x, device)
    x = torch.as_tensor(x).to(device)
    if min(n, d) > settings.largest_basis:
        return _dense_columns(x, settings.rows_per_block)
    return _principal_axes(x, settings.rows_per_block)


def _sparse_columns(x: Any, device: torch.device) -> _Coordinates:
    """The columns of a CSR matrix themselves."""
    mean_array = np.asarray(x.mean(axis=0, dtype=np.float64))
    # Not by x.power, which sorts indices that its result shares with x.
    squared = np.square(x.data, dtype=np.float64)
    sums = np.bincount(x.indices, squared, x.shape[1]).astype(np.float64)
    mean = torch.from_numpy(mean_array)
    variances = (torch.from_numpy(sums / x.shape[0]) - mean**2).clamp(min=0)

    scale = _scale(variances, mean)
    rows = (x / scale).astype(np.float32)
    transpose = sparse.csr_array(rows.T)
    if device.type != "cpu":
        rows = _on_device(rows, device)
        transpose = _on_device(transpose, device)
    scaled_variances = (variances / scale**2).to(device)
    return _Coordinates(rows, transpose, mean.to(device), None, scale, scaled_variances)


def _dense_columns(x: Tensor, rows_per_block: int) -> _Coordinates:
    """The columns of a dense x themselves."""
    mean = x.mean(0, dtype=torch.float64)
    block_sums = [block.double().square().sum(0) for block in x.split(rows_per_block)]
    mean_square = sum(block_sums, torch.zeros_like(mean)) / len(x)
    variances = (mean_square - mean**2).clamp(min=0)
    scale = _scale(variances, mean)
    return _Coordinates((x / scale).float(), None, mean, None, scale, variances / scale**2)


def _principal_axes(x: Tensor, rows_per_block: int) -> _Coordinates:
    """The principal axes of a dense x ``[n, d]``, in which the columns are not correlated."""
    n, d = x.shape
    mean = x.mean(0, dtype=torch.float64)
    if n < d:
        # Rows are fewer than columns: the axes come from the products of rows with each other.
        centred = x - mean
        squared_values, left_vectors = torch.linalg.eigh(_gram(centred.T))
        is_signal = squared_values > SMALLEST_VARIANCE * squared_values.max()
        axes = centred.T @ (left_vectors[:, is_signal] / squared_values[is_signal].sqrt())
    else:
        # `_centred_blocks` rounds the mean to the precision of x before it subtracts it.
        mean = mean.to(x.dtype).double()
        gram = x.new_zeros(())
        for block in _centred_blocks(x, mean, rows_per_block):
            gram = gram + _gram(block)
        try:
            _, axes = torch.linalg.eigh(gram)
        except RuntimeError:
            # MKL does not converge in single precision where many columns are constant.
            _, axes = torch.linalg.eigh(gram.double())

    rotated = [block @ axes.float() for block in _centred_blocks(x, mean, rows_per_block)]
    rows = torch.cat(rotated)
    block_sums = [block.double().square().sum(0) for block in rows.split(rows_per_block)]
    variances = torch.stack(block_sums).sum(0) / n

    # Along the other axes rows differ by rounding only.
    is_signal = variances > SMALLEST_VARIANCE * variances.max()
    scale = _scale(variances, mean)
    if not is_signal.all():
        rows = rows[:, is_signal]
    signal_axes = axes[:, is_signal].double()
    scaled_variances = variances[is_signal] / scale**2
    return _Coordinates(rows.div_(scale), None, mean, signal_axes, scale, scaled_variances)


def _centred_blocks(x: Tensor, mean: Tensor, rows_per_block: int) -> Iterator[Tensor]:
    """Blocks of x ``[n, d]`` without their mean ``[d]``, in single precision."""
    return ((block - mean.to(x.dtype)).float() for block in x.split(rows_per_block))


def _scale(variances: Tensor, mean: Tensor) -> float:
    """Root mean square distance of rows from their mean ``[d]``; 1 if it is only rounding."""
    spread = float(variances.sum())
    has_spread = spread > 1e-13 * float(mean @ mean)
    return spread**0.5 if has_spread else 1.0


# Products


def _gram(x: Tensor) -> Tensor:
    """``x.T @ x`` of ``[n, d]``."""
    if x.device.type == "cpu":
        # NumPy computes one half of the symmetric result, as torch does not.
        return torch.from_numpy(x.numpy().T @ x.numpy())
    return x.T @ x


def _sparse_product(matrix: Any, y: Tensor) -> Tensor:
    """A sparse ``[m, p]``, of SciPy or on a device, by ``[p, K]``."""
    if isinstance(matrix, Tensor):
        return matrix @ y
    return torch.from_numpy(matrix @ y.numpy())


def _on_device(csr: Any, device: torch.device) -> Tensor:
    """A SciPy CSR matrix on a device."""
    starts = torch.as_tensor(csr.indptr, dtype=torch.int64)
    columns = torch.as_tensor(csr.indices, dtype=torch.int64)
    values = torch.from_numpy(csr.data)
    return torch.sparse_csr_tensor(starts, columns, values, csr.shape).to(device)
