"""Numbers, booleans and lists of numbers: they are centred, and divided by their deviation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, common_fields
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.encoding.moments import Moments

if TYPE_CHECKING:
    from infomax.io.encoding.column_statistics import ColumnStatistics

COLUMNS_CAST_AT_ONCE = 64
"""Columns of text that are read as numbers in one call; a cell that is none slows all of them."""
ROWS_CAST_AT_ONCE = 1 << 12
"""Rows up to which the call for a column takes longer than reading its cells."""
MOST_DECIMALS = 12
"""Decimals up to which a cell that is told from its feature is rounded."""
NOT_A_NUMBER = ("NaN", "nan", "-nan")
"""Text that pyarrow reads as NaN, in columns that have no gap as well."""


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
    def read_numbers(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The numbers of a plain column, and which of its cells are of another type.

        Shapes:
            returns: ``[n, W]``, or ``[n]`` where W is 1, NaN for a missing cell; and ``[n]``
        """

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn the mean and the deviation; raw numbers stay as they are."""
        return cls._from_moments(statistics.numbers, statistics, raw=raw, note=note)

    @classmethod
    def _from_moments(
        cls, moments: Moments, statistics: ColumnStatistics, *, raw: bool, note: str
    ) -> Self:
        learnt = moments.as_they_are() if raw else moments.scale()
        return cls.from_learnt(common_fields(statistics, cls.types[0], note), learnt)

    @classmethod
    def from_learnt(cls, fields: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **fields,
            centre=tuple(map(float, learnt["centre"])),
            deviation=tuple(map(float, learnt["deviation"])),
            gap=tuple(map(float, learnt.get("gap", ()))),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """The centre, the deviation and, where it is another number, the gap."""
        learnt = {"centre": list(self.centre), "deviation": list(self.deviation)}
        if self.gap:
            learnt["gap"] = list(self.gap)
        return learnt

    @property
    def value_names(self) -> list[str]:
        """The name of the column."""
        return [self.name]

    def encoding_functions(self) -> dict[str, Callable[..., Any]]:
        """See `FeatureColumn`; `encode` reads the cells and calls `scale`."""
        return {
            f"cell of {self.column_type} to features": type(self).encode,
            f"{self.column_type} less centre, by deviation": scale,
        }

    def encode(self, values: Any) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The scaled numbers ``[n, W]``, and which cells are missing."""
        plain = cells.plain(values)
        numbers, is_other = self.read_numbers(plain)
        if is_other.any():
            row = int(np.argmax(is_other))
            cell = cells.shown(plain, row)
            raise cells.UnreadableError(row, EXPECTED_CELLS[self.column_type], cell, is_other)
        features = scale(
            numbers.reshape(len(numbers), len(self.centre)),
            np.array(self.centre),
            np.array(self.deviation),
            np.array(self.gap or self.centre),
            width=len(self.centre),
        )
        return features, ~cells.is_present(plain)

    def unscale(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers ``[n, W]`` that became features ``[n, W]``.

        Of the numbers that became the same feature, the one of fewest decimals is taken.
        """
        width = len(self.centre)
        factor = np.array(self.deviation) * np.sqrt(width)
        numbers = np.asarray(features * factor + np.array(self.centre), np.float64)
        return with_fewest_decimals(numbers, rounding_errors(features) * factor)


def rounding_errors(features: NDArray[Any]) -> NDArray[np.float64]:
    """How far each feature may be from what was computed in float64, before it was stored."""
    stored_type = features.dtype if features.dtype == np.float16 else np.dtype(np.float32)
    return np.asarray(np.spacing(np.abs(features).astype(stored_type)), np.float64)


def with_fewest_decimals(
    numbers: NDArray[np.float64], errors: NDArray[np.float64], most_decimals: int = MOST_DECIMALS
) -> NDArray[np.float64]:
    """The number of fewest decimals that is as near to each number as its error.

    2001.9999993 becomes 2002, where float32 cannot tell them apart.
    """
    # Beside the error of the feature there is that of the arithmetic, which is done in float64.
    tolerances = errors + 4 * np.spacing(np.abs(numbers))
    shortest = numbers.copy()
    is_open = np.isfinite(numbers)
    for decimals in range(most_decimals + 1):
        rounded = np.round(numbers, decimals)
        is_near = is_open & (np.abs(rounded - numbers) <= tolerances)
        shortest[is_near] = rounded[is_near]
        is_open &= ~is_near
        if not is_open.any():
            break
    return shortest


@dataclass(frozen=True, kw_only=True)
class NumberColumn(ScaledColumn):
    """A column of numbers, or of durations in seconds: ``(x - centre) / deviation``."""

    types: ClassVar[tuple[str, ...]] = ("number",)

    def encoding_functions(self) -> dict[str, Callable[..., Any]]:
        """See `FeatureColumn`.

        Neighbouring columns of numbers are encoded at once; `encode` makes the features of a column
        whose cells are of several types, or are refused.
        """
        functions = super().encoding_functions()
        functions[f"cell of {self.column_type} to features"] = encode_numbers
        return functions

    def read_numbers(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The numbers ``[n]`` of a plain column, and which of its cells are of another type."""
        return cells.numbers(cells.single(values, EXPECTED_CELLS["number"]))

    def decode(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """The numbers ``[n]``."""
        return self.unscale(features)[:, 0]


@dataclass(frozen=True, kw_only=True)
class BooleanColumn(ScaledColumn):
    """A column of yes and no, 1 and 0, which are scaled as numbers are."""

    types: ClassVar[tuple[str, ...]] = ("boolean",)

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn the share of yes."""
        row_counts = statistics.values()
        zeros_and_ones, _ = cells.truths(list(row_counts))
        moments = Moments()
        moments.add(zeros_and_ones, np.array(list(row_counts.values()), np.int64))
        return cls._from_moments(moments, statistics, raw=raw, note=note)

    def read_numbers(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """0 and 1 ``[n]`` of a plain column, and which of its cells are neither yes nor no."""
        return cells.truths(cells.single(values, EXPECTED_CELLS["boolean"]))

    def decode(self, features: NDArray[Any]) -> NDArray[np.bool_]:
        """True and False ``[n]``."""
        return np.asarray(self.unscale(features)[:, 0] > 0.5)


@dataclass(frozen=True, kw_only=True)
class NumberListColumn(ScaledColumn):
    """A column of lists of W numbers, which become W features."""

    types: ClassVar[tuple[str, ...]] = ("numbers",)

    @property
    def value_names(self) -> list[str]:
        """``NAME[0]``, ``NAME[1]``, ..."""
        return [f"{self.name}[{entry}]" for entry in range(len(self.centre))]

    def read_numbers(self, values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The lists ``[n, W]`` of a plain column, and which of its cells are of another type."""
        return cells.lists(values, len(self.centre))

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The lists ``[n]``."""
        lists = np.empty(len(features), object)
        lists[:] = self.unscale(features).tolist()
        return lists


def scale(
    numbers: NDArray[np.float64],
    centre: NDArray[np.float64],
    deviation: NDArray[np.float64],
    gap: NDArray[np.float64],
    width: int = 1,
) -> NDArray[np.float32]:
    """The features ``[n, k]`` of numbers ``[n, k]``, NaN for a missing cell.

    Args:
        numbers: the cells of k columns of single numbers, or of one column of lists.
        centre, deviation, gap: ``[k]``, as in `ScaledColumn`.
        width: the W of lists. All features of a column together have mean square 1.
    """
    scaled = np.where(np.isnan(numbers), gap - centre, numbers - centre)
    scaled /= deviation
    if width > 1:
        scaled /= np.sqrt(width)
    return scaled.astype(np.float32)


def encode_numbers(columns: Sequence[NumberColumn], table: Any) -> NDArray[np.float32]:
    """The features ``[n, F]`` of columns of numbers, all at once.

    They are those that `FeatureColumn.transform` makes of each column by itself.
    """
    matrix = read_number_matrix(table, [column.name for column in columns])
    widths = [len(column.feature_names) for column in columns]
    ends = np.cumsum(widths)
    starts = ends - widths

    features = np.zeros((len(matrix.values), sum(widths)), np.float32)
    features[:, starts] = scale(
        matrix.values,
        np.array([column.centre[0] for column in columns]),
        np.array([column.deviation[0] for column in columns]),
        np.array([(column.gap or column.centre)[0] for column in columns]),
    )
    for position, column in enumerate(columns):
        if not matrix.is_number[position]:  # its cells are of several types, or are refused
            block = column.transform(table[column.name]).toarray()
            features[:, starts[position] : ends[position]] = block
        elif column.missing:
            features[:, ends[position] - 1] = np.isnan(matrix.values[:, position])
    return features


@dataclass(frozen=True)
class NumberMatrix:
    """Columns of a table as one matrix of numbers.

    Shapes:
        values: ``[n, F]`` float64, column by column in memory; NaN where a cell is missing, and all
            over a column that holds anything else than numbers
        is_number: ``[F]``, whether each cell of a column that is there is a finite number that
            float32 can hold
        missing: ``[F]``, the number of missing cells

    Attributes:
        columns: the F columns as pyarrow arrays.
    """

    columns: list[Any]
    values: NDArray[np.float64]
    is_number: NDArray[np.bool_]
    missing: NDArray[np.int64]


def read_number_matrix(
    table: Any, names: Sequence[str], columns_at_once: int = COLUMNS_CAST_AT_ONCE
) -> NumberMatrix:
    """Read columns of a pyarrow table, or of a mapping of pyarrow arrays, as numbers."""
    columns = [cells.one_array(table[name]) for name in names]
    n = len(columns[0]) if columns else 0
    values = np.full((n, len(names)), np.nan, order="F")
    is_number = np.zeros(len(names), bool)
    missing = np.zeros(len(names), np.int64)
    for positions in _groups_of_one_type(columns, columns_at_once):
        together = _cast_together(columns[positions.start : positions.stop])
        if together is not None:
            part = slice(positions.start, positions.stop)
            values[:, part] = cells.as_numpy(together, null=np.nan).reshape(len(positions), n).T
            is_number[part] = True
            if together.null_count:
                is_null = ~cells.is_present(together)
                missing[part] = is_null.reshape(len(positions), n).sum(axis=1)
            continue
        for position in positions:
            numbers = _cast(columns[position])
            if numbers is not None:
                values[:, position] = cells.as_numpy(numbers, null=np.nan)
                missing[position] = numbers.null_count
                is_number[position] = True

    # A number that float32 cannot hold is none, and neither is a NaN in text that pyarrow reads.
    with np.errstate(invalid="ignore"):
        is_too_large = (np.abs(values) > cells.LARGEST).any(axis=0)
    is_unexplained = np.isnan(values).sum(axis=0) != missing
    is_number &= ~is_too_large & ~is_unexplained
    values[:, ~is_number] = np.nan
    return NumberMatrix(columns, values, is_number, missing)


def _groups_of_one_type(columns: Sequence[Any], most_columns: int) -> Iterator[range]:
    """Ranges of neighbouring columns of one type, of at most so many columns."""
    start = 0
    for position in range(1, len(columns) + 1):
        is_last = position == len(columns) or columns[position].type != columns[start].type
        if is_last or position - start == most_columns:
            yield range(start, position)
            start = position


def _cast_together(columns: Sequence[Any]) -> Any:
    """Columns of text of one type, one after the other, as a pyarrow array of numbers.

    None where each column is to be read by itself, since one has no numbers or other cells.

    Of thousands of columns with few rows, the calls for each take longer than reading the cells.
    """
    import pyarrow as pa
    from pyarrow import compute

    row_count = len(columns[0])
    is_short = 0 < row_count <= ROWS_CAST_AT_ONCE
    if len(columns) == 1 or not is_short or not _is_text(columns[0].type):
        return None
    together = pa.concat_arrays(columns)
    try:
        return together.cast(pa.float64())
    except pa.ArrowInvalid:  # some cells are missing, or are no numbers
        is_missing = compute.is_in(together, cells.text_array(cells.MISSING, together.type))
    may_be_not_a_number = compute.is_in(together, cells.text_array(NOT_A_NUMBER, together.type))
    if may_be_not_a_number.true_count or _has_column_without_numbers(is_missing, len(columns)):
        return None
    try:
        return cells.with_gaps(together, is_missing).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _has_column_without_numbers(is_missing: Any, column_count: int) -> bool:
    """Whether all cells of one of some columns, which follow each other, are missing."""
    masks = cells.as_numpy(is_missing).reshape(column_count, -1)
    return bool(masks.all(axis=1).any())


def _cast(column: Any) -> Any:
    """A column as a pyarrow array of numbers, null for missing cells; None for other types."""
    import pyarrow as pa
    from pyarrow import types

    data_type = column.type
    if _is_text(data_type):
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:  # some cells are missing, are no numbers, or begin with a plus
            return _cast_text_with_gaps(column)
    if types.is_dictionary(data_type) or types.is_duration(data_type):
        return None
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        return cells.plain(column).cast(pa.float64(), safe=False)
    return None


def _cast_text_with_gaps(column: Any) -> Any:
    """A column of text as numbers, null for missing cells; None where all or none are missing."""
    import pyarrow as pa

    plain = cells.plain(column)
    if not plain.null_count or plain.null_count == len(plain):
        return None
    try:
        return plain.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def _is_text(data_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_large_string(data_type) or types.is_string(data_type))
