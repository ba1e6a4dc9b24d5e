"""Dates and times: how far they lie, and where in the year, the week and the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, described
from infomax.io.encoding.column_statistics import ColumnStatistics
from infomax.io.encoding.kinds import EXPECTED
from infomax.io.encoding.written_dates import DateOrder

ROWS_SAMPLED = 1 << 11
"""Rows that tell whether dates are repeated."""
CIRCLES = {"season": ("day_of_year", 365.25), "weekday": ("day_of_week", 7), "hour": ("", 1)}
"""The parts of a date that come round again: the field of pyarrow, and how many there are."""
EPOCH = np.datetime64("2000-01-01", "us")


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
        differing = [part for part, (low, high) in dates.ranges.items() if low < high]
        scale = dates.days.scale()
        return cls(
            **described(statistics, "date", note),
            parts=("time", *differing),
            centre=scale["centre"][0],
            deviation=scale["deviation"][0],
            order=statistics.date_order,
        )

    @classmethod
    def from_learnt(cls, described: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **described,
            parts=tuple(learnt["parts"]),
            centre=float(learnt["centre"]),
            deviation=float(learnt["deviation"]),
            order=learnt.get("order", ""),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """The parts, the mean and the deviation, and what dates of numbers alone begin with."""
        learnt = {"parts": list(self.parts), "centre": self.centre, "deviation": self.deviation}
        return {**learnt, "order": self.order} if self.order else learnt

    @property
    def value_names(self) -> list[str]:
        """``NAME: time``, ``NAME: season, cosine``, ..."""
        sides = [
            f"{self.name}: {part}, {side}" for part in self.parts[1:] for side in ("cosine", "sine")
        ]
        return [f"{self.name}: {self.parts[0]}", *sides]

    @property
    def value_parts(self) -> list[str]:
        """Time, season, ..."""
        return list(self.parts)

    def encode(self, values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The parts of each date, and which cells are missing."""
        values = cells.single(values, EXPECTED["date"])

        # Each different cell is read once, where a sample shows that cells are repeated.
        sample = cells.plain(values[:ROWS_SAMPLED])
        are_repeated = 2 * len(sample.unique()) < len(sample)
        distinct, codes = cells.distinct(values, are_repeated)
        dates, is_other = cells.times(distinct, self.order)
        if is_other.any():
            self._refuse(distinct, codes, is_other)

        features = [(cells.days(dates) - self.centre) / self.deviation]
        for part in self.parts[1:]:
            features += circle(part, dates)
        # The last row is that of missing cells.
        block = np.zeros((len(dates) + 1, len(features)), np.float32)
        for position, feature in enumerate(features):
            block[:-1, position] = feature / np.sqrt(len(self.parts))
        rows = codes.fill_null(len(dates)).to_numpy()
        return block[rows], codes.is_null().to_numpy(zero_copy_only=False)

    def _refuse(self, distinct: Any, codes: Any, is_other: NDArray[np.bool_]) -> None:
        positions = codes.fill_null(len(is_other)).to_numpy()
        in_rows = np.append(is_other, False)[positions]
        row = int(np.argmax(in_rows))
        shown = cells.shown(distinct, positions[row])
        raise cells.UnreadableError(row, EXPECTED["date"], shown, in_rows)

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
        """The dates ``[n]``, to about the precision of float32: a part in 10 million of their range."""
        microseconds = np.round(self.days(features[:, 0]) * 86_400_000_000).astype(
            "timedelta64[us]"
        )
        return np.asarray(EPOCH + microseconds)


def circle(part: str, dates: Any) -> list[NDArray[np.float64]]:
    """The cosine and the sine ``[n]`` of a part of timestamps."""
    from pyarrow import compute

    field, period = CIRCLES[part]
    if not field:
        angles = 2 * np.pi * cells.hours(dates)
        return [np.cos(angles), np.sin(angles)]
    # Of days, each different one is computed once.
    day_numbers = getattr(compute, field)(dates).to_numpy()
    angles = 2 * np.pi * (np.arange(367) / period)
    return [np.cos(angles)[day_numbers], np.sin(angles)[day_numbers]]
