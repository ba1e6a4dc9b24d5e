"""Categories: a feature for each frequent value, and one for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.errors import format_count
from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, common_fields, few_entries
from infomax.io.encoding.column_types import EXPECTED_CELLS

if TYPE_CHECKING:
    from infomax.io.encoding.column_statistics import ColumnStatistics

REST = "the rest"
"""What a value is decoded to that has no feature of its own."""


@dataclass(frozen=True, kw_only=True)
class CategoryColumn(FeatureColumn):
    """A column of values, each of which is 1 in its own feature, and 0 in the others.

    Attributes:
        values: the values that have features of their own.
        has_rest: whether the other values share one more feature.
    """

    types: ClassVar[tuple[str, ...]] = ("category",)
    values: tuple[str, ...]
    has_rest: bool

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn which values are frequent."""
        frequent_values = statistics.frequent_values()
        return cls(
            **common_fields(statistics, "category", note),
            values=tuple(frequent_values),
            has_rest=len(frequent_values) < statistics.distinct_values,
        )

    @classmethod
    def from_learnt(cls, fields: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(**fields, values=tuple(learnt["values"]), has_rest=bool(learnt["rest"]))

    @property
    def learnt(self) -> dict[str, Any]:
        """The values, and whether there are others."""
        return {"values": list(self.values), "rest": self.has_rest}

    @property
    def value_names(self) -> list[str]:
        """``NAME=VALUE`` for each value, and ``NAME: rest``."""
        names = [f"{self.name}={value}" for value in self.values]
        return [*names, f"{self.name}: rest"] if self.has_rest else names

    @property
    def value_parts(self) -> list[str]:
        """The number of values, and whether there are others."""
        count = format_count(len(self.values), "value")
        return [count, REST] if self.has_rest else [count]

    def encode(self, values: Any) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
        """One entry for each cell that is there, and which cells are missing."""
        from pyarrow import compute

        values = cells.single(values, EXPECTED_CELLS["category"])
        distinct, codes = cells.distinct(values)
        positions = compute.index_in(cells.texts(distinct), cells.text_array(self.values))

        # The position after the last value is that of the rest, and of no feature where there is
        # none. The one after that is for missing cells.
        value_count = len(self.values)
        column_of_distinct = cells.as_numpy(positions, null=value_count)
        column_of_code = np.append(column_of_distinct, np.int32(value_count + 1))
        row_codes = cells.as_numpy(codes, null=len(column_of_distinct))
        columns = column_of_code[row_codes][:, None]

        width = value_count + self.has_rest
        return few_entries(columns < width, columns, width), ~cells.is_present(codes)

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The values ``[n]``; None where no feature is set."""
        names = np.array([None, *self.values, REST], dtype=object)
        positions = np.where(features.any(axis=1), features.argmax(axis=1) + 1, 0)
        return np.asarray(names[positions], object)
