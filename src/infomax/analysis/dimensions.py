"""Dimension study: which dimensions separate positives from negatives, and how many can go."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.report import Chapter
from infomax.analysis.scores import ScoredVectors
from infomax.analysis.style import BASELINE, BELOW, COLOURS, DASHED, DOTTED, panels

POINTS = 16
"""Points of a curve."""
ENDS = {"most": "most distinguishing first", "least": "least distinguishing first"}
"""The orders in which dimensions are removed."""
END_COLOURS = {"most": COLOURS[3], "least": COLOURS[4]}
_NEVER = "not with all dimensions"

Accuracy = Callable[[NDArray[np.int64]], float]
"""Kept dimensions ``[k]`` -> accuracy of a probe on them, a fraction of 1."""


def dimensions(
    pairs: ScoredVectors,
    accuracy: Accuracy | None = None,
    floors: Mapping[str, float] | None = None,
    points: int = POINTS,
    probe: str = "validated",
) -> Chapter:
    """The chapter about removing dimensions, in either order of the t-test.

    Args:
        pairs: positives and negatives with their scores.
        accuracy: that of a probe; None where there are no labels.
        floors: accuracies by name, with which that of the probe is compared.
        points: points of a curve, at most.
        probe: the name of the probe.
    """
    d = pairs.positives.shape[1]
    t_values = distinction(pairs.positives, pairs.negatives)
    counts = removed(d, points)
    ascending = np.argsort(t_values, kind="stable")
    orders = {"most": ascending[::-1], "least": ascending}
    curves = {end: removal(pairs, order, counts, accuracy) for end, order in orders.items()}

    floors = dict(floors or {}) if accuracy is not None else {}
    removable_counts: dict[str, dict[str, int | None]] = {}
    for name, floor in floors.items():
        removable_counts[name] = {
            end: removable(counts.tolist(), curve["accuracy"], floor)
            for end, curve in curves.items()
        }
    numbers = {
        "t": np.round(t_values, 4).tolist(),
        "removed": counts.tolist(),
        "examples": {"positives": len(pairs.positives), "negatives": len(pairs.negatives)},
        "curves": curves,
        "removable": removable_counts,
        "floors": floors,
        "probe": probe,
    }

    facts = [["accuracy stays above", *ENDS.values()]] if floors else []
    for name, floor in floors.items():
        cells = [_removable_text(removable_counts[name][end], d) for end in ENDS]
        facts.append([f"{name} ({100 * floor:.1f} %)", *cells])
    title = "How many dimensions are needed"
    draw = partial(_draw, numbers, d)
    return Chapter("dimensions", title, _story(numbers, d), numbers, draw, facts)


def distinction(positives: NDArray[Any], negatives: NDArray[Any]) -> NDArray[np.float64]:
    """How well each dimension separates ``[n, d]`` from ``[m, d]``: the size of Student's t.

    It gives the same order as the p-values of the t-test, also where those round to zero.
    """
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():  # for dimensions that are constant in both
        warnings.simplefilter("ignore", RuntimeWarning)
        t = ttest_ind(positives, negatives, axis=0).statistic
    return np.nan_to_num(np.abs(np.asarray(t, dtype=np.float64)))


def removal(
    pairs: ScoredVectors,
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
    accuracy: Accuracy | None,
) -> dict[str, list[Any]]:
    """Scores of probe and discriminator without the first dimensions of an order ``[d]``.

    The summary stays that of the whole vectors; a removed dimension adds nothing to a score.
    """
    accuracies: list[float] = []
    bad_positives: list[int] = []
    bad_negatives: list[int] = []
    for count in counts.tolist():
        kept = np.sort(order[count:])
        if accuracy is not None:
            accuracies.append(accuracy(kept))
        positive_scores = pairs.positive_terms[:, kept].sum(axis=1) + pairs.bias
        negative_scores = pairs.negative_terms[:, kept].sum(axis=1) + pairs.bias
        bad_positives.append(int((positive_scores <= 0).sum()))
        bad_negatives.append(int((negative_scores >= 0).sum()))
    return {
        "accuracy": accuracies,
        "bad_positives": bad_positives,
        "bad_negatives": bad_negatives,
    }


def removed(d: int, points: int = POINTS) -> NDArray[np.int64]:
    """How many of d dimensions to remove, from none to all but a few, at most so many numbers."""
    return np.unique(np.linspace(0, d, points + 1).astype(np.int64)[:-1])


def removable(counts: Sequence[int], accuracies: Sequence[float], floor: float) -> int | None:
    """The largest count up to which the accuracy is never below the floor.

    It is None if the accuracy starts below.
    """
    points = zip(counts, accuracies, strict=True)
    points_above = list(takewhile(lambda point: point[1] >= floor, points))
    if not points_above:
        return None
    last_count, _ = points_above[-1]
    return last_count


def _removable_text(count: int | None, d: int) -> str:
    if count is None:
        return _NEVER
    return f"without {count} of {d} ({100 * count / d:.0f} %)"


def _story(numbers: dict[str, Any], d: int) -> list[str]:
    """Paragraphs about the curves, with their values at half of the dimensions."""
    removed_counts = numbers["removed"]
    half = min(range(len(removed_counts)), key=lambda point: abs(removed_counts[point] - d / 2))
    most = numbers["curves"]["most"]
    least = numbers["curves"]["least"]
    examples = numbers["examples"]

    story = [
        "A t-test measures how well each dimension separates the graph from the negative sample. "
        "Then dimensions are removed, once the most distinguishing first and once the least "
        "distinguishing first, and probe and discriminator use the rest."
    ]
    at_half = f"Without {removed_counts[half]} of {d} dimensions"
    if most["accuracy"]:
        story.append(
            f"With all dimensions the {numbers['probe']} probe classifies "
            f"{100 * least['accuracy'][0]:.1f} % of the test nodes correctly. {at_half} its "
            f"accuracy is {100 * least['accuracy'][half]:.1f} % if the least distinguishing are "
            f"removed, {100 * most['accuracy'][half]:.1f} % if the most distinguishing are."
        )
    story.append(
        f"{at_half} the discriminator is wrong about {least['bad_positives'][half]:,} positives "
        f"and {least['bad_negatives'][half]:,} negatives if the least distinguishing are removed, "
        f"about {most['bad_positives'][half]:,} and {most['bad_negatives'][half]:,} if the most "
        f"distinguishing are (with all: {least['bad_positives'][0]:,} and "
        f"{least['bad_negatives'][0]:,}, of {examples['positives']:,} and "
        f"{examples['negatives']:,})."
    )
    return story


def _draw(numbers: dict[str, Any], d: int, stacked: bool) -> Any:
    has_probe = bool(numbers["curves"]["most"]["accuracy"])
    figure, axes = panels(2 if has_probe else 1, stacked)
    removed_counts = numbers["removed"]
    errors_panel = axes[-1]
    for end, colour in END_COLOURS.items():
        curve = numbers["curves"][end]
        if has_probe:
            percent = 100 * np.array(curve["accuracy"])
            line = {"color": colour, "marker": "o", "markersize": 5, "label": ENDS[end]}
            axes[0].plot(removed_counts, percent, **line)
        for examples, style in (("positives", "-"), ("negatives", DASHED)):
            line = {"color": colour, "linestyle": style, "label": f"{examples}, {end} first"}
            errors_panel.plot(removed_counts, curve[f"bad_{examples}"], **line)

    if has_probe:
        styles = cycle((DASHED, DOTTED))
        for (name, floor), style in zip(numbers["floors"].items(), styles, strict=False):
            line = {"color": BASELINE, "linewidth": 1.6, "linestyle": style, "label": name}
            axes[0].axhline(100 * floor, zorder=0, **line)
        axes[0].set(title=f"The {numbers['probe']} probe", ylabel="accuracy on test nodes (%)")
    errors_panel.set(
        title="Errors of the discriminator", ylabel="misclassified examples", ylim=(0, None)
    )
    for panel in axes:
        panel.set(xlim=(0, d), xlabel=f"dimensions removed, of {d}")
        panel.legend(**BELOW)
    return figure
