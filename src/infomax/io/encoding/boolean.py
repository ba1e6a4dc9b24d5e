"""Columns of two values, yes and no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.column import described
from infomax.io.encoding.column_statistics import ColumnStatistics
from infomax.io.encoding.kinds import EXPECTED
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.scaled import ScaledColumn


@dataclass(frozen=True, kw_only=True)
class BooleanColumn(ScaledColumn):
    """A column of yes and no, 1 and 0, which are scaled as numbers are."""

    types: ClassVar[tuple[str, ...]] = ("boolean",)

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn the share of yes."""
        counts = statistics.values()
        moments = Moments()
        moments.add(cells.truths(list(counts))[0], np.array(list(counts.values()), np.int64))
        scale = moments.as_they_are() if raw else moments.scale()
        return cls.from_learnt(described(statistics, "boolean", note), scale)

    def read(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """0 and 1 ``[n]`` of a plain column, NaN for neither; and a mask ``[n]`` of other cells."""
        return cells.truths(cells.single(values, EXPECTED["boolean"]))

    def decode(self, features: NDArray[Any]) -> NDArray[np.bool_]:
        """True and False ``[n]``."""
        return np.asarray(self.unscale(features)[:, 0] > 0.5)
