"""Nearest neighbours in large graphs: an approximate index, kept in the run folder, that knows its own recall."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.embeddings import Embeddings, find_row, positions
from infomax.errors import InputError
from infomax.io.atomic import check_place, replacing
from infomax.io.json import read_json, write_json
from infomax.training import runs

LIMIT = 50_000
"""Nodes up to which an exact search is as quick."""

INDEX, NOTES = "neighbours.usearch", "neighbours.json"
NEAREST, SAMPLE = 10, 100


@dataclass(frozen=True)
class NeighbourIndex:
    """A cosine HNSW graph over the vectors of a run; it holds the vectors too.

    Shapes:
        ids: ``[N]``, as in `Embeddings`.
        recall: share of the ``NEAREST`` exact neighbours that it finds, over ``SAMPLE`` nodes.
    """

    graph: Any
    ids: NDArray[Any]
    recall: float

    def neighbours(self, node_id: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """As `Embeddings.neighbours`, among the nodes that the index takes for the nearest; their cosines are exact."""
        row = find_row(positions(self.ids), node_id)
        found = search(self.graph, self.graph.get(row)[None], min(k + 1, len(self.ids)))
        rows = np.union1d(found, row)
        return Embeddings(np.vstack(self.graph.get(rows)), self.ids[rows]).neighbours(node_id, k)

    def __str__(self) -> str:
        return f"index: recall@{NEAREST} {self.recall:.2f} against exact, on {min(SAMPLE, len(self.ids))} sampled nodes"


def installed() -> bool:
    """Whether there is the library that indexes."""
    return find_spec("usearch") is not None


def open_index(folder: Path, ids: NDArray[Any], embed: Callable[[], Embeddings]) -> NeighbourIndex:
    """The index of a run folder; built from what ``embed`` returns where there is none, or a stale or damaged one."""
    from usearch.index import Index

    source = _hash(folder / runs.MODEL, folder / runs.GRAPH)
    notes = _notes(folder)
    # The library would follow a damaged file out of memory: only what was written is loaded.
    if notes.get("source") == source and notes.get("sha256") == _hash(folder / INDEX):
        return NeighbourIndex(Index.restore(str(folder / INDEX), view=True), ids, float(notes["recall"]))
    check_place(folder / INDEX)
    vectors = embed().vectors
    graph = Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    graph.add(np.arange(len(vectors)), vectors)
    recall = measure_recall(graph, vectors)
    with replacing(folder / INDEX) as temporary:
        graph.save(str(temporary))
    written = {"source": source, "sha256": _hash(folder / INDEX), "recall": recall, "k": NEAREST, "sampled": SAMPLE}
    write_json(folder / NOTES, written)
    return NeighbourIndex(graph, ids, recall)


def search(graph: Any, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The rows ``[n, k]`` that an index takes for the nearest to ``[n, d]`` queries."""
    rows: NDArray[np.int64] = np.atleast_2d(graph.search(queries, k).keys).astype(np.int64)
    return rows


def measure_recall(graph: Any, vectors: NDArray[np.float32], seed: int = 0) -> float:
    """Share of the exact nearest neighbours of sampled nodes that an index finds; of equally near ones, any will do."""
    n = len(vectors)
    nodes = np.random.default_rng(seed).permutation(n)[:SAMPLE]
    k = min(NEAREST, n - 1)
    length = np.linalg.norm(vectors, axis=1)
    length[length == 0] = 1
    cosine = (vectors[nodes] / length[nodes, None]) @ vectors.T / length  # [SAMPLE, N]: smaller than the vectors
    shares = []
    for node, row, found in zip(nodes, cosine, search(graph, vectors[nodes], k + 1), strict=True):
        row[node] = -2
        worst = np.partition(row, n - k)[n - k]
        shares.append(np.count_nonzero(row[found[found != node][:k]] >= worst - 1e-6) / k)
    return float(np.mean(shares))


def _notes(folder: Path) -> dict[str, Any]:
    """What was written beside an index; nothing where there is none to trust."""
    try:
        return read_json(folder / NOTES) if (folder / INDEX).exists() and (folder / NOTES).exists() else {}
    except InputError:
        return {}


def _hash(*paths: Path) -> str:
    """SHA-256 of files, one after another."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
