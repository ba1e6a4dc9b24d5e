"""Corruption study: accuracy against the rate of flipped edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.chapter import Chapter
from infomax.analysis.style import BASELINE, COLOURS, DASHED, DOTTED, panels

EDGES, BOTH, FEATURES, NONE = "edges", "edges and features", "features", "none"
"""How negatives are made: flipped edges, flipped edges and shuffled features, shuffled features. "none" means no
training: Random-Init."""

TITLES = {EDGES: "Edges flipped", BOTH: "Edges flipped, features shuffled"}
LINES = {FEATURES: "shuffling features alone", NONE: "Random-Init"}


def accuracies(rows: Sequence[dict[str, Any]], corruption: str) -> dict[float | None, NDArray[np.float64]]:
    """Rate (ascending; None where there is none) -> accuracies ``[runs]`` of encoders trained with one corruption."""
    found = [row for row in rows if row["corruption"] == corruption]
    rates = sorted({row["rho"] for row in found}, key=lambda rho: rho or 0)
    return {rho: np.array([row["accuracy"] for row in found if row["rho"] == rho]) for rho in rates}


def corruption(numbers: dict[str, Any]) -> Chapter:
    """The chapter about a corruption study.

    Args:
        numbers: ``nodes`` and ``edges`` of the graph, ``epochs_at_most``, and ``rows``, one per trained encoder:
            corruption, rho (None for features and none), seed, accuracy (a fraction of 1), epochs.
    """
    rows = numbers["rows"]
    lines = {name: float(accuracies(rows, kind)[None].mean()) for kind, name in LINES.items()}
    sparse = 1 / numbers["nodes"]
    story = [
        "A negative sample can be made by flipping edges: for every pair of nodes, with probability rho, an edge is "
        "removed or added. With rho near 0 the negative is the graph itself and there is nothing to learn; with rho "
        "near 1 it is the complement, in which every node is connected to nearly all others.",
        "The paper draws every entry of the switch matrix Σ on its own, so its negatives are directed. Here every pair "
        "of nodes is drawn once, and an undirected graph stays undirected. Both give the same curve within noise.",
        f"The graph has edges between {200 * numbers['edges'] / numbers['nodes'] ** 2:.2g} % of all pairs; at rho = "
        f"1/N = {sparse:.2g} the flips give every node one random neighbour on average.",
    ]
    curves = [accuracies(rows, kind) for kind in TITLES]
    facts = [["rho", *TITLES.values()]]
    for rho in sorted({rho for curve in curves for rho in curve if rho is not None}):
        facts.append([_rate(rho), *(_score(curve[rho]) if rho in curve else "" for curve in curves)])
    story.append(
        "For comparison, "
        + " and ".join(f"{name} gives {_score(accuracies(rows, kind)[None])}" for kind, name in LINES.items())
        + ". Accuracy is measured by the paper's probe on the test nodes; each training has at most "
        f"{numbers['epochs_at_most']} epochs."
    )
    return Chapter(
        "corruption", "Accuracy against the rate of corruption", story, numbers, _draw(rows, lines, sparse), facts
    )


def _rate(rho: float) -> str:
    """``3.2 · 10⁻⁶``."""
    mantissa, exponent = f"{rho:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if mantissa == "1.0" else f"{mantissa} · 10{power}"


def _score(scores: NDArray[np.float64]) -> str:
    deviation = f" ± {100 * scores.std(ddof=1):.1f}" if len(scores) > 1 else ""
    return f"{100 * scores.mean():.1f}{deviation} %"


def _draw(rows: Sequence[dict[str, Any]], lines: dict[str, float], sparse: float) -> Any:
    def draw(stacked: bool) -> Any:
        figure, axes = panels(2, stacked)
        for panel, (kind, title), colour in zip(axes, TITLES.items(), (COLOURS[0], COLOURS[3]), strict=True):
            curve = accuracies(rows, kind)
            rates, means = list(curve), np.array([100 * scores.mean() for scores in curve.values()])
            spread = np.array([100 * scores.std(ddof=1) if len(scores) > 1 else 0 for scores in curve.values()])
            panel.set_title(title)
            panel.set_xscale("log")
            if spread.any():
                band = f"± one standard deviation, {max(map(len, curve.values()))} encoders"
                bounds = means - spread, means + spread
                panel.fill_between(rates, *bounds, color=colour, alpha=0.18, linewidth=0, label=band)
            panel.plot(rates, means, color=colour, marker="o", markersize=5)
            for (name, value), style in zip(lines.items(), (DASHED, DOTTED), strict=True):
                panel.axhline(100 * value, color=BASELINE, linewidth=1.8, linestyle=style, label=name, zorder=0)
            panel.axvline(sparse, color=BASELINE, linewidth=1, label="rho = 1/N", zorder=0)
            panel.set_xlabel("rate of flipped pairs, rho (log axis)")
            panel.set_ylabel("accuracy on test nodes (%)")
        low, high = zip(*(panel.get_ylim() for panel in axes), strict=True)
        for panel in axes:
            panel.set_ylim(min(low), max(high))
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure

    return draw
