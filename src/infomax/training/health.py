"""The report on a training: curve, time, memory, how many of their dimensions the vectors use, and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.resemblance import in_words
from infomax.errors import InputError
from infomax.evaluation.metrics import dead_dimensions, effective_rank
from infomax.graphs.graph import Graph
from infomax.io.json import RESTORE, read_json
from infomax.machine import size
from infomax.training.verdict import judge, words

SAMPLE = 20_000
"""Vectors from which the rank is computed, at most: of 34,493 half differ by 0.2 %, in half the time."""


def spread(count: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """At most ``most`` of the rows 0 to count - 1, at equal distances."""
    return np.arange(0, count, max(1, -(-count // most)))


def health(course: dict[str, Any], vectors: NDArray[np.float32], graph: Graph) -> dict[str, Any]:
    """The whole report, as JSON values: the course, rank and dead dimensions of vectors ``[N, d]``, and the verdict.

    The vectors are of the graph that was seen, or of a sample of it; at most `SAMPLE` of them are looked at.
    """
    some = vectors[spread(len(vectors))]
    rank, dead = round(effective_rank(some), 2), dead_dimensions(some)
    report = course | {"effective_rank": rank, "dead_dimensions": dead, "dimensions": int(vectors.shape[1])}
    return report | {"verdict": judge(report, graph)}


def figures(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What a person is shown of a report: names and figures."""
    rows = [("epochs", f"{report['epochs']:d} (weights of epoch {report['kept_epoch']:d})")]
    if "loss" in report:
        rows += [
            ("loss", f"{report['curve']['loss'][0]:.4f} -> {report['loss']:.4f}"),
            *(_metric(name, report[name]) for name in report["curve"] if name != "loss"),
        ]
    rows += [
        ("effective rank", f"{report['effective_rank']:.1f} of {report['dimensions']:d}"),
        ("dead dimensions", f"{report['dead_dimensions']:d}"),
        *([("parts of a vector", _widths(report["parts"]))] if "parts" in report else []),
        *([("features of neighbours", in_words(report["resemblance"]))] if "resemblance" in report else []),
        ("training time", f"{report['seconds']:.1f} s"),
        ("peak memory of the process", size(report["peak_memory_bytes"])),
    ]
    if "peak_gpu_memory_bytes" in report:
        rows.append(("peak memory on the GPU", size(report["peak_gpu_memory_bytes"])))
    return rows


def _metric(name: str, value: float) -> tuple[str, str]:
    """A metric of a method besides its loss, in words; those of Deep Graph Infomax have words of their own."""
    if name == "discriminator_accuracy":
        return "discriminator accuracy", f"{100 * value:.1f} %"
    return "spread of the summary" if name == "summary_spread" else name.replace("_", " "), f"{value:.4f}"


def _widths(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {width:d}" for name, width in parts.items())


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
