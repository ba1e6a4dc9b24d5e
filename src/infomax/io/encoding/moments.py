"""Mean and deviation of numbers, exact in whatever order they come."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

SPARSE = 0.9
"""A number that is zero in a larger share of rows is not centred, so that it stays sparse."""
COARSE = 1e-4
"""Share of the range of a column up to which float32 may round its numbers."""
_DIGIT = 18
"""Bits of a digit: three of them are a float64, which holds the sum of 2^17 products of two."""
_PAIRS = [*combinations_with_replacement(range(3), 2)]
_SPAN, _LEAST = 280, 150


class Moments:
    """Mean and deviation of numbers ``[n, W]`` in the range of float32, by sums that are exact.

    So no order of rows changes a bit. A number is k 2^e with k of three digits: sums of the digits, and of the products
    of two, are kept for each e.
    """

    def __init__(self, width: int = 1) -> None:
        self.width = width
        self.count = np.zeros(width, np.int64)
        self.zeros = np.zeros(width, np.int64)
        self.sums = np.zeros((width, 3 + len(_PAIRS), _SPAN), object)  # integers of any size
        self.low = np.full(width, math.inf)
        self.high = np.full(width, -math.inf)

    def add(self, values: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add rows ``[n, W]``, each as often as ``counts [n]`` says; NaN is left out."""
        for column, found in enumerate(values.reshape(-1, self.width).T):
            there = ~np.isnan(found)
            often = counts if there.all() else counts[there]
            found = found if there.all() else found[there]
            mantissa, exponent = np.frexp(found)
            place = np.maximum(
                exponent + _LEAST, 0
            )  # what float32 cannot tell from 0 is left where it does no harm
            digits = []
            for _ in range(3):
                mantissa = mantissa * 2.0**_DIGIT
                digits.append(np.trunc(mantissa))
                mantissa = mantissa - digits[-1]
            products = [digits[one] * digits[other] for one, other in _PAIRS]
            for sums, part in zip(self.sums[column], digits + products, strict=True):
                if part.any():
                    sums += np.bincount(place, part * often, _SPAN).astype(np.int64)
            self.count[column] += often.sum()
            self.zeros[column] += often[found == 0].sum()
            self.low[column] = min(self.low[column], found.min(initial=math.inf))
            self.high[column] = max(self.high[column], found.max(initial=-math.inf))

    def scale(self) -> dict[str, list[float]]:
        """The ``centre`` and the ``deviation`` of each column; 0 and the root of the mean square of sparse ones."""
        centres, deviations = [], []
        for column in range(self.width):
            n, first, second = self._totals(column)
            first = 0 if self.zeros[column] > SPARSE * n else first
            squares = n * second
            spread = squares - first * first
            unit = _LEAST + 3 * _DIGIT
            # A column that is constant to float64 precision is centred only.
            constant = spread * 10**28 <= squares
            centres.append(first / (n << unit))
            deviations.append(1.0 if constant else math.sqrt(spread / (n * n << 2 * unit)))
        return {"centre": centres, "deviation": deviations}

    def as_they_are(self) -> dict[str, list[float]]:
        """What `scale` returns where numbers stay as they are, and what a ``gap`` becomes: the mean."""
        unit = _LEAST + 3 * _DIGIT
        totals = [self._totals(column) for column in range(self.width)]
        means = [first / (n << unit) for n, first, _ in totals]
        # Lists are divided by the root of their width, whatever their deviation.
        return {
            "centre": [0.0] * self.width,
            "deviation": [self.width**-0.5] * self.width,
            "gap": means,
        }

    def _totals(self, column: int) -> tuple[int, int, int]:
        """The number of rows, at least 1, the sum, and the sum of squares, as whole numbers."""
        first = second = 0
        sums = self.sums[column]
        for at in np.flatnonzero(sums.any(axis=0)).tolist():
            *digits, aa, ab, ac, bb, bc, cc = sums[:, at]
            first += sum(digit << _DIGIT * (2 - place) for place, digit in enumerate(digits)) << at
            squares = (aa << 2 * _DIGIT) + (ab << _DIGIT + 1) + (2 * ac + bb)
            second += ((squares << 2 * _DIGIT) + (bc << _DIGIT + 1) + cc) << 2 * at
        return int(self.count[column]) or 1, first, second


def too_fine(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether float32 rounds some numbers from ``low [W]`` to ``high [W]`` to steps of no small part of that range.

    It does so with times in seconds since 1970.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        step = np.maximum(np.abs(low), np.abs(high)) * 2.0**-24
        return bool(((high > low) & (step > COARSE * (high - low))).any())
