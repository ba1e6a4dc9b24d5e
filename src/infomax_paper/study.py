"""A study: an encoder for each of many points, trained, scored and stored, so that it can go on
after a stop."""

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
    identity: dict[str, Any],
    data: tuple[Graph, NDArray[np.int64], Sequence[Splits]],
    points: Sequence[tuple[str, dict[str, Any]]],
    make_model: Callable[..., DGI],
    progress: Progress,
) -> dict[str, Any]:
    """Train and score the encoders that a study lacks, and return the whole study as JSON values.

    The study is ``identity`` with ``rows``, one for each encoder. It is stored in a file after
    each.

    Args:
        path: the file; an interrupted study continues from there, and a study with another identity
            is refused.
        identity: what the study is of, as JSON values.
        data: the graph, class codes ``[N]`` and splits.
        points: the name of each encoder, and the arguments of ``make_model`` for it.
        make_model: makes an untrained model.
        progress: is told the number of encoders.
    """
    study = read_json(path) if path.exists() else identity | {"rows": []}
    if {name: study.get(name) for name in identity} != identity:
        expected = "a study of this graph, these labels, splits and settings"
        remedy = "Choose another folder, or remove the file."
        raise InputError(str(path), expected, "another", remedy)

    graph, codes, splits = data
    for number, (name, arguments) in enumerate(points):
        is_stored = any(arguments.items() <= row.items() for row in study["rows"])
        if not is_stored:
            report = partial(_report_epoch, progress, number, name, len(points))
            model = make_model(**arguments).fit(graph, progress=report)
            vectors = model.transform(graph).vectors
            device = choose_device(model.device)
            score = accuracy(vectors, codes, splits, device, arguments["seed"])
            result = {"accuracy": score, "epochs": model.health_["epochs"]}
            study["rows"].append(arguments | result)
            write_json(path, study)
        progress(number + 1, name, len(points))
    return study


def _report_epoch(
    progress: Progress, number: int, name: str, total: int, training: Training
) -> None:
    progress(number, f"{name}, epoch {len(training.history)}", total)


def accuracy(
    vectors: NDArray[Any],
    codes: NDArray[np.int64],
    splits: Sequence[Splits],
    device: torch.device,
    seed: int = 0,
) -> float:
    """Accuracy of the paper's probe, the mean over splits and, over all splits together, `RESTARTS`
    initialisations."""
    probe = partial(
        paper_probe, restarts=math.ceil(RESTARTS / len(splits)), seed=seed, device=device
    )
    return float(np.mean([probe(vectors, codes, split).value for split in splits]))


def accuracies(
    rows: Sequence[dict[str, Any]], by: str, **where: Any
) -> dict[Any, NDArray[np.float64]]:
    """The accuracies ``[runs]`` for each value of a column, ascending with None first.

    Args:
        rows: the rows of a study.
        by: the name of the column.
        where: values of other columns, which a row must have.
    """
    matching_rows = [row for row in rows if where.items() <= row.items()]
    values = sorted({row[by] for row in matching_rows}, key=lambda value: value or 0)
    return {
        value: np.array([row["accuracy"] for row in matching_rows if row[by] == value])
        for value in values
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
    """Draw mean accuracies in % against the values of `accuracies`, in a band of one standard
    deviation."""
    means = np.array([100 * scores.mean() for scores in curve.values()])
    deviations = []
    for scores in curve.values():
        deviations.append(100 * scores.std(ddof=1) if len(scores) > 1 else 0)
    spread = np.array(deviations)
    if spread.any():
        bounds = means - spread, means + spread
        axes.fill_between(list(curve), *bounds, color=colour, alpha=0.18, linewidth=0, label=band)
    axes.plot(list(curve), means, color=colour, marker="o", markersize=5, label=label)
