"""Labels that an option names: of the run's graph, of a node table, or of any other graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from infomax.errors import InputError, number_of, shorten

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.graphs.graph import Graph


class LabelSource(NamedTuple):
    """Labels with the ids of their nodes: name -> ``[M]`` or ``[M, C]``; and splits ``[M]``, where there are any."""

    ids: Any
    labels: Mapping[str, NDArray[Any]]
    splits: Mapping[str, NDArray[Any]]


def source_column(label: str, graph: Graph | None) -> tuple[str, str] | None:
    """The source and the column that ``SOURCE:COLUMN`` names; None where the label is to be the graph's own."""
    from infomax.datasets import DATASETS

    if ":" not in label or (graph is not None and label in graph.labels):
        return None
    for at, letter in enumerate(label):  # a column may have a colon in its name, and so may a file
        if letter == ":" and (Path(label[:at]).exists() or label[:at].lower() in DATASETS):
            return label[:at], label[at + 1 :]
    source, column = label.rsplit(":", 1)
    return source, column


def read_source(source: str, columns: Sequence[str], graph: Graph | None, id: str | None = None) -> LabelSource:
    """Some label columns of a node table, or of anything that a graph can be read from.

    Ids are in the column ``id``; else, where there is such a column, as in the tables of a run's graph.
    """
    from infomax.cli.options import open_graph
    from infomax.io.reading import is_table, read_labels

    known = {} if graph is None else graph.table_columns
    if is_table(source):
        ids, labels = read_labels(source, columns, id, known)
        return LabelSource(list(map(str, ids)), {column: labels[column] for column in columns}, {})
    graph = open_graph(source, list(columns), None, {"id": id} if id else {}, earlier=known)
    return LabelSource(graph.ids, {column: graph.labels[column] for column in columns}, graph.splits)


def labelled(source: LabelSource) -> LabelSource:
    """The nodes of a source that have any label."""
    import numpy as np

    known = np.zeros(len(source.ids), dtype=bool)
    for column in source.labels.values():
        there = column != ("" if column.dtype == object else -1)
        known |= there if there.ndim == 1 else there.any(axis=1)
    ids = np.array(source.ids, dtype=object) if isinstance(source.ids, list) else source.ids
    columns = ({name: column[known] for name, column in part.items()} for part in (source.labels, source.splits))
    return LabelSource(ids[known], *columns)


def aligned(
    ids: NDArray[Any], known: Any, values: NDArray[Any], missing: object = None, *, numbered: bool = False
) -> NDArray[Any]:
    """The values ``[M, ...]`` of known nodes, put in the order of other nodes ``[N]`` by the text of their ids.

    Nodes that are not known get ``missing``: by default "" among text and -1 among numbers. Ids that are ``numbered``
    are only the numbers of rows: then the known nodes must be numbered alike.
    """
    import numpy as np

    if known is ids:  # of the same graph: those of a graph folder would fill the memory
        return values
    known = list(known)
    if numbered and list(map(str, known)) != list(map(str, ids.tolist())):
        expected, found = f"the nodes 0 to {len(ids) - 1:,} in their order", number_of(len(known), "id")
        remedy = "An .npy holds no ids: embed to another format."
        raise InputError("labels", expected, f"{found} (as {shorten(known[0])})", remedy)
    position = {str(identifier): row for row, identifier in enumerate(known)}
    rows = [position.get(str(identifier), -1) for identifier in ids.tolist()]
    if max(rows) < 0:
        found = f"none of them among {number_of(len(known), 'id')} (as {shorten(known[0])})"
        raise InputError("labels", f"some of these nodes (as {shorten(ids[0])})", found)
    if missing is None:
        missing = "" if values.dtype == object else -1
    # What is not found is row -1, the last.
    return np.concatenate([values, np.full((1, *values.shape[1:]), missing)])[rows]
