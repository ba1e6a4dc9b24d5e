"""A graph folder: a graph in plain files that are mapped into memory, for graphs larger than memory.

graph.json     format, counts, the names of features and labels, statistics of the features, and the size and the hash
               of every other file
indptr.npy     ``[N + 1]`` int64: node i is joined to ``indices[indptr[i] : indptr[i + 1]]``, which ascend
indices.npy    ``[E]`` int32; an undirected edge twice. In a directed graph, the nodes that point at node i
weights.npy    ``[E]`` float32; missing where all are 1
features.npy   ``[N, F]`` float32 or float16; of sparse features only the entries that are not zero, ``[S]``, with
feature_indptr.npy   ``[N + 1]`` int64: those of node i are ``feature_indptr[i]`` to ``feature_indptr[i + 1]``, and
feature_indices.npy  ``[S]`` int32: the column of each
nodes.parquet  the column ``id``, where nodes have names ``name``, where they have times ``time`` (int64, microseconds
               since 1970), and ``label:NAME`` and ``split:NAME`` for each label and split
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import AGAIN, check_once
from infomax.arrays.parquet_columns import StoredColumns, StoredRows, stored_ids
from infomax.arrays.scaling import Statistics
from infomax.arrays.table import FeatureTable, SparseRows
from infomax.errors import InputError, format_count, readable

FORMAT = 1
ABOUT, STARTS, NEIGHBOURS, WEIGHTS = "graph.json", "indptr.npy", "indices.npy", "weights.npy"
FEATURES, NODES = "features.npy", "nodes.parquet"
FEATURE_STARTS, FEATURE_COLUMNS = "feature_indptr.npy", "feature_indices.npy"
LABEL, SPLIT, NAME, TIME = "label:", "split:", "name", "time"


def is_folder(path: Path) -> bool:
    """Whether a path is a graph folder."""
    return (path / ABOUT).is_file()


def folder_hash(path: Path) -> str:
    """SHA-256 of graph.json, which holds the hashes of all other files: `compare_hashes` compares them."""
    return file_hash(path / ABOUT)


@contextmanager
def described(path: Path) -> Iterator[dict[str, Any]]:
    """What graph.json in a folder says; what fails while it is used is a fault of the description."""
    file = path / ABOUT
    with readable(file, "the description of a graph folder", AGAIN):
        yield json.loads(file.read_text(encoding="utf-8"))


def map_folder(path: Path) -> tuple[dict[str, Any], MappedAdjacency, dict[str, Any]]:
    """The fields of the nodes in a folder, its edges, and what else it says, mapped and checked by `check_once`."""
    with described(path) as about:
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']}")
        files = about["files"]
        expected = {STARTS, NEIGHBOURS, FEATURES, NODES} | (
            {WEIGHTS} if about["weighted"] else set()
        )
        if {*files} - {FEATURE_STARTS, FEATURE_COLUMNS} != expected:
            raise ValueError(f"entries for {', '.join(sorted(files))}")
        n = about["nodes"]
        entries = about["edges"] * (1 if about["directed"] else 2)
        width = len(about["feature_names"])
        arrays = map_files(path, files, sides(n, entries))
        features, of_features = map_features(path, files, (n, width))
        check_once(
            path,
            files,
            folder_hash(path),
            [(arrays, n), *([(of_features, width)] if of_features else [])],
        )
        senders = Senders(arrays[STARTS], arrays[NEIGHBOURS], arrays.get(WEIGHTS))
        told = {
            "dropped": dict(about["dropped"]),
            "edge_columns": about["edge_columns"] and tuple(about["edge_columns"]),
            "schema": about.get("schema"),  # as JSON
            "folder": path.resolve(),
        }
        return _map_nodes(path, about, features), MappedAdjacency(senders, about["directed"]), told


def _map_nodes(path: Path, about: dict[str, Any], features: Any) -> dict[str, Any]:
    """The fields of the nodes in a folder."""
    n = about["nodes"]
    names = tuple(about["feature_names"])
    ids = stored_ids(path / NODES)
    wanted = {
        "id",
        *(LABEL + name for name in about["labels"]),
        *(SPLIT + name for name in about["splits"]),
    }
    if len(ids) != n or not wanted <= set(ids.names) or str(ids.type) not in ("int64", "string"):
        expected = (
            f"{format_count(n, 'row')} of {', '.join(sorted(wanted))}, with ids of int64 or string"
        )
        raise InputError(
            str(path / NODES), expected, f"{len(ids)} of {', '.join(ids.names)}", AGAIN
        )
    statistics = Statistics.from_json(about["statistics"])
    numbers = np.stack([statistics.mean, statistics.variance])
    if numbers.shape[1] != len(names) or not names or not np.isfinite(numbers).all():
        raise ValueError(f"statistics of other features than {', '.join(names[:5])}")
    return {
        "table": FeatureTable(features, statistics, mapped=True),
        "ids": ids,  # read when they are asked for
        "feature_names": names,
        "labels": StoredColumns(path / NODES, LABEL, tuple(about["labels"])),
        "splits": StoredColumns(path / NODES, SPLIT, tuple(about["splits"])),
        "node_names": StoredRows(path / NODES, column=NAME) if NAME in ids.names else None,
        "encoding": about.get("encoding"),  # as JSON
        "times": StoredRows(path / NODES, column=TIME) if TIME in ids.names else None,
    }


def map_features(
    path: Path, files: dict[str, dict[str, Any]], shape: tuple[int, int]
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The features of a shape, mapped; and where they are sparse, the arrays to check before they are read."""
    kinds = ["float32", "float16"]
    if FEATURE_STARTS not in files:
        return map_files(path, files, {FEATURES: ([*shape], kinds)})[FEATURES], {}
    count = map_array(path / FEATURES).size
    layout = {FEATURE_STARTS: ([shape[0] + 1], ["int64"]), FEATURE_COLUMNS: ([count], ["int32"])}
    arrays = map_files(path, files, layout)
    entries = map_files(path, files, {FEATURES: ([count], kinds)})[FEATURES]
    return SparseRows(arrays[FEATURE_STARTS], arrays[FEATURE_COLUMNS], entries, shape[1]), arrays


