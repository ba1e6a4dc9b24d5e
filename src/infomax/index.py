"""Nearest neighbours in large graphs: an approximate index, kept in the run folder with its measured recall."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.embeddings import Embeddings, cosines, find_row, positions
from infomax.errors import InputError
from infomax.io.atomic import check_place, replacing
from infomax.io.json import read_json, write_json
from infomax.training import runs

LIMIT = runs.STORED
"""Up to this number of nodes an exact search is as fast, in vectors that the run holds."""

INDEX, NOTES = "neighbours.usearch", "neighbours.json"
NEAREST, SAMPLE = 10, 100


@dataclass(frozen=True)
class NeighbourIndex:
    """A cosine HNSW index over the vectors of a run; it holds the vectors, too.

    Shapes:
        ids: ``[N]``, as in `Embeddings`.
        recall: the share of the ``NEAREST`` exact neighbours that it finds, over ``SAMPLE`` nodes.
        kept: whether it is stored in the run folder.
    """

    graph: Any
    ids: NDArray[Any]
    recall: float
    kept: bool = True

    def neighbours(self, node_id: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """As `Embeddings.neighbours`, among the nodes that the index finds; their cosines are exact."""
        row = find_row(positions(self.ids), node_id)
        found = search(self.graph, self.graph.get(row)[None], min(k + 1, len(self.ids)))
        rows = np.union1d(found, row)
        return Embeddings(np.vstack(self.graph.get(rows)), self.ids[rows]).neighbours(node_id, k)

    def __str__(self) -> str:
        sampled = min(SAMPLE, len(self.ids))
        lost = "" if self.kept else "; not kept, since the run folder cannot be written"
        return f"index: recall@{NEAREST} {self.recall:.2f} against exact, on {sampled} sampled nodes{lost}"


def installed() -> bool:
    """Whether the library that makes indices is installed."""
    return find_spec("usearch") is not None


def open_index(folder: Path, ids: NDArray[Any], embed: Callable[[], Embeddings]) -> NeighbourIndex:
    """The index of a run folder; built from what ``embed`` returns where it is missing, outdated or damaged.

    It is kept in memory where the folder cannot be written.
    """
    from usearch.index import Index

    source = [runs.file_hash(folder / name) for name in (runs.MODEL, runs.GRAPH) if (folder / name).exists()]
    recall = _recall(folder, source)
    if recall is not None:
        return NeighbourIndex(Index.restore(str(folder / INDEX), view=True), ids, recall)
    kept = _writable(folder / INDEX)
    vectors = embed().vectors
    graph = Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    graph.add(np.arange(len(vectors)), vectors)
    recall = measure_recall(graph, vectors)
    if kept:
        with replacing(folder / INDEX) as temporary:
            graph.save(str(temporary))
        sha256 = runs.file_hash(folder / INDEX)
        notes = {"source": source, "sha256": sha256, "recall": recall, "k": NEAREST, "sampled": SAMPLE}
        write_json(folder / NOTES, notes)
    return NeighbourIndex(graph, ids, recall, kept)


def search(graph: Any, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The rows ``[n, k]`` that an index finds nearest to ``[n, d]`` queries."""
    rows: NDArray[np.int64] = np.atleast_2d(graph.search(queries, k).keys).astype(np.int64)
    return rows


def measure_recall(graph: Any, vectors: NDArray[np.float32], seed: int = 0) -> float:
    """The share of the exact nearest neighbours of sampled nodes that an index finds; equally near ones count alike."""
    n = len(vectors)
    nodes = np.random.default_rng(seed).permutation(n)[:SAMPLE]
    k = min(NEAREST, n - 1)
    similarity = cosines(vectors, nodes)  # [SAMPLE, N]: smaller than the vectors
    shares = []
    for node, row, found in zip(nodes, similarity, search(graph, vectors[nodes], k + 1), strict=True):
        row[node] = -2
        worst = np.partition(row, n - k)[n - k]
        shares.append(np.count_nonzero(row[found[found != node][:k]] >= worst - 1e-6) / k)
    return float(np.mean(shares))


def _recall(folder: Path, source: list[str]) -> float | None:
    """The recall of the stored index of these files; None where there is no index that can be trusted."""
    if not ((folder / INDEX).is_file() and (folder / NOTES).is_file()):
        return None
    try:
        notes = read_json(folder / NOTES)
    except InputError:
        return None
    recall = notes.get("recall")
    # The library would read outside a damaged file's memory, so only the very bytes that were written are loaded.
    intact = notes.get("source") == source and notes.get("sha256") == runs.file_hash(folder / INDEX)
    return recall if intact and isinstance(recall, float) and 0 <= recall <= 1 else None


def _writable(path: Path) -> bool:
    try:
        check_place(path)
    except InputError:
        return False
    return True
