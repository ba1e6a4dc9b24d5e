"""The report on a training: curve, time, memory, how many of their dimensions the vectors use, and a verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from infomax import machine
from infomax.evaluation.metrics import dead_dimensions, effective_rank
from infomax.graphs.graph import Graph
from infomax.training.loop import Training
from infomax.training.verdict import judge

LOOKED_AT = 100_000
SHAPED = 20_000
"""Vectors from which the rank is computed, at most: of 34,493 half differ by 0.2 %, in half the time."""


def spread(count: int) -> NDArray[np.int64]:
    """Rows among so many at equal distances, about `LOOKED_AT`; all where there are fewer."""
    return np.arange(0, count, max(1, count // LOOKED_AT))


def health(course: dict[str, Any], vectors: NDArray[np.float32], graph: Graph) -> dict[str, Any]:
    """The whole report: the course, the shape of the vectors ``[N, d]`` of the graph that was seen, and the verdict."""
    report = course | shape(vectors)
    return report | {"verdict": judge(report, graph)}


def course(training: Training) -> dict[str, Any]:
    """Report the course of a training as JSON values."""
    history = training.history
    kept = training.kept_epoch
    report: dict[str, Any] = {
        "epochs": len(history),
        "kept_epoch": kept + 1 if history else 0,
        "stopped_early": bool(history) and len(history) < training.epochs,
        "steps": len(history) * training.views.steps,
        "lr": training.optimiser.lr,
        "seconds": round(training.seconds, 3),
        "peak_memory_bytes": machine.peak_bytes(),
    }
    if training.device.type == "cuda":
        report["peak_gpu_memory_bytes"] = torch.cuda.max_memory_allocated(training.device)
    if history:
        last = history[kept]
        report |= {"loss": last.loss, "discriminator_accuracy": last.accuracy, "summary_spread": last.spread}
        report["guessing_loss"] = float(training.objective(torch.zeros(2), torch.zeros(2)))  # of logits 0
        report["curve"] = {
            "loss": [round(record.loss, 6) for record in history],
            "discriminator_accuracy": [round(record.accuracy, 4) for record in history],
            "summary_spread": [round(record.spread, 6) for record in history],
        }
    return report


def shape(vectors: NDArray[np.float32]) -> dict[str, Any]:
    """Report rank and dead dimensions of vectors ``[N, d]`` as JSON values, from a sample of at most `SHAPED`."""
    vectors = vectors[:: max(1, -(-len(vectors) // SHAPED))]
    return {
        "effective_rank": round(effective_rank(vectors), 2),
        "dead_dimensions": dead_dimensions(vectors),
        "dimensions": int(vectors.shape[1]),
    }
