"""The columns and rows of the tables of a graph; what a format cannot hold is refused before it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.made import made, make, usual
from infomax.arrays.sparsity import dense
from infomax.arrays.times import iso_times
from infomax.errors import InputError, shorten, warn
from infomax.io.blocks import check_column_names
from infomax.io.columns import GROUPS, LABEL, NAME, SPLIT, TIME
from infomax.io.parquet import INDEX
from infomax.io.record import Record
from infomax.io.unite import without_features

_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MANY_CELLS, _MOST_CELLS = 10_000_000, 2_000_000_000
"""Features that text holds badly: the first many are warned of; more than the second would be many gigabytes."""
_ELSE = "Write an .npz."


def edge_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns ``[E]`` of an edge table: ids of both ends and, where edges have weights, the weight."""
    return _columns(graph.adjacency if graph.directed else sparse.triu(graph.adjacency), graph.ids, graph.ids)


def relation_columns(graph: Record) -> dict[tuple[str, str, str], dict[str, NDArray[Any]]]:
    """The columns of the edge table of each relation; with directions within types where any has them."""
    found = {}
    for one in graph.relations:
        matrix = one.edges.matrix()
        matrix = matrix if graph.directed or not one.within else sparse.triu(matrix)
        found[one.ends] = _columns(matrix, graph.nodes[one.source].ids, graph.nodes[one.target].ids)
    return found


def _columns(matrix: Any, sources: NDArray[Any], targets: NDArray[Any]) -> dict[str, NDArray[Any]]:
    links = sparse.coo_array(matrix)
    columns = {"source": sources[links.coords[0]], "target": targets[links.coords[1]]}
    return columns | ({"weight": links.data} if (links.data != 1).any() else {})


