"""Reddit: posts of September 2014 and their communities, joined where a user commented on both.

Three forms of it are public. PyG's Reddit2 and GraphSAGE's own archive have the 11.6 million edges
used in the papers; PyG's and DGL's Reddit has all 57 million, from which those were sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.datasets.local_files import LocalFiles, read_json, read_networkx_edges
from infomax.errors import readable
from infomax.graphs.graph import Graph
from infomax.io.features import read_matrix

_SOURCE = (
    "The first four are GraphSAINT's: torch_geometric.datasets.Reddit2(FOLDER) leaves them in "
    "FOLDER/raw. The next four are in reddit.zip on the page of the GraphSAGE project at Stanford. "
    "The last two, with five times the edges, are what torch_geometric.datasets.Reddit(FOLDER) "
    "leaves."
)


def _read_reddit2(
    adjacency_path: Path, feature_path: Path, class_path: Path, role_path: Path
) -> Graph:
    """PyG's Reddit2, as GraphSAINT published it: 232,965 posts."""
    features = read_matrix(feature_path)
    community_of_row = read_json(class_path)
    rows_of_role = read_json(role_path)
    n = len(features)
    community = [community_of_row[str(row)] for row in range(n)]
    masks = [np.isin(np.arange(n), rows_of_role[role]) for role in ("tr", "va", "te")]
    annotations = _annotations(community, *masks)
    return Graph.from_scipy(read_matrix(adjacency_path), features, binary=True, **annotations)


def _read_graphsage(
    graph_path: Path, feature_path: Path, row_path: Path, class_path: Path
) -> Graph:
    """GraphSAGE's archive: the 231,443 posts of its graph, of 232,965 rows of features."""
    graph = read_json(graph_path)
    row_of_id = read_json(row_path)
    community_of_id = read_json(class_path)

    # The ends of an edge are positions in the list of nodes.
    nodes = graph["nodes"]
    edges = read_networkx_edges(graph["links"])
    ids = [str(node["id"]) for node in nodes]
    validation = np.array([node["val"] for node in nodes], dtype=bool)
    test = np.array([node["test"] for node in nodes], dtype=bool)

    features = read_matrix(feature_path)[[row_of_id[node_id] for node_id in ids]]
    community = [community_of_id[node_id] for node_id in ids]
    annotations = _annotations(community, ~validation & ~test, validation, test)
    return Graph.from_arrays(edges, features, ids=ids, **annotations)


def _read_reddit(adjacency_path: Path, data_path: Path) -> Graph:
    """PyG's and DGL's Reddit: 232,965 posts, 57 million edges."""
    expected = "an npz file with feature, label and node_types"
    with readable(data_path, expected), np.load(data_path) as archive:
        features = archive["feature"]
        community = archive["label"]
        split_numbers = archive["node_types"]
    masks = [split_numbers == number for number in (1, 2, 3)]
    annotations = _annotations(community, *masks)
    return Graph.from_scipy(read_matrix(adjacency_path), features, binary=True, **annotations)


def _annotations(
    community: Iterable[int],
    train: NDArray[np.bool_],
    validation: NDArray[np.bool_],
    test: NDArray[np.bool_],
) -> dict[str, Any]:
    """The label and the splits, as arguments of `Graph.from_arrays`."""
    return {
        "labels": {"community": np.asarray(community, dtype=np.int64)},
        "splits": {"train": train, "validation": validation, "test": test, "seen": train},
    }


FILES = LocalFiles(
    "reddit",
    _SOURCE,
    {
        ("adj_full.npz", "feats.npy", "class_map.json", "role.json"): _read_reddit2,
        (
            "reddit-G.json",
            "reddit-feats.npy",
            "reddit-id_map.json",
            "reddit-class_map.json",
        ): _read_graphsage,
        ("reddit_graph.npz", "reddit_data.npz"): _read_reddit,
    },
)
"""The graph: unscaled features as in the files, and the label ``community`` with 41 classes."""
