"""Nearest neighbours in large graphs: an index of faiss, kept beside the vectors with its measured recall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks, unit
from infomax.arrays.hashes import checksum, file_state
from infomax.arrays.parquet_columns import StoredRows
from infomax.embeddings import Embeddings, Found, Searched, StoredEmbeddings
from infomax.errors import InputError, library, number_of, warn
from infomax.io.atomic import check_place, replacing
from infomax.io.json import read_json, write_json
from infomax.io.parts import ABOUT
from infomax.neighbours.of_some import cosines, nearest_to
from infomax.progress import Progress, silent
from infomax.training import runs

LIMIT = runs.STORED
"""Up to this number of nodes an exact search is as fast, in vectors that the run holds."""

INDEX, NOTES = "neighbours.faiss", "neighbours.json"
NEAREST, SAMPLE, RECALL = 10, 400, 0.95
"""So many neighbours of so many sampled nodes are compared with exact ones; this share of them is to be found."""
DRAWN, ROUNDS = 64, 6
"""Of k-means, which makes the lists: nodes per list that it is fitted to, and how often the centres move."""
BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class NeighbourIndex(Searched):
    """Vectors in lists of similar ones, of which only the nearest are searched.

    Shapes:
        ids: ``[N]``, an array or `StoredRows`.
        recall: the share of the ``NEAREST`` exact neighbours that it finds, over ``SAMPLE`` nodes.
        vectors: ``[N, d]``, which stay on disk; None: the index holds them in full precision, with length 1.
        node_names: ``[N]``, an array or stored, or None.
    """

    lists: Any
    ids: Any
    recall: float
    vectors: StoredRows | None = None
    node_names: Any = None

    def nearest(self, nodes: NDArray[Any], k: int) -> Found:
        """As `Embeddings.nearest`, among the nodes that the index finds; their cosines are exact."""
        exact = self.vectors_of if self.vectors is None else self.vectors.__getitem__
        queries, own = self.queries(nodes)
        if (own >= 0).all():  # of nodes, which an index may hold in half precision
            queries = exact(own)
        return nearest_found(self.lists, exact, queries, own, min(k, len(self.ids) - 1))

    def vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors in the index, of length 1, which are read faster than those on disk."""
        return self._with_places.reconstruct_batch(np.asarray(rows, np.int64))  # type: ignore[no-any-return]

    @cached_property
    def _with_places(self) -> Any:
        self.lists.make_direct_map()
        return self.lists

    def __str__(self) -> str:
        return f"index: {described(self.lists, self.recall)}"


def described(lists: Any, recall: float) -> str:
    """The settings of an index and its recall, in words."""
    told = f"{lists.nprobe} of {lists.nlist:,} lists of similar nodes searched"
    sample = number_of(min(SAMPLE, lists.ntotal), "sampled node")
    return f"{told}, recall@{NEAREST} {recall:.2f} against exact, on {sample}"


def has_faiss() -> bool:
    """Whether an index can be built; where it cannot, a warning says that all vectors are searched, and why."""
    there = find_spec("faiss") is not None
    if not there:
        warn(
            "neighbours: without faiss all vectors are searched. Install it: pip install 'infomax[search]'."
        )
    return there


def open_index(
    folder: Path,
    ids: NDArray[Any],
    embed: Callable[[], Embeddings | StoredEmbeddings],
    names: NDArray[Any] | None = None,
    tell: Callable[[bool], None] = lambda builds: None,
) -> Searched:
    """The index of a run folder; built from what ``embed`` returns where it is missing, outdated or damaged.

    Without faiss, or where the folder cannot be written: what ``embed`` returns. ``tell`` is called before one is
    built, and where it cannot be written.
    """
    if not has_faiss():
        return embed()
    source = [
        checksum(folder / runs.MODEL)
    ]  # the model holds hashes of all else that vectors depend on
    files = folder / INDEX, folder / NOTES
    if (known := _read(*files, source, len(ids))) is not None:
        return NeighbourIndex(known[0], ids, known[1], node_names=names)
    tell(writable := _writable(files[0]))
    if not writable:  # one exact search is faster than an index that is not kept
        return embed()
    lists, recall = build(embed().vectors)
    _write(lists, recall, *files, source)
    return NeighbourIndex(lists, ids, recall, node_names=names)


