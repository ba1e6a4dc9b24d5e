"""The arrays of a graph folder as files that are written row by row."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.sparsity import dense, mostly_zero
from infomax.errors import InputError

ROWS_PER_GROUP = 1 << 18
"""Rows per row group of nodes.parquet."""


class ArrayWriter:
    """An .npy file that is written row by row.

    The header is written again at the end, with the number of rows.
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.width = width
        self.rows = 0
        self.file = path.open("wb")
        self._write_header()

    def append(self, block: NDArray[Any]) -> None:
        """Add rows ``[n]`` or ``[n, width]``."""
        self.file.write(np.ascontiguousarray(block, self.dtype).data)
        self.rows += len(block)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        if error_type is None:
            self.file.seek(0)
            self._write_header()
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()

    def _write_header(self) -> None:
        """Write the header, which is as long for any number of rows: NumPy leaves room for it."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        description = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self.file, description)


class FeatureWriter(ExitStack):
    """The files of the features ``[N, F]`` of a graph folder.

    Features are stored sparse where the first rows are `mostly_zero`. Without rows there is no
    file.

    Args:
        folder: the graph folder.
        source: where the features are from, for messages.
        halved: whether they are stored in half precision.
    """

    def __init__(self, folder: Path, source: str, *, halved: bool) -> None:
        super().__init__()
        self.folder = folder
        self.source = source
        self.halved = halved
        self.rows = 0
        self.entries: ArrayWriter | None = None
        self.columns: ArrayWriter | None = None
        self.starts: ArrayWriter | None = None
        # An earlier attempt may have stored the features in the other form.
        for name in (layout.FEATURES, layout.FEATURE_COLUMNS, layout.FEATURE_STARTS):
            (folder / name).unlink(missing_ok=True)

    def append(self, block: Any) -> None:
        """Add rows ``[n, F]``, dense or CSR."""
        if self.entries is None:
            self.entries = self._open_files(block)
        self._refuse_too_large(block)
        if self.columns is not None and self.starts is not None:
            rows = sparse.csr_array(block)
            self.starts.append(self.entries.rows + rows.indptr[1:].astype(np.int64))
            self.entries.append(rows.data)
            self.columns.append(rows.indices)
        else:
            for part in row_blocks(block):
                self.entries.append(dense(part))
        self.rows += block.shape[0]

    def _open_files(self, first_block: Any) -> ArrayWriter:
        """Open the files in the form that suits the first rows; returns that of the numbers."""
        dtype = np.float16 if self.halved else np.float32
        if not mostly_zero([first_block]):
            return self._open(layout.FEATURES, dtype, first_block.shape[1])
        self.columns = self._open(layout.FEATURE_COLUMNS, np.int32)
        self.starts = self._open(layout.FEATURE_STARTS, np.int64)
        self.starts.append(np.zeros(1))
        return self._open(layout.FEATURES, dtype)

    def _open(self, name: str, dtype: DTypeLike, width: int | None = None) -> ArrayWriter:
        return self.enter_context(ArrayWriter(self.folder / name, dtype, width))

    def _refuse_too_large(self, block: Any) -> None:
        """Refuse numbers that half precision would make infinite."""
        if not self.halved:
            return
        values = block.data if sparse.issparse(block) else block
        largest = np.abs(values).max(initial=0)
        if largest > np.finfo(np.float16).max:
            location = f"{self.source}, features"
            expected = "numbers that half precision can hold, up to 65,504"
            raise InputError(location, expected, str(largest), "Leave out --half.")


def write_senders(folder: Path, senders: Senders) -> None:
    """Write who sends to each node; there is no file of weights where all are 1."""
    names = ((layout.STARTS, np.int64), (layout.NEIGHBOURS, np.int32), (layout.WEIGHTS, np.float32))
    for (name, dtype), array in zip(names, senders, strict=True):
        if array is not None:
            with ArrayWriter(folder / name, dtype) as writer:
                writer.append(array)
