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
class ScoredVectors:
    """Vectors of a graph's nodes (positives) and of a corrupted graph (negatives), with scores.

    A score is the discriminator's logit, the sum of a vector's terms and the bias. Above 0 the
    discriminator takes the vector for a positive.

    Shapes:
        nodes: ``[n]``, the node of each positive.
        negative_nodes: ``[m]``, the node in whose position in the graph each negative stands.
        positives, negatives: ``[n, d]``, ``[m, d]``.
        positive_terms, negative_terms: ``[n, d]``, ``[m, d]``, what each dimension adds to the
            score.
    """

    nodes: NDArray[np.int64]
    negative_nodes: NDArray[np.int64]
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
    pairs: ScoredVectors,
    positive_points: NDArray[Any],
    negative_points: NDArray[Any],
    ids: NDArray[Any],
    degrees: NDArray[Any],
    groups: NDArray[Any] | None = None,
    node_names: NDArray[Any] | None = None,
) -> Chapter:
    """The chapter about scores, drawn in colour over projections of positives and negatives.

    Args:
        pairs: positives and negatives with their scores.
        positive_points: ``[n, 2]``, the projection of the positives.
        negative_points: ``[m, 2]``, that of the negatives.
        ids: ``[N]``, of all nodes of the graph, as are the arguments below.
        degrees: ``[N]``.
        groups: ``[N]``, the classes; None: not shown.
        node_names: ``[N]``, what to call the nodes. None: by their ids.
    """
    positive_scores = pairs.positive_scores
    negative_scores = pairs.negative_scores

    # The nodes with the highest scores.
    highest = np.argsort(-positive_scores, kind="stable")[:HIGHEST]
    highest_nodes = pairs.nodes[highest]
    highest_scores = positive_scores[highest]
    labels = ids if node_names is None else node_names
    highest_labels = labels[highest_nodes].tolist()
    described_nodes = []
    for node, node_score in zip(highest_nodes, highest_scores, strict=True):
        described = {
            "id": ids[[node]].tolist()[0],
            "score": float(node_score),
            "degree": int(degrees[node]),
        }
        if node_names is not None:
            described["name"] = node_names[node]
        described_nodes.append(described)

    is_mistaken = negative_scores >= 0
    median_degree_of_mistaken = None
    if is_mistaken.any():
        mistaken_nodes = pairs.negative_nodes[is_mistaken]
        median_degree_of_mistaken = float(np.median(degrees[mistaken_nodes]))
    numbers = {
        "positive_scores": np.round(positive_scores, 4).tolist(),
        "negative_scores": np.round(negative_scores, 4).tolist(),
        "correct": {
            "positives": float((positive_scores > 0).mean()),
            "negatives": float((negative_scores < 0).mean()),
        },
        "highest": described_nodes,
        "false_positives": int(is_mistaken.sum()),
        "median_degree": {
            "false_positives": median_degree_of_mistaken,
            "all_negatives": float(np.median(degrees[pairs.negative_nodes])),
        },
    }

    columns: dict[str, Sequence[Any]] = {"highest-scored node": highest_labels}
    if node_names is not None:
        columns["id"] = ids[highest_nodes].tolist()
    if groups is not None:
        columns["class"] = groups[highest_nodes].tolist()
    columns["neighbours"] = degrees[highest_nodes].tolist()
    columns["score"] = [f"{node_score:.1f}" for node_score in highest_scores]
    facts = [list(columns)]
    for row in zip(*columns.values(), strict=True):
        facts.append([shorten_middle(str(cell)) for cell in row])

    named_points = list(zip(map(str, highest_labels), positive_points[highest], strict=True))
    draw = partial(
        _draw,
        (positive_points, negative_points),
        (positive_scores, negative_scores),
        named_points,
    )
    story = _story(numbers)
    return Chapter("scores", "Scores of the discriminator", story, numbers, draw, facts)


def _story(numbers: dict[str, Any]) -> list[str]:
    correct = numbers["correct"]
    highest = numbers["highest"]
    mistaken_degree = numbers["median_degree"]["false_positives"]
    usual_degree = numbers["median_degree"]["all_negatives"]
    story = [
        "The discriminator gives every patch a score, the log-odds that it belongs to the graph: "
        "above 0 it is classified as real. It is right about "
        f"{100 * correct['positives']:.1f} % of the patches of the graph and about "
        f"{100 * correct['negatives']:.1f} % of a negative sample that was not used in training.",
        f"The median score in the graph is {np.median(numbers['positive_scores']):.1f}, the "
        f"highest {highest[0]['score']:.1f}; the {len(highest)} highest-scored nodes are named.",
    ]
    if mistaken_degree is None:
        return story

    mistaken = f"{numbers['false_positives']:,} negatives are classified as real"
    if 1.5 * mistaken_degree <= usual_degree > 0:
        story.append(
            f"{mistaken}. Their nodes have few neighbours: the median is {mistaken_degree:g}, "
            f"against {usual_degree:g} among all. The fewer neighbours a node has, the more a "
            "corrupted patch looks like a real one."
        )
    else:
        story.append(
            f"{mistaken}; the median number of neighbours of their nodes is {mistaken_degree:g}, "
            f"of all nodes {usual_degree:g}."
        )
    return story


def _draw(
    points: tuple[NDArray[Any], NDArray[Any]],
    values: tuple[NDArray[Any], NDArray[Any]],
    named_points: list[tuple[str, NDArray[Any]]],
    stacked: bool,
) -> Any:
    figure, axes = panels(2, stacked, height=4.6)
    # The colour scale ends where only a few scores lie beyond, so that these do not use it up.
    low, high = np.quantile(np.concatenate(values), [0.1, 0.995])
    limits = float(low) - 0.01, float(high) + 0.01  # never equal, even if all scores are
    titles = ("The graph", "A negative sample")
    for panel, panel_points, panel_values, title in zip(axes, points, values, titles, strict=True):
        panel.set_title(title)
        dots = draw_values(panel, panel_points, panel_values, limits)

    placement: dict[str, Any] = {"location": "right", "shrink": 0.8}
    if stacked:
        placement = {"location": "bottom", "shrink": 0.9, "aspect": 30}
    label = "score (log-odds of being real)"
    bar = figure.colorbar(dots, ax=axes, extend="both", label=label, pad=0.02, **placement)
    bar.outline.set_visible(False)

    circles = np.array([point for _, point in named_points]).T
    axes[0].scatter(*circles, s=60, facecolor="none", edgecolor=INK, linewidth=1.4)
    names = [(name, point, INK) for name, point in named_points]
    write_names(axes[0], names, fontsize=11, lift=11)
    return figure
