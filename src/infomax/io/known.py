"""The choices of columns by which tables are read as those of a known graph were."""

from __future__ import annotations

import dataclasses

from infomax.arrays.scaling import Statistics
from infomax.arrays.structural_features import structural_features_named
from infomax.io.columns import TYPES, Columns, FeaturesOfType
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.schema.schema import Schema, Use


def like_known(columns: Columns, known: Record) -> Columns:
    """The choices with what a known graph adds: its columns, features and encodings, so that tables are read alike."""
    columns = dataclasses.replace(columns, schema=known.schema)
    if known.has_named_types:
        return columns.like_types({kind: _features(nodes) for kind, nodes in known.nodes.items()})
    return columns if columns.matrix else columns.like(*_features(known.nodes_in_view))


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
    columns.refuse(
        ("features", "kinds", "obeys_schema"), "none where features are those of another graph"
    )
    return like_known(columns, known), known.directed if directed is None else directed


def as_known(columns: Columns, known: Record | None) -> Columns:
    """As `like_known`, for tables of new nodes, if any; what the known graph decides cannot be chosen again."""
    if known is None:
        return columns
    last = ("matrix",) if known.has_named_types else TYPES
    columns.refuse(
        ("labels", "ignore", "groups", "kinds", "as_of", "obeys_schema", *last),
        "none where nodes are attached to a graph",
    )
    columns = like_known(columns, known)
    if known.has_named_types:
        columns = dataclasses.replace(columns, schema=_with_usual_names(known))
    return columns


def _with_usual_names(known: Record) -> Schema:
    """The schema of a graph of several types, in which names are in a column ``name`` where no other one is known."""
    schema = known.schema or Schema()
    for node_type in known.types:
        table = schema.of_type(node_type)
        if table is None or schema.is_database or len(table.name.columns) != 1:
            name = _table_name(schema, node_type)
            schema = schema.with_table(name, node_type=node_type, name=Use(("name",)))
    return schema


def _table_name(schema: Schema, node_type: str) -> str:
    """What the table of a type of nodes is called in a schema."""
    tables = schema.tables.items()
    return next(
        (name for name, table in tables if table.has_nodes and table.node_type == node_type),
        node_type,
    )
