"""Labels that an option names, of the run's graph or of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infomax.graphs.graph import Graph


def table_column(label: str, graph: Graph | None) -> tuple[str, str] | None:
    """The file and the column that ``nodes.csv:COLUMN`` names; None where the label is to be the graph's own."""
    if ":" not in label or (graph is not None and label in graph.labels):
        return None
    for at, letter in enumerate(label):  # a column may have a colon in its name, and so may a file
        if letter == ":" and Path(label[:at]).is_file():
            return label[:at], label[at + 1 :]
    path, column = label.rsplit(":", 1)
    return path, column


def read_aligned(ids: NDArray[Any], path: str, column: str, *, numbered: bool = False) -> NDArray[Any]:
    """The labels of the nodes ``[N]`` in a column of a table ("" = unknown)."""
    import numpy as np

    from infomax.io import read_labels

    table = read_labels(path, column)
    return aligned(ids, list(table), np.array(list(table.values()), dtype=object), "", numbered=numbered)


def aligned(
    ids: NDArray[Any], known: list[Any], values: NDArray[Any], missing: str | int, *, numbered: bool = False
) -> NDArray[Any]:
    """The values ``[M, ...]`` of the known nodes as those of other nodes ``[N]``, by the text of their ids.

    Ids that are ``numbered`` are none, but the numbers of rows: then the known nodes must be numbered alike.
    """
    import numpy as np

    from infomax.errors import InputError, shorten

    if numbered and list(map(str, known)) != list(map(str, ids.tolist())):
        expected, found = f"the nodes 0 to {len(ids) - 1:,} in their order", f"{len(known):,} ids"
        remedy = "An .npy holds no ids: embed to another format."
        raise InputError("labels", expected, f"{found} (as {shorten(known[0])})", remedy)
    position = {str(identifier): row for row, identifier in enumerate(known)}
    rows = [position.get(str(identifier), -1) for identifier in ids.tolist()]
    if max(rows) < 0:
        found = f"none of them among {len(known):,} ids (as {shorten(known[0])})"
        raise InputError("labels", f"some of these nodes (as {shorten(ids[0])})", found)
    # What is not found is row -1, the last.
    return np.concatenate([values, np.full((1, *values.shape[1:]), missing)])[rows]
