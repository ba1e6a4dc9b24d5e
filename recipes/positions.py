"""Data sets without their features: positions in the graph, DGI on them, and what else can be had from edges alone.

    python recipes/positions.py [cora citeseer pubmed debian] [--runs 1] [--dim 512] [--deepwalk] [--device cuda]

Each score is the mean over encoders of seeds 0 to runs - 1, ± over encoders, in % of the test nodes of the data set's
split: by the paper's probe, on debian by the validated one. Positions have no seed. Seconds are those of making the
features and training, the median over encoders.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from infomax import DGI, Graph, load_dataset
from infomax.evaluation.probes import paper_probe, validated_probe
from infomax.reports.comparison import labelled
from infomax_paper.baselines.deepwalk import deepwalk

Vectors = Callable[[int], Any]


def methods(
    graph: Graph, codes: np.ndarray, dim: int, device: str, with_deepwalk: bool
) -> dict[str, Vectors]:
    """By name, a function of the seed that makes vectors of the edges."""

    def without_features(structural_features: str) -> Graph:
        return Graph.from_scipy(
            graph.adjacency, structural_features, directed=graph.directed, ids=graph.ids
        )

    def dgi(structural_features: str, seed: int, **settings: Any) -> Any:
        model = DGI(dim, preset="whole-graph", seed=seed, device=device, **settings)
        return model.fit_transform(without_features(structural_features)).vectors

    vectors_by_method: dict[str, Vectors] = {
        "degrees, DGI": lambda seed: dgi("degrees", seed),
        "positions alone": lambda _: without_features("positions").features,
        "positions, Random-Init": lambda seed: dgi("positions", seed, epochs=0),
        "positions, DGI": lambda seed: dgi("positions", seed),
    }
    if with_deepwalk:
        torch_device = torch.device(device)
        vectors_by_method["DeepWalk"] = lambda seed: (
            deepwalk(graph, codes, seed, torch_device).cpu().numpy()
        )
    return vectors_by_method


def table(name: str, runs: int, dim: int, device: str, with_deepwalk: bool) -> None:
    """Print the rows of a data set."""
    graph = load_dataset(name)
    codes, splits = labelled(graph)
    probe = validated_probe if name == "debian" else paper_probe
    print(f"\n{name}\n\n| | accuracy in % | seconds | encoders |\n|---|---|---|---|", flush=True)
    for row, make_vectors in methods(graph, codes, dim, device, with_deepwalk).items():
        scores, seconds = [], []
        for seed in range(1 if row.endswith("alone") else runs):
            began = time.perf_counter()
            vectors = make_vectors(seed)
            seconds.append(time.perf_counter() - began)
            scores.append(100 * probe(vectors, codes, splits, device=device).value)
        spread = f" ± {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
        print(
            f"| {row} | {np.mean(scores):.1f}{spread} | {np.median(seconds):.2f} | {len(scores)} |",
            flush=True,
        )


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=["cora", "citeseer", "pubmed", "debian"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--deepwalk", action="store_true", help="DeepWalk on the same edges, too")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    for name in options.datasets:
        table(name, options.runs, options.dim, options.device, options.deepwalk)


if __name__ == "__main__":
    main()
