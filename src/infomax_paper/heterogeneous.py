"""Graphs of several types of nodes, by HeCo's splits: DGI along paths beside Random-Init and one
flattened graph."""

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
"""The number of methods that have encoders."""


def score_types(
    dataset: str, *, runs: int = 10, device: str = "auto", progress: Progress = silent
) -> dict[str, Any]:
    """Macro-F1 in percent of a logistic regression, its C chosen on validation nodes, for each
    number of labels.

    The result is JSON values. A run is one encoder, with seeds 0 to runs - 1; the deviation is over
    encoders. No label is used before the regression.
    """
    graph = load_dataset(dataset)
    codes = encode_labels(graph.labels["class"])[0]
    splits = [
        {part: graph.splits[f"{part}_{count}"] for part in SPLIT_PARTS}
        for count in LABELS_PER_CLASS
    ]
    # One layer on the flattened graph sees no node of the same type.
    longest_path = max(path.count("-") for path in PATHS[dataset])
    flat_graph = flattened(graph)
    along_paths = {"encoder": partial(PathMean, paths=PATHS[dataset])}
    deep = {"encoder": partial(GCN, layers=longest_path)}
    methods: dict[str, tuple[Graph, dict[str, Any]]] = {
        "DGI along paths": (graph, along_paths),
        "Random-Init along paths": (graph, {**along_paths, "epochs": 0}),
        "DGI, flattened graph": (flat_graph, {}),
        f"DGI, flattened graph, {longest_path} layers": (flat_graph, deep),
    }
    torch_device = choose_device(device)

    def macro_f1(vectors: Any) -> list[float]:
        """The score in percent for each number of labels."""
        scores = score_splits(validated_probe, vectors, codes, splits, device=torch_device)
        values = []
        for split, score in zip(splits, scores, strict=True):
            f1 = f1_score(codes[split["test"]], score.predictions[0], average="macro")
            values.append(100 * float(f1))
        return values

    rows = []
    for method_number, (method, (training_graph, settings)) in enumerate(methods.items()):
        values_of_runs = []
        for seed in range(runs):
            model = DGI(vectors="paper", seed=seed, device=device, **settings)
            fit_together([model], training_graph, is_one_of_many=True)
            # Of a flattened graph the nodes of the labelled type come first.
            vectors = model.transform(training_graph).vectors[: graph.num_nodes]
            values_of_runs.append(macro_f1(vectors))
            mean = np.mean(values_of_runs)
            progress(method_number * runs + seed + 1, f"{method} {mean:.1f}")
        deviation = np.zeros(len(splits))
        if runs > 1:
            deviation = np.std(values_of_runs, axis=0, ddof=1)
        row = {
            "method": method,
            "runs": runs,
            "mean": np.mean(values_of_runs, axis=0).tolist(),
            "std": deviation.tolist(),
        }
        rows.append(row)
    raw_features = graph.table.scaled(graph.scaler("auto"))[:]
    rows.append({"method": "Raw features", "mean": macro_f1(raw_features)})
    return {"dataset": dataset, "labels": LABELS_PER_CLASS, "paths": PATHS[dataset], "rows": rows}


def flattened(graph: Graph) -> Graph:
    """All nodes of a graph of several types as one type.

    The nodes of the graph's own type come first; the features of the others are zero.
    """
    own_type_first = sorted(graph.types, key=graph.node_type.__ne__)
    sizes = {node_type: graph.target(node_type).num_nodes for node_type in own_type_first}
    other_count = sum(sizes.values()) - graph.num_nodes
    no_features = sparse.csr_array((other_count, graph.num_features), dtype=np.float32)
    features = sparse.vstack([sparse.csr_array(graph.features), no_features], format="csr")
    return Graph.from_scipy(union(graph.relations, sizes), features)
