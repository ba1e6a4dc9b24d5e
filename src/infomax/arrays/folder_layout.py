"""A graph folder: a graph in plain files that are mapped, so it may be larger than memory.

graph.json
    format, counts, the names of features and labels, statistics of the features, and the size and
    the hash of every other file
indptr.npy
    ``[N + 1]`` int64: node i is joined to ``indices[indptr[i] : indptr[i + 1]]``, which ascend
indices.npy
    ``[E]`` int32; an undirected edge twice. In a directed graph, the nodes that point at node i
weights.npy
    ``[E]`` float32; missing where all are 1
features.npy
    ``[N, F]`` float32 or float16; of sparse features only the entries that are not zero, ``[S]``,
    with the two files below
feature_indptr.npy
    ``[N + 1]`` int64: those of node i are ``feature_indptr[i]`` to ``feature_indptr[i + 1]``
feature_indices.npy
    ``[S]`` int32: the column of each entry
nodes.parquet
    the column ``id``; where nodes have names ``name``; where they have times ``time`` (int64,
    microseconds since 1970); and ``label:NAME`` and ``split:NAME`` for each label and split

`infomax.io.graph_folder` writes and opens such folders, and those of several types of nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import PREPARE_AGAIN
from infomax.arrays.table import SparseRows
from infomax.errors import InputError, readable

FORMAT = 1
DESCRIPTION = "graph.json"
STARTS = "indptr.npy"
NEIGHBOURS = "indices.npy"
WEIGHTS = "weights.npy"
FEATURES = "features.npy"
FEATURE_STARTS = "feature_indptr.npy"
FEATURE_COLUMNS = "feature_indices.npy"
NODES = "nodes.parquet"
LABEL, SPLIT = "label:", "split:"
"""Columns of nodes.parquet whose names begin so are labels and splits."""
NAME, TIME = "name", "time"

FileDescriptions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""What graph.json says of each file: ``bytes``, ``sha256``; of arrays also ``dtype``, ``shape``."""


def is_folder(path: Path) -> bool:
    """Whether a path is a graph folder."""
    return (path / DESCRIPTION).is_file()


def folder_hash(path: Path) -> str:
    """SHA-256 of graph.json, which holds the hashes of all other files.

    `compare_hashes` compares these with the files.
    """
    return file_hash(path / DESCRIPTION)


@contextmanager
def description_of(path: Path) -> Iterator[dict[str, Any]]:
    """The content of graph.json; any error while it is used is a fault of the description."""
    file = path / DESCRIPTION
    with readable(file, "the description of a graph folder", PREPARE_AGAIN):
        yield json.loads(file.read_text(encoding="utf-8"))


def map_features(
    path: Path, files: FileDescriptions, shape: tuple[int, int]
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The features ``[N, F]``, mapped.

    Returns:
        The features; and the arrays to check before sparse features are read, by their files.
    """
    number_types = ["float32", "float16"]
    if FEATURE_STARTS not in files:
        arrays = map_files(path, files, {FEATURES: ([*shape], number_types)})
        return arrays[FEATURES], {}

    num_rows, width = shape
    num_entries = map_array(path / FEATURES).size
    index_layout = {
        FEATURE_STARTS: ([num_rows + 1], ["int64"]),
        FEATURE_COLUMNS: ([num_entries], ["int32"]),
    }
    index_arrays = map_files(path, files, index_layout)
    entries = map_files(path, files, {FEATURES: ([num_entries], number_types)})[FEATURES]
    rows = SparseRows(index_arrays[FEATURE_STARTS], index_arrays[FEATURE_COLUMNS], entries, width)
    return rows, index_arrays


def compare_hashes(path: Path, files: FileDescriptions) -> None:
    """Refuse a file whose SHA-256 is not the one that graph.json says."""
    with ThreadPoolExecutor(len(files)) as pool:
        hashes = pool.map(lambda name: file_hash(path / name), files)
        for name, content_hash in zip(files, hashes, strict=True):
            if content_hash != files[name].get("sha256"):
                expected = "the file that graph.json describes"
                raise InputError(str(path / name), expected, "another", PREPARE_AGAIN)


def senders_layout(num_receivers: int, num_entries: int) -> dict[str, tuple[list[int], list[str]]]:
    """The shapes and types of the arrays that say who sends to each node."""
    return {
        STARTS: ([num_receivers + 1], ["int64"]),
        NEIGHBOURS: ([num_entries], ["int32"]),
        WEIGHTS: ([num_entries], ["float32"]),
    }


def map_files(
    path: Path, files: FileDescriptions, layout: Mapping[str, tuple[list[int], list[str]]]
) -> dict[str, NDArray[Any]]:
    """The arrays of some files, mapped; refuse other shapes and types.

    Args:
        path: the graph folder.
        files: what graph.json says of each file; files that it does not list are left out.
        layout: the shape and the possible types of each array, by the name of its file.
    """
    arrays = {}
    for name, (shape, dtypes) in layout.items():
        described = files.get(name)
        if not described:
            continue
        array = map_array(path / name)
        array_shape, array_dtype = list(array.shape), str(array.dtype)
        is_as_laid_out = array_shape == shape and array_dtype in dtypes
        is_as_described = (
            described.get("shape") == array_shape and described.get("dtype") == array_dtype
        )
        if not is_as_laid_out or not is_as_described or not array.flags.c_contiguous:
            expected = f"{' or '.join(dtypes)} of shape {shape}, and the same told in {DESCRIPTION}"
            found = f"{array_dtype} of shape {array_shape}"
            raise InputError(str(path / name), expected, found, PREPARE_AGAIN)
        arrays[name] = array
    return arrays


def map_array(path: Path, remedy: str = PREPARE_AGAIN) -> NDArray[Any]:
    """The array of an .npy file, mapped; writing to it would change memory only."""
    with readable(path, "an .npy file of one plain array", remedy):
        # Mapped: a header that claims more than the file holds is refused before memory is taken.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise TypeError("several arrays, as in an npz file")
    return array
