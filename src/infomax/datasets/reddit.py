"""Reddit: posts of September 2014, joined where one user commented on both, and the community of each post.

Three forms of it are public. PyG's Reddit2 and GraphSAGE's own archive have the 11.6 million edges used in the papers;
PyG's and DGL's Reddit has all 57 million, from which those were sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.datasets.local_files import LocalFiles, read_json, read_links
from infomax.errors import readable
from infomax.graphs.graph import Graph
from infomax.io.features import read_matrix

_SOURCE = (
    "The first four are GraphSAINT's: torch_geometric.datasets.Reddit2(FOLDER) leaves them in FOLDER/raw. The next "
    "four are in reddit.zip on the page of the GraphSAGE project at Stanford. The last two, with five times the "
    "edges, are what torch_geometric.datasets.Reddit(FOLDER) leaves."
)


def _read_reddit2(adjacency: Path, features: Path, class_map: Path, role: Path) -> Graph:
    """PyG's Reddit2, as GraphSAINT published it: 232,965 posts."""
    values, communities, rows = read_matrix(features), read_json(class_map), read_json(role)
    n = len(values)
    community = [communities[str(row)] for row in range(n)]
    masks = [np.isin(np.arange(n), rows[part]) for part in ("tr", "va", "te")]
    return Graph.from_scipy(
        read_matrix(adjacency), values, binary=True, **_columns(community, *masks)
    )


def _read_graphsage(graph: Path, features: Path, id_map: Path, class_map: Path) -> Graph:
    """GraphSAGE's archive: the 231,443 posts of its graph, which use 231,443 of the 232,965 feature rows."""
    content, rows, communities = (read_json(path) for path in (graph, id_map, class_map))
    nodes, edges = (
        content["nodes"],
        read_links(content["links"]),
    )  # a link's ends are positions in that list
    ids = [str(node["id"]) for node in nodes]
    validation, test = (
        np.array([node[part] for node in nodes], dtype=bool) for part in ("val", "test")
    )
    values = read_matrix(features)[[rows[identifier] for identifier in ids]]
    community = [communities[identifier] for identifier in ids]
    return Graph.from_arrays(
        edges, values, ids=ids, **_columns(community, ~validation & ~test, validation, test)
    )


def _read_reddit(adjacency: Path, data: Path) -> Graph:
    """PyG's and DGL's Reddit: 232,965 posts, 57 million edges."""
    with readable(data, "an npz file with feature, label and node_types"), np.load(data) as archive:
        features, community, part = (archive[key] for key in ("feature", "label", "node_types"))
    masks = [part == number for number in (1, 2, 3)]
    return Graph.from_scipy(
        read_matrix(adjacency), features, binary=True, **_columns(community, *masks)
    )


def _columns(
    community: Iterable[int],
    train: NDArray[np.bool_],
    validation: NDArray[np.bool_],
    test: NDArray[np.bool_],
) -> dict[str, Any]:
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
