"""The columns by which a map can be coloured: text for groups, numbers for a scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

ColumnsByName = Mapping[str, NDArray[Any]]
"""Name -> ``[N]``: text objects ("" = unknown), or numbers (NaN = unknown)."""
TEXT_OF_CELL = {True: "yes", False: "no", None: ""}
"""What stands for a cell that is no text."""


def check_color(graphs: Sequence[Graph], color: str | None) -> None:
    """Refuse a column that `node_columns` gives for none of the graphs.

    Several graphs are each of one type of nodes.
    """
    if color is None:
        return
    column_names: list[str] = []
    if len(graphs) > 1:
        column_names.append("type")
    for graph in graphs:
        column_names += [*graph.labels, "community"]
        if graph.splits:
            column_names.append("split")
        if graph.groups is not None:
            column_names.append("graph")
        column_names.append("degree")
        column_names += [column.name for column in _decodable_columns(graph)]

    feature_names = [name for graph in graphs for name in graph.feature_names]
    choices = [*column_names, *feature_names]
    if color not in choices:
        expected = f"one of {', '.join(dict.fromkeys(column_names))}, or a feature"
        raise InputError("color", expected, shorten(color), suggest(color, choices))


def node_columns(
    graph: Graph,
    clusters: NDArray[np.int64],
    feature: str | None = None,
    rows: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """The columns of a graph's nodes by which they can be coloured.

    They are labels, community, split, graph (of many), degree, and a feature if one is named. Of a
    table with columns that are no numbers, also its cells: categories, numbers and dates.

    Args:
        graph: the graph.
        clusters: ``[N]``, the community of each node; it is named after its node of highest degree.
        feature: the feature.
        rows: ``[n]``, to describe only these nodes; then clusters are ``[n]``.
    """
    selected: Any = slice(None) if rows is None else rows
    degree = graph.degrees()[selected]
    columns = {name: _label_column(column[selected]) for name, column in graph.labels.items()}
    columns["community"] = _community_names(clusters, graph.display_names(selected), degree)
    if graph.splits:
        split_names = [np.where(mask[selected], name, "") for name, mask in graph.splits.items()]
        columns["split"] = _text_objects(
            ", ".join(filter(None, names)) for names in zip(*split_names, strict=True)
        )
    if graph.groups is not None:
        columns["graph"] = _text_objects(map(str, graph.groups[selected].tolist()))
    columns["degree"] = degree

    # Rows of a graph folder are read from disk only where cells or a feature are asked for.
    if feature in columns or feature not in graph.feature_names:
        feature = None
    table_columns = [column for column in _decodable_columns(graph) if column.name not in columns]
    if feature is None and not table_columns:
        return columns
    table: Any = graph.table[selected]
    for column in table_columns:
        first = graph.feature_names.index(column.feature_names[0])
        features = dense(table[:, first : first + len(column.feature_names)])
        columns[column.name] = _cells(column, features)
    if feature is not None and feature not in columns:
        columns[feature] = dense(table[:, [graph.feature_names.index(feature)]]).ravel()
    return columns


def _decodable_columns(graph: Graph) -> list[FeatureColumn]:
    """The columns of the node table whose cells are known from their features."""
    encoding = graph.encoding
    if encoding is None or encoding.raw:
        return []
    decodable = CategoryColumn | BooleanColumn | NumberColumn | DateColumn
    return [column for column in encoding.feature_columns if isinstance(column, decodable)]


def _cells(column: FeatureColumn, features: NDArray[Any]) -> NDArray[Any]:
    """The cells ``[N]`` of a column, from its features ``[N, F]``; dates are years."""
    if isinstance(column, DateColumn):
        return column.years(features)
    cells = column.inverse_transform(features)
    if isinstance(column, NumberColumn):
        return cells.astype(np.float64)  # None becomes NaN
    return _text_objects(TEXT_OF_CELL.get(cell, cell) for cell in cells.tolist())


def _community_names(
    clusters: NDArray[np.int64], names: NDArray[Any], degree: NDArray[Any]
) -> NDArray[Any]:
    """The name ``[N]`` of each node's community, such as ``around perl``."""
    by_degree = np.argsort(-degree, kind="stable")
    # The first node of a cluster in this order has its highest degree.
    _, hubs, cluster_numbers = np.unique(
        clusters[by_degree], return_index=True, return_inverse=True
    )
    cluster_names = _text_objects(f"around {hub}" for hub in names[by_degree[hubs]])
    communities = np.empty(len(names), dtype=object)
    communities[by_degree] = cluster_names[cluster_numbers]
    return communities


def _label_column(column: NDArray[Any]) -> NDArray[Any]:
    """A label column as text ``[N]``; of ``[N, C]``, the number of labels per node."""
    if column.ndim == 2:
        return np.asarray(column.sum(axis=1, dtype=np.int64))
    if column.dtype.kind in "iub":
        return _text_objects("" if code == -1 else str(code) for code in column.tolist())
    return _text_objects("" if label is None else str(label) for label in column.tolist())


def _text_objects(values: Iterable[Any]) -> NDArray[Any]:
    """Text as an array of objects, ``[N]``."""
    return np.array(list(values), dtype=object)
