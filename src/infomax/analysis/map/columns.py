"""The columns by which a map can be coloured: text for groups, numbers for a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.errors import InputError, meant, shorten
from infomax.graphs.graph import Graph

Columns = Mapping[str, NDArray[Any]]
"""Name -> ``[N]``: text objects ("" = unknown), or numbers (NaN = unknown)."""


def check_color(graph: Graph, color: str | None) -> None:
    """Refuse a column that `node_columns` does not give."""
    kept = {"split": graph.splits, "graph": graph.groups is not None}
    columns = [*graph.labels, "community", *(name for name, there in kept.items() if there), "degree"]
    if color is not None and color not in (*columns, *graph.feature_names):
        remedy = meant(color, (*columns, *graph.feature_names))
        raise InputError("color", f"one of {', '.join(columns)}, or a feature", shorten(color), remedy)


def node_columns(
    graph: Graph, clusters: NDArray[np.int64], feature: str | None = None, rows: NDArray[np.int64] | None = None
) -> dict[str, NDArray[Any]]:
    """The columns of a graph's nodes: labels, community, split, graph (of many), degree, and a feature if named.

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
        columns["split"] = _text(", ".join(filter(None, names)) for names in zip(*parts, strict=True))
    if graph.groups is not None:
        columns["graph"] = _text(map(str, graph.groups[some].tolist()))
    columns["degree"] = degree
    if feature in graph.feature_names and feature not in columns:
        values = graph.table[some][:, [graph.feature_names.index(feature)]]
        columns[feature] = (values.toarray() if sparse.issparse(values) else values).ravel()
    return columns


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
