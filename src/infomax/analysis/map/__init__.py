"""An interactive map of the nodes, in one HTML file that loads nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.map.columns import ColumnsByName, check_color, node_columns
from infomax.analysis.map.document import page
from infomax.analysis.map.layout import LAYOUT_NEIGHBOURS, layout, side_by_side
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.io.atomic import replacing
from infomax.neighbours.of_all import nearest
from infomax.progress import Progress, silent

__all__ = ["check_color", "layout", "node_columns", "page", "write_map"]

QUANTILES = 1001
"""Quantiles of the cosines of random pairs, among which the page shows where a neighbour stands."""


def write_map(
    path: str | Path,
    nodes: Embeddings,
    columns: ColumnsByName,
    *,
    title: str,
    drawn: str = "",
    color: str | None = None,
    seed: int = 0,
    device: Any = "cpu",
    k: int = 10,
    node_types: NDArray[Any] | None = None,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Write a map of N nodes to one HTML file; return their points in the plane, ``[N, 2]``.

    Args:
        path: the file.
        nodes: the vectors. Names of nodes are shown in place of ids, and searched with them.
        columns: ``[N]`` by name, by which nodes can be coloured.
        title: the heading of the page.
        drawn: how many nodes there are, below the heading; for a sample how it was drawn.
        color: the column shown first; None takes the first column.
        seed: of the layout.
        device: where neighbours are searched.
        k: how many nearest neighbours to show for each node.
        node_types: ``[N]``, the types of nodes whose vectors cannot be compared: each has a picture
            of its own, side by side by the number of its nodes, and neighbours are of the same
            type.
        progress: is told the steps done.
    """
    first_column = next(iter(columns)) if color is None else color
    if first_column not in columns:
        raise InputError("color", f"one of {', '.join(columns)}, or a feature", first_column)
    vectors = nodes.vectors
    node_count = len(vectors)
    rows_of_types = [np.arange(node_count)]
    if node_types is not None:
        rows_of_types = [
            np.flatnonzero(node_types == node_type) for node_type in np.unique(node_types)
        ]

    # A node of a type with fewer nodes than there are neighbours stands in the columns that are
    # left over as its own neighbour.
    largest_type = max(map(len, rows_of_types))
    neighbour_count = min(max(k, LAYOUT_NEIGHBOURS), largest_type - 1)
    neighbours = np.repeat(np.arange(node_count)[:, None], neighbour_count, axis=1)
    cosines = np.zeros((node_count, neighbour_count), np.float32)
    pictures = []
    for rows in rows_of_types:
        vectors_of_type = vectors[rows]
        near, near_cosines = nearest(
            vectors_of_type, neighbour_count, device=device, progress=progress
        )
        neighbours[rows, : near.shape[1]] = rows[near]
        cosines[rows, : near.shape[1]] = near_cosines
        near = near[:, :LAYOUT_NEIGHBOURS]
        pictures.append(layout(vectors_of_type, near, seed=seed, progress=progress))

    points = np.empty((node_count, 2), np.float32)
    random_cosines: Any = ()
    if node_types is None:
        points[rows_of_types[0]] = pictures[0]
        random_cosines = nodes.random_cosines()
    else:
        points[np.concatenate(rows_of_types)] = side_by_side(pictures)

    quantiles: Any = ()
    if len(random_cosines):
        quantiles = np.quantile(random_cosines, np.linspace(0, 1, QUANTILES))
    text = page(
        nodes.ids,
        points,
        neighbours[:, :k],
        cosines[:, :k],
        columns,
        title=title,
        drawn=drawn,
        first=first_column,
        names=nodes.node_names,
        pairs=quantiles,
    )
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return points
