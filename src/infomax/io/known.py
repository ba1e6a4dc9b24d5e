"""The choices of columns by which tables are read as those of a known graph were."""

from __future__ import annotations

import dataclasses

from infomax.arrays.scaling import Statistics
from infomax.arrays.structural_features import structural_features_named
from infomax.io.columns import TYPES, Columns, FeaturesOfType
from infomax.io.nodes import Nodes
from infomax.io.record import Record


def like_known(columns: Columns, known: Record) -> Columns:
    """The choices with what a known graph adds: its columns, features and encodings, so that tables are read alike."""
    columns = dataclasses.replace(columns, earlier={**known.table_columns, **columns.earlier})
    if known.types:
        return columns.like_types({kind: _features(nodes) for kind, nodes in known.nodes.items()})
    return columns if columns.matrix else columns.like(*_features(known.own))


def _features(nodes: Nodes) -> FeaturesOfType:
    """The names of features, their encoding, and of numbers as they are the means, which fill later gaps."""
    gaps: tuple[float, ...] = ()
    if nodes.encoding is None and not structural_features_named(nodes.feature_names):
        seen = nodes.splits.get("seen")
        statistics = nodes.table.statistics if seen is None else Statistics.of(nodes.table[seen])
        gaps = tuple(statistics.mean.tolist())
    return nodes.feature_names, nodes.encoding, gaps


def read_like(
    columns: Columns, known: Record | None, directed: bool | None
) -> tuple[Columns, bool | None]:
    """As `like_known`, if there is one, where the caller has chosen no features; and whether edges have directions."""
    if known is None:
        return columns, directed
    columns.refuse(("features", "kinds"), "none where features are those of another graph")
    return like_known(columns, known), known.directed if directed is None else directed


def as_known(columns: Columns, known: Record | None) -> Columns:
    """As `like_known`, for tables of new nodes, if any; what the known graph decides cannot be chosen again."""
    if known is None:
        return columns
    last = ("matrix",) if known.types else TYPES
    columns.refuse(
        ("labels", "ignore", "groups", "kinds", "as_of", *last),
        "none where nodes are attached to a graph",
    )
    if known.types:
        # Where only names were read of a type, its encoding does not tell their column: the usual one is taken.
        columns = dataclasses.replace(
            columns, earlier={"name": "name", **known.table_columns, **columns.named()}
        )
    return like_known(columns, known)
