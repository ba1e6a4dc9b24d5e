"""The discriminator's scores in the plane, for the graph and for a negative sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.pictures import draw_values, shorten_middle, write_names
from infomax.analysis.report import Chapter
from infomax.analysis.style import INK, panels

HIGHEST = 8
"""How many of the highest-scored nodes are named."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Vectors of a graph's nodes (positives) and of a corrupted graph (negatives), with the discriminator's scores.

    A score is a logit, the sum of a vector's terms and the bias. Above 0 the discriminator takes the vector for a
    positive.

    Shapes:
        nodes: ``[n]``, the node of each positive.
        places: ``[m]``, the node whose place in the graph each negative has.
        positives, negatives: ``[n, d]``, ``[m, d]``.
        positive_terms, negative_terms: ``[n, d]``, ``[m, d]``, what each dimension adds to the score.
    """

    nodes: NDArray[np.int64]
    places: NDArray[np.int64]
    positives: NDArray[np.float32]
    negatives: NDArray[np.float32]
    positive_terms: NDArray[np.float32]
    negative_terms: NDArray[np.float32]
    bias: float

    @property
    def positive_scores(self) -> NDArray[Any]:
        """The scores ``[n]`` of the positives."""
        return np.asarray(self.positive_terms.sum(axis=1) + self.bias)

    @property
    def negative_scores(self) -> NDArray[Any]:
        """The scores ``[m]`` of the negatives."""
        return np.asarray(self.negative_terms.sum(axis=1) + self.bias)


def scores(
    pairs: Pairs,
    positive_points: NDArray[Any],
    negative_points: NDArray[Any],
    ids: NDArray[Any],
    degrees: NDArray[Any],
    groups: NDArray[Any] | None = None,
    called: NDArray[Any] | None = None,
) -> Chapter:
    """The chapter about scores, drawn in colour over projections ``[n, 2]``, ``[m, 2]`` of positives and negatives.

    Ids, degrees, groups and what nodes are called are ``[N]``, of all nodes of the graph.
    """
    positive, negative = pairs.positive_scores, pairs.negative_scores
    highest = np.argsort(-positive, kind="stable")[:HIGHEST]
    nodes = pairs.nodes[highest]
    names = (ids if called is None else called)[nodes].tolist()
    mistaken = negative >= 0
    numbers = {
        "positive_scores": np.round(positive, 4).tolist(),
        "negative_scores": np.round(negative, 4).tolist(),
        "correct": {
            "positives": float((positive > 0).mean()),
            "negatives": float((negative < 0).mean()),
        },
        "highest": [
            {"id": ids[[node]].tolist()[0], "score": float(score), "degree": int(degrees[node])}
            | ({} if called is None else {"name": called[node]})
            for node, score in zip(nodes, positive[highest], strict=True)
        ],
        "false_positives": int(mistaken.sum()),
        "median_degree": {
            "false_positives": float(np.median(degrees[pairs.places[mistaken]]))
            if mistaken.any()
            else None,
            "all_negatives": float(np.median(degrees[pairs.places])),
        },
    }
    columns: dict[str, Sequence[Any]] = {"highest-scored node": names}
    columns |= {} if called is None else {"id": ids[nodes].tolist()}
    columns |= {} if groups is None else {"class": groups[nodes].tolist()}
    columns |= {
        "neighbours": degrees[nodes].tolist(),
        "score": [f"{score:.1f}" for score in positive[highest]],
    }
    rows = zip(*columns.values(), strict=True)
    facts = [list(columns), *([shorten_middle(str(cell)) for cell in row] for row in rows)]
    places = list(zip(map(str, names), positive_points[highest], strict=True))
    drawing = partial(_draw, (positive_points, negative_points), (positive, negative), places)
    return Chapter(
        "scores", "Scores of the discriminator", _story(numbers), numbers, drawing, facts
    )


def _story(numbers: dict[str, Any]) -> list[str]:
    correct, highest, degree = numbers["correct"], numbers["highest"], numbers["median_degree"]
    story = [
        "The discriminator gives every patch a score, the log-odds that it belongs to the graph: above 0 it is "
        f"classified as real. It is right about {100 * correct['positives']:.1f} % of the patches of the graph and "
        f"about {100 * correct['negatives']:.1f} % of a negative sample that was not used in training.",
        f"The median score in the graph is {np.median(numbers['positive_scores']):.1f}, the highest "
        f"{highest[0]['score']:.1f}; the {len(highest)} highest-scored nodes are named.",
    ]
    if degree["false_positives"] is not None:
        story.append(
            f"{numbers['false_positives']:,} negatives are classified as real. Their nodes have few neighbours: the "
            f"median is {degree['false_positives']:g}, against {degree['all_negatives']:g} among all. The fewer "
            "neighbours a node has, the more a corrupted patch looks like a real one."
            if 1.5 * degree["false_positives"] <= degree["all_negatives"] > 0
            else f"{numbers['false_positives']:,} negatives are classified as real; the median number of neighbours "
            f"of their nodes is {degree['false_positives']:g}, of all nodes {degree['all_negatives']:g}."
        )
    return story


def _draw(
    points: tuple[NDArray[Any], NDArray[Any]],
    values: tuple[NDArray[Any], NDArray[Any]],
    highest: list[tuple[str, NDArray[Any]]],
    stacked: bool,
) -> Any:
    figure, axes = panels(2, stacked, height=4.6)
    # The colour scale ends where only a few scores lie beyond, so that these do not use it up.
    low, high = np.quantile(np.concatenate(values), [0.1, 0.995])
    limits = float(low) - 0.01, float(high) + 0.01  # never equal, even if all scores are
    for panel, places, value, title in zip(
        axes, points, values, ("The graph", "A negative sample"), strict=True
    ):
        panel.set_title(title)
        dots = draw_values(panel, places, value, limits)
    place = (
        {"location": "bottom", "shrink": 0.9, "aspect": 30}
        if stacked
        else {"location": "right", "shrink": 0.8}
    )
    bar = figure.colorbar(
        dots, ax=axes, extend="both", label="score (log-odds of being real)", pad=0.02, **place
    )
    bar.outline.set_visible(False)
    axes[0].scatter(
        *np.array([place for _, place in highest]).T,
        s=60,
        facecolor="none",
        edgecolor=INK,
        linewidth=1.4,
    )
    write_names(axes[0], [(name, place, INK) for name, place in highest], fontsize=11, lift=11)
    return figure
