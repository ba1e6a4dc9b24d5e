"""How each data set of `infomax reproduce` is trained on and scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """The settings for one data set.

    Args:
        title: the data set's name as people write it.
        arguments: the arguments of `DGI`; vectors are always the paper's, the encoder's output.
        in_patches: whether it trains on sampled patches, as on Reddit.
        tests: ending of a row's name -> the split that this row is scored on.
        metric: the unit of the scores, as in the paper. Where each node has one label, accuracy and
            micro-F1 are the same number; accuracy is printed in percent, micro-F1 as a fraction.
        several_labels: whether a node may have more than one label.
    """

    title: str
    arguments: dict[str, Any]
    tests: dict[str, str] = field(default_factory=lambda: {"": "test"})
    metric: str = "accuracy"
    several_labels: bool = False
    in_patches: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `DGI`, with the preset of patches where it trains on them."""
        settings = {**self.arguments, "vectors": "paper"}
        if self.in_patches:
            from infomax_paper.patches import PATCHES  # imports torch

            settings["preset"] = PATCHES
        return settings


# The widths are the paper's. Pubmed's is half of the others' "due to memory limitations".
EXPERIMENTS = {
    "cora": Experiment("Cora", {"dim": 512, "scale": "rows"}),
    "citeseer": Experiment("Citeseer", {"dim": 512, "scale": "rows"}),
    "pubmed": Experiment("Pubmed", {"dim": 256, "scale": "rows"}),
    "ppi": Experiment("PPI", {"preset": "many-graphs"}, metric="micro-F1", several_labels=True),
    "reddit": Experiment("Reddit", {}, metric="micro-F1", in_patches=True),
    "generated-reddit": Experiment("generated Reddit", {}, metric="micro-F1", in_patches=True),
    "debian": Experiment("Debian", {"dim": 256, "epochs": 120}),
    "debian-inductive": Experiment(
        "Debian, inductive",
        {"preset": "mean-pool", "dim": 256, "epochs": 120},
        {", seen nodes": "test-seen", ", new nodes": "test-unseen"},
    ),
}
"""Name of the data set -> its experiment."""
