"""Lists of numbers, all of one length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.scaled import ScaledColumn


@dataclass(frozen=True, kw_only=True)
class NumberListColumn(ScaledColumn):
    """A column of lists of W numbers, which become W features."""

    types: ClassVar[tuple[str, ...]] = ("numbers",)

    @property
    def value_names(self) -> list[str]:
        """``NAME[0]``, ``NAME[1]``, ..."""
        return [f"{self.name}[{entry}]" for entry in range(len(self.centre))]

    def read(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The lists ``[n, W]`` of a plain column, NaN for none; and a mask ``[n]`` of other cells."""
        return cells.lists(values, len(self.centre))

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The lists ``[n]``."""
        lists = np.empty(len(features), object)
        lists[:] = self.unscale(features).tolist()
        return lists
