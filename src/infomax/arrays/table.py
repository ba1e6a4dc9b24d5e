"""The features of nodes: in memory, mapped from disk, or either of these with new nodes below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import require_room, row_blocks
from infomax.arrays.integrity import refuse_not_finite
from infomax.arrays.scaling import Scale, Scaler, Statistics, check_scale
from infomax.arrays.sparsity import dense
from infomax.errors import warn

Features = Any
"""``[N, F]`` float32: an array, or a `scipy.sparse.csr_array` (scipy has no type annotations)."""


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The features ``[N, F]`` of nodes; indexing by rows gives them as float32, dense or CSR.

    A table in memory holds an array or a CSR matrix. A ``mapped`` table holds a mapped array of
    float32 or float16, or an object that gives rows when it is indexed; its rows are read, checked
    and scaled when they are asked for.
    """

    values: Features
    stored_statistics: Statistics | None = None
    """The statistics of the values before scaling, where they are known."""
    scaler: Scaler | None = field(default=None, kw_only=True)
    """Scales the rows of a mapped table as they are read; rows in memory are scaled already."""
    mapped: bool = field(default=False, kw_only=True)

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return int(self.values.shape[0]), int(self.values.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Features:
        if not self.mapped:
            return self.values[rows]
        are_row_numbers = isinstance(rows, np.ndarray) and rows.dtype != bool
        if are_row_numbers and isinstance(self.values, np.ndarray):
            # Indexing takes four times as long.
            stored_rows = self.values.take(rows, 0)
        else:
            stored_rows = self.values[rows]

        if self.sparse:
            block = stored_rows
            numbers = stored_rows.data
        else:
            block = numbers = np.asarray(dense(stored_rows), dtype=np.float32)
        # A mapped file is not read before, so damage shows only here; the message names the file.
        if not np.isfinite(numbers).all():
            refuse_not_finite(self.values)
        return block if self.scaler is None else self.scaler.transform(block)

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse: they are stored so, and scaling leaves their zeros."""
        stored = sparse.issparse(self.values) or getattr(self.values, "is_sparse", False)
        return stored and (self.scaler is None or self.scaler.keeps_zeros)

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics of all rows."""
        if self.stored_statistics is not None and self.scaler is None:
            return self.stored_statistics
        return Statistics.of(self if self.mapped else self.values)

    def scaled(self, scaler: Scaler) -> FeatureTable:
        """The same rows, scaled; those of a mapped table are scaled as they are read."""
        if self.mapped:
            return replace(self, scaler=scaler)
        return FeatureTable(scaler.transform(self.values))

    def grown(self, new_rows: Features) -> FeatureTable:
        """The table with rows ``[M, F]`` of new nodes below; no row is copied before it is read."""
        if sparse.issparse(self.values):
            new_rows = sparse.csr_array(new_rows)
        else:
            new_rows = dense(new_rows)
        return FeatureTable(AppendedRows(self.values, new_rows), mapped=True)

    def bytes_to_load(self, num_rows: int | None = None) -> int:
        """The bytes that it takes to have so many rows, or all, in memory; 0 if they are there."""
        if not self.mapped:
            return 0
        if self.sparse:
            bytes_per_row = 12 * self.values.nonzero_count / max(len(self), 1)
        else:
            bytes_per_row = 4 * self.shape[1]
        bytes_of_annotations = 100
        if num_rows is None:
            num_rows = len(self)
        return int((bytes_of_annotations + bytes_per_row) * num_rows)

    def loaded(self) -> FeatureTable:
        """The same rows in memory, sparse where they are stored so."""
        require_room(self.bytes_to_load(), "read all of its features")
        return FeatureTable(self[:]) if self.mapped else self

    def fit_scaler(self, scale: Scale = "auto", seen: NDArray[np.bool_] | None = None) -> Scaler:
        """The scaler of all rows, or of those of a mask ``[N]``, such as the split "seen"."""
        if check_scale(scale) in ("rows", "none"):
            return Scaler(scale)
        if seen is not None:
            return Scaler.fit(self[seen], scale)
        return Scaler.of(self.statistics, self.shape, self.sparse, scale)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of features ``[N, F]`` that are stored sparse; indexing gives them as CSR, float32.

    Shapes:
        starts: ``[N + 1]``, where the entries of each row begin
        columns: ``[S]``, the column of each entry
        entries: ``[S]`` float32 or float16, the numbers that are not zero
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    entries: NDArray[Any]
    width: int
    is_sparse: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return len(self), self.width

    @property
    def nonzero_count(self) -> int:
        """The number of entries."""
        return len(self.entries)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        if isinstance(rows, slice) and rows.step in (None, 1):
            # The entries of neighbouring rows are neighbours, too: they are read at once.
            first, last, _ = rows.indices(len(self))
            stored_starts = self.starts[first : max(first, last) + 1]
            entry_numbers: Any = slice(int(stored_starts[0]), int(stored_starts[-1]))
            starts = stored_starts - stored_starts[0]
        else:
            are_row_numbers = not isinstance(rows, slice) and rows.dtype != bool
            row_numbers = rows if are_row_numbers else np.arange(len(self))[rows]
            stored_starts = self.starts[row_numbers]
            lengths = self.starts[row_numbers + 1] - stored_starts
            starts = np.concatenate([[0], np.cumsum(lengths)])
            # The numbers of all entries of the rows, row by row.
            offsets = np.repeat(stored_starts - starts[:-1], lengths)
            entry_numbers = offsets + np.arange(starts[-1])
        entries = self.entries[entry_numbers].astype(np.float32)
        columns = np.asarray(self.columns[entry_numbers])
        return sparse.csr_array((entries, columns, starts), shape=(len(starts) - 1, self.width))

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int]:
        """Starts, columns, entries and F, as plain arrays, mapped ones as well."""
        return (
            np.asarray(self.starts, np.int64),
            np.asarray(self.columns),
            np.asarray(self.entries),
            self.width,
        )


