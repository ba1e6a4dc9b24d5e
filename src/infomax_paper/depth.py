"""The depth study: encoders of several depths and widths on a citation graph, beside the same ones
untrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.report import Chapter
from infomax.analysis.style import COLOURS, DOTTED, panels
from infomax.datasets import load_dataset
from infomax.estimator import DGI
from infomax.parts.encoders import GCN
from infomax.progress import Progress, silent
from infomax.reports.comparison import labelled
from infomax.training.resuming import graph_fingerprint
from infomax_paper.experiments import EXPERIMENTS
from infomax_paper.study import accuracies, draw_curve, percent, run_study

TRAINED, RANDOM = "DGI", "Random-Init"


def depth_study(
    dataset: str,
    folder: Path,
    *,
    layers: Sequence[int],
    widths: Sequence[int],
    runs: int,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure accuracy against width and number of layers, with the data set's other settings; as
    JSON values.

    One encoder is made per method, depth, width and seed (0 to runs - 1), and scored by the paper's
    probe. Results are stored in ``folder``, in depth-DATASET.json; a study that was interrupted
    continues from there.
    """
    graph = load_dataset(dataset)
    codes, splits = labelled(graph)
    identity: dict[str, Any] = {"dataset": dataset, "sha256": graph_fingerprint(graph)}

    def make_model(method: str, layers: int, width: int, seed: int) -> DGI:
        settings = EXPERIMENTS[dataset].settings | {
            "dim": width,
            "encoder": partial(GCN, layers=layers),
        }
        if method == RANDOM:
            settings["epochs"] = 0
        return DGI(**settings, seed=seed, device=device)

    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    points = []
    for seed, width, depth, method in product(range(runs), widths, layers, (RANDOM, TRAINED)):
        name = f"{dataset}, {method}, layers {depth}, width {width}"
        arguments = {"method": method, "layers": depth, "width": width, "seed": seed}
        points.append((name, arguments))
    path = folder / f"depth-{dataset}.json"
    return run_study(path, identity, (graph, codes, [splits]), points, make_model, progress)


def depth(studies: Mapping[str, dict[str, Any]]) -> Chapter:
    """The chapter about depth studies, by the titles of their data sets."""
    story = [
        "The paper says that DGI gains more from wider than from deeper encoders: every layer "
        "mixes the neighbourhoods of the nodes, and their vectors become alike. Here are encoders "
        "of graph convolutions with one to four layers of several widths, trained as in the paper, "
        "beside the same encoders untrained (Random-Init). Accuracy is measured by the paper's "
        "probe on the test nodes.",
    ]
    facts = [["data set", "method", "layers", "width", "accuracy"]]
    best_by_dataset = []
    for title, study in studies.items():
        best_of_depths = []
        for (method, layers), curve in _curves(study).items():
            for width, scores in curve.items():
                facts.append([title, method, str(layers), f"{width:,}", percent(scores)])
            if method == TRAINED and curve:
                width, scores = max(curve.items(), key=lambda point: float(point[1].mean()))
                best_of_depths.append(f"{_count(layers)} {percent(scores)} (width {width:,})")
        best_by_dataset.append(f"{title}: {', '.join(best_of_depths)}")
    story.append(f"The best width of each depth, for DGI. {'. '.join(best_by_dataset)}.")
    numbers = {"studies": dict(studies)}
    draw = partial(_draw, studies)
    return Chapter("depth", "Wider against deeper", story, numbers, draw, facts)


def _curves(study: dict[str, Any]) -> dict[tuple[str, int], dict[int, NDArray[np.float64]]]:
    """By method and number of layers, the accuracies for each width; DGI first."""
    rows = study["rows"]
    depths = sorted({row["layers"] for row in rows})
    return {
        (method, layers): accuracies(rows, "width", method=method, layers=layers)
        for method, layers in product((TRAINED, RANDOM), depths)
    }


def _count(layers: int) -> str:
    return f"{layers} layer{'s' if layers > 1 else ''}"


def _draw(studies: Mapping[str, dict[str, Any]], stacked: bool) -> Any:
    figure, axes = panels(len(studies), stacked)
    for panel, (title, study) in zip(axes, studies.items(), strict=True):
        panel.set_title(title)
        panel.set_xscale("log", base=2)
        for (method, layers), curve in _curves(study).items():
            colour = COLOURS[(layers - 1) % len(COLOURS)]
            if method == TRAINED:
                draw_curve(panel, curve, colour, f"DGI, {_count(layers)}")
            else:
                means = [100 * scores.mean() for scores in curve.values()]
                style = {"color": colour, "linestyle": DOTTED, "linewidth": 1.8}
                panel.plot(list(curve), means, label=f"Random-Init, {layers}", **style)
        widths = sorted({row["width"] for row in study["rows"]})
        panel.set_xticks(widths, [f"{width:,}" for width in widths], rotation=45)
        panel.minorticks_off()
        panel.set_xlabel("width of the vectors (log axis)")
    axes[0].set_ylabel("accuracy on test nodes (%)")
    columns = 2 if stacked else 4
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
    return figure
