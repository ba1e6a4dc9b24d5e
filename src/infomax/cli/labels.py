"""Labels that options name: of the run's graph, a data set, a node table, or any other graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.parquet_columns import StoredRows, find_ids
from infomax.cli.options import open_graph
from infomax.datasets import DATASETS, load_dataset
from infomax.errors import InputError, format_count, shorten
from infomax.evaluation.splits import Splits, check_classes, encode_flags, encode_labels
from infomax.graphs.graph import Graph
from infomax.io.column_names import find_label, format_list
from infomax.io.reading import is_table, read_labels
from infomax.io.schema.schema import Schema

UNKNOWN_LABELS = ("", -1)
"""What stands for no label among text and among numbers."""


@dataclass(frozen=True)
class LabelSource:
    """Labels of M nodes that come from one table or graph.

    Attributes:
        ids: ``[M]``, of the nodes.
        labels: ``[M]`` or ``[M, C]`` by name.
        splits: masks ``[M]`` by name, where there are any.
    """

    ids: Any
    labels: Mapping[str, NDArray[Any]]
    splits: Mapping[str, NDArray[Any]]


class LabelColumn(NamedTuple):
    """Where a label comes from."""

    source: str
    """A node table or a graph, as a person names it; "" for the graph of the run itself."""
    column: str


@dataclass(frozen=True)
class RequestedLabels:
    """The labels that a person named, by their names, and the sources that hold them."""

    columns: dict[str, LabelColumn]
    sources: dict[str, LabelSource]

    @classmethod
    def read(
        cls,
        labels: Sequence[str],
        dataset: str | None,
        graph: Graph | None,
        id_column: str | None,
    ) -> RequestedLabels:
        """Read labels.

        Args:
            labels: their names; by default the first label of the data set or of the graph.
            dataset: the name of a data set that has the labels, in place of the graph.
            graph: the graph of the run; None for vectors alone.
            id_column: the column of ids in node tables.
        """
        if labels and dataset is not None:
            raise InputError("evaluate", "--labels or --dataset", "both")
        if dataset is not None:
            graph = load_dataset(dataset)
        if not labels and graph is not None:
            labels = list(graph.labels)[:1]
        if not labels:
            remedy = "Name them: --labels nodes.csv:COLUMN, or --dataset NAME."
            raise InputError("evaluate", "labels", "none", remedy)

        columns = {label: source_column(label, graph) or LabelColumn("", label) for label in labels}
        sources: dict[str, LabelSource] = {}
        for source in dict.fromkeys(column.source for column in columns.values()):
            names = [column.column for column in columns.values() if column.source == source]
            sources[source] = read_source(source, names, graph, id_column)
        if id_column is not None and not any(sources):
            raise InputError("--id", "--labels SOURCE:COLUMN, whose ids it names", "none")
        return cls(columns, sources)

    def labelled_rows(self, ids: StoredRows) -> NDArray[np.int64]:
        """The rows of the nodes that have a label, among the ids of vectors on disk, ascending."""
        rows = find_ids(ids, self._labelled_ids())
        return np.sort(np.fromiter(rows.values(), np.int64))

    def _labelled_ids(self) -> Iterator[Any]:
        """The ids of the nodes that have one of the labels."""
        for source_name, column in self.columns.values():
            source = self.sources[source_name]
            labels = source.labels[column].tolist()
            for node_id, label in zip(source.ids, labels, strict=True):
                if label not in UNKNOWN_LABELS:
                    yield node_id

    def encode(
        self, ids: NDArray[Any], *, are_numbered: bool
    ) -> tuple[NDArray[Any], Splits | None]:
        """Codes of nodes, and the split of the source if all labels come from one.

        Args:
            ids: ``[N]``, of the nodes.
            are_numbered: whether the ids are only the numbers of rows.

        Returns:
            Codes ``[N]``, or ``[N, C]`` where a node may have several labels.
        """
        aligned_columns = {}
        for label, (source_name, column) in self.columns.items():
            source = self.sources[source_name]
            aligned_columns[label] = aligned(
                ids, source.ids, source.labels[column], ids_are_numbered=are_numbered
            )

        first_label, first_column = next(iter(aligned_columns.items()))
        codes: NDArray[Any]
        if len(aligned_columns) == 1 and first_column.ndim == 1:
            codes, class_names = encode_labels(first_column)
            check_classes(f"label {shorten(first_label)}", codes, class_names)
        else:
            codes = np.column_stack(
                [
                    encode_flags(column, f"labels {label}")
                    for label, column in aligned_columns.items()
                ]
            )

        if len(self.sources) > 1:
            return codes, None
        (only_source,) = self.sources.values()
        split = {
            name: aligned(ids, only_source.ids, mask, False)
            for name, mask in only_source.splits.items()
        }
        return codes, split or None


def source_column(label: str, graph: Graph | None) -> LabelColumn | None:
    """What ``SOURCE:COLUMN`` names; None where the label is to be the graph's own."""
    if ":" not in label:
        return None
    if graph is not None and find_label(label, graph.labels, graph.node_type):
        return None

    # A column may have a colon in its name, and so may a file.
    for position, letter in enumerate(label):
        source = label[:position]
        if letter == ":" and (Path(source).exists() or source.lower() in DATASETS):
            return LabelColumn(source, label[position + 1 :])
    source, column = label.rsplit(":", 1)
    return LabelColumn(source, column)


