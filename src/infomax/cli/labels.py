"""Labels that options name: of the run's graph, of a data set, of a node table, or of any other graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from infomax.io.label_names import label_called
from infomax.io.reading import is_table, read_labels


class LabelSource(NamedTuple):
    """Labels with the ids of their nodes: name -> ``[M]`` or ``[M, C]``; and splits ``[M]``, where there are any."""

    ids: Any
    labels: Mapping[str, NDArray[Any]]
    splits: Mapping[str, NDArray[Any]]


class Asked(NamedTuple):
    """By label, the name of its source and its column; and the sources by name, "" for the graph itself."""

    named: dict[str, tuple[str, str]]
    sources: dict[str, LabelSource]

    @classmethod
    def of(
        cls, labels: Sequence[str], dataset: str | None, graph: Graph | None, id: str | None
    ) -> Asked:
        """Read the labels that were named, by default the first of a data set or of the run's graph."""
        if labels and dataset is not None:
            raise InputError("evaluate", "--labels or --dataset", "both")
        graph = graph if dataset is None else load_dataset(dataset)
        labels = labels or list(graph.labels if graph else ())[:1]
        if not labels:
            raise InputError(
                "evaluate",
                "labels",
                "none",
                "Name them: --labels nodes.csv:COLUMN, or --dataset NAME.",
            )
        named = {label: source_column(label, graph) or ("", label) for label in labels}
        sources = {}
        for source in dict.fromkeys(source for source, _ in named.values()):
            wanted = [column for other, column in named.values() if other == source]
            sources[source] = read_source(source, wanted, graph, id)
        if id is not None and not any(sources):
            raise InputError("--id", "--labels SOURCE:COLUMN, whose ids it names", "none")
        return cls(named, sources)

    def rows(self, ids: StoredRows) -> NDArray[np.int64]:
        """The rows of the nodes that have a label, among the ids of vectors on disk, ascending."""
        columns = ((self.sources[source], column) for source, column in self.named.values())
        pairs = (
            zip(found.ids, found.labels[column].tolist(), strict=True) for found, column in columns
        )
        found = find_ids(
            ids, (node for each in pairs for node, label in each if label not in ("", -1))
        )
        return np.sort(np.fromiter(found.values(), np.int64))

    def coded(self, ids: NDArray[Any], *, numbered: bool) -> tuple[NDArray[Any], Splits | None]:
        """Codes of nodes ``[N]``, or ``[N, C]`` where one may have several labels; and the split of their one graph."""
        columns = {}
        for label, (source, column) in self.named.items():
            found = self.sources[source]
            columns[label] = aligned(ids, found.ids, found.labels[column], numbered=numbered)
        first = next(iter(columns.values()))
        codes: NDArray[Any]
        if len(columns) == 1 and first.ndim == 1:
            codes, classes = encode_labels(first)
            check_classes(f"label {shorten(next(iter(columns)))}", codes, classes)
        else:
            codes = np.column_stack(
                [encode_flags(column, f"labels {label}") for label, column in columns.items()]
            )
        if len(self.sources) > 1:
            return codes, None
        (only,) = self.sources.values()
        return codes, {
            part: aligned(ids, only.ids, mask, False) for part, mask in only.splits.items()
        } or None


def source_column(label: str, graph: Graph | None) -> tuple[str, str] | None:
    """The source and the column that ``SOURCE:COLUMN`` names; None where the label is to be the graph's own."""
    if ":" not in label:
        return None
    if graph is not None and label_called(label, graph.labels, graph.node_type):
        return None
    for at, letter in enumerate(label):  # a column may have a colon in its name, and so may a file
        if letter == ":" and (Path(label[:at]).exists() or label[:at].lower() in DATASETS):
            return label[:at], label[at + 1 :]
    source, column = label.rsplit(":", 1)
    return source, column


def read_source(
    source: str, columns: Sequence[str], graph: Graph | None, id: str | None = None
) -> LabelSource:
    """Some label columns of a node table, of anything that a graph can be read from, or by "" of the graph itself.

    Ids are in the column ``id``; else, where there is such a column, as in the tables of a run's graph.
    """
    if is_table(source):
        schema = None if graph is None else graph.schema
        known_table = None if schema is None or graph is None else schema.of_type(graph.node_type)
        ids, labels = read_labels(source, columns, id, known_table)
        found = dict(zip(columns, labels.values(), strict=True))
        return LabelSource(list(map(str, ids)), found, {})
    if source:
        options = {"id": id} if id else {}
        node_type = "" if graph is None else graph.node_type
        graph = open_graph(source, list(columns), None, options, labels_like=graph)
        if node_type in graph.types:
            graph = graph.target(node_type)
    if graph is None:
        raise InputError("--labels", "nodes.csv:COLUMN", shorten(columns[0]))
    return LabelSource(graph.ids, _labels_called(columns, graph), graph.splits)


def _labels_called(names: Sequence[str], graph: Graph) -> dict[str, NDArray[Any]]:
    """The labels of a graph's nodes that a person named, as NAME or TYPE.NAME in any case, by these names."""
    found = {}
    for name in names:
        label = label_called(name, graph.labels, graph.node_type)
        if not label:
            known = list(graph.labels)
            raise InputError("--labels", " or ".join([*known, "nodes.csv:COLUMN"]), shorten(name))
        found[name] = graph.labels[label]
    return found


def aligned(
    ids: NDArray[Any],
    known: Any,
    values: NDArray[Any],
    missing: object = None,
    *,
    numbered: bool = False,
) -> NDArray[Any]:
    """The values ``[M, ...]`` of known nodes, put in the order of other nodes ``[N]`` by the text of their ids.

    Nodes that are not known get ``missing``: by default "" among text and -1 among numbers. Ids that are ``numbered``
    are only the numbers of rows: then the known nodes must be numbered alike.
    """
    if known is ids:  # of the same graph: those of a graph folder would fill the memory
        return values
    known = list(known)
    if numbered and list(map(str, known)) != list(map(str, ids.tolist())):
        expected, found = (
            f"the nodes 0 to {len(ids) - 1:,} in their order",
            format_count(len(known), "id"),
        )
        remedy = "An .npy holds no ids: embed to another format."
        raise InputError("labels", expected, f"{found} (as {shorten(known[0])})", remedy)
    position = {str(identifier): row for row, identifier in enumerate(known)}
    rows = [position.get(str(identifier), -1) for identifier in ids.tolist()]
    if max(rows, default=-1) < 0:
        found = f"none of them among {format_count(len(known), 'id')} (as {shorten(known[0])})"
        raise InputError(
            "labels",
            "some of these nodes" + (f" (as {shorten(ids[0])})" if len(ids) else ""),
            found,
        )
    if missing is None:
        missing = "" if values.dtype == object else -1
    # What is not found is row -1, the last.
    return np.concatenate([values, np.full((1, *values.shape[1:]), missing)])[rows]
