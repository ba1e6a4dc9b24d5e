"""Graphs of several types whose features say little: is the default as good as positions alone?

    python recipes/weak_features.py [heco-acm-random heco-acm-hashed heco-dblp-random heco-dblp-hashed heco-acm ...]
                                    [--encoders 3] [--dim 512] [--epochs 200] [--device cuda]

The labelled type of HeCo's ACM and DBLP gets other features: "random", 64 columns of random numbers; "hashed", its bag
of words hashed into 16 columns with random signs, as titles are that were hashed into too few. A name without either is
the data set as it is. Scores are macro-F1 in % at 20, 40 and 60 labels per class by HeCo's splits, a logistic
regression whose C is chosen on validation nodes; each is the mean over encoders of the seeds 0 to encoders - 1. The
law: the default is at most half a point below positions alone.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import torch
from sklearn.metrics import f1_score

from infomax import DGI, Graph, load_dataset
from infomax.arrays.sparsity import dense
from infomax.arrays.table import FeatureTable
from infomax.datasets.heco import LABELS_PER_CLASS
from infomax.evaluation.probes import score_splits, validated_probe
from infomax.evaluation.splits import SPLIT_PARTS, encode_labels
from infomax.io.nodes import Nodes

TYPES = {"heco-acm": "paper", "heco-dblp": "author"}
NAMES = tuple(f"{name}-{features}" for name in TYPES for features in ("random", "hashed"))
RANDOM_COLUMNS, HASHED_COLUMNS = 64, 16
SELECTIONS = ("recipe", "positions", "encoder", "own", "pooled")


def load(name: str) -> Graph:
    """A data set seen from its labelled type, whose features are replaced where the name says
    so."""
    data_set = next(known for known in TYPES if name.startswith(known))
    node_type = TYPES[data_set]
    graph = load_dataset(data_set).target(node_type)
    replaced_by = name.removeprefix(data_set).removeprefix("-")
    if not replaced_by:
        return graph

    generator = np.random.default_rng(0)
    if replaced_by == "random":
        features = generator.standard_normal((graph.num_nodes, RANDOM_COLUMNS))
    else:
        words = dense(graph.features)
        buckets = generator.integers(HASHED_COLUMNS, size=words.shape[1])
        hashing = np.zeros((words.shape[1], HASHED_COLUMNS))
        hashing[np.arange(len(buckets)), buckets] = generator.choice([-1.0, 1.0], len(buckets))
        features = words @ hashing
    names = tuple(f"x{column}" for column in range(features.shape[1]))

    def with_features(one_type: str, nodes: Nodes) -> Nodes:
        if one_type != node_type:
            return nodes
        return replace(nodes, table=FeatureTable(features.astype(np.float32)), feature_names=names)

    return Graph.of(graph.with_nodes(with_features))


def scores(vectors: np.ndarray, graph: Graph, device: str) -> list[float]:
    """Macro-F1 in % of the test nodes, for each number of labels."""
    codes = encode_labels(graph.labels["class"])[0]
    splits = [
        {part: graph.splits[f"{part}_{count}"] for part in SPLIT_PARTS}
        for count in LABELS_PER_CLASS
    ]
    results = score_splits(validated_probe, vectors, codes, splits, device=torch.device(device))
    macro = []
    for split, result in zip(splits, results, strict=True):
        predicted = result.predictions[0]
        macro.append(100 * float(f1_score(codes[split["test"]], predicted, average="macro")))
    return macro


def main() -> None:
    """Print one line per data set and selection of parts, as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=list(NAMES))
    parser.add_argument("--encoders", type=int, default=3)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args()
    for name in options.names:
        graph = load(name)
        rows: dict[str, list[list[float]]] = {selection: [] for selection in SELECTIONS}
        for seed in range(options.encoders):
            settings = {} if options.epochs is None else {"epochs": options.epochs}
            model = DGI(options.dim, seed=seed, device=options.device, **settings).fit(graph)
            vectors = model.transform(graph)
            for selection in SELECTIONS:
                columns = slice(None) if selection == "recipe" else vectors.columns[selection]
                rows[selection].append(scores(vectors.vectors[:, columns], graph, options.device))
        for selection, found in rows.items():
            means = " / ".join(f"{value:.1f}" for value in np.mean(found, axis=0))
            print(f"{name:18} {selection:10} {means}", flush=True)


if __name__ == "__main__":
    main()