def open_stored_index(
    folder: Path, stored: StoredEmbeddings, *, make: bool, progress: Progress = silent
) -> NeighbourIndex | None:
    """The index of a folder of parquet parts, mapped from disk. Where there is none, None, or one is built first.

    It holds the vectors in half precision; the parts are read some rows at a time.
    """
    files = folder / f"_{INDEX}", folder / f"_{NOTES}"  # readers of parquet folders skip such names
    if not (make or files[0].exists()) or not has_faiss():
        return None
    source: list[Any] = [
        [path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in stored.vectors.paths
    ]
    source += [checksum(folder / ABOUT)] if (folder / ABOUT).is_file() else []
    if (known := _read(*files, source, *stored.vectors.shape)) is None:
        if not make:
            return None
        check_place(files[0])
        _write(*build(stored.vectors, half=True, progress=progress), *files, source)
        known = _read(*files, source, *stored.vectors.shape)
    assert known is not None  # noqa: S101  it was written above
    return NeighbourIndex(
        known[0], stored.ids, known[1], vectors=stored.vectors, node_names=stored.node_names
    )


def build(vectors: Any, *, half: bool = False, progress: Progress = silent) -> tuple[Any, float]:
    """An index of faiss over vectors ``[N, d]``, an array or `StoredRows`, and its recall; ``half``: in 16 bits.

    As many lists are searched as it takes to find the share ``RECALL`` of exact neighbours.
    """
    faiss = library("faiss", "search", "neighbours")
    n, width = vectors.shape
    count = min(n, round(2 * n**0.5))
    lists = faiss.index_factory(
        width, f"IVF{count},{'SQfp16' if half else 'Flat'}", faiss.METRIC_INNER_PRODUCT
    )
    lists.cp.niter, lists.cp.max_points_per_centroid, lists.cp.min_points_per_centroid = (
        ROUNDS,
        DRAWN,
        1,
    )
    lists.train(unit(vectors[np.sort(np.random.default_rng(0).permutation(n)[: DRAWN * count])]))
    for block in row_blocks(vectors):
        lists.add(unit(block))
        progress(lists.ntotal, "indexing")
    nodes, exact = sampled(vectors)
    while True:
        recall = measure_recall(lists, vectors, nodes, exact)
        if recall >= RECALL or lists.nprobe >= count:
            return lists, recall
        lists.nprobe += 1 + lists.nprobe // 4


def sampled(vectors: Any, seed: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Some nodes ``[n]``, and the cosines ``[n, k]`` of their exact neighbours."""
    n = len(vectors)
    nodes = np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE])
    k, blocks = min(NEAREST, n - 1), row_blocks(vectors)
    found = nearest_to(
        vectors[nodes], nodes, blocks, k, lambda one, other: unit(one) @ unit(other).T
    )
    return nodes, np.array([best for _, best in found])


def measure_recall(
    lists: Any, vectors: Any, nodes: NDArray[np.int64], exact: NDArray[np.float32]
) -> float:
    """The share of the exact nearest neighbours of sampled nodes that is found; equally near ones count alike."""
    _, near = nearest_found(lists, vectors.__getitem__, vectors[nodes], nodes, exact.shape[1])
    return float((near >= exact[:, -1:] - 1e-6).mean()) if exact.size else 1.0


def nearest_found(
    lists: Any,
    vectors_of: Callable[[Any], NDArray[np.float32]],
    queries: NDArray[np.float32],
    nodes: NDArray[np.int64],
    k: int,
) -> Found:
    """Of the nodes that an index finds nearest to queries ``[n, d]`` of nodes ``[n]``, rows and cosines ``[n, k]``."""
    found = np.sort(_search(lists, queries, k + 1)[0], axis=1)
    rows, place = np.unique(found, return_inverse=True)
    there, places = vectors_of(rows), place.reshape(found.shape)
    similarity = np.vstack(
        [cosines(query[None], there[at]) for query, at in zip(queries, places, strict=True)]
    )
    return _without_itself(nodes, found, similarity)


def nearest_of_all(
    vectors: NDArray[np.float32], k: int, progress: Progress = silent
) -> tuple[NDArray[np.int64], NDArray[np.float32], str]:
    """Rows and cosines ``[N, k]`` of the k nodes that an index finds nearest to each node, and how it searched."""
    lists, recall = build(vectors)
    n, k = len(vectors), min(k, len(vectors) - 1)
    rows, similar = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    for first in range(0, n, BLOCK):
        nodes = np.arange(first, min(first + BLOCK, n))
        rows[nodes], similar[nodes] = _without_itself(nodes, *_search(lists, vectors[nodes], k + 1))
        progress(int(nodes[-1]) + 1, "neighbours", n)
    return rows, similar, described(lists, recall)


def _search(lists: Any, queries: NDArray[np.float32], k: int) -> Found:
    """The rows and cosines ``[n, k]`` of the nodes that are found nearest to queries ``[n, d]``; k is at most N."""
    faiss = library("faiss", "search", "neighbours")
    directions = np.ascontiguousarray(unit(queries))
    similar, found = lists.search(directions, k)
    short = (found < 0).any(axis=1)  # the lists that were searched hold fewer
    if short.any():
        everywhere = faiss.SearchParametersIVF(nprobe=lists.nlist)
        similar[short], found[short] = lists.search(directions[short], k, params=everywhere)
    return found, similar


def _without_itself(
    nodes: NDArray[np.int64], found: NDArray[np.int64], similar: NDArray[np.float32]
) -> Found:
    """The k nearest of k + 1 rows and cosines that were found for each node ``[n]``, the nearest first."""
    similar[found == nodes[:, None]] = -2  # itself comes last
    best = np.argsort(-similar, axis=1, kind="stable")[:, :-1]
    return np.take_along_axis(found, best, 1), np.take_along_axis(similar, best, 1).clip(-1, 1)


def _write(lists: Any, recall: float, index: Path, notes: Path, source: list[Any]) -> None:
    """Keep an index, and notes that say what it was made from."""
    faiss = library("faiss", "search", "neighbours")
    with replacing(index) as temporary:
        faiss.write_index(lists, str(temporary))
    told = {"source": source, "hash": checksum(index), "state": file_state(index)}
    write_json(notes, told | {"recall": recall, "k": NEAREST, "sampled": SAMPLE})


def _read(
    index: Path, notes: Path, source: list[Any], nodes: int, width: int = 0
) -> tuple[Any, float] | None:
    """The mapped index that was made from these files, and its recall; None where none can be trusted."""
    faiss = library("faiss", "search", "neighbours")
    try:
        told = read_json(notes)
        state = file_state(index)
        known, recall = (
            (told.get("source"), told.get("sampled")) == (source, SAMPLE),
            float(told["recall"]),
        )
        if not known or not 0 <= recall <= 1:
            return None
        # Only the file that was written is mapped: it is in the same state, or has the same hash.
        if told.get("state") != state:
            if told.get("hash") != checksum(index):
                return None
            if _writable(notes):
                write_json(notes, told | {"state": state})
        lists = faiss.read_index(str(index), faiss.IO_FLAG_MMAP)
        return (lists, recall) if lists.ntotal == nodes and width in (0, lists.d) else None
    except (AttributeError, InputError, KeyError, OSError, RuntimeError, TypeError, ValueError):
        return None


def _writable(path: Path) -> bool:
    try:
        check_place(path)
    except InputError:
        return False
    return True
