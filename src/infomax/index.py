"""Nearest neighbours in large graphs: an approximate index, kept beside the vectors with its measured recall."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.arrays.folder import file_hash
from infomax.arrays.integrity import sample_hash
from infomax.arrays.parquet_columns import StoredVectors
from infomax.embeddings import Embeddings, Found, Searched, StoredEmbeddings, cosines, nearest
from infomax.errors import InputError
from infomax.io.atomic import check_place, replacing
from infomax.io.json import read_json, write_json
from infomax.io.parts import ABOUT
from infomax.progress import Progress, silent
from infomax.training import runs

LIMIT = runs.STORED
"""Up to this number of nodes an exact search is as fast, in vectors that the run holds."""

INDEX, NOTES = "neighbours.usearch", "neighbours.json"
NEAREST, SAMPLE = 10, 100
BUILT_FROM, CANDIDATES = 64, 1024
"""How many nodes are kept in view when one is added, and when the index is searched.

More of the first double the time to build, more of the second cost a search some milliseconds.
"""


@dataclass(frozen=True)
class NeighbourIndex(Searched):
    """A cosine HNSW index over vectors.

    Shapes:
        ids: ``[N]``, an array or `StoredIds`.
        recall: the share of the ``NEAREST`` exact neighbours that it finds, over ``SAMPLE`` nodes.
        kept: whether it is stored beside the vectors.
        vectors: ``[N, d]``, which stay on disk; None: the index holds them in full precision.
        node_names: ``[N]``, an array or stored, or None.
    """

    graph: Any
    ids: Any
    recall: float
    kept: bool = True
    vectors: StoredVectors | None = None
    node_names: Any = None

    def nearest(self, rows: NDArray[np.int64], k: int) -> Found:
        """As `Embeddings.nearest`, among the nodes that the index finds; their cosines are exact."""
        exact = self.vectors_of if self.vectors is None else self.vectors.__getitem__
        return nearest_found(self.graph, exact, rows, min(k, len(self.ids) - 1))

    def vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors in the index, which are read faster than those on disk."""
        return np.vstack(self.graph.get(rows))

    def __str__(self) -> str:
        sampled = min(SAMPLE, len(self.ids))
        lost = "" if self.kept else "; not kept, since the folder cannot be written"
        return f"index: recall@{NEAREST} {self.recall:.2f} against exact, on {sampled} sampled nodes{lost}"


def installed() -> bool:
    """Whether the library that makes indices is installed."""
    return find_spec("usearch") is not None


def open_index(
    folder: Path, ids: NDArray[Any], embed: Callable[[], Embeddings], names: NDArray[Any] | None = None
) -> NeighbourIndex:
    """The index of a run folder; built from what ``embed`` returns where it is missing, outdated or damaged.

    It is kept in memory where the folder cannot be written.
    """
    source = [file_hash(folder / name) for name in (runs.MODEL, runs.GRAPH) if (folder / name).exists()]
    files = folder / INDEX, folder / NOTES
    if (known := _read(*files, source, len(ids))) is not None:
        return NeighbourIndex(known[0], ids, known[1], node_names=names)
    kept = _writable(files[0])
    vectors = embed().vectors
    graph = build(row_blocks(vectors), vectors.shape[1], "f32")
    recall = measure_recall(graph, vectors, lambda: row_blocks(vectors))
    if kept:
        _write(graph, recall, *files, source)
    return NeighbourIndex(graph, ids, recall, kept, node_names=names)


def open_stored_index(
    folder: Path, stored: StoredEmbeddings, *, make: bool, progress: Progress = silent
) -> NeighbourIndex | None:
    """The index of a folder of parquet parts, mapped from disk. Where there is none, None, or one is built first.

    It holds the vectors in half precision; the parts are read some rows at a time.
    """
    files = folder / f"_{INDEX}", folder / f"_{NOTES}"  # readers of parquet folders skip such names
    source: list[Any] = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in stored.vectors.paths]
    source += [file_hash(folder / ABOUT)] if (folder / ABOUT).is_file() else []
    if (known := _read(*files, source, *stored.vectors.shape)) is None:
        if not make:
            return None
        check_place(files[0])
        graph = build(stored.vectors.blocks(), stored.vectors.shape[1], "f16", progress)
        _write(graph, measure_recall(graph, stored.vectors, stored.vectors.blocks), *files, source)
        del graph
        known = _read(*files, source, *stored.vectors.shape)
    assert known is not None  # noqa: S101  it was written above
    return NeighbourIndex(known[0], stored.ids, known[1], vectors=stored.vectors, node_names=stored.node_names)


