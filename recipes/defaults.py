"""Are default vectors worth what was there before? Raw features, Random-Init and plain DGI, and the default's vectors.

    python recipes/defaults.py [cora cora-bare ppi actor ...] [--runs 3] [--dim 512] [--device cuda]

A name with "-bare" is the data set without its features. Files of github.com/yandex-research/heterophilous-graphs
(data/) are looked for in the folder heterophilous/ of INFOMAX_DATA. Scores are of test nodes: of the data set's split,
or the mean of ten random splits 10/10/80 %; by the validated probe (accuracy in %), on PPI by the paper's (micro-F1 in
%). Each is the mean over encoders of the seeds 0 to runs - 1. Raw features are scaled, and those that are wider than
the default's vectors are cut to that width by their singular vectors. The law: the default is at most half a point
below the best of raw features, Random-Init and plain DGI.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from infomax import DGI, Graph, load_dataset
from infomax.arrays.resemblance import OWN, resemblance
from infomax.arrays.sparsity import pack
from infomax.datasets.fetch import data_path
from infomax.evaluation.probes import paper_probe, validated_probe
from infomax.evaluation.splits import encode_labels, splits_for
from infomax.presets import HOPS
from infomax.reports.comparison import untrained
from infomax.training.own import directions

NAMED = ("cora", "citeseer", "pubmed", "debian")
ALL = (*NAMED, *(f"{name}-bare" for name in NAMED), "ppi", "actor", "chameleon_filtered")
KINDS = {
    "DGI": {"smooth": 0, "own": 0},
    "smoothed": {"smooth": HOPS, "own": 0},
    "own": {"smooth": 0, "own": OWN},
    "smoothed, own": {"smooth": HOPS, "own": OWN},
    "default": {},
}


def load(name: str) -> Graph:
    """A data set of infomax, one without its features, or a file with node_features, node_labels and edges."""
    if name in ("actor", "chameleon_filtered"):
        arrays = np.load(data_path() / "heterophilous" / f"{name}.npz")
        features = pack(arrays["node_features"].astype(np.float32))
        return Graph.from_arrays(arrays["edges"].T, features, labels={"class": arrays["node_labels"].astype(np.int64)})
    graph = load_dataset(name.removesuffix("-bare"))
    if not name.endswith("-bare"):
        return graph
    kept = {"directed": graph.directed, "ids": graph.ids, "labels": graph.labels, "splits": graph.splits}
    return Graph.from_scipy(graph.adjacency, "positions", **kept)


def cut(graph: Graph, scale: str, width: int) -> np.ndarray:
    """The scaled features ``[N, F]``, or ``[N, width]`` where there are more."""
    table, nodes = graph.table.scaled(graph.scaler(scale)), np.arange(graph.num_nodes)
    return table[nodes] if graph.num_features <= width else table[nodes] @ directions(table, nodes, width, seed=0)


def row(name: str, runs: int, dim: int | None, device: str) -> str:
    """The line of a data set."""
    began, graph = time.perf_counter(), load(name)
    values = next(iter(graph.labels.values()))
    codes = values if values.ndim == 2 else encode_labels(values)[0]
    splits, probe = splits_for(codes, graph.splits)[0], paper_probe if codes.ndim == 2 else validated_probe
    found: dict[str, list[float]] = {}

    def score(kind: str, vectors: np.ndarray) -> None:
        means = [probe(vectors, codes, split, device=device).value for split in splits]
        found.setdefault(kind, []).append(100 * float(np.mean(means)))

    for seed in range(runs):
        model = DGI(dim, seed=seed, device=device).fit(graph)
        first = untrained(model)
        if not seed:
            score("raw", cut(graph, model.preset_.scale, model.transform(graph).vectors.shape[1]))
        score("Random-Init", first.transform(graph, **KINDS["DGI"]).vectors)
        for kind, options in KINDS.items():
            score(kind, model.transform(graph, **options).vectors)
    seen, settings = graph.seen(), model.preset_
    alike = "-" if name.endswith("-bare") else f"{resemblance(seen.table, seen.edges, model.scaler_):.3f}"
    is_now = "smoothed" if settings.smooth else "own" if settings.own else "plain"
    means = {kind: float(np.mean(scores)) for kind, scores in found.items()}
    short = max(means[kind] for kind in ("raw", "Random-Init", "DGI")) - 0.5 - means["default"]
    cells = [f"{mean:.1f}" + (f" ± {np.std(found[kind], ddof=1):.1f}" if len(found[kind]) > 1 else "")
             for kind, mean in means.items()]  # fmt: skip
    law = "met" if short <= 0 else f"short by {short:.1f}"
    return f"| {name} | {alike} | {' | '.join(cells)} | {is_now} | {law} | {time.perf_counter() - began:.0f} |"


def main() -> None:
    """Print a line per data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=ALL)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    print(f"| | resemblance | raw | Random-Init | {' | '.join(KINDS)} | which is | law | seconds |\n|{'---|' * 12}")
    for name in options.datasets:
        print(row(name, options.runs, options.dim, options.device), flush=True)


if __name__ == "__main__":
    main()
