"""The files of a graph folder: who sends to each node, ids and labels, and features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import MappedAdjacency, Senders
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
from infomax.io.array_files import ROWS_PER_GROUP, ArrayWriter, FeatureWriter
from infomax.io.features import check_rows, finite, matrix_names, read_matrix
from infomax.io.graph_folder import SIDES, relation_folder
from infomax.io.prepare.database import Database
from infomax.io.prepare.stages import ReadNodes
from infomax.io.schema.schema import Ends
from infomax.io.union import TypedIds, union_rows

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]
"""Rows ``[n]``, columns ``[n]`` and values ``[n]`` of a matrix, ascending.

There are no values where all are 1.
"""
Keys = tuple[NDArray[np.int64], NDArray[np.float32] | None]
"""Keys ``[e]`` of edges, ascending, and their weights ``[e]``.

None: each edge counts once, however often it is listed. A key is ``2 (row * N + column) + back``:
an edge listed from row to column has back = 0, one that was listed the other way 1.
"""


# Edges


@dataclass(frozen=True)
class WrittenRelation:
    """What was written of a relation.

    Attributes:
        entry_count: the entries of its matrix.
        is_weighted: whether any weight is other than 1.
        self_loops: the edges from a node to itself, which were left out.
        duplicates: the edges that are listed more than once, which were merged.
        zero_weights: the edges of weight 0, which were left out.
    """

    entry_count: int
    is_weighted: bool
    self_loops: int
    duplicates: int
    zero_weights: int


def write_relation(
    database: Database,
    folder: Path,
    ends: Ends,
    sizes: tuple[int, int],
    *,
    has_weights: bool,
    both_ways: bool,
) -> WrittenRelation:
    """Write the files of a relation from table pairs.

    Args:
        database: holds table pairs.
        folder: the graph folder.
        ends: the types and the name of the relation; empty where a graph has one type of nodes.
        sizes: the numbers of nodes of both types.
        has_weights: whether table pairs has weights.
        both_ways: whether an edge joins its ends in both directions, so that one matrix has both.
    """
    first_type, _, last_type = ends
    is_loop = "source = target" if first_type == last_type else "false"
    is_zero = "weight = 0" if has_weights else "false"
    loop_count, zero_count = database.row(
        f"SELECT count(*) FILTER ({is_loop}), count(*) FILTER (NOT ({is_loop}) AND {is_zero}) "
        "FROM pairs"
    )
    kept_edges = f"FROM pairs WHERE NOT ({is_loop}) AND NOT ({is_zero})"

    # A row of a matrix lists who sends to a node: rows are targets, columns are sources.
    source_count, target_count = sizes
    to_target_folder = relation_folder(folder, ends, SIDES[0]) if first_type else folder
    dropped = Counter[str]()
    keys = _keys(
        database,
        kept_edges,
        "target",
        "source",
        source_count,
        has_weights=has_weights,
        both_ways=both_ways,
    )
    entries = merge(keys, source_count, dropped)
    entry_count = write_entries(to_target_folder, target_count, entries)

    # Of several types, messages go against the edges as well, by a second matrix.
    if first_type and not both_ways:
        keys = _keys(
            database,
            kept_edges,
            "source",
            "target",
            target_count,
            has_weights=has_weights,
            both_ways=False,
        )
        entries = merge(keys, target_count, Counter())
        write_entries(relation_folder(folder, ends, SIDES[1]), source_count, entries)
    return WrittenRelation(
        entry_count=entry_count,
        is_weighted=(to_target_folder / layout.WEIGHTS).exists(),
        self_loops=loop_count,
        duplicates=dropped["duplicates"],
        zero_weights=zero_count,
    )


def _keys(
    database: Database,
    kept_edges: str,
    row_end: str,
    column_end: str,
    column_count: int,
    *,
    has_weights: bool,
    both_ways: bool,
) -> Iterator[Keys]:
    """The keys of all edges, as `merge` takes them, in order.

    Args:
        database: holds the edges.
        kept_edges: the edges, as what follows SELECT in SQL.
        row_end: the end that is the row of the matrix, source or target.
        column_end: the end that is the column.
        column_count: the number of columns.
        has_weights: whether edges have weights.
        both_ways: whether each edge is listed the other way as well.
    """
    weight = ", weight" if has_weights else ""
    query = f"SELECT 2 * ({row_end} * {column_count} + {column_end}) AS key{weight} {kept_edges}"
    if both_ways:
        back_key = f"2 * ({column_end} * {column_count} + {row_end}) + 1"
        query += f" UNION ALL SELECT {back_key} AS key{weight} {kept_edges}"
    # Equal keys are in order of their weights, so that sums do not depend on the order of sorting.
    for batch in database.stream(f"SELECT * FROM ({query}) ORDER BY ALL"):
        weights = batch["weight"].to_numpy() if has_weights else None
        yield batch["key"].to_numpy(), weights


def merge(batches: Iterable[Keys], column_count: int, dropped: Counter[str]) -> Iterator[Entries]:
    """The entries of a matrix, from batches of its keys, in order.

    Weights of the same key add up, then the larger of both directions is taken.

    Args:
        batches: the keys and the weights of edges.
        column_count: the number of columns of the matrix.
        dropped: counts the duplicates.
    """
    pending_keys = np.empty(0, np.int64)
    pending_weights: NDArray[np.float32] | None = None
    for batch_keys, batch_weights in batches:
        keys, weights = batch_keys, batch_weights
        if len(pending_keys):
            keys = np.concatenate([pending_keys, batch_keys])
            if pending_weights is not None and batch_weights is not None:
                weights = np.concatenate([pending_weights, batch_weights])

        # The last pair of nodes may go on in the next batch.
        pairs = keys >> 1
        stop = int(np.searchsorted(pairs, pairs[-1])) if len(keys) else 0
        pending_keys = keys[stop:].copy()
        pending_weights = None if weights is None else weights[stop:].copy()
        if stop:
            complete_weights = None if weights is None else weights[:stop]
            yield _merged(keys[:stop], complete_weights, column_count, dropped)
    if len(pending_keys):
        yield _merged(pending_keys, pending_weights, column_count, dropped)


def _merged(
    keys: NDArray[np.int64],
    weights: NDArray[np.float32] | None,
    column_count: int,
    dropped: Counter[str],
) -> Entries:
    """The entries of complete pairs."""
    key_starts = _first_of_each(keys)
    distinct_keys = keys[key_starts]
    forward_count = int(np.count_nonzero(keys & 1 == 0))
    dropped["duplicates"] += forward_count - int(np.count_nonzero(distinct_keys & 1 == 0))

    pairs = distinct_keys >> 1
    pair_starts = _first_of_each(pairs)
    rows, columns = np.divmod(pairs[pair_starts], column_count)
    if weights is None:
        return rows, columns, None
    sums = np.add.reduceat(weights.astype(np.float64), key_starts).astype(np.float32)
    return rows, columns, np.maximum.reduceat(sums, pair_starts)


def _first_of_each(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices at which ascending values ``[n]`` change, the first index included."""
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def write_entries(folder: Path, row_count: int, batches: Iterable[Entries]) -> int:
    """Write the files of a matrix, of entries in order; returns the number of entries.

    There is no file of weights where all are 1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entry_count = 0
    is_weighted = False
    with (
        ArrayWriter(folder / layout.STARTS, np.int64) as starts_file,
        ArrayWriter(folder / layout.NEIGHBOURS, np.int32) as neighbours_file,
        ArrayWriter(folder / layout.WEIGHTS, np.float32) as weights_file,
    ):
        starts_file.append(np.zeros(1))
        for rows, columns, values in batches:
            neighbours_file.append(columns)
            if values is not None:
                weights_file.append(values)
                is_weighted = is_weighted or bool((values != 1).any())
            # Rows that end within this batch: all before its last, which may go on.
            ended_rows = np.arange(starts_file.rows - 1, rows[-1])
            starts_file.append(entry_count + np.searchsorted(rows, ended_rows, side="right"))
            entry_count += len(rows)
        starts_file.append(np.full(row_count + 1 - starts_file.rows, entry_count))
    if not is_weighted:
        (folder / layout.WEIGHTS).unlink()
    return entry_count


def open_senders(folder: Path) -> Senders:
    """The matrix that `write_entries` wrote, mapped."""
    starts = np.load(folder / layout.STARTS, mmap_mode="r")
    neighbours = np.load(folder / layout.NEIGHBOURS, mmap_mode="r")
    weights = None
    if (folder / layout.WEIGHTS).exists():
        weights = np.load(folder / layout.WEIGHTS, mmap_mode="r")
    return Senders(starts, neighbours, weights)


# Ids, labels, splits, names and times


def write_nodes(database: Database, table: str, path: Path, read_nodes: ReadNodes) -> None:
    """Write nodes.parquet from a table of nodes, whose columns are in the order of its fields."""
    import pyarrow as pa
    from pyarrow import parquet

    label_type = pa.dictionary(pa.int32(), pa.string())
    fields = [pa.field("id", pa.int64() if read_nodes.ids_are_integers else pa.string())]
    fields += [pa.field(layout.LABEL + name, label_type) for name in read_nodes.label_names]
    fields += [pa.field(layout.SPLIT + name, pa.bool_()) for name in read_nodes.split_names]
    if read_nodes.has_names:
        fields.append(pa.field(layout.NAME, pa.string()))
    if read_nodes.has_times:
        fields.append(pa.field(layout.TIME, pa.int64()))
    schema = pa.schema(fields)

    columns = ", ".join(["id", *(f"l{number}" for number in range(len(fields) - 1))])
    query = f"SELECT {columns} FROM {table} WHERE node >= 0 ORDER BY node"
    with parquet.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for batch in database.stream(query):
            cells = [
                pa.array(column).cast(field.type)
                for column, field in zip(batch.columns, fields, strict=True)
            ]
            writer.write_table(pa.table(cells, schema=schema), row_group_size=ROWS_PER_GROUP)


# Features


def copy_features(
    path: Path, folder: Path, is_kept: NDArray[np.bool_], *, halved: bool
) -> list[str]:
    """Copy the features ``[n, F]`` of a file, all finite, for the rows of a mask ``[n]``.

    Returns the names of the features.
    """
    matrix = read_matrix(path)
    check_rows(path, matrix, len(is_kept))
    start = 0
    with FeatureWriter(folder, str(path), halved=halved) as writer:
        for rows in row_blocks(matrix):
            block = finite(path, dense(rows), start)
            stop = start + len(block)
            writer.append(block[is_kept[start:stop]])
            start = stop
    return matrix_names(matrix.shape[1])


class StructuralFeaturesOnDisk:
    """Features of nodes that have none, made of all edges, those of several types together."""

    def __init__(
        self,
        folders: Mapping[str, Path],
        split_names: Mapping[str, Sequence[str]],
        work: Path,
    ) -> None:
        """Take the types of a graph folder.

        Args:
            folders: the folder of each type, which has its nodes.parquet.
            split_names: the names of the splits of each type.
            work: a folder for files that go when the graph folder is complete.
        """
        self.folders = folders
        self.split_names = split_names
        self.work = work
        self.ids = TypedIds(
            {node_type: stored_ids(folder / layout.NODES) for node_type, folder in folders.items()}
        )
        self.node_counts = {node_type: len(ids) for node_type, ids in self.ids.ids.items()}

    def union(self, folder: Path, relations: Sequence[Ends]) -> MappedAdjacency:
        """The edges of all relations of a graph folder among all nodes, in both directions.

        They are written to work files.
        """
        mapped_relations: list[Relation] = []
        for ends in relations:
            to_target = open_senders(relation_folder(folder, ends, SIDES[0]))
            to_source_folder = relation_folder(folder, ends, SIDES[1])
            if to_source_folder.exists():
                adjacency = MappedAdjacency(to_target, True, open_senders(to_source_folder))
            else:
                adjacency = MappedAdjacency(to_target, False)
            mapped_relations.append(Relation(*ends, adjacency))

        blocks = union_rows(mapped_relations, self.node_counts)
        union_folder = self.work / "union"
        write_entries(union_folder, sum(self.node_counts.values()), _entries(blocks))
        return MappedAdjacency(open_senders(union_folder))

    def write(
        self,
        edges: MappedAdjacency,
        structural_features: StructuralFeatures,
        node_types: Sequence[str],
        *,
        halved: bool,
    ) -> dict[str, list[str]]:
        """Write the features of some types; returns their names by type."""
        if structural_features == "positions":
            # Positions are sums over hops: of a large graph they are kept in work files.
            features: Any = self._work_array("total", edges.n)
            current = self._work_array("current", edges.n)
            following = self._work_array("following", edges.n)
            fill_positions(features, current, following, edges, self.ids, self._seen())
        else:
            features = edges.degrees()
        for node_type in node_types:
            rows = self.ids.rows[node_type]
            with FeatureWriter(self.folders[node_type], "features", halved=halved) as writer:
                for start in range(rows.start, rows.stop, ROWS_PER_GROUP):
                    block = features[start : min(start + ROWS_PER_GROUP, rows.stop)]
                    if structural_features == "degrees":
                        block = degree_features(block)
                    writer.append(block)
        names = STRUCTURAL_FEATURE_NAMES[structural_features]
        return {node_type: list(names) for node_type in node_types}

    def _work_array(self, name: str, node_count: int) -> NDArray[np.float32]:
        """An array ``[N, POSITION_WIDTH]`` in a work file."""
        shape = (node_count, POSITION_WIDTH)
        return np.memmap(self.work / f"positions-{name}", np.float32, "w+", shape=shape)

    def _seen(self) -> NDArray[np.bool_] | None:
        """Which nodes training sees; None: all."""
        masks: list[NDArray[np.bool_]] = []
        for node_type, folder in self.folders.items():
            splits = StoredColumns(
                folder / layout.NODES, layout.SPLIT, tuple(self.split_names[node_type])
            )
            mask = splits.get("seen")
            if mask is None:
                mask = np.ones(self.node_counts[node_type], bool)
            masks.append(mask)
        seen = np.concatenate(masks)
        return None if seen.all() else seen


def _entries(blocks: Iterator[sparse.csr_array]) -> Iterator[Entries]:
    """The entries of a matrix in blocks of rows."""
    start = 0
    for block in blocks:
        if block.nnz:
            block.sort_indices()
            block_rows = np.arange(start, start + block.shape[0])
            yield np.repeat(block_rows, np.diff(block.indptr)), block.indices, block.data
        start += block.shape[0]
