"""The features of a graph folder: from a file, or from the degrees of the nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.degrees import degree_features
from infomax.arrays.sparsity import dense
from infomax.io.features import check_rows, finite, matrix_names, read_matrix
from infomax.io.folder import GROUP, FeatureWriter


def write_degree_features(folder: Path, *, directed: bool, halved: bool) -> list[str]:
    """Write the features of a graph that has none; returns their names."""
    starts, neighbours = (np.load(folder / name, mmap_mode="r") for name in (layout.STARTS, layout.NEIGHBOURS))
    degrees = MappedAdjacency(Senders(starts, neighbours, None), directed).degrees()
    names: list[str] = []
    with FeatureWriter(folder, 32, "features", halved=halved) as writer:
        for first in range(0, len(degrees), GROUP):
            block, names = degree_features(degrees[first : first + GROUP])
            writer.append(block.toarray())
    return names


def copy_features(path: Path, folder: Path, n: int, *, halved: bool) -> list[str]:
    """Copy the features ``[n, F]`` of a file, every value finite; returns their names."""
    matrix = read_matrix(path)
    check_rows(path, matrix, n)
    with FeatureWriter(folder, matrix.shape[1], str(path), halved=halved) as writer:
        for rows in row_blocks(matrix):
            writer.append(finite(path, dense(rows), writer.rows))
    return matrix_names(matrix.shape[1])
