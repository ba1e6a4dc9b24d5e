"""Mean and deviation of numbers, exact in whatever order they come."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SPARSE_SHARE = 0.9
"""A number that is zero in a larger share of rows is not centred, so that it stays sparse."""
COARSE_SHARE = 1e-4
"""Share of the range of a column up to which float32 may round its numbers."""
SMALLEST = 2.0**-150
"""Numbers below this are zero: float32 cannot tell them from it."""
UNIT_BITS = 204
"""Sums are whole multiples of 2^-204: the last bit of a float64 that is not below `SMALLEST`."""
CELLS_AT_ONCE = 1 << 15
"""Cells that are summed at once, so that they stay in the cache of a core."""
SPLITTER = 2.0**27 + 1
"""Veltkamp's: it splits the 53 bits of a float64 into two halves."""


class Moments:
    """Mean and deviation of numbers ``[n, W]`` in the range of float32, by sums that are exact.

    Sums of floats depend on their order, and rows come in any order: from files, from threads, from
    a database. So the sums of the numbers and of their squares are kept as Python's integers, in
    units of ``2^-UNIT_BITS`` and of its square, and no order of rows changes a bit.
    """

    def __init__(self, width: int = 1) -> None:
        self.width = width
        self.count = np.zeros(width, np.int64)
        self.zeros = np.zeros(width, np.int64)
        self.low = np.full(width, math.inf)
        self.high = np.full(width, -math.inf)
        self._sums = [0] * width
        self._square_sums = [0] * width

    def add(self, values: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> None:
        """Add rows ``[n, W]``, each as often as ``counts [n]`` says; NaN is left out."""
        values = values.reshape(-1, self.width)
        columns = np.arange(self.width)
        if counts is None:
            self.add_columns(values, columns)
            return

        # A count is a sum of powers of two, and a sum of floats times one of these is exact. So
        # each bit of the counts is a column of its own, of the rows whose counts have it.
        bits = np.arange(int(counts.max(initial=0)).bit_length())
        has_bit = (counts[:, None] >> bits) & 1 == 1
        by_bit = np.where(has_bit[:, None, :], values[:, :, None], np.nan)
        self.add_columns(
            by_bit.reshape(len(values), -1),
            np.repeat(columns, len(bits)),
            np.tile(1 << bits, self.width),
        )

    def add_columns(
        self,
        values: NDArray[np.float64],
        columns: NDArray[np.int64],
        repeats: NDArray[np.int64] | None = None,
    ) -> None:
        """Add rows ``[n, k]`` of columns at positions ``[k]``, ``repeats [k]`` times or once."""
        if not values.size:
            return
        if repeats is None:
            repeats = np.ones(len(columns), np.int64)
        columns_at_once = max(1, CELLS_AT_ONCE // len(values))
        for first in range(0, len(columns), columns_at_once):
            part = slice(first, first + columns_at_once)
            self._add_block(values[:, part], columns[part], repeats[part])

    def _add_block(
        self, values: NDArray[np.float64], columns: NDArray[np.int64], repeats: NDArray[np.int64]
    ) -> None:
        """Do what `add_columns` does, for cells that fit into a cache."""
        values = np.asarray(values, np.float64)
        is_missing = np.isnan(values)
        missing_counts = is_missing.sum(axis=0)
        low = np.fmin.reduce(values, axis=0, initial=math.inf)
        high = np.fmax.reduce(values, axis=0, initial=-math.inf)
        np.minimum.at(self.low, columns, low)
        np.maximum.at(self.high, columns, high)

        numbers = np.where(is_missing, 0.0, values)
        zero_counts = (numbers == 0).sum(axis=0) - missing_counts
        np.add.at(self.count, columns, repeats * (len(values) - missing_counts))
        np.add.at(self.zeros, columns, repeats * zero_counts)

        numbers[np.abs(numbers) < SMALLEST] = 0.0
        largest = np.where(missing_counts < len(values), np.maximum(np.abs(low), np.abs(high)), 0.0)
        for sums in exact_sums(numbers, largest):
            _add_integers(self._sums, columns, sums, UNIT_BITS, repeats)
        for squares in exact_squares(numbers):
            for sums in exact_sums(squares, largest**2):
                _add_integers(self._square_sums, columns, sums, 2 * UNIT_BITS, repeats)

    def column(self, position: int) -> Moments:
        """The moments of one of the columns."""
        moments = Moments()
        part = slice(position, position + 1)
        moments.count = self.count[part].copy()
        moments.zeros = self.zeros[part].copy()
        moments.low = self.low[part].copy()
        moments.high = self.high[part].copy()
        moments._sums = self._sums[part]
        moments._square_sums = self._square_sums[part]
        return moments

    def merge(self, other: Moments) -> None:
        """Add what was found in other rows of as many columns."""
        self.count += other.count
        self.zeros += other.zeros
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        for position in range(self.width):
            self._sums[position] += other._sums[position]
            self._square_sums[position] += other._square_sums[position]

    def scale(self) -> dict[str, list[float]]:
        """The ``centre`` and the ``deviation`` of each column.

        Of a column that is mostly zero they are 0 and the root of the mean square.
        """
        centres: list[float] = []
        deviations: list[float] = []
        for n, zeros, total, square_total in self._totals():
            if zeros > SPARSE_SHARE * n:
                total = 0
            squares = n * square_total
            spread = squares - total * total
            # A column that is constant to float64 precision is centred only.
            is_constant = spread * 10**28 <= squares
            centres.append(total / (n << UNIT_BITS))
            deviation = 1.0
            if not is_constant:
                deviation = math.sqrt(spread / (n * n << 2 * UNIT_BITS))
            deviations.append(deviation)
        return {"centre": centres, "deviation": deviations}

    def as_they_are(self) -> dict[str, list[float]]:
        """What `scale` returns where numbers stay as they are; a ``gap`` becomes the mean."""
        # Lists are divided by the root of their width, whatever their deviation.
        return {
            "centre": [0.0] * self.width,
            "deviation": [self.width**-0.5] * self.width,
            "gap": [total / (n << UNIT_BITS) for n, _, total, _ in self._totals()],
        }

    def _totals(self) -> Iterator[tuple[int, int, int, int]]:
        """By column the number of rows, at least 1, that of zeros, the sum, and that of squares."""
        counts = np.maximum(self.count, 1).tolist()
        yield from zip(counts, self.zeros.tolist(), self._sums, self._square_sums, strict=True)


def exact_sums(
    numbers: NDArray[np.float64], largest: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Sums ``[k]`` of parts of numbers ``[n, k]``, each exact, that add up to those of the numbers.

    Rump, Ogita and Oishi, Accurate floating-point summation (2008): what is rounded off by a
    large power of two leaves few enough bits that their sum needs no rounding. What was rounded off
    is summed in the next step.

    Args:
        numbers: the numbers.
        largest: ``[k]``, a bound of the magnitude in each column.
    """
    row_bits = (len(numbers) + 2).bit_length()
    rest = numbers
    # `largest` is below 2^bound_bits.
    bound_bits = np.frexp(largest)[1]
    while rest.any():
        rounder = np.ldexp(1.0, bound_bits + row_bits)
        high_bits = rest + rounder
        high_bits -= rounder
        yield high_bits.sum(axis=0)
        rest = rest - high_bits
        bound_bits = bound_bits + row_bits - 53


def exact_squares(
    numbers: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The squares of numbers as float64 rounds them, and what was rounded off (Dekker, 1971)."""
    scaled = SPLITTER * numbers
    high = scaled - (scaled - numbers)
    low = numbers - high
    squares = numbers * numbers
    errors = high * high - squares
    errors += 2 * high * low
    errors += low * low
    return squares, errors


def _add_integers(
    totals: list[int],
    columns: NDArray[np.int64],
    numbers: NDArray[np.float64],
    unit_bits: int,
    repeats: NDArray[np.int64],
) -> None:
    """Add numbers ``[k]``, as often as ``repeats [k]``, to the totals of columns ``[k]``.

    The totals are in units of ``2^-unit_bits``.
    """
    fractions, exponents = np.frexp(numbers)
    integers = np.ldexp(fractions, 53).astype(np.int64).tolist()
    shifts = (exponents - 53 + unit_bits).tolist()
    for column, integer, shift, repeat in zip(
        columns.tolist(), integers, shifts, repeats.tolist(), strict=True
    ):
        # A negative shift drops zeros alone: the number is a whole multiple of the unit.
        whole = integer << shift if shift >= 0 else integer >> -shift
        totals[column] += repeat * whole


def too_fine(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether float32 rounds some numbers from ``low [W]`` to ``high [W]`` to coarse steps.

    Steps are coarse that are no small part of the range, as with times in seconds since 1970.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        step = np.maximum(np.abs(low), np.abs(high)) * 2.0**-24
        return bool(((high > low) & (step > COARSE_SHARE * (high - low))).any())
