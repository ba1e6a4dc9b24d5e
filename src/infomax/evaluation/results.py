"""A row of results: a score with its deviation, in the paper's units.

Accuracy is in percent (82.3), micro-F1 a fraction of 1 (0.638).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

PrintedScore: TypeAlias = tuple[float, float | None]
"""Mean and standard deviation as the paper prints them; None if it prints no deviation."""


@dataclass(frozen=True)
class Row:
    """One method on one data set: our score over ``runs`` encoders, and the paper's."""

    method: str
    metric: str
    mean: float
    std: float
    runs: int
    paper: PrintedScore | None
    seconds: float
    splits: int = 1
    """The number of splits; the score of a run is the mean over them."""
    split_std: float = 0.0
    """The standard deviation of one encoder's scores over the splits."""
    costs: tuple[float, ...] = ()
    """The distinct values of the regularisation C that were chosen on validation nodes."""
    other_metrics: dict[str, float] = field(default_factory=dict)
    """Other scores of the same predictions, fractions of 1, by name; see `Score`."""

    def to_dict(self) -> dict[str, Any]:
        """The row as ``--json`` writes it, where other metrics are called "beside"."""
        values = asdict(self)
        values["costs"] = list(self.costs)
        if self.paper is not None:
            mean, std = self.paper
            values["paper"] = {"mean": mean, "std": std}
        other_metrics = values.pop("other_metrics")
        if other_metrics:
            values["beside"] = other_metrics
        return values


def summarise(
    method: str,
    scores: Sequence[float] | NDArray[np.float64],
    seconds: float,
    paper: PrintedScore | None,
    metric: str = "accuracy",
) -> Row:
    """Summarise the scores of a method (fractions of 1, one per run) as a row.

    A run is one trained encoder, so the deviation is over encoders, never over probes of one
    encoder. It is the sample standard deviation (divided by n - 1); 0 for a single run.
    """
    unit = 100 if metric == "accuracy" else 1
    values = np.asarray(scores, dtype=np.float64) * unit
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Row(method, metric, float(values.mean()), std, len(values), paper, seconds)


def over_encoders(rows_of_encoders: Sequence[Sequence[Row]]) -> list[Row]:
    """One row for each method over several encoders: the mean and the deviation of their means."""
    summaries = []
    for rows in zip(*rows_of_encoders, strict=True):
        means = np.array([row.mean for row in rows])
        summary = Row(
            rows[0].method,
            rows[0].metric,
            mean=float(means.mean()),
            std=float(means.std(ddof=1)),
            runs=len(rows),
            paper=None,
            seconds=sum(row.seconds for row in rows),
        )
        summaries.append(summary)
    return summaries


def score_text(mean: float, std: float | None, metric: str) -> str:
    """Format a score: accuracy as ``82.0 ± 0.7``, micro-F1 as ``0.638 ± 0.002``."""
    digits = 1 if metric == "accuracy" else 3
    text = f"{mean:.{digits}f}"
    if std:
        text += f" ± {std:.{digits}f}"
    return text
