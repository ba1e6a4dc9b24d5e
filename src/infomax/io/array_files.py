"""The arrays of a graph folder as files that are written row by row."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.sparsity import dense, mostly_zero
from infomax.errors import InputError

GROUP = 1 << 18
"""Rows per row group of nodes.parquet."""


class ArrayWriter:
    """An .npy file that is written row by row; its header comes last, when the number of rows is known."""

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.dtype, self.width, self.rows = np.dtype(dtype), width, 0
        self.file = path.open("wb")
        self._write_header()

    def append(self, block: NDArray[Any]) -> None:
        """Add rows ``[n]`` or ``[n, width]``."""
        self.file.write(np.ascontiguousarray(block, self.dtype).data)
        self.rows += len(block)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.file.seek(0)
            self._write_header()
            self.file.flush()
            os.fsync(self.file.fileno())
        self.file.close()

    def _write_header(self) -> None:
        """Write the header, which is as long for any number of rows: numpy leaves room for it."""
        shape = (self.rows,) if self.width is None else (self.rows, self.width)
        described = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self.file, described)


class FeatureWriter(ExitStack):
    """The files of the features ``[N, F]`` of a graph folder, in half precision where asked; ``where`` they are from.

    They are stored sparse where the first rows are `mostly_zero`; without rows there is no file.
    """

    def __init__(self, folder: Path, where: str, *, halved: bool) -> None:
        super().__init__()
        self.folder = folder
        self.where = where
        self.halved = halved
        self.rows = 0
        self.files: list[ArrayWriter] = []
        for name in (layout.FEATURES, layout.FEATURE_COLUMNS, layout.FEATURE_STARTS):
            (folder / name).unlink(
                missing_ok=True
            )  # of an attempt before, which may have stored them otherwise

    def append(self, block: Any) -> None:
        """Add rows ``[n, F]``, dense or CSR."""
        if not self.files:
            kind = np.float16 if self.halved else np.float32
            if mostly_zero([block]):
                self._open(layout.FEATURES, kind)
                self._open(layout.FEATURE_COLUMNS, np.int32)
                self._open(layout.FEATURE_STARTS, np.int64)
                self.files[2].append(np.zeros(1))
            else:
                self._open(layout.FEATURES, kind, block.shape[1])
        values = block.data if sparse.issparse(block) else block
        if self.halved and np.abs(values).max(initial=0) > np.finfo(np.float16).max:
            expected = "numbers that half precision can hold, up to 65,504"
            raise InputError(
                f"{self.where}, features", expected, str(np.abs(values).max()), "Leave out --half."
            )
        if len(self.files) == 1:
            for part in row_blocks(block):
                self.files[0].append(dense(part))
        else:
            rows, (entries, columns, starts) = sparse.csr_array(block), self.files
            starts.append(entries.rows + rows.indptr[1:].astype(np.int64))
            entries.append(rows.data)
            columns.append(rows.indices)
        self.rows += block.shape[0]

    def _open(self, name: str, kind: DTypeLike, width: int | None = None) -> None:
        self.files.append(self.enter_context(ArrayWriter(self.folder / name, kind, width)))


def write_senders(folder: Path, senders: Senders) -> None:
    """Write who sends to each node; there is no file of weights where all are 1."""
    names = ((layout.STARTS, np.int64), (layout.NEIGHBOURS, np.int32), (layout.WEIGHTS, np.float32))
    for (name, dtype), array in zip(names, senders, strict=True):
        if array is not None:
            with ArrayWriter(folder / name, dtype) as writer:
                writer.append(array)
