"""A graph folder: a graph in plain files that are mapped into memory, for graphs larger than memory.

graph.json     format, counts, the names of features and labels, statistics of the features, and the size and the hash
               of every other file
indptr.npy     ``[N + 1]`` int64: node i is joined to ``indices[indptr[i] : indptr[i + 1]]``, which ascend
indices.npy    ``[E]`` int32; an undirected edge twice. In a directed graph, the nodes that point at node i
weights.npy    ``[E]`` float32; missing where all are 1
features.npy   ``[N, F]`` float32 or float16
nodes.parquet  the column ``id``, and ``label:NAME`` and ``split:NAME`` for each label and split
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.adjacency import MappedAdjacency, Senders
from infomax.arrays.columns import StoredColumns, StoredIds
from infomax.arrays.statistics import Statistics
from infomax.arrays.table import MappedTable
from infomax.errors import InputError

FORMAT = 1
ABOUT, STARTS, NEIGHBOURS, WEIGHTS = "graph.json", "indptr.npy", "indices.npy", "weights.npy"
FEATURES, NODES = "features.npy", "nodes.parquet"
LABEL, SPLIT = "label:", "split:"

_LISTS = ("labels", "splits", "edge_columns")
_AGAIN = "Restore a copy, or make it again: infomax prepare."


def is_folder(path: Path) -> bool:
    """Whether a path is a graph folder."""
    return (path / ABOUT).is_file()


def folder_hash(path: Path) -> str:
    """SHA-256 of graph.json, which holds the hashes of all other files."""
    return file_hash(path / ABOUT)


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def map_folder(path: Path) -> dict[str, Any]:
    """The fields of the `Graph` in a folder, its arrays mapped. File sizes are checked, their hashes are not."""
    about = _read_about(path)
    weighted = WEIGHTS in about["files"]
    weights = _map(path / WEIGHTS) if weighted else None
    edges = MappedAdjacency(Senders(_map(path / STARTS), _map(path / NEIGHBOURS), weights), about["directed"])
    table = MappedTable(_map(path / FEATURES), _statistics(path / ABOUT, about))
    ids = StoredIds(path / NODES)
    n, width = about["nodes"], len(about["feature_names"])
    if edges.n != n or table.shape != (n, width) or len(ids) != n:
        found = f"{edges.n}, {len(table)} and {len(ids)} rows"
        raise InputError(str(path), f"{n} nodes in {STARTS}, {FEATURES} and {NODES}", found, _AGAIN)
    columns = about["edge_columns"]
    return {
        "edges": edges,
        "table": table,
        "ids": ids,  # read when they are asked for
        "feature_names": tuple(about["feature_names"]),
        "labels": StoredColumns(path / NODES, LABEL, tuple(about["labels"])),
        "splits": StoredColumns(path / NODES, SPLIT, tuple(about["splits"])),
        "dropped": about["dropped"],
        "edge_columns": None if columns is None else tuple(columns),
        "table_columns": {word: str(name) for word, name in about["table_columns"].items()},
        "folder": path.resolve(),
    }


def _read_about(path: Path) -> dict[str, Any]:
    """What graph.json says, refused where the files beside it are others."""
    file = path / ABOUT
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        found = about["format"]
        if found == FORMAT:
            sizes = {name: entry["bytes"] for name, entry in about["files"].items()}
            about["table_columns"] = {**about.get("table_columns", {})}  # older folders have none
            if missing := {"nodes", "directed", "dropped", "feature_names", "statistics", *_LISTS} - set(about):
                raise ValueError(f"no {', '.join(sorted(missing))}")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(str(file), "the description of a graph folder", str(error), _AGAIN) from None
    if found != FORMAT:
        raise InputError(str(file), f"format {FORMAT}", f"format {found}", "Make the folder again: infomax prepare.")
    for name, size in sizes.items():
        if Path(name).name != name or not (path / name).is_file():
            raise InputError(str(path / name), "a file of the graph folder", "no such file", _AGAIN)
        if (path / name).stat().st_size != size:
            raise InputError(str(path / name), f"{size:,} bytes", f"{(path / name).stat().st_size:,}", _AGAIN)
    if missing := {STARTS, NEIGHBOURS, FEATURES, NODES} - set(sizes):
        raise InputError(str(file), f"an entry for {', '.join(sorted(missing))}", "none", _AGAIN)
    return about  # type: ignore[no-any-return]


def _statistics(file: Path, about: dict[str, Any]) -> Statistics:
    """The statistics of the features in graph.json."""
    try:
        known = Statistics.from_json(about["statistics"])
        if {known.mean.shape, known.variance.shape} != {(len(about["feature_names"]),)}:
            raise ValueError(f"{known.mean.size} and {known.variance.size} numbers")
    except (ValueError, LookupError, TypeError) as error:
        expected = f"the statistics of {len(about['feature_names'])} features"
        raise InputError(str(file), expected, str(error), _AGAIN) from None
    return known


def _map(path: Path) -> NDArray[Any]:
    """The array of an .npy file, mapped; writing to it would change memory only."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(str(path), "an .npy file", str(error), _AGAIN) from None
    return array
