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

LEGEND_CHARACTERS = 28
"""Characters of a legend's entry up to which all columns of a legend fit."""


def projections(
    points: Mapping[str, NDArray[Any]], groups: NDArray[Any] | None = None, *, method: str = "t-SNE"
) -> Chapter:
    """The chapter about projections of the same nodes from one or several sources of vectors.

    Args:
        points: by source, ``[n, 2]``.
        groups: ``[n]`` text, by which points are coloured; "" where unknown.
        method: the name of the projection.
    """
    scores: dict[str, float] = {}
    if groups is not None:
        scores = _silhouettes(points, groups)
    node_count = len(next(iter(points.values())))
    numbers = {
        "nodes": node_count,
        "projection": method,
        "silhouette": scores,
        "points": {
            source: np.round(points_of_source, 3).tolist()
            for source, points_of_source in points.items()
        },
    }

    story = [
        f"Each dot is one of {node_count:,} nodes, placed by {method} so that nodes with similar "
        "vectors lie close together."
    ]
    if len(points) > 1:
        story.append(
            f"The vectors are those of {', '.join(points)}; seed and colours are the same in all "
            "panels."
        )
    if scores:
        listed = ", ".join(f"{source} {score:.3f}" for source, score in scores.items())
        story.append(
            "The silhouette, from -1 to 1, measures how well the classes are separated in the "
            f"plane: {listed}."
        )
    draw = partial(_draw, points, groups, scores, method)
    return Chapter("projections", "The vectors in the plane", story, numbers, draw)


def _silhouettes(points: Mapping[str, NDArray[Any]], groups: NDArray[Any]) -> dict[str, float]:
    """The silhouette of the groups by source; none where it is not defined."""
    group_codes = np.unique(groups.astype(str), return_inverse=True)[1]
    codes = np.where(groups == "", -1, group_codes)
    codes_of_grouped = codes[codes >= 0]
    if not 1 < len(np.unique(codes_of_grouped)) < len(codes_of_grouped):
        return {}
    return {source: silhouette(points[source], codes) for source in points}


def _draw(
    points: Mapping[str, NDArray[Any]],
    groups: NDArray[Any] | None,
    scores: dict[str, float],
    method: str,
    stacked: bool,
) -> Any:
    figure, axes = panels(len(points), stacked)
    if groups is None:
        node_count = len(next(iter(points.values())))
        names = np.full(node_count, "nodes", dtype=object)
        colours = {"nodes": COLOURS[0]}
        entries: list[tuple[str, str]] = []
    else:
        names = groups
        colours, entries = colour_groups(names)

    for panel, (source, points_of_source) in zip(axes, points.items(), strict=True):
        panel.set_title(source)
        label = method
        if scores:
            label += f", silhouette {scores[source]:.3f}".replace("-", "\N{MINUS SIGN}")
        panel.set_xlabel(label)
        draw_points(panel, points_of_source, names, colours)

    if groups is not None:
        most_columns = 2 if stacked else 4
        longest_entry = max(len(text) for _, text in entries)
        columns = min(most_columns, LEGEND_CHARACTERS * most_columns // longest_entry)
        write_legend(figure, entries, "outside lower center", columns=columns)
    return figure
