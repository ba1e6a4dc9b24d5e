"""What the columns of a table are, found from their values in one pass over its rows, whatever their order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding.column_statistics import ColumnStatistics, LocationOf
from infomax.io.encoding.column_types import (
    FEW_VALUES,
    Fault,
    find_fault,
    find_note,
    guess_column_type,
    is_called_name,
)
from infomax.io.encoding.encoding import Encoding, fit_column
from infomax.io.encoding.kinds import FEATURES
from infomax.io.encoding.moments import Moments, too_fine
from infomax.io.encoding.number_matrix import numbers_of

BYTES_DEFERRED = 1 << 28
"""Numbers whose different values are not counted before there are so many bytes of them."""


class Survey:
    """The columns of these names, of the types that a person said; the others' types are found.

    Of ``keys``, columns that are called after other nodes, a number is an id. A text among numbers
    or dates makes a column one of codes, unless a person said that they are numbers or dates.
    """

    def __init__(
        self,
        names: Sequence[str],
        said_types: Mapping[str, str],
        labels: Sequence[str] = (),
        keys: Collection[str] = (),
    ) -> None:
        self.columns = {
            name: ColumnStatistics(name, said_types.get(name, ""), is_key=name in keys)
            for name in names
        }
        self.labels = labels
        self.keys = keys
        self._positions = {name: position for position, name in enumerate(names)}
        self._moments = Moments(len(names))
        self._matrices: list[tuple[list[str], NDArray[np.float64]]] = []
        """Blocks of numbers, by column, whose texts were not counted."""
        self._bytes_deferred = 0

    def add(self, table: Any, location_of: LocationOf) -> None:
        """Look at some rows of a pyarrow table."""
        numeric = [name for name, column in self.columns.items() if column.may_be_numbers]
        read = self._add_numbers(table, numeric)
        for name, column in self.columns.items():
            if name not in read:
                column.add(table[name], location_of)

    def _add_numbers(self, table: Any, names: list[str]) -> set[str]:
        """Look at columns as one matrix of numbers; returns those that are."""
        block = numbers_of(table, names)
        names = [name for name, is_number in zip(names, block.is_number, strict=True) if is_number]
        if not names:
            return set()
        missing = block.missing[block.is_number]
        values = block.values[:, block.is_number]
        positions = np.array([self._positions[name] for name in names])
        self._moments.add_columns(values, positions)

        are_whole = ((values == np.floor(values)) | np.isnan(values)).all(axis=0)
        for position, name in enumerate(names):
            self.columns[name].add_numbers(
                table[name], int(missing[position]), are_whole=bool(are_whole[position])
            )
            self._bytes_deferred += table[name].nbytes
        self._matrices.append((names, values))
        self._bytes_deferred += values.nbytes
        if self._bytes_deferred > BYTES_DEFERRED:
            self._count_deferred()
        return set(names)

    def _count_deferred(self) -> None:
        for column in self.columns.values():
            column.count_deferred()
        self._matrices = []
        self._bytes_deferred = 0

    def _end_numbers(self) -> None:
        """Give each column the moments of its numbers, and the number of different ones."""
        only_numbers = {
            name
            for name, column in self.columns.items()
            if column.has_only_deferred and not column.is_key
        }
        for names, distinct in self._distinct_numbers(only_numbers):
            for name, count in zip(names, distinct, strict=True):
                if count > FEW_VALUES:
                    self.columns[name].distinct_numbers = int(count)
        for name, column in self.columns.items():
            if column.distinct_numbers is None:
                column.count_deferred()
            position = self._positions[name]
            if self._moments.count[position]:
                moments = self._moments.column(position)
                if column.numbers.count.any():
                    moments.merge(column.numbers)
                column.numbers = moments

    def _distinct_numbers(
        self, only_numbers: set[str]
    ) -> list[tuple[list[str], NDArray[np.int64]]]:
        """Groups of columns, each with the number of different values of its columns."""
        if not self._matrices:
            return []
        names = [name for name in self.columns if name in only_numbers]
        if not names:
            return []
        blocks = []
        for block_names, values in self._matrices:
            of_name = {name: column for column, name in enumerate(block_names)}
            blocks.append(values[:, [of_name[name] for name in names]])
        together = np.sort(np.concatenate(blocks), axis=0)
        # NaN is sorted to the end, and differs from itself.
        is_new = np.vstack([np.ones(len(names), bool), together[1:] != together[:-1]])
        return [(names, (is_new & ~np.isnan(together)).sum(axis=0))]

    @property
    def name_column(self) -> str | None:
        """The column that can serve as the names of nodes, once all columns are known: of short texts that differ."""
        types = {
            name: column.said_type or guess_column_type(column)
            for name, column in self.columns.items()
        }
        names = [name for name, column_type in types.items() if column_type == "name"]
        names.sort(key=is_called_name, reverse=True)
        texts = [
            name
            for name, column_type in types.items()
            if column_type == "text" and self.columns[name].can_name
        ]
        return next(iter(names + texts), None)

    def finish(self) -> tuple[Encoding, list[Fault]]:
        """The encoding, and the faults, one per column."""
        self._end_numbers()
        types: dict[str, str] = {}
        faults: list[Fault] = []
        raw = True
        for name, column in self.columns.items():
            column.merge()
            column_type = column.said_type or guess_column_type(column)
            fault = find_fault(column, column_type)
            if fault is not None:
                faults.append(fault)
                continue
            types[name] = column_type
            if column_type in FEATURES:
                is_fine = too_fine(column.numbers.low, column.numbers.high)
                is_plain = column_type in ("number", "numbers", "boolean")
                raw = raw and is_plain and not column.missing and not is_fine
        columns = [
            fit_column(
                self.columns[name],
                column_type,
                raw=raw,
                note=find_note(self.columns[name], column_type, self.labels),
            )
            for name, column_type in types.items()
        ]
        return Encoding(tuple(columns), raw=raw), faults
