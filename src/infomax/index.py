"""Nearest neighbours in large graphs: an approximate index, kept beside the vectors with its measured recall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.analysis.groups import Groups
from infomax.arrays.blocks import row_blocks
from infomax.arrays.hashes import checksum
from infomax.arrays.integrity import sample_hash
from infomax.arrays.parquet_columns import StoredVectors
from infomax.embeddings import Embeddings, Found, Searched, StoredEmbeddings, cosines, nearest
from infomax.errors import InputError, number_of
from infomax.evaluation.clustering import unit
from infomax.io.atomic import check_place, replacing
from infomax.io.json import read_json, write_json
from infomax.io.parts import ABOUT
from infomax.progress import Progress, silent
from infomax.training import runs

LIMIT = runs.STORED
"""Up to this number of nodes an exact search is as fast, in vectors that the run holds."""

INDEX, NOTES = "neighbours.groups", "neighbours.json"
NEAREST, SAMPLE, RECALL, SPARE = 10, 400, 0.95, 0.01
"""So many neighbours of so many sampled nodes are compared with exact ones; this share of them is to be found. Groups
are chosen for a little more, since the choice fits the sampled nodes best."""


@dataclass(frozen=True)
class NeighbourIndex(Searched):
    """Vectors in groups of similar ones, of which only the nearest are searched.

    Shapes:
        ids: ``[N]``, an array or `StoredIds`.
        recall: the share of the ``NEAREST`` exact neighbours that it finds, over ``SAMPLE`` nodes.
        kept: whether it is stored beside the vectors.
        vectors: ``[N, d]``, which stay on disk; None: the index holds them in full precision.
        node_names: ``[N]``, an array or stored, or None.
    """

    groups: Groups
    ids: Any
    recall: float
    kept: bool = True
    vectors: StoredVectors | None = None
    node_names: Any = None

    def nearest(self, rows: NDArray[np.int64], k: int) -> Found:
        """As `Embeddings.nearest`, among the nodes that the index finds; their cosines are exact."""
        exact = self.vectors_of if self.vectors is None else self.vectors.__getitem__
        return nearest_found(self.groups, exact, rows, min(k, len(self.ids) - 1))

    def vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors in the index, which are read faster than those on disk."""
        return self.groups.get(rows)

    def __str__(self) -> str:
        lost = "" if self.kept else "; not kept, since the folder cannot be written"
        return f"index: {described(self.groups, self.recall)}{lost}"


def described(groups: Groups, recall: float) -> str:
    """The settings of an index and its recall, in words."""
    told = f"{groups.searched} of {len(groups.middles):,} groups of similar nodes searched"
    sample = number_of(min(SAMPLE, len(groups)), "sampled node")
    return f"{told}, recall@{NEAREST} {recall:.2f} against exact, on {sample}"


def open_index(
    folder: Path, ids: NDArray[Any], embed: Callable[[], Embeddings], names: NDArray[Any] | None = None
) -> NeighbourIndex:
    """The index of a run folder; built from what ``embed`` returns where it is missing, outdated or damaged.

    It is kept in memory where the folder cannot be written.
    """
    source = [checksum(folder / runs.MODEL)]  # the model holds hashes of all else that vectors depend on
    files = folder / INDEX, folder / NOTES
    if (known := _read(*files, source, len(ids))) is not None:
        return NeighbourIndex(known[0], ids, known[1], node_names=names)
    kept = _writable(files[0])
    vectors = embed().vectors
    groups, recall = build(vectors)
    if kept:
        _write(groups, recall, *files, source)
    return NeighbourIndex(groups, ids, recall, kept, node_names=names)


def open_stored_index(
    folder: Path, stored: StoredEmbeddings, *, make: bool, progress: Progress = silent
) -> NeighbourIndex | None:
    """The index of a folder of parquet parts, mapped from disk. Where there is none, None, or one is built first.

    It holds the vectors in half precision; the parts are read some rows at a time.
    """
    files = folder / f"_{INDEX}", folder / f"_{NOTES}"  # readers of parquet folders skip such names
    source: list[Any] = [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in stored.vectors.paths]
    source += [checksum(folder / ABOUT)] if (folder / ABOUT).is_file() else []
    if (known := _read(*files, source, *stored.vectors.shape)) is None:
        if not make:
            return None
        check_place(files[0])
        _write(*build(stored.vectors, np.float16, progress), *files, source)
        known = _read(*files, source, *stored.vectors.shape)
    assert known is not None  # noqa: S101  it was written above
    return NeighbourIndex(known[0], stored.ids, known[1], vectors=stored.vectors, node_names=stored.node_names)


