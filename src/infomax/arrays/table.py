"""The features of nodes: in memory, mapped from disk, or either with the rows of new nodes."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import require_room, row_blocks
from infomax.arrays.degrees import degree_features
from infomax.arrays.integrity import refuse_not_finite
from infomax.arrays.scaling import Scale, Scaler, check_scale
from infomax.arrays.sparsity import dense
from infomax.arrays.statistics import Statistics
from infomax.errors import InputWarning

Features = Any
"""``[N, F]`` float32: an array, or a `scipy.sparse.csr_array` (scipy has no type annotations)."""


class Table(ABC):
    """Features ``[N, F]``; indexing by rows gives them in memory, float32."""

    source: tuple[Any, Scaler | None] | None = None
    """The array on disk that rows are read from, and how they are scaled; None where they are in memory."""

    @property
    def mapped(self) -> bool:
        """Whether rows are read from disk when they are asked for."""
        return self.source is not None

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Features:
        """Rows ``[n, F]``."""

    @property
    @abstractmethod
    def statistics(self) -> Statistics:
        """The statistics of all rows."""

    @abstractmethod
    def scaled(self, scaler: Scaler) -> Table:
        """The same rows, scaled."""

    @abstractmethod
    def grown(self, rows: Features) -> Table:
        """With rows ``[M, F]`` of new nodes below."""

    @abstractmethod
    def of_degrees(self, degrees: NDArray[np.int64]) -> Table:
        """The degree features of degrees ``[N]``, in memory where these are."""

    def by_rows(self) -> Table:
        """The same, read row by row as if it were on disk: where few rows are needed, the others are not touched."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return False

    def to_read(self, count: int | None = None) -> int:
        """The bytes that it takes to have so many rows, or all, in memory; 0 where they are there."""
        return (100 + 4 * self.shape[1]) * (len(self) if count is None else count)

    def loaded(self) -> MemoryTable:
        """The same rows in memory."""
        require_room(self.to_read(), "read all of its features")
        return MemoryTable(self[:])

    def fit_scaler(self, kind: Scale = "auto", seen: NDArray[np.bool_] | None = None) -> Scaler:
        """The scaler of all rows, or of those of a mask ``[N]``, such as the split "seen"."""
        if seen is not None or check_scale(kind) in ("rows", "none"):
            return Scaler.fit(self[:0] if seen is None else self[seen], kind)
        return Scaler.of(self.statistics, self.shape, self.sparse, kind)

    def is_zero(self) -> bool:
        """Whether every entry is zero."""
        return not any(block.any() for block in row_blocks(self))


@dataclass(frozen=True, eq=False)
class MemoryTable(Table):
    """Features in memory, a dense array or CSR."""

    values: Features

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    def __getitem__(self, rows: Any) -> Features:
        """Rows ``[n, F]``."""
        return self.values[rows]

    @property
    def sparse(self) -> bool:
        """Whether it is CSR."""
        return bool(sparse.issparse(self.values))

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics of all rows."""
        return Statistics.of(self.values)

    def scaled(self, scaler: Scaler) -> MemoryTable:
        """The same rows, scaled."""
        return MemoryTable(scaler.transform(self.values))

    def grown(self, rows: Features) -> MemoryTable:
        """With rows of new nodes below, dense or sparse as the known ones are."""
        if not self.sparse:
            return MemoryTable(np.vstack([self.values, dense(rows)]))
        return MemoryTable(sparse.csr_array(sparse.vstack([self.values, rows])))

    def by_rows(self) -> MappedTable:
        """The same as a table that is scaled row by row, and dense."""
        return MappedTable(_DenseRows(self.values) if self.sparse else self.values)

    def of_degrees(self, degrees: NDArray[np.int64]) -> MemoryTable:
        """The degree features of degrees."""
        return MemoryTable(degree_features(degrees)[0])

    def to_read(self, count: int | None = None) -> int:
        """0."""
        return 0

    def loaded(self) -> MemoryTable:
        """Itself."""
        return self

    def is_zero(self) -> bool:
        """Whether every entry is zero."""
        return not (self.values.data if self.sparse else self.values).any()


@dataclass(frozen=True, eq=False)
class MappedTable(Table):
    """Features in a mapped array of float32 or float16, scaled row by row as they are read."""

    array: Any
    """``[N, F]``: a mapped array, or what gives rows of the same kind when it is indexed."""
    stored: Statistics | None = None
    """The statistics of the array as it is."""
    scaler: Scaler | None = None

    @property
    def source(self) -> tuple[Any, Scaler | None]:  # type: ignore[override]
        """The array and its scaler."""
        return self.array, self.scaler

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return int(self.array.shape[0]), int(self.array.shape[1])

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """Rows ``[n, F]``."""
        block = np.asarray(self.array[rows], dtype=np.float32)
        if not np.isfinite(block).all():
            refuse_not_finite(self.array)
        scaled: NDArray[np.float32] = block if self.scaler is None else self.scaler.transform(block)
        return scaled

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics of all rows."""
        return self.stored if self.stored is not None and self.scaler is None else Statistics.of(self)

    def scaled(self, scaler: Scaler) -> MappedTable:
        """The same rows, scaled as they are read."""
        return MappedTable(self.array, self.stored, scaler)

    def grown(self, rows: Features) -> MappedTable:
        """With rows of new nodes below."""
        return MappedTable(Appended(self.array, dense(rows)))

    def of_degrees(self, degrees: NDArray[np.int64]) -> MappedTable:
        """The degree features of degrees, made as they are asked for."""
        return MappedTable(_DegreeRows(degrees))


@dataclass(frozen=True, eq=False)
class Appended:
    """Rows of a stored array ``[N, ...]``, then rows in memory ``[M, ...]``, which decide the dtype."""

    known: Any
    new: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N + M, ...)``."""
        return len(self), *self.new.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that are read."""
        return self.new.dtype

    def __len__(self) -> int:
        return len(self.known) + len(self.new)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        late, out = rows >= len(self.known), np.empty((len(rows), *self.new.shape[1:]), self.new.dtype)
        known = self.known[rows[~late]]
        # Beside new ids that are text, integers are text too.
        out[~late] = list(map(str, known.tolist())) if self.new.dtype == object and known.dtype != object else known
        out[late] = self.new[rows[late] - len(self.known)]
        return out

    def tolist(self) -> list[Any]:
        """All rows, in memory."""
        rows: list[Any] = self[:].tolist()
        return rows


@dataclass(frozen=True, eq=False)
class _DenseRows:
    """The rows of sparse features, dense when they are asked for."""

    values: Features

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        return dense(self.values[rows])


@dataclass(frozen=True, eq=False)
class _DegreeRows:
    """The degree features ``[N, 32]`` of degrees ``[N]``, made when they are asked for."""

    degrees: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, 32)``."""
        return len(self.degrees), 32

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = degree_features(self.degrees[rows])[0].toarray()
        return found


def warn_if_zero(scaled: Table, scaler: Scaler) -> None:
    """Warn where scaled features ``[N, F]`` are all zero: so will be all vectors."""
    if not scaled.is_zero():
        return
    reason, remedy = "all features are zero", ""
    if scaler.kind == "columns":
        reason, remedy = "every column of the features is constant, so scaling makes it zero", ', or use scale="none"'
    message = f"{reason}: all vectors will be zero. Leave the features out, to use positions instead{remedy}."
    warnings.warn(message, InputWarning, stacklevel=2)
