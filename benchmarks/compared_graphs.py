"""The graphs of `benchmarks.compared`, and how vectors are scored on them: classes, held-out edges, neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.problem import pages
from infomax import Graph, load_dataset
from infomax.evaluation.links import cosines, draw_pairs, score
from infomax.evaluation.probes import score_splits, validated_probe
from infomax.evaluation.splits import encode_labels, random_splits
from infomax_paper.heterogeneous import flattened

TYPED = {"acm": "heco-acm", "dblp": "heco-dblp"}
NAMES = ("cora", "citeseer", "pubmed", "debian", "acm", "acm-flat", "dblp", "dblp-flat")
NAMES += ("communities:10000", "communities:100000", "communities:1000000")
LABELLED = 20_000
"""Nodes whose classes are scored at most, drawn at random."""
ASKED = 2_000
"""Nodes whose nearest neighbours are looked at, at most."""
SPLITS = 5
NEAREST = 10
HELD_OUT = 0.1


@dataclass(frozen=True)
class Task:
    """A graph with classes; ``typed`` names the data set where it has several types of nodes.

    Shapes:
        codes: ``[n]`` classes of the first n nodes, -1 where unknown.
    """

    graph: Graph
    codes: NDArray[np.int64]
    typed: str = ""

    @classmethod
    def of(cls, name: str) -> Task:
        """The task of a name: a data set, `acm-flat`, `communities:N`."""
        kind, _, size = name.partition(":")
        if kind == "communities":
            graph = pages(int(float(size)))
            return cls(graph, _some(encode_labels(graph.labels["kind"])[0]))
        graph = load_dataset(TYPED.get(kind.removesuffix("-flat"), kind))
        codes = encode_labels(next(iter(graph.labels.values())))[0]
        if kind in TYPED:
            return cls(graph, codes, TYPED[kind])
        return cls(flattened(graph) if kind.endswith("-flat") else graph, codes)

    @property
    def has_edges_to_score(self) -> bool:
        """Whether its edges can be held out: those of several types join different ones, which is
        easy to tell."""
        return len(self.codes) == self.graph.num_nodes and not self.typed

    def save(self, path: Path, *, hold_out: bool) -> NDArray[np.int64] | None:
        """Write edges and features for a method; returns the edges ``[2, H]`` that were held out,
        if so asked."""
        if self.typed:
            np.savez(path, name=self.typed)
            return None
        graph = self.graph.hold_out_edges(HELD_OUT) if hold_out else self.graph
        ends = np.stack(sparse.triu(graph.adjacency).nonzero())
        features = sparse.csr_array(graph.features, dtype=np.float32)
        parts = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
        np.savez(path, edges=ends.astype(np.int64), shape=features.shape, **parts)
        return graph.held_out

    def classes(self, vectors: NDArray[np.float32]) -> dict[str, float]:
        """Accuracy in percent of the validated probe, 10/10/80, with the deviation over splits; and
        of neighbours."""
        vectors = vectors[: len(self.codes)]
        found = score_splits(
            validated_probe, vectors, self.codes, random_splits(self.codes, 0, SPLITS)
        )
        values = [100 * one.value for one in found]
        same = same_class(vectors, self.codes)
        return {
            "accuracy": float(np.mean(values)),
            "accuracy_std": float(np.std(values, ddof=1)),
            "neighbours": same,
        }

    def edges(self, vectors: NDArray[np.float32], held_out: NDArray[np.int64]) -> float:
        """AUC in percent of the cosines of held-out edges among those of random pairs."""
        pairs = draw_pairs(self.graph.adjacency, held_out)
        return 100 * score(pairs, cosines(vectors, pairs))["auc"]


def same_class(vectors: NDArray[np.float32], codes: NDArray[np.int64]) -> float:
    """Percent of the nearest labelled nodes, by cosine, that have the class of the node that
    asks."""
    known = np.flatnonzero(codes >= 0)
    units = vectors[known] / np.maximum(
        np.linalg.norm(vectors[known], axis=1, keepdims=True), 1e-12
    )
    rows = np.random.default_rng(0).permutation(len(known))[:ASKED]
    similar = units[rows] @ units.T
    similar[np.arange(len(rows)), rows] = -np.inf
    nearest = np.argpartition(-similar, NEAREST, axis=1)[:, :NEAREST]
    return 100 * float((codes[known][nearest] == codes[known][rows, None]).mean())


def _some(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Codes of which at most `LABELLED` are known."""
    hidden = np.random.default_rng(0).permutation(len(codes))[LABELLED:]
    codes = codes.copy()
    codes[hidden] = -1
    return codes
