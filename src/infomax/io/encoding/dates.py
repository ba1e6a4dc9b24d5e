"""Dates and times: how far they lie, and where in the year, the week and the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, common_fields
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.numbers import rounding_errors
from infomax.io.encoding.times import (
    DateOrder,
    days_since_2000,
    passed_share_of_day,
    read_times,
)

if TYPE_CHECKING:
    from infomax.io.encoding.column_statistics import ColumnStatistics

ROWS_SAMPLED = 1 << 11
"""Rows that tell whether dates are repeated."""
CIRCLES = {"season": ("day_of_year", 365.25), "weekday": ("day_of_week", 7), "hour": ("", 1)}
"""The parts of a date that come round again: the field of pyarrow, and the length of a round."""
MICROSECONDS_PER_DAY = 86_400_000_000
MICROSECONDS_OF_UNITS = (MICROSECONDS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000)
"""A day, an hour, a minute, a second and a millisecond: a time is rounded to these, in order."""
EPOCH = np.datetime64("2000-01-01", "us")


class DateStatistics:
    """What is found in the dates of a column, in whatever order they come.

    Attributes:
        cells: how many cells are dates.
        ranges: the least and the largest season, weekday and hour.
    """

    def __init__(self) -> None:
        self.cells = 0
        self.ranges = dict.fromkeys(CIRCLES, (np.inf, -np.inf))
        self._days: Moments | None = None

    @property
    def days(self) -> Moments:
        """The mean and the deviation of the days; most columns have none."""
        if self._days is None:
            self._days = Moments()
        return self._days

    def add(self, dates: Any, counts: NDArray[np.int64]) -> None:
        """Note timestamps ``[n]``, each as often as ``counts [n]`` says."""
        from pyarrow import compute

        if not len(dates):
            return
        self.cells += int(counts.sum())
        self.days.add(days_since_2000(dates), counts)
        part_of = {
            "season": compute.day_of_year,
            "weekday": compute.day,
            "hour": passed_share_of_day,
        }
        for part, (low, high) in self.ranges.items():
            # That a part differs at all is what is asked.
            if low < high:
                continue
            numbers = part_of[part](dates)
            if part != "hour":
                numbers = cells.as_numpy(numbers)
            self.ranges[part] = (min(low, float(numbers.min())), max(high, float(numbers.max())))

    def merge(self, other: DateStatistics) -> None:
        """Add what was found in other cells."""
        if not other.cells:
            return
        self.cells += other.cells
        self.days.merge(other.days)
        for part, (low, high) in other.ranges.items():
            self.ranges[part] = (min(low, self.ranges[part][0]), max(high, self.ranges[part][1]))


@dataclass(frozen=True, kw_only=True)
class DateColumn(FeatureColumn):
    """A column of dates or times of day.

    Attributes:
        parts: ``time``, which is days since 2000, centred and divided; then those of season,
            weekday and hour in which the dates differ, each a cosine and a sine.
        centre: the mean in days since 2000.
        deviation: the deviation in days.
        order: what dates of numbers alone, such as 31/12/1999, begin with.
    """

    types: ClassVar[tuple[str, ...]] = ("date",)
    parts: tuple[str, ...]
    centre: float
    deviation: float
    order: DateOrder = ""

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn which parts differ, and the mean and the deviation of the days."""
        dates = statistics.dates()
        differing_parts = [part for part, (low, high) in dates.ranges.items() if low < high]
        learnt = dates.days.scale()
        return cls(
            **common_fields(statistics, "date", note),
            parts=("time", *differing_parts),
            centre=learnt["centre"][0],
            deviation=learnt["deviation"][0],
            order=statistics.date_order,
        )

    @classmethod
    def from_learnt(cls, fields: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **fields,
            parts=tuple(learnt["parts"]),
            centre=float(learnt["centre"]),
            deviation=float(learnt["deviation"]),
            order=learnt.get("order", ""),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """The parts, the mean and the deviation, and what dates of numbers alone begin with."""
        learnt = {"parts": list(self.parts), "centre": self.centre, "deviation": self.deviation}
        if self.order:
            learnt["order"] = self.order
        return learnt

    @property
    def value_names(self) -> list[str]:
        """``NAME: time``, ``NAME: season, cosine``, ..."""
        names = [f"{self.name}: {self.parts[0]}"]
        for part in self.parts[1:]:
            names += [f"{self.name}: {part}, cosine", f"{self.name}: {part}, sine"]
        return names

    @property
    def value_parts(self) -> list[str]:
        """Time, season, ..."""
        return list(self.parts)

    def encode(self, values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The parts of each date, and which cells are missing."""
        values = cells.single(values, EXPECTED_CELLS["date"])

        # Each different cell is read once, where a sample shows that cells are repeated.
        sample = cells.plain(values[:ROWS_SAMPLED])
        are_repeated = 2 * len(sample.unique()) < len(sample)
        distinct, codes = cells.distinct(values, are_repeated)
        dates, is_other = read_times(distinct, self.order)

        # The position after the last date is that of missing cells.
        positions = cells.as_numpy(codes, null=len(dates))
        if is_other.any():
            is_other_row = np.append(is_other, False)[positions]
            row = int(np.argmax(is_other_row))
            cell = cells.shown(distinct, positions[row])
            raise cells.UnreadableError(row, EXPECTED_CELLS["date"], cell, is_other_row)

        features = [(days_since_2000(dates) - self.centre) / self.deviation]
        for part in self.parts[1:]:
            features += on_circle(part, dates)
        block = np.zeros((len(dates) + 1, len(features)), np.float32)
        for position, feature in enumerate(features):
            block[:-1, position] = feature / np.sqrt(len(self.parts))
        return block[positions], positions == len(dates)

    def days(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """Days since 2000 of the feature ``NAME: time``."""
        spread = self.deviation * len(self.parts) ** 0.5
        return np.asarray(np.asarray(times, np.float64) * spread + self.centre)

    def years(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """Years ``[n]``, with their fractions, of features ``[n, F]``; NaN for a missing cell."""
        years = 2000 + self.days(features[:, 0]) / 365.25
        if self.missing:
            years[np.asarray(features[:, -1] > 0)] = np.nan
        return years

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The dates ``[n]``, to about the precision of float32: 1 in 10 million of their range.

        Of the times that became the same feature, a whole day is taken, else a whole hour, minute
        or second.
        """
        exact = self.days(features[:, 0]) * MICROSECONDS_PER_DAY
        spread = self.deviation * len(self.parts) ** 0.5
        tolerances = rounding_errors(features[:, 0]) * spread * MICROSECONDS_PER_DAY + 1

        microseconds = np.round(exact)
        is_open = np.isfinite(exact)
        for unit in MICROSECONDS_OF_UNITS:
            rounded = np.round(exact / unit) * unit
            is_near = is_open & (np.abs(rounded - exact) <= tolerances)
            microseconds[is_near] = rounded[is_near]
            is_open &= ~is_near
        return np.asarray(EPOCH + microseconds.astype("timedelta64[us]"))


def on_circle(part: str, dates: Any) -> list[NDArray[np.float64]]:
    """The cosine and the sine ``[n]`` of a part of timestamps."""
    from pyarrow import compute

    field, round_length = CIRCLES[part]
    if not field:
        angles = 2 * np.pi * passed_share_of_day(dates)
        return [np.cos(angles), np.sin(angles)]
    # Of days, each different one is computed once.
    day_numbers = cells.as_numpy(getattr(compute, field)(dates))
    angles = 2 * np.pi * (np.arange(367) / round_length)
    return [np.cos(angles)[day_numbers], np.sin(angles)[day_numbers]]
