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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.hashes import file_hash
from infomax.arrays.integrity import AGAIN, check_once
from infomax.arrays.parquet_columns import StoredColumns, StoredIds, StoredRows
from infomax.arrays.scaling import Statistics
from infomax.arrays.table import MappedTable, SparseRows
from infomax.errors import InputError, number_of

FORMAT = 1
ABOUT, STARTS, NEIGHBOURS, WEIGHTS = "graph.json", "indptr.npy", "indices.npy", "weights.npy"
FEATURES, NODES = "features.npy", "nodes.parquet"
FEATURE_STARTS, FEATURE_COLUMNS = "feature_indptr.npy", "feature_indices.npy"
LABEL, SPLIT, NAME, TIME = "label:", "split:", "name", "time"


def is_folder(path: Path) -> bool:
    """Whether a path is a graph folder."""
    return (path / ABOUT).is_file()


def folder_hash(path: Path) -> str:
    """SHA-256 of graph.json, which holds the hashes of all other files: `check_hashes` compares them."""
    return file_hash(path / ABOUT)


def map_folder(path: Path) -> tuple[dict[str, Any], MappedAdjacency, dict[str, Any]]:
    """The fields of the nodes in a folder, its edges, and what else it says, mapped and checked by `check_once`."""
    about = _read_about(path)
    n, entries, width = about["nodes"], about["edges"] * (1 if about["directed"] else 2), len(about["feature_names"])
    arrays = map_files(path, about["files"], sides(n, entries))
    ids = StoredIds(path / NODES)
    statistics = _statistics(path / ABOUT, about)
    wanted = {"id", *(LABEL + name for name in about["labels"]), *(SPLIT + name for name in about["splits"])}
    if len(ids) != n or not wanted <= set(ids.names) or str(ids.type) not in ("int64", "string"):
        expected = f"{number_of(n, 'row')} of {', '.join(sorted(wanted))}, with ids of int64 or string"
        raise InputError(str(path / NODES), expected, f"{len(ids)} of {', '.join(ids.names)}", AGAIN)
    features, of_features = map_features(path, about["files"], (n, width))
    check_once(path, about["files"], folder_hash(path), [(arrays, n), *([(of_features, width)] if of_features else [])])
    senders = Senders(arrays[STARTS], arrays[NEIGHBOURS], arrays.get(WEIGHTS))
    columns = about["edge_columns"]
    nodes = {
        "table": MappedTable(features, statistics),
        "ids": ids,  # read when they are asked for
        "feature_names": tuple(about["feature_names"]),
        "labels": StoredColumns(path / NODES, LABEL, tuple(about["labels"])),
        "splits": StoredColumns(path / NODES, SPLIT, tuple(about["splits"])),
        "node_names": StoredRows(path / NODES, column=NAME) if NAME in ids.names else None,
        "encoding": about.get("encoding"),  # as JSON
        "times": StoredRows(path / NODES, column=TIME) if TIME in ids.names else None,
    }
    told = {
        "dropped": about["dropped"],
        "edge_columns": None if columns is None else tuple(columns),
        "table_columns": {word: str(name) for word, name in about["table_columns"].items()},
        "folder": path.resolve(),
    }
    return nodes, MappedAdjacency(senders, about["directed"]), told


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


def check_hashes(path: Path) -> None:
    """Refuse a folder in which any file has another SHA-256 than graph.json says; all of it is read."""
    compare_hashes(path, _read_about(path)["files"])


def compare_hashes(path: Path, files: dict[str, dict[str, Any]]) -> None:
    """Refuse a file whose SHA-256 is not that of its entry."""
    with ThreadPoolExecutor(len(files)) as pool:
        for name, found in zip(files, pool.map(lambda name: file_hash(path / name), files), strict=True):
            if found != files[name].get("sha256"):
                raise InputError(str(path / name), "the file that graph.json describes", "another", AGAIN)


