"""ACM and DBLP as HeCo uses them: papers, authors and what else joins them, with fixed splits of labelled nodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from infomax.arrays.folder import map_array
from infomax.datasets.local_files import LocalFiles
from infomax.errors import readable
from infomax.graphs.graph import Graph
from infomax.io.building import from_edges
from infomax.io.features import read_matrix

SOURCE = "They are in the folder data of the repository liun-online/HeCo on GitHub."
LABELLED = (20, 40, 60)
"""Labels per class that training has, in each of the splits."""


class _Set(NamedTuple):
    """The type that has features and labels; the file of the features; for each file of edges, whom papers join."""

    labelled: str
    features: str
    edges: dict[str, tuple[str, str]]


_SETS = {
    "acm": _Set(
        "paper", "p_feat.npz", {"pa.txt": ("by", "author"), "ps.txt": ("about", "subject")}
    ),
    "dblp": _Set(
        "author",
        "a_feat.npz",
        {"pa.txt": ("by", "author"), "pc.txt": ("at", "conference"), "pt.txt": ("with", "term")},
    ),
}
_PARTS = {"train": "train", "val": "validation", "test": "test"}


def files(name: str) -> LocalFiles:
    """The graph, seen from its labelled type: the label ``class``, splits ``train_20``, ``validation_20`` and so on.

    The other types have positions in place of features.
    """
    masks = [f"{part}_{count}.npy" for count in LABELLED for part in _PARTS]
    names = (_SETS[name].features, "labels.npy", *_SETS[name].edges, *masks)
    return LocalFiles(f"heco/{name}", SOURCE, {names: partial(_read, name)})


def _read(name: str, features: Path, labels: Path, *others: Path) -> Graph:
    about = _SETS[name]
    links = {}
    for path in others[: len(about.edges)]:
        relation, kind = about.edges[path.name]
        with readable(path, "two columns of row numbers"):
            links["paper", relation, kind] = (np.loadtxt(path, dtype=np.int64, ndmin=2).T, None)
    sizes = {ends[2]: int(rows[1].max()) + 1 for ends, (rows, _) in links.items()}
    sizes["paper"] = max(int(rows[0].max()) + 1 for rows, _ in links.values())
    values = read_matrix(features)
    sizes[about.labelled] = n = values.shape[0]
    splits = {}
    for path in others[len(about.edges) :]:
        part, _, count = path.stem.partition("_")
        splits[f"{_PARTS[part]}_{count}"] = np.isin(np.arange(n), map_array(path, remedy=""))
    nodes: dict[str, dict[str, Any]] = {
        kind: {"ids": np.arange(size)} for kind, size in sizes.items()
    }
    classes = map_array(labels, remedy="").astype(np.int64)
    nodes[about.labelled] |= {"features": values, "labels": {"class": classes}, "splits": splits}
    return Graph.of(from_edges(nodes, links)).target(about.labelled)
