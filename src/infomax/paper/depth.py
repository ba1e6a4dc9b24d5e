"""The depth study: encoders of several depths and widths on a citation graph, beside the same ones untrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.chapter import Chapter
from infomax.analysis.style import COLOURS, DOTTED, panels
from infomax.datasets import load_dataset
from infomax.estimator import DGI
from infomax.evaluation.probes import paper_probe
from infomax.io.json import write_json
from infomax.kernels.device import choose_device
from infomax.paper.corruption import continued, percent, train
from infomax.paper.experiments import EXPERIMENTS
from infomax.parts.encoders import GCN
from infomax.progress import Progress, silent
from infomax.reports.comparison import labelled
from infomax.training.fingerprints import graph_fingerprint

TRAINED, RANDOM = "DGI", "Random-Init"
LAYERS = (1, 2, 3, 4)
WIDTHS = (64, 128, 256, 512, 1024, 2048)


def encoders(layers: Sequence[int], widths: Sequence[int], runs: int) -> int:
    """The number of encoders in a study of one data set, with the untrained ones."""
    return 2 * runs * len(layers) * len(widths)


def depth_study(
    dataset: str,
    folder: Path,
    *,
    layers: Sequence[int] = LAYERS,
    widths: Sequence[int] = WIDTHS,
    runs: int = 1,
    device: str = "auto",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Measure accuracy against width and number of layers, with the data set's other settings; as JSON values.

    One encoder is made per method, depth, width and seed (0 to runs - 1), and scored by the paper's probe. Results are
    stored in ``folder``, in depth-DATASET.json; a study that was interrupted continues from there.
    """
    graph, path, place = load_dataset(dataset), folder / f"depth-{dataset}.json", choose_device(device)
    codes, splits = labelled(graph)
    begun: dict[str, Any] = {"dataset": dataset, "sha256": graph_fingerprint(graph)}
    numbers = continued(path, begun, f"a depth study of {dataset}")
    done = {(row["method"], row["layers"], row["width"], row["seed"]) for row in numbers["rows"]}
    # Seeds are the outer loop, so that an interrupted study holds complete curves.
    for at, (seed, width, depth, method) in enumerate(product(range(runs), widths, layers, (RANDOM, TRAINED))):
        name = f"{dataset}, {method}, layers {depth}, width {width}"
        if (method, depth, width, seed) not in done:
            change = {"dim": width, "encoder": partial(GCN, layers=depth)} | ({"epochs": 0} if method == RANDOM else {})
            model = DGI(**EXPERIMENTS[dataset].settings | change, seed=seed, device=device)
            vectors, epochs = train(model, graph)
            score = paper_probe(vectors, codes, splits, seed=seed, device=place).value
            row = {"method": method, "layers": depth, "width": width, "seed": seed, "accuracy": score}
            numbers["rows"].append(row | {"epochs": epochs})
            write_json(path, numbers)
        progress(at + 1, name)
    return numbers


def accuracies(rows: Sequence[dict[str, Any]], method: str, layers: int) -> dict[int, NDArray[np.float64]]:
    """Width (ascending) -> accuracies in % ``[runs]`` of a method's encoders with so many layers."""
    found = [row for row in rows if row["method"] == method and row["layers"] == layers]
    widths = sorted({row["width"] for row in found})
    return {width: 100 * np.array([row["accuracy"] for row in found if row["width"] == width]) for width in widths}


def depth(studies: Mapping[str, dict[str, Any]]) -> Chapter:
    """The chapter about depth studies.

    Args:
        studies: title of a data set -> ``rows``, one per encoder: method, layers, width, seed, accuracy (a fraction of
            1), epochs.
    """
    story = [
        "The paper says that DGI gains more from wider than from deeper encoders: every layer mixes the neighbourhoods "
        "of the nodes, and their vectors become alike. Here are encoders of graph convolutions with one to four layers "
        "of several widths, trained as in the paper, beside the same encoders untrained (Random-Init). Accuracy is "
        "measured by the paper's probe on the test nodes.",
    ]
    facts, best = [["data set", "method", "layers", "width", "accuracy"]], []
    for title, study in studies.items():
        rows = study["rows"]
        for method in (TRAINED, RANDOM):
            for layers in _layers(rows):
                for width, scores in accuracies(rows, method, layers).items():
                    facts.append([title, method, str(layers), f"{width:,}", percent(scores / 100)])
        tops = [(layers, *_best(accuracies(rows, TRAINED, layers))) for layers in _layers(rows)]
        best.append(
            f"{title}: "
            + ", ".join(f"{_count(layers)} {percent(scores / 100)} (width {width:,})" for layers, width, scores in tops)
        )
    story.append(f"The best width of each depth, for DGI. {'. '.join(best)}.")
    return Chapter("depth", "Wider against deeper", story, {"studies": dict(studies)}, _draw(studies), facts)


def _layers(rows: Sequence[dict[str, Any]]) -> list[int]:
    return sorted({row["layers"] for row in rows})


def _count(layers: int) -> str:
    return f"{layers} layer{'s' if layers > 1 else ''}"


def _best(curve: dict[int, NDArray[np.float64]]) -> tuple[int, NDArray[np.float64]]:
    """The width with the highest mean, and its accuracies."""
    width = max(curve, key=lambda width: float(curve[width].mean()))
    return width, curve[width]


def _draw(studies: Mapping[str, dict[str, Any]]) -> Any:
    def draw(stacked: bool) -> Any:
        figure, axes = panels(len(studies), stacked)
        for panel, (title, study) in zip(axes, studies.items(), strict=True):
            rows = study["rows"]
            panel.set_title(title)
            panel.set_xscale("log", base=2)
            for layers, colour in zip(_layers(rows), COLOURS, strict=False):
                curve = accuracies(rows, TRAINED, layers)
                means = np.array([scores.mean() for scores in curve.values()])
                spread = np.array([scores.std(ddof=1) if len(scores) > 1 else 0 for scores in curve.values()])
                if spread.any():
                    panel.fill_between(
                        list(curve), means - spread, means + spread, color=colour, alpha=0.15, linewidth=0
                    )
                panel.plot(list(curve), means, color=colour, marker="o", markersize=5, label=f"DGI, {_count(layers)}")
                plain = accuracies(rows, RANDOM, layers)
                means = np.array([scores.mean() for scores in plain.values()])
                panel.plot(
                    list(plain), means, color=colour, linestyle=DOTTED, linewidth=1.8, label=f"Random-Init, {layers}"
                )
            widths = sorted({row["width"] for row in rows})
            panel.set_xticks(widths, [f"{width:,}" for width in widths], rotation=45)
            panel.minorticks_off()
            panel.set_xlabel("width of the vectors (log axis)")
        axes[0].set_ylabel("accuracy on test nodes (%)")
        handles, labels = axes[0].get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda at: at % 2)  # DGI first
        figure.legend(
            [handles[at] for at in order],
            [labels[at] for at in order],
            loc="outside lower center",
            ncols=2 if stacked else 4,
        )
        return figure

    return draw
