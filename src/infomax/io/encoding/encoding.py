"""Encoding: the columns of a table, and the features that they become."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.errors import InputError, shorten
from infomax.io.encoding.category import CategoryColumn
from infomax.io.encoding.column import Column, FeatureColumn, all_entries, common_fields
from infomax.io.encoding.column_statistics import ColumnStatistics
from infomax.io.encoding.dates import DateColumn
from infomax.io.encoding.numbers import (
    BooleanColumn,
    NumberColumn,
    NumberListColumn,
    encode_numbers,
)
from infomax.io.encoding.text import TextColumn

CLASSES: tuple[type[FeatureColumn], ...] = (
    NumberColumn,
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    TextColumn,
    NumberListColumn,
)
CLASS_OF_TYPE = {
    column_type: column_class for column_class in CLASSES for column_type in column_class.types
}
"""The class of each column type that becomes features."""


def fit_column(
    statistics: ColumnStatistics, column_type: str, *, raw: bool = False, note: str = ""
) -> Column:
    """What a column becomes, by what was found in all of its rows.

    Args:
        statistics: what was found.
        column_type: the type that a person said, or that the cells have.
        raw: whether all features of the table are numbers that stay as they are.
        note: what looks wrong about the column.
    """
    statistics.column_type = column_type
    # A single value tells no row from another. In a table of numbers it stays, so that features
    # are the columns of the table.
    is_constant = statistics.distinct == 1 and not statistics.missing and not raw
    has_nothing_to_learn = statistics.rows == statistics.missing
    if column_type in TextColumn.types:
        statistics.count_words()
        has_nothing_to_learn = has_nothing_to_learn or not statistics.has_words_to_learn
    if column_type not in CLASS_OF_TYPE or is_constant or has_nothing_to_learn:
        return Column(**common_fields(statistics, column_type, note))
    return CLASS_OF_TYPE[column_type].fit(statistics, raw=raw, note=note)


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, and what was learnt of them: how rows become features, and back.

    Attributes:
        columns: the columns in the order of the table, those without features too.
        raw: whether features are numbers as they are, to be scaled later as a table of numbers is.
        name_column: the column that names the nodes.
    """

    columns: tuple[Column, ...]
    raw: bool = False
    name_column: str | None = None

    @cached_property
    def feature_columns(self) -> tuple[FeatureColumn, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if isinstance(column, FeatureColumn))

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [name for column in self.feature_columns for name in column.feature_names]

    def slices(self) -> dict[str, slice]:
        """By column, its features."""
        slices = {}
        first = 0
        for column in self.feature_columns:
            slices[column.name] = slice(first, first + len(column.feature_names))
            first += len(column.feature_names)
        return slices

    def differing(self, other: Encoding) -> list[str]:
        """The columns that become other features than those of their names in another encoding."""
        # Numbers of rows may differ: they make no features.
        learnt = {
            column.name: (column.column_type, column.learnt) for column in other.feature_columns
        }
        return [
            column.name
            for column in self.feature_columns
            if learnt.get(column.name) != (column.column_type, column.learnt)
        ]

    def describe(self, position: int, *, more: bool) -> str:
        """What more, or less, of the feature at a position means, in words."""
        for column in self.feature_columns:
            if position < len(column.feature_names):
                return column.describe(position, more=more)
            position -= len(column.feature_names)
        raise IndexError(position)

    def transform(self, table: Any) -> sparse.csr_array:
        """The features ``[n, F]`` of rows of a pyarrow table; each depends on its own row alone."""
        # A mapping of arrays is a table as well.
        names = set(table.column_names if hasattr(table, "column_names") else table)
        missing = [column.name for column in self.feature_columns if column.name not in names]
        if missing:
            remedy = "Add them, or train without them: --column NAME=ignore."
            expected = f"the columns {', '.join(map(shorten, missing))}"
            raise InputError("table", expected, "none of that name", remedy)
        blocks = list(self._blocks(table))
        if len(blocks) == 1:
            return blocks[0]
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def _blocks(self, table: Any) -> Iterator[sparse.csr_array]:
        """The features of the columns in order; neighbouring numbers are read as one matrix."""
        for is_number, group in groupby(
            self.feature_columns, key=lambda column: isinstance(column, NumberColumn)
        ):
            if is_number:
                number_columns = [column for column in group if isinstance(column, NumberColumn)]
                yield all_entries(encode_numbers(number_columns, table))
                continue
            for column in group:
                yield column.transform(table[column.name])

    def inverse_transform(self, features: Any) -> dict[str, NDArray[Any]]:
        """By column, the cells ``[n]`` that became features ``[n, F]``; None for a missing cell."""
        rows = features.toarray() if sparse.issparse(features) else np.asarray(features)
        slices = self.slices()
        return {
            column.name: column.inverse_transform(rows[:, slices[column.name]])
            for column in self.feature_columns
        }

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them back exactly."""
        return {
            "raw": self.raw,
            "name_column": self.name_column,
            "columns": [column.to_json() for column in self.columns],
        }

    @classmethod
    def from_json(cls, values: Any, where: str = "encoding") -> Encoding:
        """Read what `to_json` wrote; refused where nothing can be encoded by it."""
        try:
            columns = tuple(map(read_column, values["columns"]))
            return cls(columns, bool(values["raw"]), values.get("name_column"))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            expected = "what was learnt of the columns of a table"
            raise InputError(where, expected, str(error)) from None


def read_column(values: dict[str, Any]) -> Column:
    """A column as `Column.to_json` wrote it."""
    fields = dict(values)
    learnt = fields.pop("learnt")
    if not learnt:  # it becomes no feature
        return Column(**fields)
    if fields["column_type"] not in CLASS_OF_TYPE:
        raise ValueError(f"column type {fields['column_type']}")
    return CLASS_OF_TYPE[fields["column_type"]].from_learnt(fields, learnt)
