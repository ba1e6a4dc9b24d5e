"""A row of results, and the figures that the paper prints.

Units are the paper's: accuracy in percent (82.3), micro-F1 as a fraction of 1 (0.638).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

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

    def to_dict(self) -> dict[str, Any]:
        """The row as ``--json`` writes it."""
        paper = None if self.paper is None else {"mean": self.paper[0], "std": self.paper[1]}
        return {**asdict(self), "paper": paper, "costs": list(self.costs)}


def summarise(
    method: str, scores: Sequence[float], seconds: float, paper: Printed | None, metric: str = "accuracy"
) -> Row:
    """Summarise the scores of a method (fractions of 1, one per run) as a row.

    A run is one trained encoder, so the deviation is over encoders, never over probes of one encoder. It is the sample
    standard deviation (divided by n - 1); 0 for a single run.
    """
    values = np.asarray(scores, dtype=np.float64) * (100 if metric == "accuracy" else 1)
    std = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return Row(method, metric, float(values.mean()), std, len(values), paper, seconds)


def score_text(mean: float, std: float | None, metric: str) -> str:
    """Format a score: accuracy as ``82.0 ± 0.7``, micro-F1 as ``0.638 ± 0.002``."""
    digits = 1 if metric == "accuracy" else 3
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std else "")


# Table 2 of the paper, top: accuracy in percent.
_TRANSDUCTIVE: dict[str, tuple[Printed, Printed, Printed]] = {
    # method                cora         citeseer      pubmed
    "Raw features":        ((47.9, 0.4),  (49.3, 0.2),  (69.1, 0.3)),
    "LP":                  ((68.0, None), (45.3, None), (63.0, None)),
    "DeepWalk":            ((67.2, None), (43.2, None), (65.3, None)),
    "DeepWalk + features": ((70.7, 0.6),  (51.4, 0.5),  (74.3, 0.9)),
    "Random-Init":         ((69.3, 1.4),  (61.9, 1.6),  (69.6, 1.9)),
    "DGI":                 ((82.3, 0.6),  (71.8, 0.7),  (76.8, 0.6)),
    "GCN":                 ((81.5, None), (70.3, None), (79.0, None)),
    "Planetoid":           ((75.7, None), (64.7, None), (77.2, None)),
}  # fmt: skip

# Table 2 of the paper, bottom: micro-F1 as a fraction of 1; None where the paper has a dash.
_INDUCTIVE: dict[str, tuple[Printed | None, Printed | None]] = {
    # method                reddit          ppi
    "Raw features":        ((0.585, None),  (0.422, None)),
    "DeepWalk":            ((0.324, None),  None),
    "DeepWalk + features": ((0.691, None),  None),
    "GraphSAGE-GCN":       ((0.908, None),  (0.465, None)),
    "GraphSAGE-mean":      ((0.897, None),  (0.486, None)),
    "GraphSAGE-LSTM":      ((0.907, None),  (0.482, None)),
    "GraphSAGE-pool":      ((0.892, None),  (0.502, None)),
    "Random-Init":         ((0.933, 0.001), (0.626, 0.002)),
    "DGI":                 ((0.940, 0.001), (0.638, 0.002)),
    "FastGCN":             ((0.937, None),  None),
    "Avg. pooling":        ((0.958, 0.001), (0.969, 0.002)),
}  # fmt: skip

PAPER: dict[tuple[str, str], Printed] = {
    (dataset, method): cell
    for datasets, table in ((("cora", "citeseer", "pubmed"), _TRANSDUCTIVE), (("reddit", "ppi"), _INDUCTIVE))
    for method, cells in table.items()
    for dataset, cell in zip(datasets, cells, strict=True)
    if cell is not None
}
"""(data set, method) -> mean and deviation in the paper's Table 2."""
