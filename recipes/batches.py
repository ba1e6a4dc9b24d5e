"""Exact batches beside the whole graph, Random-Init and patches: accuracy and seconds.

    python recipes/batches.py [debian pubmed generated-reddit generated-reddit-inductive] [--runs 5] [--device cuda]
    python recipes/batches.py --growth 1e5,1e6,1e7      # accuracy against steps, on generated graphs of these sizes

Each score is the mean over encoders of seeds 0 to runs - 1, ± over encoders, by the validated probe on the data set's
split. Of generated-reddit 20,000 training nodes have labels; it is transductive (all nodes and edges are seen), and
generated-reddit-inductive is the same graph where training sees the training nodes and the edges among them only.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np
import torch

from infomax import DGI, Graph, load_dataset
from infomax.datasets import generated
from infomax.evaluation.probes import validated_probe
from infomax.evaluation.splits import Splits
from infomax.reports.comparison import labelled
from infomax.views import Batches
from infomax_paper.patches import BATCH, FAN_OUT, Patches
from infomax_paper.patches import PATCHES as PATCHES_PRESET

LABELS = 20_000
ROWS: dict[str, dict[str, Any]] = {
    "Random-Init": {"preset": "whole-graph", "epochs": 0},
    "whole graph, 300 epochs": {"preset": "whole-graph", "epochs": 300},
    "batches, 16,384 nodes x 200 steps": {"preset": "batches"},
    "batches, 4,096 nodes x 400 steps": {
        "preset": "batches",
        "views": partial(Batches, batch=4096),
        "epochs": 400,
    },
}
BY_DEGREE = partial(Patches, fan_out=FAN_OUT, batch=BATCH, weighting="degree")
PATCHES: dict[str, dict[str, Any]] = {
    "patches, untrained": {"preset": PATCHES_PRESET, "dim": 256, "epochs": 0},
    "patches, 20 epochs": {"preset": PATCHES_PRESET, "dim": 256, "epochs": 20},
    "patches by degree, 20 epochs": {
        "preset": PATCHES_PRESET,
        "dim": 256,
        "epochs": 20,
        "views": BY_DEGREE,
    },
}


def problem(name: str) -> tuple[Graph, np.ndarray, Splits]:
    """A graph, its codes and the split to score on."""
    if not name.startswith("generated-reddit"):
        graph = load_dataset(name)
        return graph, *labelled(graph)
    graph = generated.read()
    if not name.endswith("inductive"):
        graph = graph.replace(splits={k: mask for k, mask in graph.splits.items() if k != "seen"})
    codes, splits = labelled(graph)
    return graph, codes, fewer(splits, LABELS)


def fewer(splits: Splits, count: int) -> Splits:
    """The same split with at most so many training nodes, drawn at random."""
    rng = np.random.default_rng(0)
    smaller_splits = {}
    for part in ("train", "validation", "test"):
        rows = rng.permutation(np.flatnonzero(splits[part]))
        if part == "train":
            rows = rows[:count]
        mask = np.zeros(len(splits[part]), dtype=bool)
        mask[rows] = True
        smaller_splits[part] = mask
    return smaller_splits


def table(name: str, runs: int, device: str, rows: dict[str, dict[str, Any]]) -> None:
    """Print the rows of a data set."""
    graph, codes, splits = problem(name)
    print(f"\n{name}: {graph!r}\n")
    print("| | accuracy in % | seconds of training | encoders |\n|---|---|---|---|", flush=True)
    for row, settings in rows.items():
        scores, seconds = [], []
        for seed in range(runs):
            model = DGI(**({"dim": 512} | settings), seed=seed, device=device).fit(graph)
            seconds.append(model.health_["seconds"])
            score = validated_probe(model.transform(graph).vectors, codes, splits, device=device)
            scores.append(100 * score.value)
        deviation = np.std(scores, ddof=1) if runs > 1 else 0
        accuracy = f"{np.mean(scores):.1f} ± {deviation:.1f}"
        print(f"| {row} | {accuracy} | {np.median(seconds):.2f} | {runs} |", flush=True)


def growth(sizes: list[float], device: str) -> None:
    """Print accuracy against steps on generated graphs: 20 edges per node, 300 features, vectors of
    256."""
    for size in sizes:
        began = time.perf_counter()
        graph = generated.read(scale=size / generated.REDDIT_NODES, features=300, degree=20)
        graph = graph.replace(splits={k: mask for k, mask in graph.splits.items() if k != "seen"})
        codes, splits = labelled(graph)
        splits = {
            part: fewer(dict.fromkeys(splits, splits[part]), LABELS)["train"] for part in splits
        }
        print(f"\n{graph!r}, made in {time.perf_counter() - began:.0f} s", flush=True)
        for steps in (0, 100, 200, 300):
            model = DGI(256, preset="batches", epochs=steps, device=device).fit(graph)
            began = time.perf_counter()
            vectors = model.transform(graph).vectors
            embedded = time.perf_counter() - began
            score = validated_probe(vectors, codes, splits, device=device)
            course = f"training {model.health_['seconds']:.2f} s, embedding {embedded:.1f} s"
            print(f"{steps} steps: {100 * score.value:.1f} % ({course})", flush=True)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["debian", "pubmed", "generated-reddit", "generated-reddit-inductive"]
    parser.add_argument("datasets", nargs="*", default=names)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--patches", action="store_true", help="the paper's recipe for large graphs, too"
    )
    parser.add_argument(
        "--growth", metavar="N,N,...", help="nodes of generated graphs; nothing else is run"
    )
    options = parser.parse_args()
    if options.growth:
        growth([float(size) for size in options.growth.split(",")], options.device)
        return
    for name in options.datasets:
        table(name, options.runs, options.device, PATCHES if options.patches else ROWS)


if __name__ == "__main__":
    main()
