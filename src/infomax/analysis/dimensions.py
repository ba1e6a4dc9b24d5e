"""Dimension study: which dimensions separate positives from negatives, and how many can be removed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.report import Chapter
from infomax.analysis.scores import Pairs
from infomax.analysis.style import BASELINE, BELOW, COLOURS, DASHED, DOTTED, panels

POINTS = 16
ENDS = {"most": "most distinguishing first", "least": "least distinguishing first"}
END_COLOURS = {"most": COLOURS[3], "least": COLOURS[4]}
_NEVER = "not with all dimensions"

Accuracy = Callable[[NDArray[np.int64]], float]
"""Kept dimensions ``[k]`` -> accuracy of a probe on them, a fraction of 1."""


def distinction(positives: NDArray[Any], negatives: NDArray[Any]) -> NDArray[np.float64]:
    """How well each dimension separates ``[n, d]`` from ``[m, d]``: the absolute value ``[d]`` of Student's t.

    It gives the same order as the p-values of the t-test, also where those round to zero.
    """
    from scipy.stats import ttest_ind

    with warnings.catch_warnings():  # for dimensions that are constant in both
        warnings.simplefilter("ignore", RuntimeWarning)
        t = ttest_ind(positives, negatives, axis=0).statistic
    return np.nan_to_num(np.abs(np.asarray(t, dtype=np.float64)))


def removal(
    pairs: Pairs, order: NDArray[np.int64], counts: NDArray[np.int64], accuracy: Accuracy | None
) -> dict[str, list[Any]]:
    """Scores of probe and discriminator without the first ``counts`` dimensions of an order ``[d]``.

    The summary stays that of the whole vectors; a removed dimension adds nothing to a score.
    """
    curve: dict[str, list[Any]] = {"accuracy": [], "bad_positives": [], "bad_negatives": []}
    for count in counts.tolist():
        kept = np.sort(order[count:])
        if accuracy is not None:
            curve["accuracy"].append(accuracy(kept))
        curve["bad_positives"].append(
            int((pairs.positive_terms[:, kept].sum(axis=1) + pairs.bias <= 0).sum())
        )
        curve["bad_negatives"].append(
            int((pairs.negative_terms[:, kept].sum(axis=1) + pairs.bias >= 0).sum())
        )
    return curve


def removed(d: int, points: int = POINTS) -> NDArray[np.int64]:
    """How many of d dimensions to remove, from none to all but a few, at most so many numbers."""
    return np.unique(np.linspace(0, d, points + 1).astype(np.int64)[:-1])


def removable(counts: Sequence[int], accuracies: Sequence[float], floor: float) -> int | None:
    """The largest count up to which the accuracy stays at or above the floor; None if it starts below."""
    held = list(takewhile(lambda point: point[1] >= floor, zip(counts, accuracies, strict=True)))
    return held[-1][0] if held else None


def dimensions(
    pairs: Pairs,
    accuracy: Accuracy | None = None,
    floors: Mapping[str, float] | None = None,
    points: int = POINTS,
    probe: str = "validated",
) -> Chapter:
    """The chapter about removing dimensions, in either order of the t-test, at so many points.

    ``accuracy`` is that of a probe, None where there are no labels; ``floors`` are those that it is compared with.
    """
    d = pairs.positives.shape[1]
    strength = distinction(pairs.positives, pairs.negatives)
    counts = removed(d, points)
    ascending = np.argsort(strength, kind="stable")
    orders = {"most": ascending[::-1], "least": ascending}
    curves = {end: removal(pairs, order, counts, accuracy) for end, order in orders.items()}
    floors = dict(floors or {}) if accuracy is not None else {}
    numbers = {
        "t": np.round(strength, 4).tolist(),
        "removed": counts.tolist(),
        "examples": {"positives": len(pairs.positives), "negatives": len(pairs.negatives)},
        "curves": curves,
        "removable": {
            name: {
                end: removable(counts.tolist(), curve["accuracy"], floor)
                for end, curve in curves.items()
            }
            for name, floor in floors.items()
        },
        "floors": floors,
        "probe": probe,
    }
    facts = [["accuracy stays above", *ENDS.values()]] if floors else []
    for name, floor in floors.items():
        ends = [numbers["removable"][name][end] for end in ENDS]
        told = [
            f"without {gone} of {d} ({100 * gone / d:.0f} %)" if gone is not None else _NEVER
            for gone in ends
        ]
        facts.append([f"{name} ({100 * floor:.1f} %)", *told])
    return Chapter(
        "dimensions",
        "How many dimensions are needed",
        _story(numbers, d),
        numbers,
        partial(_draw, numbers, d),
        facts,
    )


def _story(numbers: dict[str, Any], d: int) -> list[str]:
    """Paragraphs about the curves, with their values at half of the dimensions."""
    half = min(range(len(numbers["removed"])), key=lambda at: abs(numbers["removed"][at] - d / 2))
    most, least = numbers["curves"]["most"], numbers["curves"]["least"]
    story = [
        "A t-test measures how well each dimension separates the graph from the negative sample. Then dimensions "
        "are removed, once the most distinguishing first and once the least distinguishing first, and probe and "
        "discriminator use the rest."
    ]
    gone = f"Without {numbers['removed'][half]} of {d} dimensions"
    if most["accuracy"]:
        story.append(
            f"With all dimensions the {numbers['probe']} probe classifies {100 * least['accuracy'][0]:.1f} % of the "
            f"test nodes correctly. {gone} its accuracy is {100 * least['accuracy'][half]:.1f} % if the least "
            f"distinguishing are removed, {100 * most['accuracy'][half]:.1f} % if the most distinguishing are."
        )
    story.append(
        f"{gone} the discriminator is wrong about {least['bad_positives'][half]:,} positives and "
        f"{least['bad_negatives'][half]:,} negatives if the least distinguishing are removed, about "
        f"{most['bad_positives'][half]:,} and {most['bad_negatives'][half]:,} if the most distinguishing are "
        f"(with all: {least['bad_positives'][0]:,} and {least['bad_negatives'][0]:,}, of "
        f"{numbers['examples']['positives']:,} and {numbers['examples']['negatives']:,})."
    )
    return story


def _draw(numbers: dict[str, Any], d: int, stacked: bool) -> Any:
    probed = bool(numbers["curves"]["most"]["accuracy"])
    figure, axes = panels(1 + probed, stacked)
    gone = numbers["removed"]
    for end, colour in END_COLOURS.items():
        curve = numbers["curves"][end]
        if probed:
            percent = 100 * np.array(curve["accuracy"])
            axes[0].plot(gone, percent, color=colour, marker="o", markersize=5, label=ENDS[end])
        for who, style in (("positives", "-"), ("negatives", DASHED)):
            axes[-1].plot(
                gone,
                curve[f"bad_{who}"],
                color=colour,
                linestyle=style,
                label=f"{who}, {end} first",
            )
    if probed:
        for (name, floor), style in zip(numbers["floors"].items(), cycle((DASHED, DOTTED))):
            axes[0].axhline(
                100 * floor, color=BASELINE, linewidth=1.6, linestyle=style, label=name, zorder=0
            )
        axes[0].set(title=f"The {numbers['probe']} probe", ylabel="accuracy on test nodes (%)")
    axes[-1].set(
        title="Errors of the discriminator", ylabel="misclassified examples", ylim=(0, None)
    )
    for panel in axes:
        panel.set(xlim=(0, d), xlabel=f"dimensions removed, of {d}")
        panel.legend(**BELOW)
    return figure
