"""Write a graph under any name that a graph can be read from."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TextIO, TypeAlias
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.degrees import DEGREE_NAMES, degree_features
from infomax.arrays.sparsity import dense
from infomax.errors import InputError, shorten
from infomax.graphs.graph import Graph
from infomax.graphs.interchange import GROUPS, LABEL, SPLIT
from infomax.io import folder as graph_folder
from infomax.io import parquet, text
from infomax.io.atomic import make_folder, replacing, reporting
from infomax.io.npz import write_npz
from infomax.io.vectors import quoted

NAMES = "a .npz, a .graphml, edges.csv,nodes.csv (or .tsv, .txt, .parquet), a folder for tables, or NAME.graph"
_TABLES = (*text.DELIMITERS, ".parquet")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLOCK_CELLS = 1 << 23
_MOST_CELLS = 2_000_000_000
"""Features that text may have to hold: more would be a file of many gigabytes."""


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph in the format that the name tells; nothing appears before it is whole."""
    place, name, suffix = Path(path), str(path), text.extension(Path(path))
    graph = graph.loaded()
    if graph.held_out is not None and suffix != ".npz":
        raise InputError(name, "an .npz, for a graph with edges held out", f"the extension {shorten(place.suffix)}")
    if name.count(",") == 1:
        first, second = (Path(part.strip()) for part in name.split(","))
        _write_tables(graph, first, second)
    elif suffix in _WRITERS:
        _WRITERS[suffix](graph, place)
    elif suffix in _TABLES:
        remedy = f"Name both: {place},{place.with_name(f'nodes{suffix}')}."
        raise InputError(name, "an edge table and a node table", "one of them", remedy)
    else:
        raise InputError(name, NAMES, f"the extension {shorten(place.suffix)}")


def _write_in_folder(graph: Graph, folder: Path) -> None:
    """Write edges.csv and nodes.csv into a folder, which is made if there is none."""
    files = (folder / "edges.csv", folder / "nodes.csv")
    for stem in ("edges", "nodes", "features"):
        for other in set(folder.glob(f"{stem}.*")) - set(files):
            raise InputError(str(folder), "a folder without other tables of a graph", other.name, "Choose another one.")
    new = not folder.exists()
    make_folder(folder)
    try:
        _write_tables(graph, *files)
    except BaseException:
        if new:
            folder.rmdir()
        raise


def how_to_read(graph: Graph, path: str | Path) -> str:
    """The option that a file needs to be read as the same graph, or nothing."""
    tells = Path(path).suffix.lower() in (".npz", ".graph") and "," not in str(path)
    return " --directed" if graph.directed and not tells else ""


