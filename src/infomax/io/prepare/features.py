"""The features of a graph folder: from an .npy file, or from the degrees of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.graphs import folder as layout
from infomax.graphs.degrees import degree_features, node_degrees
from infomax.graphs.stored import StoredAdjacency, row_blocks
from infomax.io.folder import GROUP, ArrayWriter, half


def feature_writer(folder: Path, width: int, *, halved: bool) -> ArrayWriter:
    """The file of the features ``[N, width]``, to be written row by row."""
    return ArrayWriter(folder / layout.FEATURES, np.float16 if halved else np.float32, width)


def rounded(block: NDArray[np.float32], where: str, first: int, *, halved: bool) -> NDArray[Any]:
    """Features ``[n, F]`` in the precision asked for; see `half`."""
    return half(block, where, first) if halved else block


def write_degree_features(folder: Path, *, directed: bool, halved: bool) -> list[str]:
    """Write the features of a graph that has none; returns their names."""
    starts, neighbours = (np.load(folder / name, mmap_mode="r") for name in (layout.STARTS, layout.NEIGHBOURS))
    degrees = node_degrees(StoredAdjacency(starts, neighbours), directed)
    names: list[str] = []
    with feature_writer(folder, 32, halved=halved) as writer:
        for first in range(0, len(degrees), GROUP):
            block, names = degree_features(degrees[first : first + GROUP])
            writer.append(block.toarray())
    return names


def copy_features(path: Path, folder: Path, n: int, *, halved: bool) -> list[str]:
    """Copy the features ``[n, F]`` of an .npy file, every value finite; returns their names."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(str(path), "an .npy file", str(error)) from None
    if array.ndim != 2 or len(array) != n or array.dtype.kind not in "biuf" or not array.shape[1]:
        found = f"{array.dtype} of shape {list(array.shape)}"
        raise InputError(str(path), f"numbers of shape [{n}, F], a row per row of the node table", found)
    with feature_writer(folder, array.shape[1], halved=halved) as writer:
        for rows in row_blocks(array):
            with np.errstate(over="ignore"):
                block = rows.astype(np.float32)
            good = np.isfinite(block)
            if not good.all():
                row, column = divmod(int(np.argmin(good)), block.shape[1])
                where = f"{path}, row {writer.rows + row + 1}, column {column + 1}"
                raise InputError(where, "a finite number (32-bit float)", str(rows[row, column]))
            writer.append(rounded(block, str(path), writer.rows, halved=halved))
    return [f"x{column}" for column in range(array.shape[1])]