def _read_about(path: Path) -> dict[str, Any]:
    """What graph.json says; refuse it where the files beside it are not those that it describes."""
    file = path / ABOUT
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        found = about["format"]
        if found == FORMAT:
            _check_kinds(about)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(str(file), "the description of a graph folder", str(error), AGAIN) from None
    if found != FORMAT:
        raise InputError(str(file), f"format {FORMAT}", f"format {found}", "Make the folder again: infomax prepare.")
    files = about["files"]
    check_sizes(path, files, {STARTS, NEIGHBOURS, FEATURES, NODES}, weighted=about["weighted"])
    return about  # type: ignore[no-any-return]


def check_sizes(path: Path, files: dict[str, Any], expected: set[str], *, weighted: bool = False) -> None:
    """Refuse entries for other files than expected, and files of other sizes; weights may be among them."""
    if weighted or WEIGHTS in files or (path / WEIGHTS).exists():
        expected = expected | {WEIGHTS}
    if not {FEATURE_STARTS, FEATURE_COLUMNS}.isdisjoint(files) or (path / FEATURE_STARTS).exists():
        expected = expected | {FEATURE_STARTS, FEATURE_COLUMNS}
    if set(files) != expected:
        differ = ", ".join(sorted(expected ^ set(files)))
        where, wanted = str(path / ABOUT), f"entries for {', '.join(sorted(expected))}"
        raise InputError(where, wanted, f"a difference in {differ}", AGAIN)
    for name, entry in files.items():
        if not (path / name).is_file():
            raise InputError(str(path / name), "a file of the graph folder", "no such file", AGAIN)
        if (size := (path / name).stat().st_size) != entry["bytes"]:
            raise InputError(str(path / name), f"{entry['bytes']:,} bytes", f"{size:,}", AGAIN)


def _check_kinds(about: dict[str, Any]) -> None:
    """Raise an error for what is missing in graph.json or is not what it should be."""
    texts = {name: about[name] for name in ("feature_names", "labels", "splits")}
    texts["edge_columns"] = about["edge_columns"] or []
    numbers = {name: about[name] for name in ("nodes", "edges")} | about["dropped"]
    numbers |= {f"bytes of {name}": entry["bytes"] for name, entry in about["files"].items()}
    wrong = [name for name, value in numbers.items() if type(value) is not int or value < (name == "nodes")]
    wrong += [name for name, value in texts.items() if type(value) is not list or not {str} >= set(map(type, value))]
    kinds = {"directed": bool, "weighted": bool, "table_columns": dict}
    wrong += [name for name, kind in kinds.items() if type(about[name]) is not kind]
    if wrong or not about["feature_names"]:
        raise TypeError(f"others for {', '.join(wrong) or 'feature_names'}")


def sides(n: int, entries: int) -> dict[str, tuple[list[int], list[str]]]:
    """The shapes and types of the arrays that tell who sends to each of n nodes."""
    return {STARTS: ([n + 1], ["int64"]), NEIGHBOURS: ([entries], ["int32"]), WEIGHTS: ([entries], ["float32"])}


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
            if found[0] != shape or found[1] not in kinds or told != found or not array.flags.c_contiguous:
                expected = f"{' or '.join(kinds)} of shape {shape}, and the same told in {ABOUT}"
                raise InputError(str(path / name), expected, f"{found[1]} of shape {found[0]}", AGAIN)
    return arrays


def _statistics(file: Path, about: dict[str, Any]) -> Statistics:
    """The statistics of the features in graph.json."""
    try:
        statistics = Statistics.from_json(about["statistics"])
        if {statistics.mean.shape, statistics.variance.shape} != {(len(about["feature_names"]),)}:
            raise ValueError(f"{statistics.mean.size} and {statistics.variance.size} numbers")
        if not np.isfinite([statistics.mean, statistics.variance]).all():
            raise ValueError("infinity, or what is not a number")
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        expected = f"the statistics of {number_of(len(about['feature_names']), 'feature')}"
        raise InputError(str(file), expected, str(error), AGAIN) from None
    return statistics


def map_array(path: Path, remedy: str = AGAIN) -> NDArray[Any]:
    """The array of an .npy file, mapped; writing to it would change memory only."""
    try:
        # Mapped: a header that claims more than the file holds is refused before any memory is taken.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise TypeError("several arrays, as in an npz file")
    except Exception as error:  # a damaged header makes numpy raise almost anything
        raise InputError(str(path), "an .npy file of one plain array", str(error), remedy) from None
    return array
