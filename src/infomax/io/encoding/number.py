"""Numbers: durations in seconds as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.kinds import EXPECTED
from infomax.io.encoding.scaled import ScaledColumn


@dataclass(frozen=True, kw_only=True)
class NumberColumn(ScaledColumn):
    """A column of numbers, each of which becomes ``(x - centre) / deviation``."""

    types: ClassVar[tuple[str, ...]] = ("number",)

    def read(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The numbers ``[n]`` of a plain column, NaN for none; and a mask ``[n]`` of other cells."""
        return cells.numbers(cells.single(values, EXPECTED["number"]))

    def decode(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers ``[n]``."""
        return self.unscale(features)[:, 0]
