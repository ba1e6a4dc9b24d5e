"""Graphs of several types of nodes, by HeCo's splits: DGI along paths beside Random-Init and one flattened graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import f1_score

from infomax.datasets import load_dataset
from infomax.datasets.heco import LABELS_PER_CLASS
from infomax.estimator import DGI
from infomax.estimator.together import fit_together
from infomax.evaluation.probes import score_splits, validated_probe
from infomax.evaluation.splits import SPLIT_PARTS, encode_labels
from infomax.graphs.graph import Graph
from infomax.io.union import union
from infomax.kernels.device import choose_device
from infomax.parts.encoders import GCN, PathMean
from infomax.progress import Progress, silent

PATHS = {
    "heco-acm": ("paper-author-paper", "paper-subject-paper"),
    "heco-dblp": (
        "author-paper-author",
        "author-paper-conference-paper-author",
        "author-paper-term-paper-author",
    ),
}
PUBLISHED = {"heco-acm": (88.6, 87.6, 89.0), "heco-dblp": (91.3, 90.3, 90.6)}
"""Macro-F1 in percent that HeCo's authors publish, for each of `LABELS_PER_CLASS`."""
METHODS = 4
"""Those that have encoders."""


def score_types(
    dataset: str, *, runs: int = 10, device: str = "auto", progress: Progress = silent
) -> dict[str, Any]:
    """Macro-F1 in percent of a logistic regression, its C chosen on validation nodes, for each number of labels.

    The result is JSON values. A run is one encoder, with seeds 0 to runs - 1; the deviation is over encoders. No label
    is used before the regression.
    """
    graph = load_dataset(dataset)
    codes = encode_labels(graph.labels["class"])[0]
    splits = [
        {part: graph.splits[f"{part}_{count}"] for part in SPLIT_PARTS}
        for count in LABELS_PER_CLASS
    ]
    deep = max(
        path.count("-") for path in PATHS[dataset]
    )  # one layer sees no node of the same type
    along, flat = {"encoder": partial(PathMean, paths=PATHS[dataset])}, flattened(graph)
    methods: dict[str, tuple[Graph, dict[str, Any]]] = {
        "DGI along paths": (graph, along),
        "Random-Init along paths": (graph, {**along, "epochs": 0}),
        "DGI, flattened graph": (flat, {}),
        f"DGI, flattened graph, {deep} layers": (flat, {"encoder": partial(GCN, layers=deep)}),
    }

    def scores(vectors: Any) -> list[float]:
        found = score_splits(validated_probe, vectors, codes, splits, device=choose_device(device))
        pairs = [
            (codes[split["test"]], score.predictions[0])
            for split, score in zip(splits, found, strict=True)
        ]
        return [100 * float(f1_score(*pair, average="macro")) for pair in pairs]

    rows = []
    for number, (method, (one, settings)) in enumerate(methods.items()):
        found = []
        for seed in range(runs):
            model = DGI(vectors="paper", seed=seed, device=device, **settings)
            fit_together([model], one, is_one_of_many=True)
            found.append(scores(model.transform(one).vectors[: graph.num_nodes]))
            progress(number * runs + seed + 1, f"{method} {np.mean(found):.1f}")
        spread = np.std(found, axis=0, ddof=1) if runs > 1 else np.zeros(len(splits))
        rows.append(
            {
                "method": method,
                "runs": runs,
                "mean": np.mean(found, axis=0).tolist(),
                "std": spread.tolist(),
            }
        )
    rows.append(
        {"method": "Raw features", "mean": scores(graph.table.scaled(graph.scaler("auto"))[:])}
    )
    return {"dataset": dataset, "labels": LABELS_PER_CLASS, "paths": PATHS[dataset], "rows": rows}


def flattened(graph: Graph) -> Graph:
    """All nodes of a graph of several types as one type, those of its own type first; others' features are zero."""
    sizes = {
        kind: graph.target(kind).num_nodes
        for kind in sorted(graph.types, key=graph.node_type.__ne__)
    }
    others = sparse.csr_array(
        (sum(sizes.values()) - graph.num_nodes, graph.num_features), dtype=np.float32
    )
    features = sparse.vstack([sparse.csr_array(graph.features), others], format="csr")
    return Graph.from_scipy(union(graph.relations, sizes), features)
