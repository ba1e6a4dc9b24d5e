"""The features of nodes: in memory, mapped from disk, or either with the rows of new nodes."""

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
class Table:
    """Features ``[N, F]``, a dense array or CSR in memory; indexing by rows gives them, float32.

    Where they are ``mapped``, rows are read, checked and scaled when they are asked for. Then the values are a mapped
    array of float32 or float16, or what gives rows like one when it is indexed.
    """

    values: Features
    stored: Statistics | None = None
    """The statistics of the values as they are, where they are known."""
    scaler: Scaler | None = field(default=None, kw_only=True)
    """What scales rows as they are read; those in memory are scaled already."""
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
            stored_rows = self.values.take(rows, 0)  # indexing takes four times as long
        else:
            stored_rows = self.values[rows]

        if self.sparse:
            block = stored_rows
            numbers = stored_rows.data
        else:
            block = numbers = np.asarray(dense(stored_rows), dtype=np.float32)
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
        if self.stored is not None and self.scaler is None:
            return self.stored
        return Statistics.of(self if self.mapped else self.values)

    def scaled(self, scaler: Scaler) -> Table:
        """The same rows, scaled; mapped ones as they are read."""
        return replace(self, scaler=scaler) if self.mapped else Table(scaler.transform(self.values))

    def grown(self, rows: Features) -> Table:
        """With rows ``[M, F]`` of new nodes below; nothing is copied until rows are asked for."""
        new = sparse.csr_array(rows) if sparse.issparse(self.values) else dense(rows)
        return Table(Appended(self.values, new), mapped=True)

    def to_read(self, count: int | None = None) -> int:
        """The bytes that it takes to have so many rows, or all, in memory; 0 where they are there."""
        if not self.mapped:
            return 0
        num_rows = len(self)
        if self.sparse:
            bytes_per_row = 12 * self.values.filled / max(num_rows, 1)
        else:
            bytes_per_row = 4 * self.shape[1]
        return int((100 + bytes_per_row) * (num_rows if count is None else count))

    def loaded(self) -> Table:
        """The same rows in memory, sparse where they are stored so."""
        require_room(self.to_read(), "read all of its features")
        return Table(self[:]) if self.mapped else self

    def fit_scaler(self, kind: Scale = "auto", seen: NDArray[np.bool_] | None = None) -> Scaler:
        """The scaler of all rows, or of those of a mask ``[N]``, such as the split "seen"."""
        if check_scale(kind) in ("rows", "none"):
            return Scaler(kind)
        if seen is not None:
            return Scaler.fit(self[seen], kind)
        return Scaler.of(self.statistics, self.shape, self.sparse, kind)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of features ``[N, F]`` that are stored sparse; indexing gives them as CSR, float32.

    Shapes:
        starts: ``[N + 1]``, where the entries of each row begin
        columns: ``[S]``, that of each entry
        entries: ``[S]`` float32 or float16
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
    def filled(self) -> int:
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
class Appended:
    """Rows ``[N, ...]`` in memory or on disk, then new ones ``[M, ...]``: as these are, sparse or not, all are read."""

    known: Any
    new: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N + M, ...)``."""
        return len(self), *self.new.shape[1:]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the rows that are read."""
        dtype: np.dtype[Any] = self.new.dtype
        return dtype

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse: both are in memory, and sparse."""
        return bool(sparse.issparse(self.new))

    @property
    def filled(self) -> int:
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
        known_rows = self.known[rows[~is_new]]
        new_rows = self.new[rows[is_new] - num_known]

        if self.is_sparse:
            known_first = sparse.csr_array(sparse.vstack([known_rows, new_rows]))
            if not is_new.any():
                return known_first
            order_of_known_first = np.argsort(is_new, kind="stable")
            return known_first[np.argsort(order_of_known_first)]

        if sparse.issparse(known_rows):
            known_rows = dense(known_rows)
        if self.new.dtype == object and known_rows.dtype != object:
            # Beside new ids that are text, integers are text too.
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
class Patched:
    """Earlier vectors with some rows replaced, ``[N, d]``; rows are copied when they are asked for.

    Shapes:
        earlier: ``[M, d]``
        known: ``[N]``, the row of each among the earlier ones; any where it is new
        rows: ``[n]``, those that are new, ascending
        new: ``[n, d]``
    """

    earlier: NDArray[np.float32]
    known: NDArray[np.int64]
    rows: NDArray[np.int64]
    new: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, d)``."""
        return len(self.known), self.new.shape[1]

    def __getitem__(self, some: slice) -> NDArray[np.float32]:
        first, last, _ = some.indices(len(self.known))
        vectors = self.earlier.take(self.known[some], 0)
        first_new, last_new = np.searchsorted(self.rows, (first, last))
        new_rows = self.rows[first_new:last_new]
        vectors[new_rows - first] = self.new[first_new:last_new]
        return vectors

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class ComputedRows:
    """Sparse rows of features ``[N, F]`` that are made when they are asked for, by a function of their numbers."""

    shape: tuple[int, int]
    make: Callable[[NDArray[np.int64]], sparse.csr_array]
    is_sparse: ClassVar[bool] = True

    @property
    def filled(self) -> int:
        """The number of entries: each row has one at least."""
        return self.shape[0]

    def __getitem__(self, rows: Any) -> sparse.csr_array:
        are_row_numbers = isinstance(rows, np.ndarray) and rows.dtype != bool
        return self.make(rows if are_row_numbers else np.arange(self.shape[0])[rows])


def warn_if_zero(scaled: Table, scaler: Scaler) -> None:
    """Warn where scaled features ``[N, F]`` are all zero: so is what an encoder makes of them."""
    in_blocks = scaled.mapped or not scaled.sparse
    blocks = row_blocks(scaled) if in_blocks else [scaled.values]
    if any((block.data if scaled.sparse else block).any() for block in blocks):
        return

    if scaler.kind == "columns":
        reason = "every column of the features is constant, so scaling makes it zero"
        remedy = 'Leave the features out, to use positions instead, or use scale="none".'
    else:
        reason = "all features are zero"
        remedy = "Leave the features out, to use positions instead."
    warn(f"{reason}: what the encoder makes of them will be zero. {remedy}")