def build(blocks: Iterable[NDArray[np.float32]], width: int, dtype: str, progress: Progress = silent) -> Any:
    """An index in memory over the rows of blocks ``[n, width]``."""
    from usearch.index import Index

    graph = Index(ndim=width, metric="cos", dtype=dtype, expansion_add=BUILT_FROM)
    for block in blocks:
        graph.add(np.arange(len(graph), len(graph) + len(block)), block)
        progress(len(graph), "indexing")
    return graph


def search(graph: Any, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The rows ``[n, k]`` that an index finds nearest to ``[n, d]`` queries."""
    graph.expansion_search = CANDIDATES
    rows: NDArray[np.int64] = np.atleast_2d(graph.search(queries, k).keys).astype(np.int64)
    return rows


def measure_recall(
    graph: Any, vectors: Any, blocks: Callable[[], Iterable[NDArray[np.float32]]], seed: int = 0
) -> float:
    """The share of the exact nearest neighbours of sampled nodes that an index finds; equally near ones count alike.

    Args:
        graph: the index.
        vectors: ``[N, d]``, an array or `StoredVectors`.
        blocks: gives all rows in order, some at a time.
        seed: of the sample.
    """
    n = len(vectors)
    nodes = np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE])
    k = min(NEAREST, n - 1)
    _, near = nearest_found(graph, vectors.__getitem__, nodes, k)
    least = np.array([best[-1] for _, best in nearest(vectors[nodes], nodes, blocks(), k)])
    return float((near >= least[:, None] - 1e-6).mean())


def nearest_found(
    graph: Any, vectors_of: Callable[[Any], NDArray[np.float32]], nodes: NDArray[np.int64], k: int
) -> Found:
    """Of the nodes that an index finds nearest to nodes ``[n]``, their rows and exact cosines ``[n, k]``."""
    queries = vectors_of(nodes)
    found = np.sort(search(graph, queries, k + 1), axis=1)
    rows, place = np.unique(found, return_inverse=True)
    there, places = vectors_of(rows), place.reshape(found.shape)
    similarity = np.vstack([cosines(query[None], there[at]) for query, at in zip(queries, places, strict=True)])
    similarity[found == nodes[:, None]] = -2  # itself comes last
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, best, 1), np.take_along_axis(similarity, best, 1).clip(-1, 1)


def _write(graph: Any, recall: float, index: Path, notes: Path, source: list[Any]) -> None:
    """Keep an index, and notes that say what it was made from."""
    with replacing(index) as temporary:
        try:
            graph.save(str(temporary))
        except RuntimeError as error:  # so the library tells of a full disk
            raise OSError(errno.ENOSPC, str(error)) from error
    told = {"source": source, "sha256": file_hash(index), "state": _state(index)}
    write_json(notes, told | {"recall": recall, "k": NEAREST, "sampled": SAMPLE})


def _read(index: Path, notes: Path, source: list[Any], nodes: int, width: int = 0) -> tuple[Any, float] | None:
    """The mapped index that was made from these files, and its recall; None where none can be trusted."""
    from usearch.index import Index

    try:
        told, state = read_json(notes), _state(index)
        if told.get("source") != source or not 0 <= (recall := float(told["recall"])) <= 1:
            return None
        # The library would read outside a damaged file's memory, so only the file that was written is loaded: it is in
        # the same state, or has the same hash, which takes seconds per gigabyte.
        if told.get("state") != state:
            if told.get("sha256") != file_hash(index):
                return None
            if _writable(notes):
                write_json(notes, told | {"state": state})
        graph: Any = Index.restore(str(index), view=True)
        sound = (len(graph), graph.ndim) == (nodes, width or graph.ndim)
    except Exception:  # of notes or an index that are missing or damaged, almost anything
        return None
    return (graph, recall) if sound else None


def _state(path: Path) -> list[Any]:
    """The size and the times of a file, and the hash of blocks of it, which are all of a small one.

    On Linux and macOS a write changes a time that no program sets back. The blocks find wide damage by the disk itself.
    """
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, sample_hash(path)]


def _writable(path: Path) -> bool:
    try:
        check_place(path)
    except InputError:
        return False
    return True
