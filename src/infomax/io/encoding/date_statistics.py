"""What is known of the dates of a column, in whatever order they come."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.moments import Moments


class DateStatistics:
    """What is known of the dates of a column.

    Attributes:
        cells: how many cells are dates.
        ranges: the least and the largest season, weekday and hour.
    """

    def __init__(self) -> None:
        self.cells = 0
        self.ranges = dict.fromkeys(("season", "weekday", "hour"), (np.inf, -np.inf))

    @cached_property
    def days(self) -> Moments:
        """The mean and the deviation of the days; most columns have none."""
        return Moments()

    def add(self, dates: Any, counts: NDArray[np.int64]) -> None:
        """Note timestamps ``[n]``, each as often as ``counts [n]`` says."""
        from pyarrow import compute

        if not len(dates):
            return
        self.cells += int(counts.sum())
        self.days.add(cells.days(dates), counts)
        part_of = {"season": compute.day_of_year, "weekday": compute.day, "hour": cells.hours}
        for part, (low, high) in self.ranges.items():
            if low < high:
                continue
            numbers = np.asarray(part_of[part](dates))
            self.ranges[part] = (min(low, float(numbers.min())), max(high, float(numbers.max())))

    def merge(self, other: DateStatistics) -> None:
        """Add what is known of other cells."""
        if not other.cells:
            return
        self.cells += other.cells
        self.days.merge(other.days)
        for part, (low, high) in other.ranges.items():
            self.ranges[part] = (min(low, self.ranges[part][0]), max(high, self.ranges[part][1]))