def compare_hashes(path: Path, files: dict[str, dict[str, Any]]) -> None:
    """Refuse a file whose SHA-256 is not that of its entry."""
    with ThreadPoolExecutor(len(files)) as pool:
        for name, found in zip(
            files, pool.map(lambda name: file_hash(path / name), files), strict=True
        ):
            if found != files[name].get("sha256"):
                raise InputError(
                    str(path / name), "the file that graph.json describes", "another", AGAIN
                )


def sides(n: int, entries: int) -> dict[str, tuple[list[int], list[str]]]:
    """The shapes and types of the arrays that tell who sends to each of n nodes."""
    return {
        STARTS: ([n + 1], ["int64"]),
        NEIGHBOURS: ([entries], ["int32"]),
        WEIGHTS: ([entries], ["float32"]),
    }


def map_files(
    path: Path, files: dict[str, dict[str, Any]], layout: dict[str, tuple[list[int], list[str]]]
) -> dict[str, NDArray[Any]]:
    """The arrays of a ``layout`` that graph.json has entries for, mapped; refuse other shapes and types."""
    arrays = {}
    for name, (shape, kinds) in layout.items():
        if entry := files.get(name):
            array = arrays[name] = map_array(path / name)
            found = [list(array.shape), str(array.dtype)]
            told = [entry.get("shape"), entry.get("dtype")]
            if (
                found[0] != shape
                or found[1] not in kinds
                or told != found
                or not array.flags.c_contiguous
            ):
                expected = f"{' or '.join(kinds)} of shape {shape}, and the same told in {ABOUT}"
                raise InputError(
                    str(path / name), expected, f"{found[1]} of shape {found[0]}", AGAIN
                )
    return arrays


def map_array(path: Path, remedy: str = AGAIN) -> NDArray[Any]:
    """The array of an .npy file, mapped; writing to it would change memory only."""
    with readable(path, "an .npy file of one plain array", remedy):
        # Mapped: a header that claims more than the file holds is refused before any memory is taken.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise TypeError("several arrays, as in an npz file")
    return array