def _write_folder(graph: Graph, place: Path) -> None:
    if place.exists():
        raise InputError(str(place), "a place for a new folder", "one that exists", "Remove it, or choose another.")
    work = place.with_name(f".{place.name}-write")
    make_folder(work)
    with reporting(place, "a place where a folder can be written"):
        try:
            graph_folder.finish(work, graph_folder.write_arrays(graph, work))
            work.replace(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _write_tables(graph: Graph, edges: Path, nodes: Path) -> None:
    kinds = [text.extension(path) for path in (edges, nodes)]
    for path, kind in zip((edges, nodes), kinds, strict=True):
        if kind not in _TABLES:
            raise InputError(str(path), f"one of {', '.join(_TABLES)}", f"the extension {shorten(path.suffix)}")
    if edges == nodes:
        raise InputError(str(edges), "two files, for edges and for nodes", "one name twice")
    # Both are moved to their places only when both are whole.
    with replacing(edges) as first, replacing(nodes) as second:
        _parquet_edges(graph, first) if kinds[0] == ".parquet" else _write_edges(graph, first, kinds[0])
        _parquet_nodes(graph, second) if kinds[1] == ".parquet" else _write_nodes(graph, second, kinds[1])


def edge_columns(graph: Graph) -> dict[str, NDArray[Any]]:
    """The columns ``[E]`` of an edge table: ids of both ends and, where edges have weights, the weight."""
    links = sparse.coo_array(graph.adjacency if graph.directed else sparse.triu(graph.adjacency))
    columns = {"source": graph.ids[links.coords[0]], "target": graph.ids[links.coords[1]]}
    return columns | ({"weight": links.data} if graph.weighted else {})


def mark_columns(graph: Graph) -> dict[str, NDArray[Any]]:
    """The columns ``[N]`` or ``[N, C]`` of a node table beside ids and features; an unknown number is ""."""
    labels = {}
    for name, column in graph.labels.items():
        if column.dtype.kind in "iu" and column.ndim == 1 and (column < 0).any():
            column = np.array([str(value) if value >= 0 else "" for value in column.tolist()], dtype=object)
        labels[LABEL + name] = column
    splits = {SPLIT + name: mask for name, mask in graph.splits.items()}
    return labels | splits | ({} if graph.groups is None else {GROUPS: graph.groups})


def id_name(graph: Graph) -> str:
    """The name of the column of ids, which is read in any case: "id", or "ID" where a feature is called "id"."""
    return next(name for name in ("id", "ID", "Id", "iD") if name not in graph.feature_names)


def feature_names(graph: Graph) -> tuple[str, ...]:
    """The names of the features to write; those of degrees are counted anew when the graph is read."""
    for name in graph.feature_names:
        if name == GROUPS or name.startswith((LABEL, SPLIT)):
            expected = f'features that are not called "{LABEL}...", "{SPLIT}..." or "{GROUPS}"'
            raise InputError("graph", expected, shorten(name), "Ignore it when you read the graph, or write an .npz.")
    if graph.feature_names != DEGREE_NAMES:
        return graph.feature_names
    counted, _ = degree_features(graph.degrees())
    return () if (sparse.csr_array(graph.features) != counted).nnz == 0 else graph.feature_names


Row: TypeAlias = tuple[Any, list[str], list[Any]]
"""An id, the features as text, and labels, splits and groups."""


def _node_rows(graph: Graph) -> tuple[list[str], Iterator[Row]]:
    """The names of labels, splits and groups, and the rows of a node table; a label ``[N, C]`` is C columns."""
    _refuse_too_many(graph)
    marks: dict[str, list[Any]] = {}
    for name, column in mark_columns(graph).items():
        if column.ndim == 2:
            marks |= {f"{name}[{at}]": column[:, at].tolist() for at in range(column.shape[1])}
        else:
            marks[name] = (column.astype(np.int8) if column.dtype == bool else column).tolist()

    def rows() -> Iterator[Row]:
        cells = _feature_rows(graph.features) if feature_names(graph) else repeat([], graph.num_nodes)
        for row, (identifier, words) in enumerate(zip(graph.ids.tolist(), cells, strict=True)):
            yield identifier, words, [column[row] for column in marks.values()]

    return list(marks), rows()


def _feature_rows(features: Any) -> Iterator[list[str]]:
    """The features of every node as text, each number with the fewest digits that read back as the same float32."""
    n, width = features.shape
    for row in range(n):
        if isinstance(features, np.ndarray):
            yield features[row].astype(str).tolist()
            continue
        words = ["0"] * width
        entries = slice(features.indptr[row], features.indptr[row + 1])
        for at, word in zip(
            features.indices[entries].tolist(), features.data[entries].astype(str).tolist(), strict=True
        ):
            words[at] = word.removesuffix(".0")
        yield words


def _refuse_too_many(graph: Graph) -> None:
    if graph.num_nodes * graph.num_features > _MOST_CELLS:
        found = f"{graph.num_nodes:,} x {graph.num_features:,}"
        raise InputError("features", f"at most {_MOST_CELLS:,} numbers in text", found, "Write an .npz or parquet.")


def _write_edges(graph: Graph, path: Path, kind: str) -> None:
    columns, delimiter = edge_columns(graph), text.DELIMITERS[kind]
    with _opened(path, packed=kind.endswith(".gz")) as file:
        file.write(delimiter.join(columns) + "\n")
        for cells in zip(*(column.astype(str).tolist() for column in columns.values()), strict=True):
            file.write(delimiter.join(quoted(cell, delimiter) for cell in cells) + "\n")


def _write_nodes(graph: Graph, path: Path, kind: str) -> None:
    delimiter = text.DELIMITERS[kind]
    marks, rows = _node_rows(graph)
    with _opened(path, packed=kind.endswith(".gz")) as file:
        file.write(
            delimiter.join(quoted(name, delimiter) for name in (id_name(graph), *feature_names(graph), *marks)) + "\n"
        )
        for identifier, words, cells in rows:
            first, *last = (quoted(str(cell), delimiter) for cell in (identifier, *cells))
            file.write(delimiter.join([first, *words, *last]) + "\n")


@contextmanager
def _opened(path: Path, *, packed: bool = False) -> Iterator[TextIO]:
    open_file: Any = gzip.open if packed else open
    with open_file(path, "wt", encoding="utf-8", newline="") as file:
        yield file


def arrow_edges(graph: Graph) -> Any:
    """The edge table as a pyarrow table."""
    import pyarrow as pa

    return pa.table({name: pa.array(column) for name, column in edge_columns(graph).items()})


def arrow_nodes(graph: Graph, step: int) -> Iterator[Any]:
    """The node table as pyarrow tables of some rows; features ``v[0]`` to ``v[W-1]`` are one column of lists."""
    import pyarrow as pa

    names, marks = feature_names(graph), mark_columns(graph)
    for first in range(0, graph.num_nodes, step):
        rows = slice(first, first + step)
        columns = {id_name(graph): pa.array(graph.ids[rows])}
        if names:
            block = dense(graph.features[rows])
            for name, start, stop in _owners(names):
                columns[name] = _arrow(block[:, start:stop] if name != names[start] else block[:, start])
        yield pa.table(columns | {name: _arrow(column[rows]) for name, column in marks.items()})


def _arrow(column: NDArray[Any]) -> Any:
    import pyarrow as pa

    if column.ndim == 1:
        return pa.array(column)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(column).ravel()), column.shape[1])


