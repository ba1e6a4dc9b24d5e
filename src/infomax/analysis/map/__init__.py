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
    kinds: NDArray[Any] | None = None,
    progress: Progress = silent,
) -> NDArray[np.float32]:
    """Write a map of N nodes with ``columns`` (name -> ``[N]``) to one HTML file.

    Their names are shown in place of ids, and searched with them. Returns their places in the plane, ``[N, 2]``.

    Args:
        title: the heading of the page.
        drawn: how many nodes there are, below the heading; for a sample how it was drawn.
        color: the column shown first; None takes the first column.
        k: how many nearest neighbours to show for each node.
        kinds: ``[N]``, the types of nodes whose vectors cannot be compared: each has a picture of its own, side by side
            by the number of its nodes, and neighbours are of the same type.
    """
    first = next(iter(columns)) if color is None else color
    if first not in columns:
        raise InputError("color", f"one of {', '.join(columns)}, or a feature", first)
    n, vectors = nodes.shape[0], nodes.vectors
    types = (
        [np.arange(n)]
        if kinds is None
        else [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
    )
    width = min(max(k, NEIGHBOURS), max(map(len, types)) - 1)
    rows = np.repeat(np.arange(n)[:, None], width, axis=1)
    cosines = np.zeros((n, width), np.float32)
    pictures = []
    for own in types:
        near, cosine = nearest(vectors[own], width, device=device, progress=progress)
        rows[own, : near.shape[1]], cosines[own, : near.shape[1]] = own[near], cosine
        pictures.append(layout(vectors[own], near[:, :NEIGHBOURS], seed=seed, progress=progress))
    places = np.empty((n, 2), np.float32)
    places[np.concatenate(types)] = pictures[0] if kinds is None else side_by_side(pictures)
    pairs = nodes.random_cosines() if kinds is None else ()
    text = page(
        nodes.ids, places, rows[:, :k], cosines[:, :k], columns, title=title, drawn=drawn, first=first,
        names=nodes.node_names,
        pairs=np.quantile(pairs, np.linspace(0, 1, 1001)) if len(pairs) else (),
    )  # fmt: skip
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return places
