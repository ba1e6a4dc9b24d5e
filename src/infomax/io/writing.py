"""Write a graph under any name that a graph can be read from."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.sparsity import dense
from infomax.errors import InputError, other_extension, shorten
from infomax.io import parquet, text
from infomax.io.atomic import make_folder, refuse_existing, replacing, writable
from infomax.io.building import without_features, without_structural_features
from infomax.io.column_names import GROUPS, NAME, TIME
from infomax.io.features import matrix_names
from infomax.io.graph_folder import write_folder
from infomax.io.npz import write_npz
from infomax.io.record import Record
from infomax.io.rows import (
    annotation_columns,
    edge_columns,
    flat_annotations,
    id_name,
    refuse_too_many,
    refuse_unwritable,
    relation_columns,
)
from infomax.io.sources import EXTENSIONS
from infomax.progress import Progress, followed, silent

NAMES = "a .npz, edges.csv,nodes.csv (or .tsv, .txt, .parquet), a folder for tables, or NAME.graph"
"""The names that a graph can be written under, in messages."""
CELLS_PER_BLOCK = 1 << 23
"""Features of a node table that are written at a time."""


def write_graph(graph: Record, path: str | Path, progress: Progress = silent) -> None:
    """Write a graph in the format that the name says; nothing appears before it is whole.

    A graph that would be read back as another one is refused.

    Args:
        graph: the graph.
        path: a file, two tables with a comma between them, or a folder.
        progress: is told how many nodes a table holds so far.
    """
    target = Path(path)
    name = str(path)
    suffix = text.extension(target)
    graph = graph.loaded()
    _refuse_format(graph, target, name, suffix)
    # Tables have no structural features: they are made again when the tables are read.
    if suffix not in (".npz", ".graph"):
        graph = without_structural_features(graph)
    if name.count(",") == 1:
        first, second = (Path(part.strip()) for part in name.split(","))
        _write_tables(graph, first, second, progress)
    elif graph.has_named_types and suffix in ("", *EXTENSIONS):
        table_suffix = suffix or ".csv"
        _write_new_folder(target, lambda work: _write_typed(graph, work, table_suffix, progress))
    elif suffix == "":
        _write_in_folder(graph, target, progress)
    elif suffix == ".npz":
        refuse_unwritable(graph, name, "npz")
        write_npz(graph, target)
    elif suffix == ".graph":
        refuse_unwritable(graph, name, "graph")
        _write_new_folder(target, lambda work: write_folder(graph, work))
    elif suffix in EXTENSIONS:
        remedy = f"Name both: {target},{target.with_name(f'nodes{suffix}')}."
        raise InputError(name, "an edge table and a node table", "one of them", remedy)
    else:
        raise InputError(name, NAMES, f"the extension {shorten(target.suffix)}")


def _refuse_format(graph: Record, target: Path, name: str, suffix: str) -> None:
    """Refuse a graph that the format cannot hold."""
    found = f"the extension {shorten(target.suffix)}"
    has_edge_features = any(relation.edge_features is not None for relation in graph.relations)
    if has_edge_features and suffix != ".npz":
        remedy = "Or keep the table of edges, and add its features when the graph is read."
        raise InputError(name, "an .npz, for a graph with features of edges", found, remedy)
    if graph.held_out is not None and suffix != ".npz":
        raise InputError(name, "an .npz, for a graph with edges held out", found)
    holds_types = suffix in ("", ".npz", ".graph", *EXTENSIONS) and "," not in name
    if graph.has_named_types and not holds_types:
        expected = (
            "a folder for tables (also NAME.parquet), an .npz or NAME.graph, "
            "for several types of nodes"
        )
        raise InputError(name, expected, found)


def _write_in_folder(graph: Record, folder: Path, progress: Progress) -> None:
    """Write edges.csv and nodes.csv into a folder, which is made if there is none."""
    files = (folder / "edges.csv", folder / "nodes.csv")
    for stem in ("edges", "nodes", "features"):
        for other_table in set(folder.glob(f"{stem}.*")) - set(files):
            expected = "a folder without other tables of a graph"
            raise InputError(str(folder), expected, other_table.name, "Choose another one.")
    # A folder that was made for this graph is removed again where the graph cannot be written.
    is_new = not folder.exists()
    refuse_unwritable(graph, str(folder), "text")
    make_folder(folder)
    try:
        _write_tables(graph, *files, progress)
    except BaseException:
        if is_new:
            folder.rmdir()
        raise


def how_to_read(graph: Record, path: str | Path) -> str:
    """The option that a file needs to be read as the same graph, or nothing."""
    is_table = Path(path).suffix.lower() not in (".npz", ".graph") or "," in str(path)
    if graph.directed and is_table:
        return " --directed"
    return ""


def _write_new_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Write a new folder, which appears when it is whole."""
    refuse_existing(target)
    # The folder is written beside its place, and renamed when it is whole.
    work = target.with_name(f".{target.name}-write")
    make_folder(work)
    with writable(target, "a place where a folder can be written"):
        try:
            write(work)
            work.replace(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _write_typed(graph: Record, folder: Path, suffix: str, progress: Progress) -> None:
    """Write tables ``nodes/TYPE.*`` and ``edges/TYPE.RELATION.TYPE.*``.

    Features without names become ``features/TYPE.npz`` or ``.npy``.
    """
    (folder / "nodes").mkdir()
    (folder / "edges").mkdir()
    for node_type, typed_graph in graph.by_type().items():
        feature_names = list(typed_graph.feature_names)
        if feature_names and feature_names == matrix_names(typed_graph.num_features):
            (folder / "features").mkdir(exist_ok=True)
            _write_matrix(typed_graph.features, folder / "features" / node_type)
            typed_graph = typed_graph.replace(**vars(without_features(typed_graph.nodes_in_view)))
        file_type = "parquet" if suffix == ".parquet" else "text"
        refuse_unwritable(typed_graph, str(folder), file_type)
        if file_type == "text":
            refuse_too_many(typed_graph, str(folder))
        _write_nodes(typed_graph, folder / "nodes" / f"{node_type}{suffix}", suffix, progress)
    for ends, columns in relation_columns(graph).items():
        path = folder / "edges" / f"{'.'.join(ends)}{suffix}"
        text.write_tables(path, suffix, iter([arrow_edges(columns)]))


def _write_matrix(features: Any, path: Path) -> None:
    """Write features ``[N, F]`` as ``PATH.npz`` where they are sparse, else as ``PATH.npy``."""
    if sparse.issparse(features):
        sparse.save_npz(path.with_name(f"{path.name}.npz"), features)
    else:
        np.save(path.with_name(f"{path.name}.npy"), features)


def _write_tables(graph: Record, edges: Path, nodes: Path, progress: Progress) -> None:
    """Write an edge table and a node table; neither appears before both are whole."""
    suffixes = {path: text.extension(path) for path in (edges, nodes)}
    for path, suffix in suffixes.items():
        if suffix not in EXTENSIONS:
            raise other_extension(path, EXTENSIONS)
    if edges == nodes:
        raise InputError(str(edges), "two files, for edges and for nodes", "one name twice")
    for path, suffix in suffixes.items():
        refuse_unwritable(graph, str(path), "parquet" if suffix == ".parquet" else "text")
    if suffixes[nodes] != ".parquet":
        refuse_too_many(graph, str(nodes))

    with replacing(edges) as edge_file, replacing(nodes) as node_file:
        edge_table = arrow_edges(edge_columns(graph))
        text.write_tables(edge_file, suffixes[edges], iter([edge_table]))
        _write_nodes(graph, node_file, suffixes[nodes], progress)


def _write_nodes(graph: Record, path: Path, suffix: str, progress: Progress) -> None:
    rows_per_block = max(1, CELLS_PER_BLOCK // max(1, graph.num_features))
    num_blocks = -(-graph.num_nodes // rows_per_block)
    tables = arrow_nodes(graph, rows_per_block, flat=suffix != ".parquet")
    text.write_tables(path, suffix, followed(tables, progress, "nodes", num_blocks, 1))


def arrow_edges(columns: dict[str, NDArray[Any]]) -> Any:
    """The edge table of these columns as a pyarrow table."""
    import pyarrow as pa

    # An empty column would not tell pyarrow its type.
    types = {"i": pa.int64(), "O": pa.string(), "f": pa.float32()}
    cells = {name: pa.array(column, types[column.dtype.kind]) for name, column in columns.items()}
    return pa.table(cells)


def arrow_nodes(graph: Record, rows_per_block: int, *, flat: bool = False) -> Iterator[Any]:
    """The node table as pyarrow tables of some rows.

    Args:
        graph: the graph.
        rows_per_block: rows of each table.
        flat: write features ``v[0]`` to ``v[W-1]`` as W columns, as text needs it, rather than as
            one column of lists.
    """
    import pyarrow as pa

    names = graph.feature_names
    annotations = flat_annotations(graph) if flat else annotation_columns(graph)
    taken_names = {id_name(graph), GROUPS, NAME, TIME, "", *names}
    if flat:
        # Then no column of lists is free to be made.
        taken_names |= {name.removesuffix("[0]") for name in names}
    for first in range(0, graph.num_nodes, rows_per_block):
        rows = slice(first, first + rows_per_block)
        columns = {id_name(graph): pa.array(graph.ids[rows])}
        block = dense(graph.features[rows])
        for name, start, stop in _column_ranges(names, taken_names):
            is_list = name != names[start]
            cells = block[:, start:stop] if is_list else block[:, start]
            columns[name] = parquet.arrow_column(cells)
        for name, column in annotations.items():
            columns[name] = parquet.arrow_column(column[rows])
        yield pa.table(columns)


def _column_ranges(names: Sequence[str], taken_names: set[str]) -> Iterator[tuple[str, int, int]]:
    """The columns of features: each name, its first feature, and the feature after its last.

    The features ``v[0]`` to ``v[W-1]`` are one column ``v``, unless this name is taken.
    """
    start = 0
    while start < len(names):
        list_name = names[start].removesuffix("[0]")
        if list_name in taken_names:
            list_name = names[start]
        stop = start + 1
        if list_name != names[start]:
            while stop < len(names) and names[stop] == f"{list_name}[{stop - start}]":
                stop += 1
        yield list_name, start, stop
        start = stop
