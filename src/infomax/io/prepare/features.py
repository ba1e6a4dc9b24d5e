"""The features of a graph folder: from a file, or from the degrees of the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.degrees import degree_features
from infomax.arrays.sparsity import dense
from infomax.io.features import check_rows, finite, matrix_names, read_matrix
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
    degrees = MappedAdjacency(Senders(starts, neighbours, None), directed).degrees()
    names: list[str] = []
    with feature_writer(folder, 32, halved=halved) as writer:
        for first in range(0, len(degrees), GROUP):
            block, names = degree_features(degrees[first : first + GROUP])
            writer.append(block.toarray())
    return names


def copy_features(path: Path, folder: Path, n: int, *, halved: bool) -> list[str]:
    """Copy the features ``[n, F]`` of a file, every value finite; returns their names."""
    matrix = read_matrix(path)
    check_rows(path, matrix, n)
    with feature_writer(folder, matrix.shape[1], halved=halved) as writer:
        for rows in row_blocks(matrix):
            block = finite(path, dense(rows), writer.rows)
            writer.append(rounded(block, str(path), writer.rows, halved=halved))
    return matrix_names(matrix.shape[1])
