"""A study: an encoder for each of many points, trained, scored and stored, so that it can go on after a stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.errors import InputError
from infomax.estimator import DGI
from infomax.evaluation.probes import paper_probe
from infomax.evaluation.results import score_text, summarise
from infomax.evaluation.splits import Splits
from infomax.graphs.graph import Graph
from infomax.io.json import read_json, write_json
from infomax.kernels.device import choose_device
from infomax.progress import Progress
from infomax.training.loop import Training

RESTARTS = 20
"""Initialisations of the paper's probe; where there are several splits, divided among them."""


def run_study(
    path: Path,
    begun: dict[str, Any],
    data: tuple[Graph, NDArray[np.int64], Sequence[Splits]],
    points: Sequence[tuple[str, dict[str, Any]]],
    make: Callable[..., DGI],
    progress: Progress,
) -> dict[str, Any]:
    """Train and score the encoders that a study lacks; return ``begun`` with a row for each, as JSON values.

    The study is stored in a file; one that was begun with something else is refused. The ``data`` are a graph, class
    codes ``[N]`` and splits; ``points`` the name of each encoder, and the arguments of ``make`` for it.
    """
    numbers = read_json(path) if path.exists() else begun | {"rows": []}
    if {name: numbers.get(name) for name in begun} != begun:
        expected = "a study of this graph, these labels, splits and settings"
        raise InputError(
            str(path), expected, "another", "Choose another folder, or remove the file."
        )
    graph, codes, splits = data
    for at, (name, point) in enumerate(points):
        if not any(point.items() <= row.items() for row in numbers["rows"]):
            model = make(**point).fit(
                graph, progress=partial(_tell, progress, at, name, len(points))
            )
            vectors = model.transform(graph).vectors
            score = accuracy(vectors, codes, splits, choose_device(model.device), point["seed"])
            numbers["rows"].append(point | {"accuracy": score, "epochs": model.health_["epochs"]})
            write_json(path, numbers)
        progress(at + 1, name, len(points))
    return numbers


def _tell(progress: Progress, at: int, name: str, total: int, training: Training) -> None:
    progress(at, f"{name}, epoch {len(training.history)}", total)


def accuracy(
    vectors: NDArray[Any],
    codes: NDArray[np.int64],
    splits: Sequence[Splits],
    device: torch.device,
    seed: int = 0,
) -> float:
    """Accuracy of the paper's probe, the mean over splits and, over all splits together, `RESTARTS` initialisations."""
    probe = partial(
        paper_probe, restarts=math.ceil(RESTARTS / len(splits)), seed=seed, device=device
    )
    return float(np.mean([probe(vectors, codes, split).value for split in splits]))


def accuracies(
    rows: Sequence[dict[str, Any]], by: str, **where: Any
) -> dict[Any, NDArray[np.float64]]:
    """Value of a column (ascending, None first) -> accuracies ``[runs]`` of those rows where other columns are so."""
    found = [row for row in rows if where.items() <= row.items()]
    values = sorted({row[by] for row in found}, key=lambda value: value or 0)
    return {
        value: np.array([row["accuracy"] for row in found if row[by] == value]) for value in values
    }


def percent(scores: NDArray[np.float64]) -> str:
    """``82.0 ± 0.7 %``, over encoders."""
    row = summarise("", scores, 0, None)
    return f"{score_text(row.mean, row.std, row.metric)} %"


def draw_curve(
    axes: Any,
    curve: dict[Any, NDArray[np.float64]],
    colour: str,
    label: str | None = None,
    band: str | None = None,
) -> None:
    """Draw mean accuracies in % against what they are by, in a band of one standard deviation."""
    means = np.array([100 * scores.mean() for scores in curve.values()])
    spread = np.array(
        [100 * scores.std(ddof=1) if len(scores) > 1 else 0 for scores in curve.values()]
    )
    if spread.any():
        bounds = means - spread, means + spread
        axes.fill_between(list(curve), *bounds, color=colour, alpha=0.18, linewidth=0, label=band)
    axes.plot(list(curve), means, color=colour, marker="o", markersize=5, label=label)
