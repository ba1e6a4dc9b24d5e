"""Many columns of numbers at once, as one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells


@dataclass(frozen=True)
class NumberMatrix:
    """The cells of columns as numbers.

    Shapes:
        values: ``[n, F]`` float64, column by column in memory; NaN where a cell is missing, and all
            over a column that holds anything else than numbers
        is_number: ``[F]``, whether each cell of a column that is there is a finite number that
            float32 can hold
        missing: ``[F]``, the number of missing cells
    """

    values: NDArray[np.float64]
    is_number: NDArray[np.bool_]
    missing: NDArray[np.int64]

    def is_missing(self, column: int) -> NDArray[np.bool_]:
        """Which cells ``[n]`` of a column of numbers are missing."""
        return np.asarray(np.isnan(self.values[:, column]))


def numbers_of(table: Any, names: Sequence[str]) -> NumberMatrix:
    """Read columns of a pyarrow table, or of a mapping of pyarrow arrays, as numbers."""
    columns = [table[name] for name in names]
    n = len(columns[0]) if columns else 0
    values = np.full((n, len(names)), np.nan, order="F")
    is_number = np.zeros(len(names), bool)
    missing = np.zeros(len(names), np.int64)
    for position, column in enumerate(columns):
        numbers = _plain_numbers(column)
        if numbers is None:
            continue
        is_number[position] = True
        missing[position] = numbers.null_count
        values[:, position] = _as_array(numbers)

    # A number that float32 cannot hold is none, and neither is a NaN in text that pyarrow reads.
    with np.errstate(invalid="ignore"):
        too_large = (np.abs(values) > cells.LARGEST).any(axis=0)
    unexplained = np.isnan(values).sum(axis=0) != missing
    is_number &= ~too_large & ~unexplained
    values[:, ~is_number] = np.nan
    return NumberMatrix(values, is_number, missing)


def _plain_numbers(column: Any) -> Any:
    """A column as a pyarrow array of numbers, null for missing cells; None where it is of another kind."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    data_type = column.type
    if types.is_large_string(data_type) or types.is_string(data_type):
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:  # some cells are missing, are no numbers, or begin with a plus
            return _plain_text_numbers(column)
    if types.is_dictionary(data_type) or types.is_duration(data_type):
        return None
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        return cells.plain(column).cast(pa.float64(), safe=False)
    return None


def _plain_text_numbers(column: Any) -> Any:
    import pyarrow as pa

    plain = cells.plain(column)
    if not plain.null_count or plain.null_count == len(plain):
        return None
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _as_array(numbers: Any) -> NDArray[np.float64]:
    if not len(numbers):
        return np.empty(0)
    if numbers.null_count:
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    whole = np.frombuffer(numbers.buffers()[1], np.float64)
    return whole[numbers.offset : numbers.offset + len(numbers)]
