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
        take = (
            isinstance(self.values, np.ndarray)
            and isinstance(rows, np.ndarray)
            and rows.dtype != bool
        )
        # numpy takes four times as long to index by rows as to take them.
        found = self.values.take(rows, 0) if take else self.values[rows]
        block = found if self.sparse else np.asarray(dense(found), dtype=np.float32)
        if not np.isfinite(block.data if self.sparse else block).all():
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
        n = len(self)
        each = 12 * self.values.filled / max(n, 1) if self.sparse else 4 * self.shape[1]
        return int((100 + each) * (n if count is None else count))

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
            first, last, _ = rows.indices(len(self))
            starts = self.starts[first : max(first, last) + 1]
            places: Any = slice(int(starts[0]), int(starts[-1]))
            starts = starts - starts[0]
        else:
            listed = not isinstance(rows, slice) and rows.dtype != bool
            chosen = rows if listed else np.arange(len(self))[rows]
            begins, lengths = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
            starts = np.concatenate([[0], np.cumsum(lengths)])
            places = np.repeat(begins - starts[:-1], lengths) + np.arange(starts[-1])
        entries, columns = self.entries[places].astype(np.float32), np.asarray(self.columns[places])
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
        rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
        n = self.known.shape[0]
        late = rows >= n
        known = self.known[rows[~late]]
        new = self.new[rows[late] - n]
        if self.is_sparse:
            both = sparse.csr_array(sparse.vstack([known, new]))
            return both[np.argsort(np.argsort(late, kind="stable"))] if late.any() else both
        known = dense(known) if sparse.issparse(known) else known
        out = np.empty((len(rows), *self.new.shape[1:]), self.new.dtype)
        # Beside new ids that are text, integers are text too.
        out[~late] = (
            list(map(str, known.tolist()))
            if self.new.dtype == object and known.dtype != object
            else known
        )
        out[late] = new
        return out

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
        found, new = (
            self.earlier.take(self.known[some], 0),
            slice(*np.searchsorted(self.rows, (first, last))),
        )
        found[self.rows[new] - first] = self.new[new]
        return found

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
        numbers = isinstance(rows, np.ndarray) and rows.dtype != bool
        return self.make(rows if numbers else np.arange(self.shape[0])[rows])


def warn_if_zero(scaled: Table, scaler: Scaler) -> None:
    """Warn where scaled features ``[N, F]`` are all zero: so is what an encoder makes of them."""
    blocks = row_blocks(scaled) if scaled.mapped or not scaled.sparse else [scaled.values]
    if any((block.data if scaled.sparse else block).any() for block in blocks):
        return
    reason, remedy = "all features are zero", ""
    if scaler.kind == "columns":
        reason, remedy = (
            "every column of the features is constant, so scaling makes it zero",
            ', or use scale="none"',
        )
    told = f"{reason}: what the encoder makes of them will be zero."
    warn(f"{told} Leave the features out, to use positions instead{remedy}.")
