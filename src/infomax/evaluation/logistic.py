"""Logistic regression for any device: many strengths of regularisation, each starting from the one before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

LARGEST_BASIS = 2048
"""Rows or columns up to which the principal axes of x are computed."""
PRECISION = 1e-6
"""Relative fall of the loss at which a fit ends; accuracies no longer change there."""


def logistic_path(x: Tensor, y: Tensor, costs: Iterable[float]) -> Iterator[tuple[float, Tensor, Tensor]]:
    """Softmax regressions on x ``[n, d]`` for each cost C: C, weights ``[d, K]`` and biases ``[K]``.

    Each minimises the mean cross-entropy plus ``|weights|^2 / (2 C n)``, as scikit-learn does; y ``[n, K]`` is 0/1, and
    every class has a row. L-BFGS runs along the principal axes of x, scaled by the curvature of the loss there, so it
    takes tens of passes whatever the shape of x.
    """
    axes, variances = _principal_axes(x)
    z = x if axes is None else x @ axes
    share = y.mean(0)
    curvature, weights, bias = share * (1 - share), z.new_zeros(z.shape[1], y.shape[1]), z.new_zeros(1, y.shape[1])
    for cost in costs:
        decay = 1 / (cost * len(x))
        scale = torch.cat([(variances[:, None] * curvature + decay).rsqrt(), curvature.rsqrt()[None]])
        weights, bias = _minimise(z, y, decay, scale, torch.cat([weights, bias])).split([z.shape[1], 1])
        yield cost, weights if axes is None else axes @ weights, bias[0]


def _minimise(z: Tensor, y: Tensor, decay: float, scale: Tensor, start: Tensor) -> Tensor:
    """Weights and, in the last row, biases ``[d + 1, K]`` with the lowest loss."""

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        parameters = torch.from_numpy(flat).to(z).view_as(scale) * scale
        weights = parameters[:-1]
        logits = torch.addmm(parameters[-1], z, weights)
        normaliser = logits.logsumexp(1)
        error = torch.exp(logits - normaliser[:, None]).sub_(y).div_(len(z))
        value = (normaliser.sum() - (y * logits).sum()) / len(z) + decay / 2 * weights.square().sum()
        gradient = torch.cat([z.T @ error + decay * weights, error.sum(0, keepdim=True)]) * scale
        return float(value), gradient.double().cpu().numpy().ravel()

    first = (start / scale).double().cpu().numpy().ravel()
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": PRECISION})
    return torch.from_numpy(found.x).to(z).view_as(scale) * scale


def _principal_axes(x: Tensor) -> tuple[Tensor | None, Tensor]:
    """The principal axes ``[d, r]`` of x and the mean square of x along each; for a very large x, None and columns."""
    n, d = x.shape
    if min(n, d) > LARGEST_BASIS:
        return None, x.square().mean(0)
    wide = n < d
    products = x @ x.T if wide else x.T @ x
    variances, axes = torch.linalg.eigh(products.double() / n)
    kept = variances > variances[-1] * 1e-10
    variances, axes = variances[kept], axes[:, kept]
    if wide:
        axes = x.T.double() @ axes / (variances * n).sqrt()
    return axes.to(x), variances.to(x)
