"""What the paper prints: its table, in the units of `infomax.evaluation.results`, and its figures
of Cora."""

from __future__ import annotations

from typing import Any

from infomax.evaluation.results import PrintedScore

# Table 2 of the paper, top: accuracy in percent.
_TRANSDUCTIVE: dict[str, tuple[PrintedScore, PrintedScore, PrintedScore]] = {
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
_INDUCTIVE: dict[str, tuple[PrintedScore | None, PrintedScore | None]] = {
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

PAPER: dict[tuple[str, str], PrintedScore] = {
    (dataset, method): cell
    for datasets, table in (
        (("cora", "citeseer", "pubmed"), _TRANSDUCTIVE),
        (("reddit", "ppi"), _INDUCTIVE),
    )
    for method, cells in table.items()
    for dataset, cell in zip(datasets, cells, strict=True)
    if cell is not None
}
"""(data set, method) -> mean and deviation in the paper's Table 2."""

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
    """Rows (quantity, ours, the paper's) from the numbers of an analysis of Cora, by chapter."""
    dimensions = numbers["dimensions"]
    dimension_count = len(dimensions["t"])
    least_first = dimensions["curves"]["least"]
    removable_count = dimensions["removable"][SUPERVISED]["least"]
    removable = "none"
    if removable_count is not None:
        removable = f"{100 * removable_count / dimension_count:.0f} %"

    silhouette = numbers["projections"]["silhouette"]["DGI"]
    half = dimensions["removed"].index(dimension_count // 2)
    wrong_share = least_first["bad_positives"][half] / dimensions["examples"]["positives"]
    accuracy = 100 * least_first["accuracy"][0]
    return [
        ("silhouette of DGI's t-SNE", f"{silhouette:.3f}", "0.234"),
        ("accuracy of this encoder", f"{accuracy:.1f} %", "82.3 ± 0.6 %"),
        (
            "dimensions that can be removed before the accuracy falls below the GCN's 81.5 %",
            removable,
            "over half",
        ),
        (
            "positives classified correctly with half of the dimensions",
            f"{100 * (1 - wrong_share):.1f} %",
            "mostly",
        ),
    ]
