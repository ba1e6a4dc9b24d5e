"""The nodes in the plane, by t-SNE or UMAP of their vectors, with the silhouette of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.pictures import colour_groups, draw_points, write_legend
from infomax.analysis.report import Chapter
from infomax.analysis.style import COLOURS, panels
from infomax.evaluation.metrics import silhouette


def projections(
    points: Mapping[str, NDArray[Any]], groups: NDArray[Any] | None = None, *, method: str = "t-SNE"
) -> Chapter:
    """The chapter about projections of the same nodes from one or several sources, coloured by group.

    Points are ``[n, 2]`` by source; groups are ``[n]`` text, "" where unknown.
    """
    scores: dict[str, float] = {}
    if groups is not None:
        codes = np.where(groups == "", -1, np.unique(groups.astype(str), return_inverse=True)[1])
        known = codes[codes >= 0]
        if 1 < len(np.unique(known)) < len(known):  # otherwise the silhouette is not defined
            scores = {source: silhouette(places, codes) for source, places in points.items()}
    numbers = {
        "nodes": len(next(iter(points.values()))),
        "projection": method,
        "silhouette": scores,
        "points": {source: np.round(places, 3).tolist() for source, places in points.items()},
    }
    story = [
        f"Each dot is one of {numbers['nodes']:,} nodes, placed by {method} so that nodes with similar vectors lie "
        "close together."
    ]
    if len(points) > 1:
        story.append(
            f"The vectors are those of {', '.join(points)}; seed and colours are the same in all panels."
        )
    if scores:
        found = ", ".join(f"{source} {score:.3f}" for source, score in scores.items())
        story.append(
            f"The silhouette, from -1 to 1, measures how well the classes are separated in the plane: {found}."
        )
    draw = partial(_draw, points, groups, scores, method)
    return Chapter("projections", "The vectors in the plane", story, numbers, draw)


def _draw(
    points: Mapping[str, NDArray[Any]],
    groups: NDArray[Any] | None,
    scores: dict[str, float],
    method: str,
    stacked: bool,
) -> Any:
    figure, axes = panels(len(points), stacked)
    names = (
        np.full(len(next(iter(points.values()))), "nodes", dtype=object)
        if groups is None
        else groups
    )
    colours, entries = colour_groups(names)
    for panel, (source, places) in zip(axes, points.items(), strict=True):
        panel.set_title(source)
        score = (
            f", silhouette {scores[source]:.3f}".replace("-", "\N{MINUS SIGN}") if scores else ""
        )
        panel.set_xlabel(method + score)
        draw_points(panel, places, names, colours if groups is not None else {"nodes": COLOURS[0]})
    if groups is not None:
        most, longest = 2 if stacked else 4, max(len(text) for _, text in entries)
        write_legend(
            figure, entries, "outside lower center", columns=min(most, 28 * most // longest)
        )
    return figure
