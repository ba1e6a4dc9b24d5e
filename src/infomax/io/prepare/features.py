"""The features of a graph folder: from a file, or made of the edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from infomax.arrays import folder as layout
from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.blocks import row_blocks
from infomax.arrays.degrees import degree_features
from infomax.arrays.made import MADE, Kind
from infomax.arrays.parquet_columns import StoredColumns, StoredIds
from infomax.arrays.positions import WIDTH, fill_positions
from infomax.arrays.sparsity import dense
from infomax.io.features import check_rows, finite, matrix_names, read_matrix
from infomax.io.folder import GROUP, FeatureWriter


def write_made(folder: Path, kind: Kind, splits: list[str], *, directed: bool, halved: bool) -> list[str]:
    """Write the features of a graph that has none, from its edges, ids and splits; returns their names."""
    starts, neighbours = (np.load(folder / name, mmap_mode="r") for name in (layout.STARTS, layout.NEIGHBOURS))
    weights = np.load(folder / layout.WEIGHTS, mmap_mode="r") if (folder / layout.WEIGHTS).exists() else None
    edges = MappedAdjacency(Senders(starts, neighbours, weights), directed)
    with FeatureWriter(folder, len(MADE[kind]), "features", halved=halved) as writer:
        if kind == "degrees":
            degrees = edges.degrees()
            for first in range(0, len(degrees), GROUP):
                writer.append(degree_features(degrees[first : first + GROUP])[0].toarray())
        else:
            seen = StoredColumns(folder / layout.NODES, layout.SPLIT, tuple(splits)).get("seen")
            # Work files, which go with all others when the folder is whole.
            paths, shape = [folder.parent / f"positions-{name}" for name in ("total", "now", "then")], (edges.n, WIDTH)
            total, now, then = (np.memmap(path, np.float32, "w+", shape=shape) for path in paths)
            fill_positions(total, now, then, edges, StoredIds(folder / layout.NODES), seen)
            for block in row_blocks(total):
                writer.append(block)
    return list(MADE[kind])


def copy_features(path: Path, folder: Path, n: int, *, halved: bool) -> list[str]:
    """Copy the features ``[n, F]`` of a file, every value finite; returns their names."""
    matrix = read_matrix(path)
    check_rows(path, matrix, n)
    with FeatureWriter(folder, matrix.shape[1], str(path), halved=halved) as writer:
        for rows in row_blocks(matrix):
            writer.append(finite(path, dense(rows), writer.rows))
    return matrix_names(matrix.shape[1])
