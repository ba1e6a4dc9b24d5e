"""What the paper says about Cora in its figures, beside our numbers."""

from __future__ import annotations

from typing import Any

TOPICS = (
    "Theory",
    "Reinforcement learning",
    "Genetic algorithms",
    "Neural networks",
    "Probabilistic methods",
    "Case-based reasoning",
    "Rule learning",
)
"""The names of Cora's classes; its files hold only their numbers."""

SUPERVISED = "supervised GCN (paper)"


def beside_paper(numbers: dict[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Rows (what, ours, the paper's) from the numbers of an analysis of Cora, chapter by chapter."""
    dimensions = numbers["dimensions"]
    removed = dimensions["removable"][SUPERVISED]["least"]
    least, d = dimensions["curves"]["least"], len(dimensions["t"])
    half = dimensions["removed"].index(d // 2)
    return [
        ("silhouette of DGI's t-SNE", f"{numbers['projections']['silhouette']['DGI']:.3f}", "0.234"),
        ("accuracy of this encoder", f"{100 * least['accuracy'][0]:.1f} %", "82.3 ± 0.6 %"),
        (
            "dimensions that can be removed before the accuracy falls below the GCN's 81.5 %",
            "none" if removed is None else f"{100 * removed / d:.0f} %",
            "over half",
        ),
        (
            "positives classified correctly with half of the dimensions",
            f"{100 * (1 - least['bad_positives'][half] / dimensions['examples']['positives']):.1f} %",
            "mostly",
        ),
    ]
