"""What numbers, booleans and lists of numbers have in common: they are centred and divided."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, described
from infomax.io.encoding.column_statistics import ColumnStatistics
from infomax.io.encoding.kinds import EXPECTED


@dataclass(frozen=True, kw_only=True)
class ScaledColumn(FeatureColumn):
    """A column of W numbers in each row, which become ``(x - centre) / deviation / sqrt(W)``.

    Shapes:
        centre, deviation: ``[W]``
        gap: ``[W]``, what stands for a missing cell before scaling; empty: the centre
    """

    centre: tuple[float, ...]
    deviation: tuple[float, ...]
    gap: tuple[float, ...] = ()

    @abstractmethod
    def read(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A plain column as numbers ``[n, W]`` or ``[n]``, NaN for none; and a mask ``[n]`` of other cells."""

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn the mean and the deviation; raw numbers stay as they are."""
        moments = statistics.numbers
        scale = moments.as_they_are() if raw else moments.scale()
        return cls.from_learnt(described(statistics, cls.types[0], note), scale)

    @classmethod
    def from_learnt(cls, described: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **described,
            centre=tuple(map(float, learnt["centre"])),
            deviation=tuple(map(float, learnt["deviation"])),
            gap=tuple(map(float, learnt.get("gap", ()))),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """Centre and deviation, and what stands for a missing cell where that is not the centre."""
        learnt = {"centre": list(self.centre), "deviation": list(self.deviation)}
        return learnt | {"gap": list(self.gap)} if self.gap else learnt

    @property
    def value_names(self) -> list[str]:
        """The name of the column."""
        return [self.name]

    def encode(self, values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The scaled numbers ``[n, W]``, and which cells are missing."""
        plain = cells.plain(values)
        numbers, is_other = self.read(plain)
        if is_other.any():
            row = int(np.argmax(is_other))
            shown = cells.shown(plain, row)
            raise cells.UnreadableError(row, EXPECTED[self.column_type], shown, is_other)
        scaled = self.scale(numbers.reshape(len(numbers), len(self.centre)))
        return scaled, plain.is_null().to_numpy(zero_copy_only=False)

    def scale(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        """The features ``[n, W]`` of numbers ``[n, W]``; a row with NaN is a missing cell."""
        centre = np.array(self.centre)
        centred = numbers - centre
        centred[np.isnan(centred).any(axis=1)] = np.array(self.gap or self.centre) - centre
        centred /= np.array(self.deviation)
        if len(centre) > 1:
            centred /= np.sqrt(len(centre))
        return np.asarray(centred, np.float32)

    def unscale(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers ``[n, W]`` that became features ``[n, W]``."""
        width = len(self.centre)
        factor = np.array(self.deviation) * np.sqrt(width)
        return np.asarray(features * factor + np.array(self.centre), np.float64)
