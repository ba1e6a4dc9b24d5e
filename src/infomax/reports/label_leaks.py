"""Labels that a run's vectors know: columns that were features, keys that were edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infomax.estimator import DGI
from infomax.graphs.graph import Graph
from infomax.io.column_names import find_label
from infomax.views.steps import paths_of


@dataclass(frozen=True)
class LabelLeaks:
    """Columns that are scored as labels, and that training knew.

    Attributes:
        features: the columns that were features.
        keys: the columns that are keys, whose edges were part of the graph.
    """

    features: list[str]
    keys: list[str]


def find_label_leaks(model: DGI, label_columns: Sequence[str]) -> LabelLeaks:
    """The columns of labels that the vectors of a model were made of.

    Args:
        model: the model of a run.
        label_columns: the columns that are scored as labels, as a person names them.
    """
    graph = model.graph_
    if list(model.fitted_.recipe.parts) == ["positions"] or not _reads_own_type(model):
        return LabelLeaks([], [])

    table = None if graph.schema is None else graph.schema.of_type(graph.node_type)
    keys = [] if table is None else [key for key in table.keys if key.table]
    key_columns = [column for key in keys for column in key.columns]
    feature_columns = _feature_columns(graph)
    # The category of a lookup may have the name of its table.
    keys_of_categories = [key for key in keys if key.table in feature_columns]
    feature_columns += [column for key in keys_of_categories for column in key.columns]

    columns = [
        find_label(column, [*feature_columns, *key_columns], graph.node_type)
        for column in label_columns
    ]
    # Where the label is a key, training was told so and left its edges out.
    labels_of_training = [] if table is None else table.with_role("label")
    leaking_features = [column for column in columns if column in feature_columns]
    leaking_keys = [
        column
        for column in columns
        if column in key_columns
        and column not in feature_columns
        and column not in labels_of_training
    ]
    return LabelLeaks(leaking_features, leaking_keys)


def _reads_own_type(model: DGI) -> bool:
    """Whether vectors are made of features of the nodes' own type.

    Of several types, without the part ``own``, only paths that lead back to the type read them.
    """
    graph = model.graph_
    if not graph.has_named_types or "own" in model.fitted_.recipe.parts:
        return True
    paths = paths_of(graph, model.model_.encoder.rule).values()
    return any(path[-1].sender == graph.node_type for path in paths)


def _feature_columns(graph: Graph) -> list[str]:
    """The columns of the graph's node table that became features."""
    if graph.encoding is None:
        return list(graph.feature_names)
    return [column.name for column in graph.encoding.feature_columns]
