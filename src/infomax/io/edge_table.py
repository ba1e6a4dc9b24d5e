"""Features of edges from the columns of an edge table: a file or a frame."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, shorten
from infomax.io.choices import UserChoices
from infomax.io.column_names import format_list
from infomax.io.frames import frame_source
from infomax.io.record import Record
from infomax.io.schema.resolving import resolve_edge_table
from infomax.io.sources import Source, are_integers


def read_edge_features(
    graph: Record,
    table: Any,
    feature_columns: Sequence[str],
    source_column: str | None,
    target_column: str | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The ends ``[2, E]`` of the edges of a table, as rows of a graph, and their features ``[E,
    F]``.

    Args:
        graph: the graph, which has one type of nodes; its ids are those of the table.
        table: a file, such as edges.csv, or a frame.
        feature_columns: F columns of numbers.
        source_column: where edges begin; None: as in `infomax.read_graph`.
        target_column: where they end.
    """
    if isinstance(table, str | PathLike):
        edge_source = Source([Path(table)])
    else:
        edge_source = frame_source(table, "edges")
    unknown = [name for name in feature_columns if name not in edge_source.names]
    if unknown or not feature_columns:
        expected = f"columns of numbers among {format_list(edge_source.names)}"
        found = format_list(unknown) if unknown else "no columns"
        raise InputError(str(edge_source.path), expected, found)

    row_of_id = {identifier: row for row, identifier in enumerate(graph.ids.tolist())}
    ids_are_integers = graph.ids.dtype != object
    ends: list[list[int]] = [[], []]
    blocks = [np.empty((0, len(feature_columns)))]
    choices = UserChoices(source=source_column, target=target_column)
    edges = resolve_edge_table(edge_source, choices, warns_of_unused=False)
    for rows in edges.rows(feature_columns):
        for end_name, end_rows in zip(("source", "target"), ends, strict=True):
            for position, identifier in enumerate(_typed_ids(rows[end_name], ids_are_integers)):
                row = row_of_id.get(identifier)
                if row is None:
                    location = edge_source.location(int(rows["number"][position]))
                    raise InputError(location, "an id of a node of the graph", shorten(identifier))
                end_rows.append(row)
        blocks.append(rows["features"])
    return np.array(ends, dtype=np.int64), np.concatenate(blocks)


def _typed_ids(ids: Any, ids_are_integers: bool) -> list[Any]:
    """Ids of a table as the graph has them: integers, or text."""
    if ids_are_integers and are_integers(ids, is_text=True):
        return list(map(int, ids.to_pylist()))
    return list(map(str, ids.to_pylist()))
