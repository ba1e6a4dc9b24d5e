"""Write a graph under any name that a graph can be read from.

What a format cannot hold is refused before anything is written.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.sparsity import dense
from infomax.arrays.times import iso_times
from infomax.errors import InputError, other_extension, shorten, warn
from infomax.io import parquet, text
from infomax.io.atomic import make_folder, refuse_existing, replacing, writable
from infomax.io.building import without_features, without_structural_features
from infomax.io.column_names import GROUPS, LABEL, NAME, SPLIT, TIME, check_column_names
from infomax.io.features import matrix_names
from infomax.io.graph_folder import write_folder
from infomax.io.npz import write_npz
from infomax.io.parquet import INDEX
from infomax.io.record import Record
from infomax.io.sources import EXTENSIONS
from infomax.progress import Progress, followed, silent

NAMES = "a .npz, edges.csv,nodes.csv (or .tsv, .txt, .parquet), a folder for tables, or NAME.graph"
"""The names that a graph can be written under, in messages."""
CELLS_PER_BLOCK = 1 << 23
"""Features of a node table that are written at a time."""
MANY_CELLS = 10_000_000
"""Features of which a warning says that text holds them badly."""
MOST_CELLS = 2_000_000_000
"""Features that are not written as text: they would be many gigabytes."""


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


# The columns of tables


def edge_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns of the edge table of a graph of one type, see `relation_columns`."""
    return next(iter(relation_columns(graph).values()))


def relation_columns(graph: Record) -> dict[tuple[str, str, str], dict[str, NDArray[Any]]]:
    """The columns ``[E]`` of the edge table of each relation.

    They are the ids of both ends and, if edges have them, weights. Edges within a type have
    directions if those of any type have them, since a folder of tables is read as one or the other.
    """
    columns_of_relation = {}
    for relation in graph.relations:
        matrix = relation.edges.matrix()
        if relation.within_one_type and not graph.directed:
            matrix = sparse.triu(matrix)
        entries = sparse.coo_array(matrix)
        source_rows, target_rows = entries.coords
        columns: dict[str, NDArray[Any]] = {
            "source": graph.nodes[relation.source].ids[source_rows],
            "target": graph.nodes[relation.target].ids[target_rows],
        }
        if (entries.data != 1).any():
            columns["weight"] = entries.data
        columns_of_relation[relation.ends] = columns
    return columns_of_relation


def annotation_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns ``[N]`` or ``[N, C]`` of a node table besides ids and features.

    An unknown number is "".
    """
    columns: dict[str, NDArray[Any]] = {}
    for name, labels in graph.labels.items():
        has_unknown = labels.dtype.kind in "iu" and labels.ndim == 1 and bool((labels < 0).any())
        columns[LABEL + name] = _text_of_known(labels) if has_unknown else labels
    for name, mask in graph.splits.items():
        columns[SPLIT + name] = mask
    if graph.groups is not None:
        columns[GROUPS] = graph.groups
    if graph.node_names is not None:
        columns[NAME] = graph.node_names
    if graph.nodes_in_view.times is not None:
        columns[TIME] = iso_times(graph.nodes_in_view.times)
    return columns


def _text_of_known(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers ``[N]`` as text, "" where they are negative: unknown."""
    cells = [str(number) if number >= 0 else "" for number in numbers.tolist()]
    return np.array(cells, dtype=object)


def flat_annotations(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns of `annotation_columns` for formats without lists.

    A label ``[N, C]`` is C columns ``[N]``, and a split is 0 and 1.
    """
    annotations: dict[str, NDArray[Any]] = {}
    for name, values in annotation_columns(graph).items():
        if values.dtype == bool:
            values = values.astype(np.int8)
        if values.ndim == 1:
            annotations[name] = values
            continue
        for index in range(values.shape[1]):
            annotations[f"{name}[{index}]"] = values[:, index]
    return annotations


def id_name(graph: Record) -> str:
    """The name of the column of ids: "id", or "ID" where a feature is called "id".

    It is read in any case.
    """
    for name in ("id", "ID", "Id", "iD"):
        if name not in graph.feature_names:
            return name
    expected = "a name for the column of ids"
    found = 'features called "id", "ID", "Id" and "iD"'
    raise InputError("graph", expected, found, "Write an .npz.")


def refuse_unwritable(graph: Record, where: str, file_type: str) -> None:
    """Refuse a graph that would not be read back as it is.

    ``file_type`` is npz, graph, parquet or text.
    """
    names = [*graph.labels, *graph.splits]
    if file_type == "npz":
        expected = "names without NUL characters, in UTF-8"
        _refuse("names of labels and splits", names, expected, "[\0\ud800-\udfff]")
        return

    columns = {"ids": graph.ids}
    if graph.node_names is not None:
        columns["names"] = graph.node_names
    columns |= {f"label {shorten(name)}": column for name, column in graph.labels.items()}
    texts: dict[str, Iterable[str]] = {
        "names of labels and splits": names,
        "feature names": graph.feature_names,
    }
    texts |= {name: column.tolist() for name, column in columns.items() if column.dtype == object}
    for location, cells in texts.items():
        _refuse(location, cells, "characters that the file can hold", "[\ud800-\udfff]")
    if file_type == "graph":
        return

    special = f"^({LABEL}|{SPLIT}|{GROUPS}$|{NAME}$|{TIME}$)"
    expected = "names that are not those of labels, splits and names"
    _refuse("features", graph.feature_names, expected, special)

    annotations = annotation_columns(graph) if file_type == "parquet" else flat_annotations(graph)
    column_names = [id_name(graph), *graph.feature_names, *annotations]
    if file_type == "text":
        expected = "names without NUL characters and outer white space"
        _refuse("columns", column_names, expected, r"\0|^\s|\s$")
        _refuse("ids", texts.get("ids", ()), "ids that are not empty", "^$")
    else:
        # Frames may hold an index under such a name.
        _refuse("columns", column_names, f"names that do not begin with {INDEX}", f"^{INDEX}")
    check_column_names(where, column_names)


def _refuse(where: str, texts: Iterable[str], expected: str, wrong: str) -> None:
    """Refuse the first text in which a regular expression finds what is wrong."""
    pattern = re.compile(wrong)
    for name in texts:
        if pattern.search(name):
            remedy = "Ignore it when you read the graph, or write an .npz."
            raise InputError(where, expected, shorten(repr(name)), remedy)


def refuse_too_many(graph: Record, where: str) -> None:
    """Refuse more features than text can hold in a file of some gigabytes.

    Of many features, which suit another format, a warning says so.
    """
    cells = graph.num_nodes * graph.num_features
    if cells > MOST_CELLS:
        found = f"{graph.num_nodes:,} x {graph.num_features:,}"
        expected = f"at most {MOST_CELLS:,} numbers in text"
        raise InputError("features", expected, found, "Write an .npz or parquet.")
    if cells > MANY_CELLS:
        slow = f"{cells:,} numbers as text take long to write and to read"
        warn(f"{where}: {slow}; an .npz holds them as they are.")