def read_source(
    source: str, columns: Sequence[str], graph: Graph | None, id_column: str | None = None
) -> LabelSource:
    """Read some label columns.

    Args:
        source: a node table, or anything that a graph can be read from; "" for the graph of the
            run.
        columns: the names of the labels.
        graph: the graph of the run, if there is a run; tables are read as its tables were.
        id_column: the column of ids; by default as in the tables of the graph.
    """
    if is_table(source):
        known_table = None
        if graph is not None and graph.schema is not None:
            known_table = graph.schema.of_type(graph.node_type)
        ids, labels = read_labels(source, columns, id_column, known_table)
        labels_by_name = dict(zip(columns, labels.values(), strict=True))
        return LabelSource(list(map(str, ids)), labels_by_name, {})

    label_graph = graph
    if source:
        node_type = "" if graph is None else graph.node_type
        table_choices = {"id": id_column} if id_column else {}
        label_graph = open_graph(source, list(columns), None, table_choices, labels_like=graph)
        # Labels are those of the nodes that the run has vectors of.
        if node_type in label_graph.types:
            label_graph = label_graph.target(node_type)
        elif label_graph.has_named_types:
            label_graph = _seen_from_labels(label_graph, columns)
    if label_graph is None:
        raise InputError("--labels", labels_elsewhere(None), shorten(columns[0]))
    return LabelSource(label_graph.ids, _labels_of_graph(columns, label_graph), label_graph.splits)


def _seen_from_labels(graph: Graph, names: Sequence[str]) -> Graph:
    """A graph of several types as seen from the one type that has all labels of these names.

    Vectors alone do not say of which type their nodes are.
    """
    types_with_labels = [
        node_type
        for node_type, of_type in graph.by_type().items()
        if all(find_label(name, of_type.labels, node_type) for name in names)
    ]
    if len(types_with_labels) > 1:
        labels = format_list([f"{node_type}.{names[0]}" for node_type in types_with_labels])
        expected = f"a label of one type of nodes ({labels})"
        raise InputError("--labels", expected, shorten(names[0]))
    return graph.target(types_with_labels[0]) if types_with_labels else graph


def labels_elsewhere(schema: Schema | None) -> str:
    """How a person names labels that a graph does not have, by what it was read from."""
    if schema is not None and schema.is_database:
        return "DATABASE:TABLE.COLUMN"
    return "nodes.csv:COLUMN"


def _labels_of_graph(names: Sequence[str], graph: Graph) -> dict[str, NDArray[Any]]:
    """The labels of a graph's nodes that a person named, as NAME or TYPE.NAME in any case."""
    labels = {}
    for name in names:
        label = find_label(name, graph.labels, graph.node_type)
        if not label:
            expected = " or ".join([*graph.labels, labels_elsewhere(graph.schema)])
            raise InputError("--labels", expected, shorten(name))
        labels[name] = graph.labels[label]
    return labels


def aligned(
    ids: NDArray[Any],
    source_ids: Any,
    values: NDArray[Any],
    missing: object = None,
    *,
    ids_are_numbered: bool = False,
) -> NDArray[Any]:
    """Put the values of a source in the order of other nodes, by the text of their ids.

    Args:
        ids: ``[N]``, of the nodes.
        source_ids: ``[M]``, of the nodes of the source.
        values: ``[M, ...]``, of the nodes of the source.
        missing: the value of nodes that the source does not have; by default "" among text and -1
            among numbers.
        ids_are_numbered: whether the ids are only the numbers of rows. Then those of the source
            must be the same numbers in the same order.

    Returns:
        ``[N, ...]``.
    """
    if source_ids is ids:
        # They are of the same graph. The ids of a graph folder, as text, would fill the memory.
        return values
    source_ids = list(source_ids)
    if ids_are_numbered and list(map(str, source_ids)) != list(map(str, ids.tolist())):
        expected = f"the nodes 0 to {len(ids) - 1:,} in their order"
        found = f"{format_count(len(source_ids), 'id')} (as {shorten(source_ids[0])})"
        remedy = "An .npy holds no ids: embed to another format."
        raise InputError("labels", expected, found, remedy)

    row_by_id = {str(node_id): row for row, node_id in enumerate(source_ids)}
    rows = [row_by_id.get(str(node_id), -1) for node_id in ids.tolist()]
    if max(rows, default=-1) < 0:
        expected = "some of these nodes"
        if len(ids):
            expected += f" (as {shorten(ids[0])})"
        source_count = format_count(len(source_ids), "id")
        found = f"none of them among {source_count} (as {shorten(source_ids[0])})"
        raise InputError("labels", expected, found)

    if missing is None:
        missing = "" if values.dtype == object else -1
    # A node that the source does not have is row -1, the last.
    last_row = np.full((1, *values.shape[1:]), missing)
    return np.concatenate([values, last_row])[rows]
