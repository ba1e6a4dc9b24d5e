"""How each data set of `infomax reproduce` is trained on and scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """The settings for one data set.

    Args:
        title: the data set's name as people write it.
        settings: the arguments of `DGI`.
        tests: ending of a row's name -> the split that this row is scored on.
        metric: the unit of the scores, as in the paper. Where each node has one label, accuracy and micro-F1 are the
            same number; accuracy is printed in percent, micro-F1 as a fraction.
        several_labels: whether a node may have more than one label.
    """

    title: str
    settings: dict[str, Any]
    tests: dict[str, str] = field(default_factory=lambda: {"": "test"})
    metric: str = "accuracy"
    several_labels: bool = False


# The widths are the paper's. Pubmed's is half of the others' "due to memory limitations".
EXPERIMENTS = {
    "cora": Experiment("Cora", {"dim": 512, "scale": "rows"}),
    "citeseer": Experiment("Citeseer", {"dim": 512, "scale": "rows"}),
    "pubmed": Experiment("Pubmed", {"dim": 256, "scale": "rows"}),
    "ppi": Experiment("PPI", {"preset": "many-graphs"}, metric="micro-F1", several_labels=True),
    "reddit": Experiment("Reddit", {"preset": "patches"}, metric="micro-F1"),
    "generated-reddit": Experiment("generated Reddit", {"preset": "patches"}, metric="micro-F1"),
    "debian": Experiment("Debian", {"dim": 256, "epochs": 120}),
    "debian-inductive": Experiment(
        "Debian, inductive",
        {"preset": "mean-pool", "dim": 256, "epochs": 120},
        {", seen nodes": "test-seen", ", new nodes": "test-unseen"},
    ),
}
"""Name of the data set -> its experiment; vectors are the paper's, the output of the encoder."""
for one in EXPERIMENTS.values():
    one.settings["vectors"] = "paper"
