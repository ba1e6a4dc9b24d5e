"""What the columns of a table are, found from their cells in one pass over rows in any order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding.column_statistics import (
    MOST_DISTINCT,
    MOST_WORDS,
    ColumnStatistics,
    LocationOf,
)
from infomax.io.encoding.column_types import FEATURE_TYPES
from infomax.io.encoding.encoding import Encoding, fit_column
from infomax.io.encoding.guessing import (
    FEW_VALUES,
    Fault,
    find_fault,
    find_note,
    guess_column_type,
    is_called_name,
)
from infomax.io.encoding.moments import Moments, too_fine
from infomax.io.encoding.numbers import read_number_matrix

BYTES_DEFERRED = 1 << 28
"""Bytes of numbers that are kept, so that their different values are counted at once at the end."""
RAW_TYPES = ("number", "numbers", "boolean")
"""The types of columns that become features as they are, where a table has no others."""


class Survey:
    """What is found in the columns of these names.

    Columns of numbers are looked at together, as one matrix; a table may have thousands of them.
    Each other column is looked at by itself. A text among numbers or dates makes a column one of
    codes, unless a person said that the column has numbers or dates.

    Args:
        names: the columns.
        requested_types: the types that a person said, by column; the others are found.
        labels: the names of the labels, which a column may tell by its name.
        keys: the columns that are called after other nodes, in which a number is an id.
        most_distinct: different values that are counted of a column.
        most_words: different words that are counted of a column.
        bytes_deferred: see `BYTES_DEFERRED`.
    """

    def __init__(
        self,
        names: Sequence[str],
        requested_types: Mapping[str, str],
        labels: Sequence[str] = (),
        keys: Collection[str] = (),
        *,
        most_distinct: int = MOST_DISTINCT,
        most_words: int = MOST_WORDS,
        bytes_deferred: int = BYTES_DEFERRED,
    ) -> None:
        self.columns = {
            name: ColumnStatistics(
                name,
                requested_types.get(name, ""),
                is_key=name in keys,
                most_distinct=most_distinct,
                most_words=most_words,
            )
            for name in names
        }
        self.labels = labels
        self.keys = keys
        self._bytes_deferred = bytes_deferred
        self._bytes_waiting = 0
        self._positions = {name: position for position, name in enumerate(names)}
        self._moments = Moments(len(names))
        self._matrices: list[tuple[list[str], NDArray[np.float64]]] = []
        """Blocks of numbers with the names of their columns, whose texts were not counted."""

    def add(self, table: Any, location_of: LocationOf) -> None:
        """Look at some rows of a pyarrow table, or of a mapping of pyarrow arrays."""
        names = [name for name, column in self.columns.items() if column.may_be_numbers]
        names_of_numbers = self._add_numbers(table, names)
        for name, column in self.columns.items():
            if name not in names_of_numbers:
                column.add(table[name], location_of)

    def _add_numbers(self, table: Any, names: list[str]) -> set[str]:
        """Look at columns as one matrix of numbers; returns the names of those that are numbers."""
        matrix = read_number_matrix(table, names)
        if not matrix.is_number.any():
            return set()
        numbers = matrix.values
        if not matrix.is_number.all():
            numbers = numbers[:, matrix.is_number]
        columns = np.flatnonzero(matrix.is_number).tolist()
        names = [names[column] for column in columns]
        positions = np.array([self._positions[name] for name in names])
        self._moments.add_columns(numbers, positions)

        is_whole = ((numbers == np.floor(numbers)) | np.isnan(numbers)).all(axis=0)
        for name, column, are_whole in zip(names, columns, is_whole.tolist(), strict=True):
            self.columns[name].add_numbers(
                matrix.columns[column], int(matrix.missing[column]), are_whole=are_whole
            )

        self._matrices.append((names, numbers))
        # The cells as they are written wait as well; other columns are counted with them.
        self._bytes_waiting += numbers.nbytes + getattr(table, "nbytes", 0)
        if self._bytes_waiting > self._bytes_deferred:
            for statistics in self.columns.values():
                statistics.count_deferred()
            self._matrices = []
            self._bytes_waiting = 0
        return set(names)

    def finish(self) -> tuple[Encoding, list[Fault]]:
        """The encoding, and the faults, one per column."""
        self._end_numbers()
        column_types: dict[str, str] = {}
        faults: list[Fault] = []
        for name, column in self.columns.items():
            column.merge()
            column_type = column.requested_type or guess_column_type(column)
            fault = find_fault(column, column_type)
            if fault is None:
                column_types[name] = column_type
            else:
                faults.append(fault)

        raw = self._can_stay_raw(column_types)
        columns = [
            fit_column(
                self.columns[name],
                column_type,
                raw=raw,
                note=find_note(self.columns[name], column_type, self.labels),
            )
            for name, column_type in column_types.items()
        ]
        return Encoding(tuple(columns), raw=raw), faults

    def _end_numbers(self) -> None:
        """Give each column the moments of its numbers, and the number of different ones."""
        for name, count in self._count_distinct_numbers().items():
            # Of a few, the texts are counted: they may be yes and no.
            if count > FEW_VALUES:
                self.columns[name].distinct_numbers = count
        for name, column in self.columns.items():
            if column.distinct_numbers is None:
                column.count_deferred()
            position = self._positions[name]
            if self._moments.count[position]:
                moments = self._moments.column(position)
                if column.numbers.count.any():
                    moments.merge(column.numbers)
                column.numbers = moments

    def _count_distinct_numbers(self) -> dict[str, int]:
        """The number of different values of each column that holds numbers alone."""
        names = [
            name
            for name, column in self.columns.items()
            if column.has_only_deferred and not column.is_key
        ]
        if not self._matrices or not names:
            return {}
        blocks = []
        for block_names, numbers in self._matrices:
            if block_names != names:
                column_of = {name: column for column, name in enumerate(block_names)}
                numbers = numbers[:, [column_of[name] for name in names]]
            blocks.append(numbers)
        # In order of memory, the rows of a column follow each other.
        ordered = np.concatenate([block.T for block in blocks], axis=1)
        ordered.sort(axis=1)
        # NaN is sorted to the end, and differs from itself.
        is_new = ordered[:, 1:] != ordered[:, :-1]
        distinct = (is_new & ~np.isnan(ordered[:, 1:])).sum(axis=1) + ~np.isnan(ordered[:, 0])
        return dict(zip(names, distinct.tolist(), strict=True))

    def _can_stay_raw(self, column_types: Mapping[str, str]) -> bool:
        """Whether all features are numbers that can stay as they are, to be scaled later."""
        columns = [
            self.columns[name]
            for name, column_type in column_types.items()
            if column_type in FEATURE_TYPES
        ]
        if any(column_types[column.name] not in RAW_TYPES for column in columns):
            return False
        return not any(
            column.missing or too_fine(column.numbers.low, column.numbers.high)
            for column in columns
        )

    @property
    def name_column(self) -> str | None:
        """The column that can serve as the names of nodes, of short texts that differ.

        It is known once all rows were looked at.
        """
        column_types = {
            name: column.requested_type or guess_column_type(column)
            for name, column in self.columns.items()
        }
        names = [name for name, column_type in column_types.items() if column_type == "name"]
        names.sort(key=is_called_name, reverse=True)
        texts = [
            name
            for name, column_type in column_types.items()
            if column_type == "text" and self.columns[name].can_name
        ]
        return next(iter(names + texts), None)