def annotation_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns ``[N]`` or ``[N, C]`` of a node table beside ids and features; an unknown number is ""."""
    labels = {}
    for name, column in graph.labels.items():
        if column.dtype.kind in "iu" and column.ndim == 1 and (column < 0).any():
            column = np.array([str(value) if value >= 0 else "" for value in column.tolist()], dtype=object)
        labels[LABEL + name] = column
    splits = {SPLIT + name: mask for name, mask in graph.splits.items()}
    others = {GROUPS: graph.groups, NAME: graph.node_names}
    others[TIME] = None if graph.own.times is None else iso_times(graph.own.times)
    return labels | splits | {name: column for name, column in others.items() if column is not None}


def flat_annotations(graph: Record) -> dict[str, NDArray[Any]]:
    """The same columns for formats without lists: a label ``[N, C]`` is C columns ``[N]``."""
    annotations: dict[str, NDArray[Any]] = {}
    for name, column in annotation_columns(graph).items():
        several = column.ndim == 2
        annotations |= {f"{name}[{at}]": column[:, at] for at in range(column.shape[1])} if several else {name: column}
    return annotations


def id_name(graph: Record) -> str:
    """The name of the column of ids, which is read in any case: "id", or "ID" where a feature is called "id"."""
    free = [name for name in ("id", "ID", "Id", "iD") if name not in graph.feature_names]
    if not free:
        raise InputError("graph", "a name for the column of ids", 'features called "id", "ID", "Id" and "iD"', _ELSE)
    return free[0]


def without_usual(graph: Record) -> Record:
    """The graph as a table holds it: without features, where they are those that are made when the table is read."""
    kind = usual(graph.groups is not None)
    if made(graph.feature_names) != kind:
        return graph
    anew = make(kind, graph.edges, graph.ids, graph.splits.get("seen"))
    return without_features(graph) if np.allclose(dense(graph.features), dense(anew), atol=1e-5) else graph


Row: TypeAlias = tuple[str, Iterable[int], list[str], list[str]]
"""An id; the positions and the text of features, of sparse ones only of those that are not zero; the annotations."""


def node_rows(graph: Record) -> Iterator[Row]:
    """The rows of a node table, as text."""
    columns = flat_annotations(graph).values()
    annotations = [(column.astype(np.int8) if column.dtype == bool else column).tolist() for column in columns]
    cells = zip(graph.ids.tolist(), _feature_rows(graph.features), strict=True)
    for row, (identifier, (at, words)) in enumerate(cells):
        yield str(identifier), at, words, [str(column[row]) for column in annotations]


def _feature_rows(features: Any) -> Iterator[tuple[Iterable[int], list[str]]]:
    """The features of every node as text, each number with the fewest digits that read back as the same float32."""
    for row in range(features.shape[0]):
        if isinstance(features, np.ndarray):
            yield range(features.shape[1]), features[row].astype(str).tolist()
        else:
            entries = slice(features.indptr[row], features.indptr[row + 1])
            words = features.data[entries].astype(str).tolist()
            yield features.indices[entries].tolist(), [word.removesuffix(".0") for word in words]


def refuse_unwritable(graph: Record, where: str, kind: str) -> None:
    """Refuse what would not be read back as it is; kind is npz, graph, graphml, parquet or text."""
    texts: dict[str, Iterable[str]] = {"names of labels and splits": [*graph.labels, *graph.splits]}
    if kind == "npz":
        _refuse(texts, "names without NUL characters, in UTF-8", re.compile("[\0\ud800-\udfff]").search)
        return
    texts["feature names"] = graph.feature_names
    columns = {"ids": graph.ids} | ({} if graph.node_names is None else {"names": graph.node_names})
    columns |= {f"label {shorten(name)}": column for name, column in graph.labels.items()}
    texts |= {name: column.tolist() for name, column in columns.items() if column.dtype == object}
    if kind == "graphml":
        _refuse(texts, "characters that XML can hold", _NOT_XML.search)
    else:
        _refuse(texts, "characters that UTF-8 can hold", _NOT_UTF8.search)
    if kind == "graph":
        return
    for name in graph.feature_names:
        if name in (GROUPS, NAME, TIME) or name.startswith((LABEL, SPLIT)):
            expected = f'features that are not called "{LABEL}...", "{SPLIT}...", "{GROUPS}", "{NAME}" or "{TIME}"'
            raise InputError("graph", expected, shorten(name), "Ignore it when you read the graph, or write an .npz.")
    others = annotation_columns(graph) if kind == "parquet" else flat_annotations(graph)
    names = [id_name(graph), *graph.feature_names, *others]
    named = {"names of columns": names}
    if kind == "text":
        expected = "names without NUL characters and outer white space"
        _refuse(named, expected, lambda name: "\0" in name or name.strip() != name)
        _refuse({"ids": texts.get("ids", ())}, "ids that are not empty", lambda word: not word)
    else:  # frames, by which GraphML is read as well, may hold an index under such a name
        _refuse(named, f"names that do not begin with {INDEX}", lambda name: name.startswith(INDEX))
    check_column_names(where, names)


def _refuse(texts: dict[str, Any], expected: str, wrong: Callable[[str], Any]) -> None:
    for where, words in texts.items():
        for word in words:
            if wrong(word):
                raise InputError(where, expected, shorten(repr(word)), _ELSE)


def refuse_too_many(graph: Record, where: str, kind: str) -> None:
    """Refuse more features than text can hold in a file of some gigabytes; warn of many, which another format suits."""
    sparse_cells = kind == "graphml" and sparse.issparse(graph.features)
    cells = graph.features.nnz if sparse_cells else graph.num_nodes * graph.num_features
    if cells > _MOST_CELLS:
        found = f"{graph.num_nodes:,} x {graph.num_features:,}"
        raise InputError("features", f"at most {_MOST_CELLS:,} numbers in text", found, "Write an .npz or parquet.")
    if cells > _MANY_CELLS:
        message = f"{where}: {cells:,} numbers as text take long to write and to read; an .npz holds them as they are."
        warn(message)
