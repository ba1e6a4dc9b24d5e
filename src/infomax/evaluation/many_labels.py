"""One logistic regression per label, all labels at once, to convergence."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from infomax.evaluation.lbfgs import minimise

PRECISION = 1e-3
"""Largest entry of the gradient at which a fit ends; scores hardly change after it."""


def fit_labels(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Weights ``[d, C]`` and biases ``[C]`` with the lowest mean cross-entropy; nothing is regularised.

    L-BFGS runs on x rotated to its principal axes, each divided by its deviation. There the loss curves about equally
    in all directions, so it takes tens of passes where gradient steps on x itself take a thousand.

    Shapes:
        x: ``[n, d]``; y: ``[n, C]``, of 0/1.
    """
    mean, (n, labels) = x.mean(0), y.shape
    centred = x - mean
    variances, axes = torch.linalg.eigh((centred.T @ centred / n).double())
    kept = variances > 1e-6 * variances.max().clamp(min=1e-30)  # along the others, rows differ by rounding
    basis = (axes[:, kept] / variances[kept].sqrt()).float()
    rows, share = centred @ basis, y.mean(0)
    unit = 1 / (share * (1 - share) + 1 / n).sqrt()

    def parts(flat: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        values = torch.from_numpy(flat).to(x).view(-1, labels) * unit
        return values[:-1], values[-1]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, bias = parts(flat)
        logits = torch.addmm(bias, rows, weight)
        value = softplus(logits).sub_(logits * y).sum(dtype=torch.float64) / n
        error = logits.sigmoid_().sub_(y)
        slopes = torch.cat([rows.T @ error, error.sum(0, keepdim=True)]) * unit / n
        return float(value), slopes.double().cpu().numpy().ravel()

    weight, bias = parts(minimise(loss, np.zeros((rows.shape[1] + 1) * labels), PRECISION))
    weight = basis @ weight
    return weight, bias - mean @ weight
