"""A row of results: a score with its deviation, in the paper's units.

Accuracy is in percent (82.3), micro-F1 a fraction of 1 (0.638).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Printed: TypeAlias = tuple[float, float | None]
"""Mean and standard deviation as the paper prints them; None if it prints no deviation."""


@dataclass(frozen=True)
class Row:
    """One method on one data set: ours, over ``runs`` encoders, beside the paper's."""

    method: str
    metric: str
    mean: float
    std: float
    runs: int
    paper: Printed | None
    seconds: float
    splits: int = 1
    """The number of splits; the score of a run is the mean over them."""
    split_std: float = 0.0
    """The standard deviation of one encoder's scores over the splits."""
    costs: tuple[float, ...] = ()
    """The distinct values of the regularisation C that were chosen on validation nodes."""
    beside: dict[str, float] = field(default_factory=dict)
    """Other scores of the same predictions, fractions of 1, by name; see `Score`."""

    def to_dict(self) -> dict[str, Any]:
        """The row as ``--json`` writes it."""
        paper = None if self.paper is None else {"mean": self.paper[0], "std": self.paper[1]}
        values = {**asdict(self), "paper": paper, "costs": list(self.costs)}
        return {name: value for name, value in values.items() if value or name != "beside"}


def summarise(
    method: str,
    scores: Sequence[float] | NDArray[np.float64],
    seconds: float,
    paper: Printed | None,
    metric: str = "accuracy",
) -> Row:
    """Summarise the scores of a method (fractions of 1, one per run) as a row.

    A run is one trained encoder, so the deviation is over encoders, never over probes of one encoder. It is the sample
    standard deviation (divided by n - 1); 0 for a single run.
    """
    values = np.asarray(scores, dtype=np.float64) * (100 if metric == "accuracy" else 1)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Row(method, metric, float(values.mean()), std, len(values), paper, seconds)


def over_encoders(scored: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of several encoders as one each: the mean of their means, the deviation over encoders."""
    found = []
    for rows in zip(*scored, strict=True):
        means, first = np.array([row.mean for row in rows]), rows[0]
        std, seconds = float(means.std(ddof=1)), sum(row.seconds for row in rows)
        found.append(
            Row(first.method, first.metric, float(means.mean()), std, len(rows), None, seconds)
        )
    return found


def score_text(mean: float, std: float | None, metric: str) -> str:
    """Format a score: accuracy as ``82.0 ± 0.7``, micro-F1 as ``0.638 ± 0.002``."""
    digits = 1 if metric == "accuracy" else 3
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std else "")
