"""A column of a table, and the features that it becomes: what all column types have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.io.encoding.cells import UnreadableError

if TYPE_CHECKING:
    from infomax.io.encoding.column_statistics import ColumnStatistics


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table. One that becomes features is a `FeatureColumn`.

    Attributes:
        name: its name in the table.
        column_type: number, category, date, ...
        rows: the number of rows from which it was learnt.
        missing: how many of them have nothing in this column.
        distinct: the number of different values; None where they are too many to count, or lists.
        note: what looks wrong about the column, or why it becomes no feature.
    """

    name: str
    column_type: str
    rows: int
    missing: int
    distinct: int | None
    note: str = ""

    @property
    def feature_names(self) -> list[str]:
        """The names of its features."""
        return []

    @property
    def feature_parts(self) -> list[str]:
        """What its features are, in a few words."""
        return []

    @property
    def learnt(self) -> dict[str, Any]:
        """What `transform` needs, as JSON values; empty where the column becomes no feature."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """The column as JSON values."""
        return {
            "name": self.name,
            "column_type": self.column_type,
            "rows": self.rows,
            "missing": self.missing,
            "distinct": self.distinct,
            "learnt": self.learnt,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class FeatureColumn(Column, ABC):
    """A column that becomes features. Each column type is a class of its own.

    A class says how to `fit`, `encode` and `decode`; `transform` and `inverse_transform` add what
    is said of missing cells. On average over the rows that a column was fitted to, the squares of
    its features add up to 1 in a row, so that a category of 200 values counts as much as a number.
    Where rows of the table had nothing in the column, its last feature is 1 for a missing cell.
    """

    types: ClassVar[tuple[str, ...]]
    """The names of the column types that this class encodes."""

    @classmethod
    @abstractmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn what the features need from what was found in all rows of the column.

        Args:
            statistics: what was found.
            raw: whether numbers stay as they are, to be scaled later.
            note: see `Column`.
        """

    @classmethod
    @abstractmethod
    def from_learnt(cls, fields: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it, from the fields of `Column` and from ``learnt``."""

    @property
    @abstractmethod
    def value_names(self) -> list[str]:
        """The names of the features, but for the one of missing cells."""

    @abstractmethod
    def encode(self, values: Any) -> tuple[Any, NDArray[np.bool_]]:
        """The features of a column of pyarrow, and which of its cells are missing.

        Shapes:
            returns: ``[n, len(value_names)]``, float32, an array or CSR; and ``[n]``

        Raises:
            UnreadableError: a cell is not of this column type.
        """

    def encoding_functions(self) -> dict[str, Callable[..., Any]]:
        """By step, the functions that make features of cells, for whoever looks for a wrong one."""
        return {f"cell of {self.column_type} to features": type(self).encode}

    @abstractmethod
    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The cells ``[n]`` of features ``[n, len(value_names)]``, any for a missing one."""

    @cached_property
    def feature_names(self) -> list[str]:
        """The names of its features."""
        if self.missing:
            return [*self.value_names, f"{self.name}: missing"]
        return self.value_names

    def transform(self, values: Any) -> sparse.csr_array:
        """The features ``[n, F]`` of a column of pyarrow; each row depends on its own cell alone.

        Raises:
            UnreadableError: a cell is not of this column type; its ``column`` is the name.
        """
        try:
            block, is_missing = self.encode(values)
        except UnreadableError as error:
            error.column = self.name
            raise
        if not sparse.issparse(block):
            block = all_entries(block)
        if not self.missing:
            return block
        return sparse.csr_array(
            sparse.hstack([block, all_entries(is_missing[:, None])], format="csr")
        )

    def inverse_transform(self, features: NDArray[Any]) -> NDArray[Any]:
        """The cells ``[n]`` that became features ``[n, F]``: objects, None for a missing cell."""
        cells = np.empty(len(features), object)
        cells[:] = list(self.decode(features[:, : len(self.value_names)]))
        if self.missing:
            cells[np.asarray(features[:, -1] > 0)] = None
        return cells

    @property
    def feature_parts(self) -> list[str]:
        """What its features are, in a few words."""
        if self.missing:
            return [*self.value_parts, "missing"]
        return self.value_parts

    @property
    def value_parts(self) -> list[str]:
        """What its features are, but for the one of missing cells."""
        return ["value"]

    def describe(self, position: int, *, more: bool) -> str:
        """What more, or less, of one of its features means, in words."""
        name = self.feature_names[position]
        return name if more else f"less of {name}"


def common_fields(statistics: ColumnStatistics, column_type: str, note: str) -> dict[str, Any]:
    """The fields of `Column`, from what was found in all rows of a column."""
    return {
        "name": statistics.name,
        "column_type": column_type,
        "rows": statistics.rows,
        "missing": statistics.missing,
        "distinct": statistics.distinct,
        "note": note,
    }


def few_entries(values: NDArray[Any], columns: NDArray[Any], width: int) -> sparse.csr_array:
    """Features ``[n, width]`` with k entries in each row, of which zeros are not stored.

    Shapes:
        values, columns: ``[n, k]``
    """
    n, k = values.shape
    starts = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
    # These are copies: eliminate_zeros changes them.
    entries = values.astype(np.float32).ravel()
    entry_columns = columns.astype(np.int32).ravel()
    block = sparse.csr_array((entries, entry_columns, starts), shape=(n, width))
    block.eliminate_zeros()
    return block


def all_entries(values: NDArray[Any]) -> sparse.csr_array:
    """Features ``[n, k]`` as a sparse matrix, of which zeros are not stored."""
    width = values.shape[1]
    columns = np.broadcast_to(np.arange(width, dtype=np.int32), values.shape)
    return few_entries(values, columns, width)
