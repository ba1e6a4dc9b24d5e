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

    ``types`` are the folder of each type and the names of its splits, ``work`` a folder for files
    that go when the graph folder is whole.
    """

    def __init__(self, types: Mapping[str, tuple[Path, list[str]]], work: Path) -> None:
        self.types = types
        self.work = work
        self.ids = TypedIds(
            {
                node_type: stored_ids(folder / layout.NODES)
                for node_type, (folder, _) in types.items()
            }
        )
        self.sizes = {node_type: len(ids) for node_type, ids in self.ids.ids.items()}

    def union(self, folder: Path, relations: Sequence[Ends]) -> MappedAdjacency:
        """The edges of all relations of a graph folder among all nodes, in both directions, written
        to work files."""
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
        structural_features: StructuralFeatures,
        node_types: Sequence[str],
        *,
        halved: bool,
    ) -> dict[str, list[str]]:
        """Write the features of some types; returns their names."""
        features: Any = edges.degrees()
        if structural_features == "positions":
            # Positions are sums over hops: of a large graph they are kept in work files.
            features, current, following = (
                np.memmap(
                    self.work / f"positions-{name}",
                    np.float32,
                    "w+",
                    shape=(edges.n, POSITION_WIDTH),
                )
                for name in ("total", "current", "following")
            )
            fill_positions(features, current, following, edges, self.ids, self._seen())
        for node_type in node_types:
            rows = self.ids.rows[node_type]
            with FeatureWriter(self.types[node_type][0], "features", halved=halved) as writer:
                for start in range(rows.start, rows.stop, ROWS_PER_GROUP):
                    block = features[start : min(start + ROWS_PER_GROUP, rows.stop)]
                    if structural_features == "degrees":
                        block = degree_features(block)
                    writer.append(block)
        names = STRUCTURAL_FEATURE_NAMES[structural_features]
        return {node_type: list(names) for node_type in node_types}

    def _seen(self) -> NDArray[np.bool_] | None:
        """Which nodes training sees; None: all."""
        masks: list[NDArray[np.bool_]] = []
        for node_type, (folder, splits) in self.types.items():
            mask = StoredColumns(folder / layout.NODES, layout.SPLIT, tuple(splits)).get("seen")
            masks.append(np.ones(self.sizes[node_type], bool) if mask is None else mask)
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


def copy_features(
    path: Path, folder: Path, is_kept: NDArray[np.bool_], *, halved: bool
) -> list[str]:
    """Copy the features ``[n, F]`` of a file, all finite, for the rows of a mask ``[n]``.

    Returns the names of the features.
    """
    matrix = read_matrix(path)
    check_rows(path, matrix, len(is_kept))
    first = 0
    with FeatureWriter(folder, str(path), halved=halved) as writer:
        for rows in row_blocks(matrix):
            block = finite(path, dense(rows), first)
            last = first + len(block)
            writer.append(block[is_kept[first:last]])
            first = last
    return matrix_names(matrix.shape[1])
