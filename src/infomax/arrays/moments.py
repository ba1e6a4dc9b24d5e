"""Mean and deviation of numbers, exact in whatever order they come."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SPARSE = 0.9
"""A number that is zero in a larger share of rows is not centred, so that it stays sparse."""
_SPAN, _LEAST = 280, 150


class Moments:
    """Mean and deviation of float32 numbers ``[n, W]``, by sums that are exact: no order of rows changes a bit.

    A number is k 2^e with k of 24 bits: sums of k and of the halves of k^2 are kept for each e, as float64 holds them.
    """

    def __init__(self, width: int = 1) -> None:
        self.width, self.count, self.zeros = width, np.zeros(width, np.int64), np.zeros(width, np.int64)
        self.sums = np.zeros((width, 3, _SPAN))

    def add(self, values: NDArray[np.float32], counts: NDArray[np.int64]) -> None:
        """Add rows ``[n, W]``, each as often as ``counts [n]`` says; NaN is left out."""
        for column, found in enumerate(values.reshape(-1, self.width).T):
            there = ~np.isnan(found)
            found, often = (found, counts) if there.all() else (found[there], counts[there])
            mantissa, exponent = np.frexp(found)
            whole, times = mantissa.astype(np.float64) * 2.0**24, often.astype(np.float64)
            high = np.floor(whole * whole / 2.0**24)
            for sums, part in zip(self.sums[column], (whole, high, whole * whole - high * 2.0**24), strict=True):
                sums += np.bincount(exponent + _LEAST, part * times, _SPAN)
            self.count[column] += often.sum()
            self.zeros[column] += often[found == 0].sum()

    def scale(self) -> dict[str, list[float]]:
        """The ``centre`` and the ``deviation`` of each column; 0 and the root of the mean square of sparse ones."""
        centres, deviations = [], []
        for column in range(self.width):
            n, first, second = int(self.count[column]) or 1, 0, 0
            sums = self.sums[column]
            for at in np.flatnonzero(sums.any(axis=0)).tolist():
                whole, high, low = (int(part) for part in sums[:, at])
                first += whole << at
                second += ((high << 24) + low) << 2 * at
            unit = _LEAST + 24
            first = 0 if self.zeros[column] > SPARSE * n else first
            squares, spread = n * second, n * second - first * first  # of n^2 2^2u, whole numbers
            # A column that is constant to float32 precision is centred only.
            constant = spread * 10**13 <= squares
            centres.append(first / (n << unit))
            deviations.append(1.0 if constant else math.sqrt(spread / (n * n << 2 * unit)))
        return {"centre": centres, "deviation": deviations}