def _owners(names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Columns of features with their first and last position: ``v`` for the names ``v[0]`` to ``v[W-1]``."""
    at = 0
    while at < len(names):
        owner = names[at].removesuffix("[0]")
        stop = at + 1
        while owner != names[at] and stop < len(names) and names[stop] == f"{owner}[{stop - at}]":
            stop += 1
        yield owner, at, stop
        at = stop


def _parquet_edges(graph: Graph, path: Path) -> None:
    _, writer = parquet.need_pyarrow(path)
    writer.write_table(arrow_edges(graph), path)


def _parquet_nodes(graph: Graph, path: Path) -> None:
    _, writer = parquet.need_pyarrow(path)
    blocks = arrow_nodes(graph, max(1, _BLOCK_CELLS // graph.num_features))
    first = next(blocks)
    with writer.ParquetWriter(path, first.schema) as file:
        for block in chain([first], blocks):
            file.write_table(block)


def _write_graphml(graph: Graph, path: Path) -> None:
    """Write GraphML, one element at a time: features are attributes of type double, splits are booleans."""
    features, edges = feature_names(graph), edge_columns(graph)
    marks, rows = _node_rows(graph)
    types = ["double"] * len(features) + ["boolean" if name.startswith(SPLIT) else "string" for name in marks]
    data = [f'<data key="d{at}">' for at in range(len(types))]
    with replacing(path) as temporary, _opened(temporary) as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for at, (name, kind) in enumerate(zip((*features, *marks), types, strict=True)):
            file.write(f'<key id="d{at}" for="node" attr.name={_attribute(name)} attr.type="{kind}"/>\n')
        if "weight" in edges:
            file.write('<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n')
        file.write(f'<graph edgedefault="{"directed" if graph.directed else "undirected"}">\n')
        for identifier, words, cells in rows:
            content = [*words, *(escape(_xml(str(cell))) for cell in cells)]
            inside = "".join(f"{key}{word}</data>" for key, word in zip(data, content, strict=True))
            file.write(f"<node id={_attribute(str(identifier))}>{inside}</node>\n")
        for source, target, *weight in zip(*(column.tolist() for column in edges.values()), strict=True):
            inside = "".join(f'<data key="weight">{value}</data>' for value in weight)
            ends = f"source={_attribute(str(source))} target={_attribute(str(target))}"
            file.write(f"<edge {ends}>{inside}</edge>\n")
        file.write("</graph>\n</graphml>\n")


def _attribute(word: str) -> str:
    return quoteattr(_xml(word), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _xml(word: str) -> str:
    """The text, refused where XML cannot hold it."""
    if found := _NOT_XML.search(word):
        raise InputError(shorten(word), "characters that XML can hold", repr(found[0]), "Write an .npz or parquet.")
    return word


_WRITERS = {".npz": write_npz, ".graphml": _write_graphml, ".graph": _write_folder, "": _write_in_folder}