@dataclass(frozen=True, eq=False)
class AppendedRows:
    """Rows ``[N, ...]`` in memory or on disk, and new rows ``[M, ...]`` in memory below them.

    All rows are read in the form of the new ones: sparse, dense, or as objects.
    """

    known: Any
    new: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N + M, ...)``."""
        return len(self), *self.new.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that indexing gives."""
        dtype: np.dtype[Any] = self.new.dtype
        return dtype

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse: then known and new ones are both in memory, and sparse."""
        return bool(sparse.issparse(self.new))

    @property
    def nonzero_count(self) -> int:
        """The number of entries, where rows are sparse."""
        return int(self.known.nnz + self.new.nnz)

    def __len__(self) -> int:
        return int(self.known.shape[0] + self.new.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        num_known = self.known.shape[0]
        is_new = rows >= num_known

        # Known and new rows are read separately, and put in the order that was asked for.
        known_rows = self.known[rows[~is_new]]
        new_rows = self.new[rows[is_new] - num_known]

        if self.is_sparse:
            known_first = sparse.csr_array(sparse.vstack([known_rows, new_rows]))
            if not is_new.any():
                return known_first
            # CSR rows cannot be assigned, so they are stacked and then put in order.
            order_of_known_first = np.argsort(is_new, kind="stable")
            return known_first[np.argsort(order_of_known_first)]

        if sparse.issparse(known_rows):
            known_rows = dense(known_rows)
        if self.new.dtype == object and known_rows.dtype != object:
            # These are ids: beside new ids that are text, known integers are text, too.
            known_rows = list(map(str, known_rows.tolist()))
        both = np.empty((len(rows), *self.new.shape[1:]), self.new.dtype)
        both[~is_new] = known_rows
        both[is_new] = new_rows
        return both

    def tolist(self) -> list[Any]:
        """All rows, in memory."""
        rows: list[Any] = self[:].tolist()
        return rows


@dataclass(frozen=True, eq=False)
class PatchedVectors:
    """Earlier vectors with some rows replaced, ``[N, d]``; rows are copied when they are asked for.

    Shapes:
        earlier: ``[M, d]``
        earlier_rows: ``[N]``, the row of each vector among the earlier ones; unused for new ones
        new_rows: ``[n]``, the rows of the new vectors, ascending
        new: ``[n, d]``
    """

    earlier: NDArray[np.float32]
    earlier_rows: NDArray[np.int64]
    new_rows: NDArray[np.int64]
    new: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, d)``."""
        return len(self.earlier_rows), self.new.shape[1]

    def __getitem__(self, rows: slice) -> NDArray[np.float32]:
        first, last, _ = rows.indices(len(self.earlier_rows))
        vectors = self.earlier.take(self.earlier_rows[rows], 0)
        first_new, last_new = np.searchsorted(self.new_rows, (first, last))
        new_rows = self.new_rows[first_new:last_new]
        vectors[new_rows - first] = self.new[first_new:last_new]
        return vectors

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class ComputedRows:
    """Sparse rows of features ``[N, F]`` that are computed when they are asked for."""

    shape: tuple[int, int]
    make_rows: Callable[[NDArray[np.int64]], sparse.csr_array]
    """Computes the rows of some row numbers."""
    is_sparse: ClassVar[bool] = True

    @property
    def nonzero_count(self) -> int:
        """The number of entries: each row has one at least."""
        return self.shape[0]

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        are_row_numbers = isinstance(rows, np.ndarray) and rows.dtype != bool
        row_numbers = rows if are_row_numbers else np.arange(self.shape[0])[rows]
        return self.make_rows(row_numbers)


def warn_if_zero(scaled: FeatureTable, scaler: Scaler) -> None:
    """Warn where scaled features ``[N, F]`` are all zero: an encoder would make zeros of them."""
    is_sparse_in_memory = scaled.sparse and not scaled.mapped
    blocks = [scaled.values] if is_sparse_in_memory else row_blocks(scaled)
    for block in blocks:
        numbers = block.data if scaled.sparse else block
        if numbers.any():
            return

    if scaler.scale == "columns":
        reason = "every column of the features is constant, so scaling makes it zero"
        remedy = 'Leave the features out, to use positions instead, or use scale="none".'
    else:
        reason = "all features are zero"
        remedy = "Leave the features out, to use positions instead."
    warn(f"{reason}: what the encoder makes of them will be zero. {remedy}")
