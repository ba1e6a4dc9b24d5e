"""The columns by which a map can be coloured: text for groups, numbers for a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import dense
from infomax.errors import InputError, shorten, suggest
from infomax.graphs.graph import Graph
from infomax.io.encoding.category import CategoryColumn
from infomax.io.encoding.column import FeatureColumn
from infomax.io.encoding.dates import DateColumn
from infomax.io.encoding.numbers import BooleanColumn, NumberColumn

Columns = Mapping[str, NDArray[Any]]
"""Name -> ``[N]``: text objects ("" = unknown), or numbers (NaN = unknown)."""


def check_color(graphs: Sequence[Graph], color: str | None) -> None:
    """Refuse a column that `node_columns` gives for none of the graphs, each of one type of nodes if several."""
    columns = ["type"] * (len(graphs) > 1)
    for graph in graphs:
        kept = {"split": graph.splits, "graph": graph.groups is not None}
        columns += [
            *graph.labels,
            "community",
            *(name for name, there in kept.items() if there),
            "degree",
        ]
        columns += [column.name for column in _readable(graph)]
    known = [*columns, *(name for graph in graphs for name in graph.feature_names)]
    if color is not None and color not in known:
        expected = f"one of {', '.join(dict.fromkeys(columns))}, or a feature"
        raise InputError("color", expected, shorten(color), suggest(color, known))


def node_columns(
    graph: Graph,
    clusters: NDArray[np.int64],
    feature: str | None = None,
    rows: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """The columns of a graph's nodes: labels, community, split, graph (of many), degree, and a feature if named.

    Of a table with columns that are no numbers, also what stood in them: categories, numbers and dates.

    Shapes:
        clusters: ``[N]``, the community of each node; it is named after its node of highest degree.
        rows: ``[n]``, to describe only these nodes; then clusters are ``[n]``.
    """
    some: Any = slice(None) if rows is None else rows
    degree = graph.degrees()[some]
    columns = {name: _label(column[some]) for name, column in graph.labels.items()}
    columns["community"] = _around(clusters, graph.called(some), degree)
    if graph.splits:
        parts = [np.where(mask[some], name, "") for name, mask in graph.splits.items()]
        columns["split"] = _text(
            ", ".join(filter(None, names)) for names in zip(*parts, strict=True)
        )
    if graph.groups is not None:
        columns["graph"] = _text(map(str, graph.groups[some].tolist()))
    columns["degree"] = degree
    single = [feature] if feature in graph.feature_names and feature not in columns else []
    tabled = [column for column in _readable(graph) if column.name not in columns]
    table: Any = graph.table[some] if single or tabled else None
    for column in tabled:
        first = graph.feature_names.index(column.feature_names[0])
        columns[column.name] = _cells(
            column, dense(table[:, first : first + len(column.feature_names)])
        )
    for name in single:
        columns.setdefault(name, dense(table[:, [graph.feature_names.index(name)]]).ravel())
    return columns


def _readable(graph: Graph) -> list[FeatureColumn]:
    """The columns of the node table whose cells are known from their features."""
    encoding = graph.encoding
    if encoding is None or encoding.raw:
        return []
    return [
        column
        for column in encoding.feature_columns
        if isinstance(column, CategoryColumn | BooleanColumn | NumberColumn | DateColumn)
    ]


def _cells(column: FeatureColumn, features: NDArray[Any]) -> NDArray[Any]:
    """What stood in a column ``[N]``, from its features ``[N, F]``; dates are years."""
    if isinstance(column, DateColumn):
        return column.years(features)
    cells = column.inverse_transform(features)
    if isinstance(column, NumberColumn):
        return cells.astype(np.float64)  # None becomes NaN
    words = {True: "yes", False: "no", None: ""}
    return np.array([words.get(cell, cell) for cell in cells.tolist()], dtype=object)


def _around(clusters: NDArray[np.int64], names: NDArray[Any], degree: NDArray[Any]) -> NDArray[Any]:
    """The name ``[N]`` of each node's community, such as ``around perl``."""
    by_degree = np.argsort(-degree, kind="stable")
    _, first, which = np.unique(clusters[by_degree], return_index=True, return_inverse=True)
    around = _text(f"around {hub}" for hub in names[by_degree[first]])
    communities = np.empty(len(names), dtype=object)
    communities[by_degree] = around[which]
    return communities


def _label(column: NDArray[Any]) -> NDArray[Any]:
    """A label column as text ``[N]``; for several labels ``[N, C]``, the number of labels per node."""
    if column.ndim == 2:
        return np.asarray(column.sum(axis=1, dtype=np.int64))
    if column.dtype.kind in "iub":
        return _text("" if code == -1 else str(code) for code in column.tolist())
    return _text("" if label is None else str(label) for label in column.tolist())


def _text(values: Any) -> NDArray[Any]:
    return np.array(list(values), dtype=object)
