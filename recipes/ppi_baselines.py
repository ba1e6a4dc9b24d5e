"""The baselines on PPI: micro-F1 of several settings on the validation graphs and on the test graphs.

    python recipes/ppi_baselines.py FOLDER [--device cuda] [--seeds 3] [--rows "GraphSAGE-mean"] [--tiny]

Writes FOLDER/ROW.json after every run. Settings are chosen by "validation"; "test" is for the notes below the table.

Vectors are scored by two probes. "validation" and "test" are the scores of the paper's probe, as for DGI's vectors.
"own validation" and "own test" are scored as GraphSAGE's authors score theirs, which is where the figures in the
paper's table come from: vectors of length 1, not standardised, and scikit-learn's logistic SGDClassifier as it was in
2017, five passes over the nodes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import normalize

from infomax.datasets import load_dataset
from infomax.evaluation.metrics import micro_f1
from infomax.evaluation.probes import paper_probe
from infomax.graphs.graph import Graph
from infomax_paper.baselines import average_pooling, fastgcn, graphsage

Scores = dict[str, float]
PARTS = ("validation", "test")

# One pass over the authors' pairs, 50 walks of four steps from each of 44,906 nodes, in batches of
# 512, at the largest of the rates that they tried (2e-6, 2e-7, 2e-8). With the other two the
# encoder stays nearly untrained: Adam moves a weight by at most its learning rate per step, which
# makes 0.0035 and 0.00035 in total.
GRAPHSAGE = [graphsage.SETTINGS, graphsage.Settings(steps=17_541, lr=2e-6)]
CANDIDATES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "Raw features": (lambda graph, *_: graph.scaled(graph.scaler("columns")).features, [None]),
    **{name: (run, GRAPHSAGE) for name, run in graphsage.ROWS.items()},
    "FastGCN": (fastgcn.fastgcn, [fastgcn.REDDIT, fastgcn.PPI]),
    "Avg. pooling": (
        average_pooling.average_pooling,
        [average_pooling.MANY_GRAPHS],
    ),
}


def f1(predicted: Any, graph: Graph, part: str) -> float:
    """Micro-F1 of predictions ``[N, C]`` on the nodes of a part whose functions are known."""
    codes = graph.labels["functions"]
    rows = graph.splits[part] & (codes[:, 0] >= 0)
    return float(micro_f1(predicted[rows], codes[rows]))


def own_probe(vectors: Any, graph: Graph) -> Scores:
    """Micro-F1 of vectors ``[N, d]`` by the probe of GraphSAGE's authors."""
    codes = graph.labels["functions"]
    train = graph.splits["train"] & (codes[:, 0] >= 0)
    each = SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=1)
    predicted = (
        MultiOutputClassifier(each, n_jobs=-1).fit(vectors[train], codes[train]).predict(vectors)
    )
    return {f"own {part}": f1(predicted, graph, part) for part in PARTS}


def score(output: Any, graph: Graph, seed: int, device: torch.device, unit: bool) -> Scores:
    """Score predictions ``[N, C]`` directly, or vectors ``[N, d]`` by both probes, on validation
    and on test nodes."""
    if output.dtype == bool:
        return {part: f1(output, graph, part) for part in PARTS}
    codes, splits, scores = graph.labels["functions"], graph.splits, {}
    for part in PARTS:
        halves = {"train": splits["train"], "test": splits[part]}
        scores[part] = paper_probe(output, codes, halves, seed=seed, device=device).value
    return scores | own_probe(normalize(output) if unit else output, graph)


def measure(
    name: str, settings: Any, graph: Graph, seed: int, device: torch.device
) -> dict[str, Any]:
    """Make one run; the method gets the graph without labels, and codes that are -1 on the test
    nodes."""
    began = time.perf_counter()
    codes = np.where(graph.splits["test"][:, None], -1, graph.labels["functions"])
    output = CANDIDATES[name][0](graph.replace(labels={}), codes, seed, device, settings)
    seconds = time.perf_counter() - began
    scores = score(output, graph, seed, device, unit=name in graphsage.ROWS)
    return {"settings": str(settings), "seed": seed, "seconds": seconds, **scores}


def shrunk(settings: Any) -> Any:
    """The same settings with very little work, for --tiny."""
    less = {"steps": 2, "epochs": 1, "looks": 1, "dim": 8, "hidden": 8, "batch": 64}
    return dataclasses.replace(
        settings, **{key: less[key] for key in less if hasattr(settings, key)}
    )


def few_graphs(graph: Graph) -> Graph:
    """A part of PPI: two graphs for training, one for validation, one for testing."""
    counts = {"train": 2, "validation": 1, "test": 1}
    some = [np.unique(graph.groups[graph.splits[part]])[:count] for part, count in counts.items()]
    return graph.part(np.isin(graph.groups, np.concatenate(some)))


def main() -> None:
    """Score all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--rows", nargs="*", default=list(CANDIDATES), help="some of the rows, by name"
    )
    parser.add_argument(
        "--tiny",
        action="store_true",
        help="four graphs and very little work, to check that it runs",
    )
    options = parser.parse_args()
    device, graph = torch.device(options.device), load_dataset("ppi")
    if options.tiny:
        graph = few_graphs(graph)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.rows:
        runs = []
        for settings in CANDIDATES[name][1]:
            small = options.tiny and settings is not None
            for seed in range(options.seeds if settings else 1):
                runs.append(
                    measure(name, shrunk(settings) if small else settings, graph, seed, device)
                )
                print(name, runs[-1], flush=True)
                (options.folder / f"{name}.json").write_text(json.dumps(runs, indent=1))


if __name__ == "__main__":
    main()
