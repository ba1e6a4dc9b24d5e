"""Features in a file beside the node table."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.checks import MOST_FEATURES, all_finite
from infomax.arrays.folder_layout import map_array
from infomax.errors import InputError
from infomax.io.column_names import format_list
from infomax.io.sources import existing

MATRICES = (".npy", ".npz")
"""The extensions of files that hold features."""


def read_matrix(path: Path) -> Any:
    """The features ``[N, F]`` of a file.

    They are an array of numpy (.npy, mapped), or a sparse matrix of scipy (.npz, CSR).
    """
    if path.suffix.lower() == ".npz":
        return _read_sparse(path)
    array = map_array(path, remedy="")
    if array.ndim != 2 or array.dtype.kind not in "biuf" or not array.shape[1]:
        raise InputError(
            str(path), "numbers of shape [N, F]", f"{array.dtype} of shape {list(array.shape)}"
        )
    return array


def _read_sparse(path: Path) -> sparse.csr_array:
    """The matrix of a file that `scipy.sparse.save_npz` wrote; nothing is unpickled."""
    try:
        matrix = sparse.load_npz(existing(path))
        if matrix.ndim != 2 or not 0 < matrix.shape[1] <= MOST_FEATURES:
            raise ValueError(
                f"shape {list(matrix.shape)}, where 1 to {MOST_FEATURES:,} columns are possible"
            )
        if matrix.dtype.kind not in "biuf":
            raise TypeError(f"dtype {matrix.dtype}")
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return sparse.csr_array(matrix)
    except InputError:
        raise
    except Exception as error:  # a damaged file makes numpy and scipy raise almost anything
        expected = "a CSR, CSC or COO matrix of numbers, as scipy.sparse.save_npz writes it"
        raise InputError(
            str(path), expected, str(error), "An array goes into an .npy file."
        ) from error


def is_sparse_matrix(path: Path) -> bool:
    """Whether a file is an .npz of `scipy.sparse.save_npz`, rather than one of a graph."""
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        return "format.npy" in archive.namelist()
    return False


def read_adjacency(path: Path) -> sparse.csr_array:
    """The weights of edges ``[N, N]`` in a file of `scipy.sparse.save_npz`.

    Row i has those of the edges from node i.
    """
    matrix = _read_sparse(path)
    if matrix.shape[0] != matrix.shape[1]:
        remedy = "A matrix of features goes beside a table of edges: --features FILE."
        found = f"shape {list(matrix.shape)}"
        raise InputError(str(path), "a square matrix of edges", found, remedy)
    return matrix


def matrix_names(width: int) -> list[str]:
    """The names of the features of a file, which has none."""
    return [f"x{column}" for column in range(width)]


def check_rows(path: Path, matrix: Any, n: int) -> None:
    """Refuse a matrix that has not one row per row of the node table."""
    if matrix.shape[0] != n:
        raise InputError(
            str(path),
            f"shape [{n}, F], a row per row of the node table",
            f"shape {list(matrix.shape)}",
        )


def read_features(path: Path, n: int, wanted: Sequence[str] | None) -> tuple[list[str], Any]:
    """The names of the features of a file, and the features ``[n, F]``.

    With ``wanted`` only the features of these names are read.
    """
    matrix = read_matrix(path)
    check_rows(path, matrix, n)
    names = matrix_names(matrix.shape[1])
    if wanted is not None and list(wanted) != names:
        position = {name: column for column, name in enumerate(names)}
        if missing := [name for name in wanted if name not in position]:
            raise InputError(
                str(path), f"features {format_list(missing)}", f"the features {format_list(names)}"
            )
        names = sorted(wanted, key=position.__getitem__)
        matrix = matrix[:, [position[name] for name in names]]
    return names, matrix if sparse.issparse(matrix) else finite(path, matrix)


def finite(
    path: Path, rows: NDArray[Any], first: int = 0, *, copy: bool | None = True
) -> NDArray[np.float32]:
    """Rows ``[n, F]`` as float32, refused unless all are finite; ``first`` is the number of the
    first row.

    A copy, as a mapped file may change; with ``copy=None`` only where the numbers are of another
    type.
    """
    with np.errstate(over="ignore"):
        block = np.array(rows, dtype=np.float32, order="C", copy=copy)
    if not all_finite(block):
        row, column = divmod(int(np.argmin(np.isfinite(block))), block.shape[1])
        where = f"{path}, row {first + row + 1}, column {column + 1}"
        raise InputError(where, "a finite number (32-bit float)", str(rows[row, column]))
    return block
