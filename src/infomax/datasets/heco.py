"""ACM and DBLP as HeCo uses them: papers, authors and what else joins them, with fixed splits."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from infomax.arrays.folder_layout import map_array
from infomax.datasets.local_files import LocalFiles
from infomax.errors import readable
from infomax.graphs.graph import Graph
from infomax.io.building import from_edges
from infomax.io.features import read_matrix

SOURCE = "They are in the folder data of the repository liun-online/HeCo on GitHub."
LABELS_PER_CLASS = (20, 40, 60)
"""Labels per class that training has, in each of the splits."""
SPLIT_OF_FILE = {"train": "train", "val": "validation", "test": "test"}


class _Publication(NamedTuple):
    """The files of one data set."""

    labelled_type: str
    """The type of nodes that has features and labels."""
    feature_file: str
    edge_files: dict[str, tuple[str, str]]
    """By file, the relation and the type of nodes to which it joins papers."""


_PUBLICATIONS = {
    "acm": _Publication(
        "paper", "p_feat.npz", {"pa.txt": ("by", "author"), "ps.txt": ("about", "subject")}
    ),
    "dblp": _Publication(
        "author",
        "a_feat.npz",
        {"pa.txt": ("by", "author"), "pc.txt": ("at", "conference"), "pt.txt": ("with", "term")},
    ),
}


def files(name: str) -> LocalFiles:
    """The files of a data set, read as a graph that is seen from its labelled type.

    The label is ``class``, the splits are ``train_20``, ``validation_20`` and so on. The other
    types have positions in place of features.
    """
    publication = _PUBLICATIONS[name]
    split_files = [f"{part}_{count}.npy" for count in LABELS_PER_CLASS for part in SPLIT_OF_FILE]
    layout = (publication.feature_file, "labels.npy", *publication.edge_files, *split_files)
    return LocalFiles(f"heco/{name}", SOURCE, {layout: partial(_read, name)})


def _read(name: str, feature_path: Path, label_path: Path, *other_paths: Path) -> Graph:
    publication = _PUBLICATIONS[name]
    edge_file_count = len(publication.edge_files)
    edge_paths = other_paths[:edge_file_count]
    split_paths = other_paths[edge_file_count:]

    edges = {}
    for path in edge_paths:
        relation, target_type = publication.edge_files[path.name]
        with readable(path, "two columns of row numbers"):
            rows = np.loadtxt(path, dtype=np.int64, ndmin=2).T
        edges["paper", relation, target_type] = (rows, None)

    # Nodes are numbered from 0, and all of them have edges, or features.
    features = read_matrix(feature_path)
    node_counts = {ends[2]: int(rows[1].max()) + 1 for ends, (rows, _) in edges.items()}
    node_counts["paper"] = max(int(rows[0].max()) + 1 for rows, _ in edges.values())
    labelled_count = features.shape[0]
    node_counts[publication.labelled_type] = labelled_count

    splits = {}
    for path in split_paths:
        part, _, count = path.stem.partition("_")
        split_rows = map_array(path, remedy="")
        splits[f"{SPLIT_OF_FILE[part]}_{count}"] = np.isin(np.arange(labelled_count), split_rows)

    classes = map_array(label_path, remedy="").astype(np.int64)
    nodes: dict[str, dict[str, Any]] = {
        node_type: {"ids": np.arange(count)} for node_type, count in node_counts.items()
    }
    nodes[publication.labelled_type] |= {
        "features": features,
        "labels": {"class": classes},
        "splits": splits,
    }
    return Graph.of(from_edges(nodes, edges)).target(publication.labelled_type)