def build(
    vectors: Any, dtype: type = np.float32, progress: Progress = silent, *, together: bool = False
) -> tuple[Groups, float]:
    """An index in memory over vectors ``[N, d]``, an array or `StoredVectors`, and its recall.

    As many groups are searched as it takes to find the share ``RECALL`` of exact neighbours; ``together``: where all
    nodes are searched.
    """
    groups, (nodes, rows, exact) = Groups.of(vectors, dtype, progress), sampled(vectors)
    needed = np.append(groups.needed(unit(vectors[nodes]), rows, together=together), 1)
    groups = replace(groups, searched=int(np.quantile(needed, min(1, RECALL + SPARE), method="higher")))
    while True:
        recall = measure_recall(groups, vectors, nodes, exact, together=together)
        if recall >= RECALL or groups.searched >= len(groups.middles):
            return groups, recall
        groups = replace(groups, searched=2 * groups.searched)


def sampled(vectors: Any, seed: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Some nodes ``[n]``, and the rows and the cosines ``[n, k]`` of their exact neighbours.

    Not with the seed of `Groups`, whose first middles would be these nodes, which are found too easily.
    """
    n = len(vectors)
    nodes = np.sort(np.random.default_rng(seed).permutation(n)[:SAMPLE])
    k, blocks = min(NEAREST, n - 1), row_blocks(vectors)
    found = nearest(vectors[nodes], nodes, blocks, k, lambda one, other: unit(one) @ unit(other).T)
    return nodes, np.array([rows for rows, _ in found]), np.array([best for _, best in found])


def measure_recall(
    groups: Any, vectors: Any, nodes: NDArray[np.int64], exact: NDArray[np.float32], **how: bool
) -> float:
    """The share of the exact nearest neighbours of sampled nodes that is found; equally near ones count alike."""
    _, near = nearest_found(groups, vectors.__getitem__, nodes, exact.shape[1], **how)
    return float((near >= exact[:, -1:] - 1e-6).mean()) if exact.size else 1.0


def nearest_found(
    groups: Any, vectors_of: Callable[[Any], NDArray[np.float32]], nodes: NDArray[np.int64], k: int, **how: bool
) -> Found:
    """Of the nodes that an index finds nearest to nodes ``[n]``, their rows and exact cosines ``[n, k]``."""
    queries = vectors_of(nodes)
    found = np.sort(groups.search(queries, k + 1, **how), axis=1)
    rows, place = np.unique(found, return_inverse=True)
    there, places = vectors_of(rows), place.reshape(found.shape)
    similarity = np.vstack([cosines(query[None], there[at]) for query, at in zip(queries, places, strict=True)])
    similarity[found == nodes[:, None]] = -2  # itself comes last
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, best, 1), np.take_along_axis(similarity, best, 1).clip(-1, 1)


def _write(groups: Groups, recall: float, index: Path, notes: Path, source: list[Any]) -> None:
    """Keep an index, and notes that say what it was made from."""
    with replacing(index) as temporary:
        groups.save(temporary)
    told = {"source": source, "hash": checksum(index), "state": _state(index)}
    write_json(notes, told | {"recall": recall, "k": NEAREST, "sampled": SAMPLE})


def _read(index: Path, notes: Path, source: list[Any], nodes: int, width: int = 0) -> tuple[Groups, float] | None:
    """The mapped index that was made from these files, and its recall; None where none can be trusted."""
    try:
        told, state = read_json(notes), _state(index)
        known, recall = (told.get("source"), told.get("sampled")) == (source, SAMPLE), float(told["recall"])
        if not known or not 0 <= recall <= 1:
            return None
        # Only the file that was written is mapped: it is in the same state, or has the same hash.
        if told.get("state") != state:
            if told.get("hash") != checksum(index):
                return None
            if _writable(notes):
                write_json(notes, told | {"state": state})
        groups = Groups.restore(index)
        sound = groups.units.shape == (nodes, width or groups.units.shape[1]) and len(groups) == nodes
    except Exception:  # of notes or an index that are missing or damaged, almost anything
        return None
    return (groups, recall) if sound else None


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
