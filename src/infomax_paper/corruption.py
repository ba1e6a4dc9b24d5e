"""The corruption study: accuracy against the rate of flipped edges."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.report import Chapter
from infomax.analysis.style import BASELINE, COLOURS, DASHED, DOTTED, panels
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.splits import Splits
from infomax.graphs.graph import Graph
from infomax.parts.corruptions import flip_and_shuffle, flip_edges, shuffle_features
from infomax.parts.methods import Part
from infomax.progress import Progress, silent
from infomax.training.presets import Preset
from infomax.training.resuming import digest, graph_fingerprint
from infomax.views import WholeGraph
from infomax_paper.study import accuracies, draw_curve, percent, run_study

EDGES, BOTH, FEATURES, NONE = "edges", "edges and features", "features", "none"
"""How negatives are made: flipped edges, flipped edges and shuffled features, shuffled features.
"none" means no training: Random-Init."""

FLIPS: dict[str, Part] = {EDGES: flip_edges, BOTH: flip_and_shuffle}
TITLES = {EDGES: "Edges flipped", BOTH: "Edges flipped, features shuffled"}
LINES = {FEATURES: "shuffling features alone", NONE: "Random-Init"}
EPOCHS = 500
"""The limit per training: with dense negatives the loss falls for thousands of epochs."""


def rates(points: int = 13) -> list[float]:
    """Rates of flipped edges from 1e-6 to 1, evenly spaced on a logarithmic scale."""
    return [float(f"{rho:.2g}") for rho in np.logspace(-6, 0, points)]


def corruption_study(
    graph: Graph,
    preset: Preset,
    codes: NDArray[np.int64],
    splits: Sequence[Splits],
    folder: Path,
    *,
    rates: Sequence[float],
    runs: int,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure accuracy against the rate of flipped edges, beside feature shuffling and Random-Init;
    as JSON values.

    One encoder is trained per corruption, rate and seed (0 to runs - 1), and scored by the paper's
    probe. Results are stored in ``folder``, in corruption.json; a study that was interrupted
    continues from there.
    """
    if preset.regime is not WholeGraph:
        raise InputError(
            "corruption study",
            "a run on the whole graph",
            "a run on patches, batches or many graphs",
        )
    masks = [split[name] for split in splits for name in sorted(split)]
    settings = {name: value for name, value in preset.describe().items() if name != "corruption"}
    hashes = graph_fingerprint(graph) | {"labels": digest(codes), "splits": digest(*masks)}
    identity = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "settings": settings,
        "epochs_at_most": EPOCHS,
        "sha256": hashes,
    }

    def make_model(corruption: str, rho: float | None, seed: int) -> DGI:
        if corruption in FLIPS:
            negative: Part = partial(FLIPS[corruption], rho=rho)
        else:
            negative = shuffle_features
        epochs = 0 if corruption == NONE else min(EPOCHS, preset.epochs)
        changed = dataclasses.replace(preset, corruption=negative, epochs=epochs, vectors="paper")
        return DGI(preset=changed, seed=seed, device=device)

    corruptions: list[tuple[str, float | None]] = [(NONE, None), (FEATURES, None)]
    for rho in rates:
        corruptions += [(EDGES, rho), (BOTH, rho)]

    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    points = []
    for seed, (corruption, rate) in product(range(runs), corruptions):
        name = corruption if rate is None else f"{corruption}, rho {rate:.1g}"
        points.append((name, {"corruption": corruption, "rho": rate, "seed": seed}))
    path = folder / "corruption.json"
    return run_study(path, identity, (graph, codes, splits), points, make_model, progress)


def corruption(numbers: dict[str, Any]) -> Chapter:
    """The chapter about the numbers of a `corruption_study`."""
    rows = numbers["rows"]
    baselines = {
        title: accuracies(rows, "rho", corruption=name)[None] for name, title in LINES.items()
    }
    curves = [accuracies(rows, "rho", corruption=name) for name in TITLES]
    neighbour_rate = 1 / numbers["nodes"]

    edge_percent = 200 * numbers["edges"] / numbers["nodes"] ** 2
    baseline_scores = " and ".join(
        f"{title} gives {percent(scores)}" for title, scores in baselines.items()
    )
    story = [
        "A negative sample can be made by flipping edges: for every pair of nodes, with "
        "probability rho, an edge is removed or added. With rho near 0 the negative is the graph "
        "itself and there is nothing to learn; with rho near 1 it is the complement, in which "
        "every node is connected to nearly all others.",
        "The paper draws every entry of the switch matrix Σ on its own, so its negatives are "
        "directed. Here every pair of nodes is drawn once, and an undirected graph stays "
        "undirected. Both give the same curve within noise.",
        f"The graph has edges between {edge_percent:.2g} % of all pairs; at rho = "
        f"1/N = {neighbour_rate:.2g} the flips give every node one random neighbour on average.",
        f"For comparison, {baseline_scores}. Accuracy is measured by the paper's probe on the test "
        f"nodes; each training has at most {numbers['epochs_at_most']} epochs.",
    ]

    facts = [["rho", *TITLES.values()]]
    for rho in sorted({rho for curve in curves for rho in curve if rho is not None}):
        scores_at_rho = [percent(curve[rho]) if rho in curve else "" for curve in curves]
        facts.append([_rate(rho), *scores_at_rho])

    draw = partial(_draw, rows, baselines, neighbour_rate)
    return Chapter(
        "corruption", "Accuracy against the rate of corruption", story, numbers, draw, facts
    )


def _rate(rho: float) -> str:
    """``3.2 · 10⁻⁶``."""
    mantissa, exponent = f"{rho:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if mantissa == "1.0" else f"{mantissa} · 10{power}"


def _draw(
    rows: Sequence[dict[str, Any]],
    baselines: dict[str, NDArray[np.float64]],
    neighbour_rate: float,
    stacked: bool,
) -> Any:
    figure, axes = panels(2, stacked)
    colours = COLOURS[0], COLOURS[3]
    for panel, (name, title), colour in zip(axes, TITLES.items(), colours, strict=True):
        curve = accuracies(rows, "rho", corruption=name)
        panel.set_title(title)
        panel.set_xscale("log")
        band = f"± one standard deviation, {max(map(len, curve.values()))} encoders"
        draw_curve(panel, curve, colour, band=band)
        for (label, scores), style in zip(baselines.items(), (DASHED, DOTTED), strict=True):
            panel.axhline(
                100 * scores.mean(),
                color=BASELINE,
                linewidth=1.8,
                linestyle=style,
                label=label,
                zorder=0,
            )
        panel.axvline(neighbour_rate, color=BASELINE, linewidth=1, label="rho = 1/N", zorder=0)
        panel.set_xlabel("rate of flipped pairs, rho (log axis)")
        panel.set_ylabel("accuracy on test nodes (%)")
    # The same axis in both panels.
    lows, highs = zip(*(panel.get_ylim() for panel in axes), strict=True)
    for panel in axes:
        panel.set_ylim(min(lows), max(highs))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
