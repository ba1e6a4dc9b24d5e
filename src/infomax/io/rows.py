"""The columns and rows of the tables of a graph; what a format cannot hold is refused before it is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.times import iso_times
from infomax.errors import InputError, shorten, warn
from infomax.io.column_names import check_column_names
from infomax.io.columns import GROUPS, NAME, SPLIT, TIME
from infomax.io.label_names import LABEL
from infomax.io.parquet import INDEX
from infomax.io.record import Record

_MANY_CELLS, _MOST_CELLS = 10_000_000, 2_000_000_000
"""Features that text holds badly: the first many are warned of; more than the second would be many gigabytes."""


def edge_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns of the edge table of a graph of one type, see `relation_columns`."""
    return next(iter(relation_columns(graph).values()))


def relation_columns(graph: Record) -> dict[tuple[str, str, str], dict[str, NDArray[Any]]]:
    """The columns ``[E]`` of the edge table of each relation: ids of both ends and, if edges have them, weights.

    Edges within types have directions where any has them.
    """
    found = {}
    for one in graph.relations:
        matrix = one.edges.matrix()
        links = sparse.coo_array(
            matrix if graph.directed or not one.within else sparse.triu(matrix)
        )
        ends = zip(("source", "target"), one.ends[::2], links.coords, strict=True)
        columns: dict[str, NDArray[Any]] = {
            word: graph.nodes[kind].ids[rows] for word, kind, rows in ends
        }
        found[one.ends] = columns | ({"weight": links.data} if (links.data != 1).any() else {})
    return found


def annotation_columns(graph: Record) -> dict[str, NDArray[Any]]:
    """The columns ``[N]`` or ``[N, C]`` of a node table beside ids and features; an unknown number is ""."""
    labels = {}
    for name, column in graph.labels.items():
        if column.dtype.kind in "iu" and column.ndim == 1 and (column < 0).any():
            column = np.array(
                [str(value) if value >= 0 else "" for value in column.tolist()], dtype=object
            )
        labels[LABEL + name] = column
    splits = {SPLIT + name: mask for name, mask in graph.splits.items()}
    others = {GROUPS: graph.groups, NAME: graph.node_names}
    others[TIME] = None if graph.own.times is None else iso_times(graph.own.times)
    return labels | splits | {name: column for name, column in others.items() if column is not None}


def flat_annotations(graph: Record) -> dict[str, NDArray[Any]]:
    """The same columns for formats without lists: a label ``[N, C]`` is C columns ``[N]``, and a split 0 and 1."""
    annotations: dict[str, NDArray[Any]] = {}
    for name, column in annotation_columns(graph).items():
        column = column.astype(np.int8) if column.dtype == bool else column
        several = column.ndim == 2
        annotations |= (
            {f"{name}[{at}]": column[:, at] for at in range(column.shape[1])}
            if several
            else {name: column}
        )
    return annotations


def id_name(graph: Record) -> str:
    """The name of the column of ids, which is read in any case: "id", or "ID" where a feature is called "id"."""
    free = [name for name in ("id", "ID", "Id", "iD") if name not in graph.feature_names]
    if not free:
        raise InputError(
            "graph",
            "a name for the column of ids",
            'features called "id", "ID", "Id" and "iD"',
            "Write an .npz.",
        )
    return free[0]


def refuse_unwritable(graph: Record, where: str, kind: str) -> None:
    """Refuse what would not be read back as it is; kind is npz, graph, parquet or text."""
    texts: dict[str, Iterable[str]] = {"names of labels and splits": [*graph.labels, *graph.splits]}
    if kind == "npz":
        _refuse(texts, "names without NUL characters, in UTF-8", "[\0\ud800-\udfff]")
        return
    columns = {"ids": graph.ids} | ({} if graph.node_names is None else {"names": graph.node_names})
    columns |= {f"label {shorten(name)}": column for name, column in graph.labels.items()}
    texts["feature names"] = graph.feature_names
    texts |= {name: column.tolist() for name, column in columns.items() if column.dtype == object}
    _refuse(texts, "characters that the file can hold", "[\ud800-\udfff]")
    if kind == "graph":
        return
    special = f"({LABEL}|{SPLIT}|{GROUPS}$|{NAME}$|{TIME}$)"
    _refuse(
        {"features": graph.feature_names},
        "names that are not those of labels, splits and names",
        f"^{special}",
    )
    others = annotation_columns(graph) if kind == "parquet" else flat_annotations(graph)
    names = [id_name(graph), *graph.feature_names, *others]
    if kind == "text":
        _refuse(
            {"columns": names}, "names without NUL characters and outer white space", r"\0|^\s|\s$"
        )
        _refuse({"ids": texts.get("ids", ())}, "ids that are not empty", "^$")
    else:  # frames may hold an index under such a name
        _refuse({"columns": names}, f"names that do not begin with {INDEX}", f"^{INDEX}")
    check_column_names(where, names)


def _refuse(texts: dict[str, Any], expected: str, wrong: str) -> None:
    """Refuse the first text in which a regular expression finds what is wrong."""
    pattern = re.compile(wrong)
    for where, words in texts.items():
        for word in words:
            if pattern.search(word):
                remedy = "Ignore it when you read the graph, or write an .npz."
                raise InputError(where, expected, shorten(repr(word)), remedy)


def refuse_too_many(graph: Record, where: str) -> None:
    """Refuse more features than text can hold in a file of some gigabytes; warn of many, which another format suits."""
    cells = graph.num_nodes * graph.num_features
    if cells > _MOST_CELLS:
        found = f"{graph.num_nodes:,} x {graph.num_features:,}"
        raise InputError(
            "features",
            f"at most {_MOST_CELLS:,} numbers in text",
            found,
            "Write an .npz or parquet.",
        )
    if cells > _MANY_CELLS:
        message = f"{where}: {cells:,} numbers as text take long to write and to read; an .npz holds them as they are."
        warn(message)
