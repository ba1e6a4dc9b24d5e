"""The columns and rows of the tables of a graph.

What a format cannot hold is refused before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.times import iso_times
from infomax.errors import InputError, shorten, warn
from infomax.io.column_names import GROUPS, LABEL, NAME, SPLIT, TIME, check_column_names
from infomax.io.parquet import INDEX
from infomax.io.record import Record

MANY_CELLS = 10_000_000
"""Features of which a warning says that text holds them badly."""
MOST_CELLS = 2_000_000_000
"""Features that are not written as text: they would be many gigabytes."""


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
    for text in texts:
        if pattern.search(text):
            remedy = "Ignore it when you read the graph, or write an .npz."
            raise InputError(where, expected, shorten(repr(text)), remedy)


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
