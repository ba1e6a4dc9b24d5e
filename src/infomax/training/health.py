"""The report on a training: its course, the spectrum of the vectors, and the verdict."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.resemblance import in_words
from infomax.errors import InputError
from infomax.evaluation.metrics import dead_dimensions, effective_rank
from infomax.graphs.graph import Graph
from infomax.io.json import RESTORE, read_json
from infomax.memory import format_size
from infomax.training.verdict import judge, words

MOST_SAMPLED_VECTORS = 20_000
"""Vectors from which the rank is computed, at most.

Of 34,493 vectors half differ by 0.2 % in rank, in half the time.
"""


def health(course: dict[str, Any], vectors: NDArray[np.float32], graph: Graph) -> dict[str, Any]:
    """The whole report, as JSON values.

    Args:
        course: how the training went.
        vectors: ``[N, d]``, of the graph that was seen, or of a sample of its nodes; at most
            `MOST_SAMPLED_VECTORS` of them are looked at.
        graph: the graph that was seen.
    """
    sample = vectors[spread(len(vectors))]
    report = course | {
        "effective_rank": round(effective_rank(sample), 2),
        "dead_dimensions": dead_dimensions(sample),
        "dimensions": int(vectors.shape[1]),
    }
    return report | {"verdict": judge(report, graph)}


def spread(count: int, most_rows: int = MOST_SAMPLED_VECTORS) -> NDArray[np.int64]:
    """At most ``most_rows`` of the rows 0 to count - 1, at equal distances."""
    distance = max(1, math.ceil(count / most_rows))
    return np.arange(0, count, distance)


def figures(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The rows of a report that a person is shown: names and figures."""
    epochs = f"{report['epochs']:d}"
    if report["kept_epoch"] != report["epochs"]:
        epochs += f" (weights of epoch {report['kept_epoch']:d})"
    rows = [("epochs", epochs)]

    if "loss" in report:
        rows.append(("loss", f"{report['curve']['loss'][0]:.4f} -> {report['loss']:.4f}"))
        rows += [_metric_row(name, report[name]) for name in report["curve"] if name != "loss"]

    rows.append(("effective rank", f"{report['effective_rank']:.1f} of {report['dimensions']:d}"))
    rows.append(("dead dimensions", f"{report['dead_dimensions']:d}"))
    if report.get("parts"):
        widths = ", ".join(f"{name} {width:d}" for name, width in report["parts"].items())
        rows.append(("parts of a vector", widths))
    if "resemblance" in report:
        rows.append(("features of neighbours", in_words(report["resemblance"])))
    if "position_search" in report:
        rows.append(("search for positions", report["position_search"]))
    if "hidden_links" in report:
        scores = report["hidden_links"]
        aucs = f"{scores['trained']:.3f}, before training {scores['untrained']:.3f}"
        rows.append(("AUC of hidden links", aucs))

    rows.append(("training time", f"{report['seconds']:.1f} s"))
    rows.append(("peak memory of the process", format_size(report["peak_memory_bytes"])))
    if "peak_gpu_memory_bytes" in report:
        rows.append(("peak memory on the GPU", format_size(report["peak_gpu_memory_bytes"])))
    return rows


def _metric_row(name: str, value: float) -> tuple[str, str]:
    """The row of a metric besides the loss; the metrics of Deep Graph Infomax have names."""
    if name == "discriminator_accuracy":
        return "discriminator accuracy", f"{100 * value:.1f} %"
    if name == "summary_spread":
        return "spread of the summary", f"{value:.4f}"
    return name.replace("_", " "), f"{value:.4f}"


def read_report(path: Path) -> dict[str, Any]:
    """Read the report on a training; refused if it cannot be shown."""
    report = read_json(path)
    try:
        figures(report)
        words(report["verdict"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        found = f"one that cannot be shown ({type(error).__name__}: {error})"
        raise InputError(str(path), "the report on a training", found, RESTORE) from error
    return report
