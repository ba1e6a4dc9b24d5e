"""An interactive map of the nodes, in one HTML file that loads nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.map.columns import Columns, check_color, node_columns
from infomax.analysis.map.document import page
from infomax.analysis.map.places import NEIGHBOURS, layout, side_by_side
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.io.atomic import replacing
from infomax.neighbours.of_all import nearest
from infomax.progress import Progress, silent

__all__ = ["check_color", "layout", "node_columns", "page", "write_map"]


def write_map(
    path: str | Path,
    nodes: Embeddings,
    columns: Columns,
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
    """Write a map of N nodes with ``columns`` (name -> ``[N]``) to one HTML file.

    Their names are shown in place of ids, and searched with them. Returns their places in the plane, ``[N, 2]``.

    Args:
        title: the heading of the page.
        drawn: how many nodes there are, below the heading; for a sample how it was drawn.
        color: the column shown first; None takes the first column.
        k: how many nearest neighbours to show for each node.
        node_types: ``[N]``, the types of nodes whose vectors cannot be compared: each has a picture of its own, side by
            side by the number of its nodes, and neighbours are of the same type.
    """
    first = next(iter(columns)) if color is None else color
    if first not in columns:
        raise InputError("color", f"one of {', '.join(columns)}, or a feature", first)
    vectors = nodes.vectors
    node_count = len(vectors)
    rows_of_types = [np.arange(node_count)]
    if node_types is not None:
        rows_of_types = [
            np.flatnonzero(node_types == node_type) for node_type in np.unique(node_types)
        ]

    # Nodes of a type with fewer nodes than there are neighbours have themselves in place of the others.
    width = min(max(k, NEIGHBOURS), max(map(len, rows_of_types)) - 1)
    neighbours = np.repeat(np.arange(node_count)[:, None], width, axis=1)
    cosines = np.zeros((node_count, width), np.float32)
    pictures = []
    for rows in rows_of_types:
        near, near_cosines = nearest(vectors[rows], width, device=device, progress=progress)
        neighbours[rows, : near.shape[1]] = rows[near]
        cosines[rows, : near.shape[1]] = near_cosines
        picture = layout(vectors[rows], near[:, :NEIGHBOURS], seed=seed, progress=progress)
        pictures.append(picture)

    places = np.empty((node_count, 2), np.float32)
    places[np.concatenate(rows_of_types)] = (
        pictures[0] if node_types is None else side_by_side(pictures)
    )
    random_cosines = nodes.random_cosines() if node_types is None else ()
    quantiles: Any = ()
    if len(random_cosines):
        quantiles = np.quantile(random_cosines, np.linspace(0, 1, 1001))
    text = page(
        nodes.ids,
        places,
        neighbours[:, :k],
        cosines[:, :k],
        columns,
        title=title,
        drawn=drawn,
        first=first,
        names=nodes.node_names,
        pairs=quantiles,
    )
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return places
