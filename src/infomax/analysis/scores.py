"""The discriminator's scores in the plane, for the graph and for a negative sample; the hot nodes named."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.chapter import Chapter
from infomax.analysis.pairs import Pairs
from infomax.analysis.pictures import draw_values, shorten_middle, write_names
from infomax.analysis.style import INK, panels

HOT = 8


def scores(
    pairs: Pairs,
    positive_points: NDArray[Any],
    negative_points: NDArray[Any],
    ids: NDArray[Any],
    degrees: NDArray[Any],
    groups: NDArray[Any] | None = None,
) -> Chapter:
    """Scores in colour, over a projection of the positives and one of the negatives.

    Args:
        pairs: the n positives and m negatives.
        positive_points, negative_points: ``[n, 2]``, ``[m, 2]``.
        ids, degrees, groups: ``[N]``, of every node of the graph; groups as text.
    """
    positive, negative = pairs.positive_scores, pairs.negative_scores
    hot = np.argsort(-positive, kind="stable")[:HOT]
    nodes = pairs.nodes[hot]
    names = [shorten_middle(str(identifier)) for identifier in ids[nodes].tolist()]
    fooled = negative >= 0
    numbers = {
        "positive_scores": np.round(positive, 4).tolist(),
        "negative_scores": np.round(negative, 4).tolist(),
        "told_rightly": {"positives": float((positive > 0).mean()), "negatives": float((negative < 0).mean())},
        "hot": [
            {"id": identifier, "score": float(score), "degree": int(degree)}
            for identifier, score, degree in zip(ids[nodes].tolist(), positive[hot], degrees[nodes], strict=True)
        ],
        "fooled_negatives": int(fooled.sum()),
        "median_degree": {
            "fooled_negatives": float(np.median(degrees[pairs.places[fooled]])) if fooled.any() else None,
            "all_negatives": float(np.median(degrees[pairs.places])),
        },
    }
    column = ["class"] if groups is not None else []
    facts = [["hot node", *column, "neighbours", "score"]]
    for name, node, score in zip(names, nodes.tolist(), positive[hot], strict=True):
        own = [shorten_middle(str(groups[node]))] if groups is not None else []
        facts.append([name, *own, str(degrees[node]), f"{score:.1f}"])
    places = list(zip(names, positive_points[hot], strict=True))
    drawing = _draw((positive_points, negative_points), (positive, negative), places)
    return Chapter("scores", "What the discriminator sees", _story(numbers), numbers, drawing, facts)


def _story(numbers: dict[str, Any]) -> list[str]:
    right, hot, degree = numbers["told_rightly"], numbers["hot"], numbers["median_degree"]
    story = [
        "The discriminator gives every patch a score, the log-odds that it belongs to the graph: above 0 it is taken "
        f"for real. It is right about {100 * right['positives']:.1f} % of the patches of the graph and about "
        f"{100 * right['negatives']:.1f} % of a negative sample it has not seen.",
        f"The median patch of the graph scores {np.median(numbers['positive_scores']):.1f}, the highest "
        f"{hot[0]['score']:.1f}; {len(hot)} of the highest are named.",
    ]
    if degree["fooled_negatives"] is not None:
        story.append(
            f"{numbers['fooled_negatives']:,} negatives pass for real. They sit on nodes with few neighbours: "
            f"{degree['fooled_negatives']:g} at the median, against {degree['all_negatives']:g} among all. The fewer "
            "the neighbours, the likelier a corrupted patch looks like a real one."
            if 1.5 * degree["fooled_negatives"] <= degree["all_negatives"] > 0
            else f"{numbers['fooled_negatives']:,} negatives pass for real; their nodes have "
            f"{degree['fooled_negatives']:g} neighbours at the median, all nodes {degree['all_negatives']:g}."
        )
    return story


def _draw(
    points: tuple[NDArray[Any], NDArray[Any]],
    values: tuple[NDArray[Any], NDArray[Any]],
    hot: list[tuple[str, NDArray[Any]]],
) -> Any:
    def draw(stacked: bool) -> Any:
        figure, axes = panels(2, stacked, height=4.6)
        # The colours end where only a few lie beyond, so that these do not take them all.
        low, high = np.quantile(np.concatenate(values), [0.1, 0.995])
        limits = float(low) - 0.01, float(high) + 0.01  # apart also where all scores are alike
        for panel, places, value, title in zip(axes, points, values, ("The graph", "A negative sample"), strict=True):
            panel.set_title(title)
            dots = draw_values(panel, places, value, limits)
        place = {"location": "bottom", "shrink": 0.9, "aspect": 30} if stacked else {"location": "right", "shrink": 0.8}
        bar = figure.colorbar(dots, ax=axes, extend="both", label="score (log-odds of being real)", pad=0.02, **place)
        bar.outline.set_visible(False)
        axes[0].scatter(*np.array([place for _, place in hot]).T, s=60, facecolor="none", edgecolor=INK, linewidth=1.4)
        write_names(axes[0], [(name, place, INK) for name, place in hot], fontsize=11, lift=11)
        return figure

    return draw
