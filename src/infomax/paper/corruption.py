"""The corruption study: accuracy against the rate of flipped edges."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.analysis.chapter import Chapter
from infomax.analysis.style import BASELINE, COLOURS, DASHED, DOTTED, panels
from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.results import score_text, summarise
from infomax.evaluation.splits import Splits
from infomax.graphs.graph import Graph
from infomax.io.json import read_json, write_json
from infomax.kernels.device import choose_device
from infomax.parts.corruptions import flip_and_shuffle, flip_edges, shuffle_features
from infomax.presets import Part, Preset
from infomax.progress import Progress, silent
from infomax.training.fingerprints import digest, graph_fingerprint
from infomax.training.loop import Training
from infomax.views import WholeGraph

EDGES, BOTH, FEATURES, NONE = "edges", "edges and features", "features", "none"
"""How negatives are made: flipped edges, flipped edges and shuffled features, shuffled features. "none" means no
training: Random-Init."""

FLIPS: dict[str, Part] = {EDGES: flip_edges, BOTH: flip_and_shuffle}
TITLES = {EDGES: "Edges flipped", BOTH: "Edges flipped, features shuffled"}
LINES = {FEATURES: "shuffling features alone", NONE: "Random-Init"}
RESTARTS = 20
"""Initialisations of the paper's probe; where there are several splits, divided among them."""
EPOCHS = 500
"""The limit per training: with dense negatives the loss falls for thousands of epochs."""


def rates(points: int = 13) -> list[float]:
    """Rates of flipped edges from 1e-6 to 1, evenly spaced on a logarithmic scale."""
    return [float(f"{rho:.2g}") for rho in np.logspace(-6, 0, points)]


def trainings(rates: Sequence[float], runs: int) -> int:
    """The number of encoders in a corruption study, with the untrained ones."""
    return runs * (2 + 2 * len(rates))


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
    """Measure accuracy against the rate of flipped edges, beside feature shuffling and Random-Init; as JSON values.

    One encoder is trained per corruption, rate and seed (0 to runs - 1), and scored by the paper's probe. Results are
    stored in ``folder``, in corruption.json; a study that was interrupted continues from there.
    """
    if preset.regime is not WholeGraph:
        raise InputError("corruption study", "a run on the whole graph", "a run on patches, batches or many graphs")
    path = folder / "corruption.json"
    numbers = _begin_study(path, graph, preset, codes, splits)
    done = {(row["corruption"], row["rho"], row["seed"]) for row in numbers["rows"]}
    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    kinds = [(NONE, None), (FEATURES, None), *((kind, rho) for rho in rates for kind in (EDGES, BOTH))]
    for at, (seed, (kind, rho)) in enumerate(product(range(runs), kinds)):
        name = kind if rho is None else f"{kind}, rho {rho:.1g}"
        if (kind, rho, seed) not in done:
            negative = partial(FLIPS[kind], rho=rho) if kind in FLIPS else shuffle_features
            epochs = 0 if kind == NONE else min(EPOCHS, preset.epochs)
            settings = dataclasses.replace(preset, corruption=negative, epochs=epochs)
            model = DGI(preset=settings, seed=seed, device=device)
            vectors, trained = train(model, graph, partial(_tell, progress, at, name))
            score = accuracy(vectors, codes, splits, choose_device(device), seed)
            row = {"corruption": kind, "rho": rho, "seed": seed, "accuracy": score, "epochs": trained}
            numbers["rows"].append(row)
            write_json(path, numbers)
        progress(at + 1, name)
    return numbers


def train(
    model: DGI, graph: Graph, progress: Callable[[int], None] = lambda epochs: None
) -> tuple[NDArray[np.float32], int]:
    """Train a model; return its vectors ``[N, d]`` and the number of epochs."""
    epochs = 0

    def count(training: Training) -> None:
        nonlocal epochs
        epochs = len(training.history)
        progress(epochs)

    return model.fit(graph, progress=count).transform(graph).vectors, epochs


def _tell(progress: Progress, done: int, name: str, epochs: int) -> None:
    progress(done, f"{name}, epoch {epochs}")


def _begin_study(
    path: Path, graph: Graph, preset: Preset, codes: NDArray[np.int64], splits: Sequence[Splits]
) -> dict[str, Any]:
    """Describe a study, with the rows that it already has."""
    settings = {name: value for name, value in preset.describe().items() if name != "corruption"}
    masks = [split[name] for split in splits for name in sorted(split)]
    begun = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "settings": settings,
        "epochs_at_most": EPOCHS,
        "sha256": graph_fingerprint(graph) | {"labels": digest(codes), "splits": digest(*masks)},
    }
    return continued(path, begun, "a corruption study of this graph, these labels, splits and settings")


def continued(path: Path, begun: dict[str, Any], expected: str) -> dict[str, Any]:
    """The study in a file, with the rows that it already has; refuse one that was begun with something else."""
    found = read_json(path) if path.exists() else begun | {"rows": []}
    if {name: found.get(name) for name in begun} != begun:
        raise InputError(str(path), expected, "another", "Choose another folder, or remove the file.")
    return found


def accuracy(
    vectors: NDArray[Any], codes: NDArray[np.int64], splits: Sequence[Splits], device: torch.device, seed: int = 0
) -> float:
    """Accuracy of the paper's probe, the mean over splits and, over all splits together, `RESTARTS` initialisations."""
    probe = partial(paper_probe, restarts=math.ceil(RESTARTS / len(splits)), seed=seed, device=device)
    return float(np.mean([probe(vectors, codes, split).value for split in splits]))


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
        facts.append([_rate(rho), *(percent(curve[rho]) if rho in curve else "" for curve in curves)])
    story.append(
        "For comparison, "
        + " and ".join(f"{name} gives {percent(accuracies(rows, kind)[None])}" for kind, name in LINES.items())
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


def percent(scores: NDArray[np.float64]) -> str:
    """``82.0 ± 0.7 %``, over encoders."""
    row = summarise("", scores, 0, None)
    return f"{score_text(row.mean, row.std, row.metric)} %"


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
