"""The features of a graph folder: from a file, or made of the edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import MappedAdjacency
from infomax.arrays.blocks import row_blocks
from infomax.arrays.parquet_columns import StoredColumns, stored_ids
from infomax.arrays.positions import POSITION_WIDTH, fill_positions
from infomax.arrays.relations import Relation
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import (
    STRUCTURAL_FEATURE_NAMES,
    StructuralFeatures,
    degree_features,
)
from infomax.io.array_files import ROWS_PER_GROUP, FeatureWriter
from infomax.io.features import check_rows, finite, matrix_names, read_matrix
from infomax.io.graph_folder import SIDES, relation_folder
from infomax.io.prepare.writing import Entries, open_senders, write_entries
from infomax.io.schema.schema import Ends
from infomax.io.union import TypedIds, union_rows


class EdgeFeaturesOnDisk:
    """Features of nodes that have none, made of all edges, those of several types together.

    ``types`` are the folder of each type and the names of its splits, ``work`` a folder for files that go when the
    graph folder is whole.
    """

    def __init__(self, types: Mapping[str, tuple[Path, list[str]]], work: Path) -> None:
        self.types, self.work = types, work
        self.ids = TypedIds(
            {kind: stored_ids(folder / layout.NODES) for kind, (folder, _) in types.items()}
        )
        self.sizes = {kind: len(ids) for kind, ids in self.ids.ids.items()}

    def union(self, folder: Path, relations: Sequence[Ends]) -> MappedAdjacency:
        """The edges of all relations of a graph folder among all nodes, in both directions, written to work files."""
        opened = []
        for ends in relations:
            places = [relation_folder(folder, ends, side) for side in SIDES]
            first, *others = (open_senders(path) for path in places if path.exists())
            opened.append(Relation(*ends, MappedAdjacency(first, bool(others), *others)))
        write_entries(
            self.work / "union", sum(self.sizes.values()), _entries(union_rows(opened, self.sizes))
        )
        return MappedAdjacency(open_senders(self.work / "union"))

    def write(
        self,
        edges: MappedAdjacency,
        word: StructuralFeatures,
        kinds: Sequence[str],
        *,
        halved: bool,
    ) -> dict[str, list[str]]:
        """Write the features of some types; returns their names."""
        features: Any = edges.degrees()
        if word == "positions":
            paths, shape = (
                [self.work / f"positions-{name}" for name in ("total", "now", "then")],
                (edges.n, POSITION_WIDTH),
            )
            features, now, then = (np.memmap(path, np.float32, "w+", shape=shape) for path in paths)
            fill_positions(features, now, then, edges, self.ids, self._seen())
        for kind in kinds:
            first, last = self.ids.rows[kind].start, self.ids.rows[kind].stop
            with FeatureWriter(self.types[kind][0], "features", halved=halved) as writer:
                for start in range(first, last, ROWS_PER_GROUP):
                    block = features[start : min(start + ROWS_PER_GROUP, last)]
                    writer.append(block if word == "positions" else degree_features(block))
        return {kind: list(STRUCTURAL_FEATURE_NAMES[word]) for kind in kinds}

    def _seen(self) -> NDArray[np.bool_] | None:
        """Which nodes training sees; None: all."""
        masks = list[NDArray[np.bool_]]()
        for kind, (folder, splits) in self.types.items():
            mask = StoredColumns(folder / layout.NODES, layout.SPLIT, tuple(splits)).get("seen")
            masks.append(np.ones(self.sizes[kind], bool) if mask is None else mask)
        seen = np.concatenate(masks)
        return None if seen.all() else seen


def _entries(blocks: Iterator[sparse.csr_array]) -> Iterator[Entries]:
    """The entries of a matrix in blocks of rows."""
    first = 0
    for block in blocks:
        if block.nnz:
            block.sort_indices()
            yield (
                np.repeat(np.arange(first, first + block.shape[0]), np.diff(block.indptr)),
                block.indices,
                block.data,
            )
        first += block.shape[0]


def copy_features(path: Path, folder: Path, there: NDArray[np.bool_], *, halved: bool) -> list[str]:
    """Copy the features ``[n, F]`` of a file, all finite, for the rows of a mask ``[n]``; returns their names."""
    matrix = read_matrix(path)
    first = 0
    check_rows(path, matrix, len(there))
    with FeatureWriter(folder, str(path), halved=halved) as writer:
        for rows in row_blocks(matrix):
            block = finite(path, dense(rows), first)
            writer.append(block[there[first : (first := first + len(block))]])
    return matrix_names(matrix.shape[1])
