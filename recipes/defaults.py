"""Are default vectors worth what was there before? Raw features, Random-Init, the paper's vectors, positions alone.

    python recipes/defaults.py [cora cora-bare ppi actor heco-acm ...] [--encoders 3] [--dim 512] [--device cuda]

A name with "-bare" is the data set without its features. Files of github.com/yandex-research/heterophilous-graphs
(data/) are looked for in the folder heterophilous/ of INFOMAX_DATA. Scores are of test nodes: of the data set's split,
of HeCo's three splits, or the mean of ten random splits 10/10/80 %; by the validated probe (accuracy in %, macro-F1 on
HeCo's sets), on PPI by the paper's (micro-F1 in %). Each is the mean over encoders of the seeds 0 to encoders - 1. Raw
features are scaled, and those that are wider than the default's vectors are cut to that width by their singular
vectors. The law: the default is at most half a point below the best of the others. The last column is the seconds of
the training.

With --edges, neighbours by centred cosine: a tenth of the edges is held out before training. The AUC of the held-out
edges against random pairs, the share of 2,000 of them whose one node is among the ten nearest to the other (known
neighbours left out), and the share of the ten nearest nodes that have the same class; all in %, of one encoder. Of
several types, edges are scored by positions, which alone stand in one space.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy import sparse
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from infomax import DGI, Graph, load_dataset
from infomax.arrays.resemblance import resemblance
from infomax.arrays.sparsity import pack
from infomax.datasets.fetch import data_path
from infomax.evaluation import links
from infomax.evaluation.probes import paper_probe, validated_probe
from infomax.evaluation.splits import SPLIT_PARTS, encode_labels, splits_for
from infomax.io.union import adjacency_of_all_types
from infomax.kernels import Backend
from infomax.neighbours.of_all import nearest
from infomax.reports.compared_vectors import untrained
from infomax.training.own_features import directions

NAMED = ("cora", "citeseer", "pubmed", "debian")
HECO = {"heco-acm": "paper", "heco-dblp": "author"}
ALL = (*NAMED, *(f"{name}-bare" for name in NAMED), *HECO, "ppi", "actor", "chameleon_filtered")
METHODS = ("raw", "Random-Init", "paper", "positions", "default")


def load(name: str) -> Graph:
    """A data set of infomax, one without its features, or a file with node_features, node_labels
    and edges."""
    if name in ("actor", "chameleon_filtered"):
        arrays = np.load(data_path() / "heterophilous" / f"{name}.npz")
        features = pack(arrays["node_features"].astype(np.float32))
        return Graph.from_arrays(
            arrays["edges"].T, features, labels={"class": arrays["node_labels"].astype(np.int64)}
        )
    if name in HECO:
        return load_dataset(name).target(HECO[name])
    graph = load_dataset(name.removesuffix("-bare"))
    if not name.endswith("-bare"):
        return graph
    kept = {
        "directed": graph.directed,
        "ids": graph.ids,
        "labels": graph.labels,
        "splits": graph.splits,
    }
    return Graph.from_scipy(graph.adjacency, "positions", **kept)


def cut(graph: Graph, scale: str, width: int) -> np.ndarray:
    """The scaled features ``[N, F]``, or ``[N, width]`` where there are more."""
    table, nodes = graph.table.scaled(graph.scaler(scale)), np.arange(graph.num_nodes)
    if graph.num_features <= width:
        return table[nodes]
    return table[nodes] @ directions(table, nodes, width, Backend(torch.device("cpu")))


class Scorer:
    """Scores of vectors on the splits of a data set, by method; several of one method are several
    encoders."""

    def __init__(self, name: str, graph: Graph, device: str) -> None:
        values = next(iter(graph.labels.values()))
        self.codes = values if values.ndim == 2 else encode_labels(values)[0]
        self.macro, self.device, self.found = name in HECO, device, dict[str, list[float]]()
        if self.macro:
            self.splits = [
                {part: graph.splits[f"{part}_{count}"] for part in SPLIT_PARTS}
                for count in (20, 40, 60)
            ]
        else:
            self.splits = splits_for(self.codes, graph.splits)[0]
        self.probe = paper_probe if self.codes.ndim == 2 else validated_probe

    def add(self, method: str, vectors: np.ndarray) -> None:
        """Score the vectors ``[N, d]`` of one encoder."""
        means = []
        for split in self.splits:
            score = self.probe(vectors, self.codes, split, device=self.device)
            truth = self.codes[split["test"]]
            means.append(
                f1_score(truth, score.predictions[0], average="macro")
                if self.macro
                else score.value
            )
        self.found.setdefault(method, []).append(100 * float(np.mean(means)))


def row(name: str, encoders: int, dim: int | None, device: str) -> str:
    """The line of a data set."""
    graph = load(name)
    training_seconds = 0.0
    scorer = Scorer(name, graph, device)
    for seed in range(encoders):
        model = DGI(dim, seed=seed, device=device).fit(graph)
        training_seconds += model.health_["seconds"]
        default = model.transform(graph)
        if not seed:
            scorer.add("raw", cut(graph, model.preset_.scale, default.shape[1]))
        scorer.add("Random-Init", untrained(model).transform(graph).vectors)
        scorer.add("paper", model.transform(graph, vectors="paper").vectors)
        if "positions" in default.parts and not seed:
            scorer.add("positions", model.transform(graph, vectors="positions").vectors)
        scorer.add("default", default.vectors)
    seen = graph.seen()
    alike = (
        "-"
        if name.endswith("-bare") or graph.node_type
        else f"{resemblance(seen.table, seen.edges, model.scaler_):.3f}"
    )
    means = {method: float(np.mean(scores)) for method, scores in scorer.found.items()}
    short = (
        max(mean for method, mean in means.items() if method != "default") - 0.5 - means["default"]
    )
    cells = []
    for method in METHODS:
        scores = scorer.found.get(method, [])
        spread = f" ± {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
        cells.append(f"{means[method]:.1f}{spread}" if scores else "-")
    law = "met" if short <= 0 else f"short by {short:.1f}"
    return f"| {name} | {alike} | {' | '.join(cells)} | {law} | {training_seconds / encoders:.2f} |"


def hits(
    vectors: np.ndarray, adjacency: sparse.csr_array, edges: np.ndarray, types: np.ndarray
) -> float:
    """The share of edges ``[2, E]`` whose second node is among the ten nearest to the first, known
    neighbours left out.

    By centred cosines of ``vectors [N, d]``, among the nodes of its own of the types ``[N]``.
    """
    units, found = normalize(vectors - vectors.mean(axis=0)), 0
    for first in range(0, edges.shape[1], 256):
        near, far = edges[:, first : first + 256]
        similar = units[near] @ units.T
        similar[(types[far][:, None] != types) | (adjacency[near].toarray() != 0)] = -np.inf
        similar[np.arange(len(near)), near] = -np.inf
        found += int(
            (
                (similar > (units[near] * units[far]).sum(axis=1, keepdims=True)).sum(axis=1) < 10
            ).sum()
        )
    return float(found / edges.shape[1])


def edges_row(name: str, dim: int | None, device: str) -> str:
    """The line of a data set in the table of neighbours."""
    graph = load(name).hold_out_edges(0.1)
    model = DGI(dim, device=device).fit(graph)
    values = next(iter(graph.labels.values()))
    codes = values if values.dtype.kind == "i" else encode_labels(values)[0]
    adjacency = adjacency_of_all_types(graph.nodes, graph.relations)
    types = np.repeat(
        np.arange(len(graph.nodes)), [graph.nodes[kind].num_nodes for kind in sorted(graph.nodes)]
    )
    pairs = links.draw_pairs(adjacency, graph.held_out, types=types)
    some = graph.held_out[:, np.random.default_rng(0).permutation(graph.held_out.shape[1])[:2000]]
    cells = []
    for parts in ("recipe", "paper", "positions"):
        vectors = model.transform(graph, vectors=parts).vectors
        near = nearest(vectors - vectors.mean(axis=0), 10, device=device)[0]
        known = (codes[near] >= 0) & (codes[:, None] >= 0)
        same = f"{100 * (codes[near] == codes[:, None])[known].mean():.1f}"
        if graph.node_type and parts != "positions":
            cells += ["-", "-", same]
            continue
        if graph.node_type:
            vectors = np.concatenate([model.positions(kind).vectors for kind in graph.types])
        auc = links.score(pairs, links.cosines(vectors, pairs))["auc"]
        cells += [f"{100 * auc:.1f}", f"{100 * hits(vectors, adjacency, some, types):.1f}", same]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print a line per data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("datasets", nargs="*", default=ALL)
    parser.add_argument("--encoders", type=int, default=1)
    parser.add_argument("--dim", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--edges", action="store_true", help="neighbours and held-out edges, by cosine"
    )
    options = parser.parse_args()
    if options.edges:
        heads = [
            f"{method}: {what}"
            for method in ("default", "paper", "positions")
            for what in ("AUC", "hits", "class")
        ]
        print(f"| | {' | '.join(heads)} |\n|{'---|' * (1 + len(heads))}")
        for name in [one for one in options.datasets if one != "ppi"]:
            print(edges_row(name, options.dim, options.device), flush=True)
        return
    print(
        f"| | resemblance | {' | '.join(METHODS)} | law | training, s |\n|{'---|' * (4 + len(METHODS))}"
    )
    for name in options.datasets:
        print(row(name, options.encoders, options.dim, options.device), flush=True)


if __name__ == "__main__":
    main()
