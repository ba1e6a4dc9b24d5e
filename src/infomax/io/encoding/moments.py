"""Mean and deviation of numbers, exact in whatever order they come."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

SPARSE_SHARE = 0.9
"""A number that is zero in a larger share of rows is not centred, so that it stays sparse."""
COARSE_SHARE = 1e-4
"""Share of the range of a column up to which float32 may round its numbers."""
DIGIT_BITS = 18
"""Bits of a digit: three digits make a float64, which holds the sum of 2^17 products of two."""
DIGITS = 3
PRODUCTS = [*combinations_with_replacement(range(DIGITS), 2)]
LEAST_EXPONENT = -150
"""Numbers below 2^-150 are what float32 cannot tell from zero."""
EXPONENTS = 280
FOLD_AFTER = 1 << 25
"""Rows after which sums are moved from 64-bit integers, which might overflow, to Python's."""


class Moments:
    """Mean and deviation of numbers ``[n, W]`` in the range of float32, by sums that are exact.

    So no order of rows changes a bit. A number is k 2^e with k of three digits: sums of the digits,
    and of the products of two, are kept for each e.
    """

    def __init__(self, width: int = 1) -> None:
        self.width = width
        self.count = np.zeros(width, np.int64)
        self.zeros = np.zeros(width, np.int64)
        self.low = np.full(width, math.inf)
        self.high = np.full(width, -math.inf)
        self._first_exponent = 0
        self._sums = np.zeros((width, DIGITS + len(PRODUCTS), 0), np.int64)
        self._rows_in_sums = 0
        self._folded: NDArray[np.object_] | None = None
        """Sums as Python's integers ``[W, parts, EXPONENTS]`` of earlier rows, if there were many."""

    def add(self, values: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> None:
        """Add rows ``[n, W]``, each as often as ``counts [n]`` says; NaN is left out."""
        values = values.reshape(-1, self.width)
        self.add_columns(values, np.arange(self.width), counts)

    def add_columns(
        self,
        values: NDArray[np.float64],
        columns: NDArray[np.int64],
        counts: NDArray[np.int64] | None = None,
    ) -> None:
        """Add rows ``[n, k]`` of some columns ``[k]``, each as often as ``counts [n]`` says."""
        if not values.size:
            return
        rows = len(values) if counts is None else int(counts.sum())
        self._fold_if_full(rows)
        is_there = ~np.isnan(values)
        numbers = np.where(is_there, values, 0)
        often = np.ones(len(values), np.int64) if counts is None else counts
        self.count[columns] += often @ is_there
        self.zeros[columns] += often @ (is_there & (numbers == 0))
        low = np.where(is_there, values, math.inf).min(axis=0)
        high = np.where(is_there, values, -math.inf).max(axis=0)
        self.low[columns] = np.minimum(self.low[columns], low)
        self.high[columns] = np.maximum(self.high[columns], high)

        mantissa, exponents = np.frexp(numbers)
        exponents = np.maximum(exponents - LEAST_EXPONENT, 0)
        used = exponents[numbers != 0]
        if not len(used):
            return
        first, stop = int(used.min()), int(used.max()) + 1
        self._widen(first, stop)
        span = stop - first

        # Zeros have digits of zero, so that they may be counted anywhere.
        places = np.clip(exponents - first, 0, span - 1)
        places = (places + span * np.arange(len(columns))).ravel()
        digits = []
        for _ in range(DIGITS):
            mantissa = mantissa * 2.0**DIGIT_BITS
            digits.append(np.trunc(mantissa))
            mantissa = mantissa - digits[-1]
        products = [digits[one] * digits[other] for one, other in PRODUCTS]
        window = slice(first - self._first_exponent, stop - self._first_exponent)
        for part, entries in enumerate(digits + products):
            if not entries.any():
                continue
            weights = entries if counts is None else entries * often[:, None]
            sums = np.bincount(places, weights.ravel(), span * len(columns)).astype(np.int64)
            self._sums[columns, part, window] += sums.reshape(len(columns), span)

    def _fold_if_full(self, rows: int) -> None:
        self._rows_in_sums += rows
        if self._rows_in_sums > FOLD_AFTER:
            self._folded = self._exact_sums()
            self._sums = self._sums[:, :, :0]
            self._rows_in_sums = rows

    def _widen(self, first: int, stop: int) -> None:
        """Make room for sums of exponents from first to stop."""
        width = self._sums.shape[2]
        if not width:
            self._first_exponent = first
            self._sums = np.zeros((*self._sums.shape[:2], stop - first), np.int64)
            return
        before = max(0, self._first_exponent - first)
        after = max(0, stop - self._first_exponent - width)
        if before or after:
            self._sums = np.pad(self._sums, ((0, 0), (0, 0), (before, after)))
            self._first_exponent -= before

    def _exact_sums(self) -> NDArray[np.object_]:
        """All sums as Python's integers ``[W, parts, EXPONENTS]``."""
        sums = np.zeros((self.width, DIGITS + len(PRODUCTS), EXPONENTS), object)
        width = self._sums.shape[2]
        sums[:, :, self._first_exponent : self._first_exponent + width] = self._sums.astype(object)
        return sums if self._folded is None else sums + self._folded

    def column(self, position: int) -> Moments:
        """The moments of one of the columns."""
        one = Moments()
        for name in ("count", "zeros", "low", "high", "_sums"):
            setattr(one, name, getattr(self, name)[position : position + 1].copy())
        one._first_exponent = self._first_exponent
        one._rows_in_sums = self._rows_in_sums
        if self._folded is not None:
            one._folded = self._folded[position : position + 1]
        return one

    def merge(self, other: Moments) -> None:
        """Add what was found in other rows of as many columns."""
        self._folded = self._exact_sums() + other._exact_sums()
        self._sums = self._sums[:, :, :0]
        self._rows_in_sums = 0
        self.count += other.count
        self.zeros += other.zeros
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)

    def scale(self) -> dict[str, list[float]]:
        """The ``centre`` and the ``deviation`` of each column; 0 and the root of the mean square of sparse ones."""
        centres, deviations = [], []
        for column in range(self.width):
            n, first, second = self._totals(column)
            first = 0 if self.zeros[column] > SPARSE_SHARE * n else first
            squares = n * second
            spread = squares - first * first
            unit = DIGITS * DIGIT_BITS - LEAST_EXPONENT
            # A column that is constant to float64 precision is centred only.
            is_constant = spread * 10**28 <= squares
            centres.append(first / (n << unit))
            deviations.append(1.0 if is_constant else math.sqrt(spread / (n * n << 2 * unit)))
        return {"centre": centres, "deviation": deviations}

    def as_they_are(self) -> dict[str, list[float]]:
        """What `scale` returns where numbers stay as they are, and what a ``gap`` becomes: the mean."""
        unit = DIGITS * DIGIT_BITS - LEAST_EXPONENT
        totals = [self._totals(column) for column in range(self.width)]
        # Lists are divided by the root of their width, whatever their deviation.
        return {
            "centre": [0.0] * self.width,
            "deviation": [self.width**-0.5] * self.width,
            "gap": [first / (n << unit) for n, first, _ in totals],
        }

    def _totals(self, column: int) -> tuple[int, int, int]:
        """The number of rows, at least 1, the sum, and the sum of squares, as whole numbers."""
        total = square_total = 0
        for exponent, digits, products in self._exponents(column):
            high, middle, low = digits
            total += ((high << 2 * DIGIT_BITS) + (middle << DIGIT_BITS) + low) << exponent
            aa, ab, ac, bb, bc, cc = products
            squares = (aa << 2 * DIGIT_BITS) + (ab << DIGIT_BITS + 1) + (2 * ac + bb)
            squares = (squares << 2 * DIGIT_BITS) + (bc << DIGIT_BITS + 1) + cc
            square_total += squares << 2 * exponent
        return int(self.count[column]) or 1, total, square_total

    def _exponents(self, column: int) -> list[tuple[int, list[int], list[int]]]:
        """The exponents of a column, each with the sums of its digits and of their products."""
        sums, first = self._sums[column], self._first_exponent
        if self._folded is not None:
            sums, first = self.column(column)._exact_sums()[0], 0
        positions = np.flatnonzero(sums.any(axis=0))
        parts = sums[:, positions].T.tolist()
        return [
            (first + position, numbers[:DIGITS], numbers[DIGITS:])
            for position, numbers in zip(positions.tolist(), parts, strict=True)
        ]


def too_fine(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether float32 rounds some numbers from ``low [W]`` to ``high [W]`` to steps of no small part of that range.

    It does so with times in seconds since 1970.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        step = np.maximum(np.abs(low), np.abs(high)) * 2.0**-24
        return bool(((high > low) & (step > COARSE_SHARE * (high - low))).any())
