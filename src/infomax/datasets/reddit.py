"""Reddit: posts of September 2014, joined where one person commented on both, and the community each is in.

It is handed round in three forms. PyG's Reddit2 and GraphSAGE's own archive have the 11.6 million edges of the papers;
PyG's and DGL's Reddit has all 57 million, of which those are a sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.datasets import placed
from infomax.graphs.graph import Graph

_SOURCE = (
    "The first four are GraphSAINT's: torch_geometric.datasets.Reddit2(FOLDER) leaves them in FOLDER/raw. The next "
    "four are in reddit.zip on the page of the GraphSAGE project at Stanford. The last two, with five times the "
    "edges, are what torch_geometric.datasets.Reddit(FOLDER) leaves."
)


def find() -> list[Path]:
    """The files, where a user put them."""
    return placed.find("reddit", _LAYOUTS, _SOURCE)


def read(*paths: Path) -> Graph:
    """The graph: features as in the files, unscaled, and the label ``community``, of 41."""
    return placed.read(_LAYOUTS, paths)


def _read_reddit2(adjacency: Path, features: Path, class_map: Path, role: Path) -> Graph:
    """PyG's Reddit2, as GraphSAINT published it: 232,965 posts."""
    values, communities, rows = placed.read_array(features), placed.read_json(class_map), placed.read_json(role)
    n = len(values)
    community = [communities[str(row)] for row in range(n)]
    masks = [np.isin(np.arange(n), rows[part]) for part in ("tr", "va", "te")]
    return Graph.from_scipy(placed.read_matrix(adjacency), values, binary=True, **_columns(community, *masks))


def _read_graphsage(graph: Path, features: Path, id_map: Path, class_map: Path) -> Graph:
    """GraphSAGE's archive: the 231,443 posts that its graph lists, which have 231,443 of the 232,965 feature rows."""
    content, rows, communities = (placed.read_json(path) for path in (graph, id_map, class_map))
    nodes, edges = content["nodes"], placed.read_links(content["links"])  # a link numbers its ends as listed
    ids = [str(node["id"]) for node in nodes]
    validation, test = (np.array([node[part] for node in nodes], dtype=bool) for part in ("val", "test"))
    values = placed.read_array(features)[[rows[identifier] for identifier in ids]]
    community = [communities[identifier] for identifier in ids]
    return Graph.from_arrays(edges, values, ids=ids, **_columns(community, ~validation & ~test, validation, test))


def _read_reddit(adjacency: Path, data: Path) -> Graph:
    """PyG's and DGL's Reddit: 232,965 posts."""
    features, community, part = placed.read_arrays(data, "feature", "label", "node_types")
    masks = [part == number for number in (1, 2, 3)]
    return Graph.from_scipy(placed.read_matrix(adjacency), features, binary=True, **_columns(community, *masks))


def _columns(
    community: Iterable[int], train: NDArray[np.bool_], validation: NDArray[np.bool_], test: NDArray[np.bool_]
) -> dict[str, Any]:
    return {
        "labels": {"community": np.asarray(community, dtype=np.int64)},
        "splits": {"train": train, "validation": validation, "test": test, "seen": train},
    }


_LAYOUTS: placed.Layouts = {
    ("adj_full.npz", "feats.npy", "class_map.json", "role.json"): _read_reddit2,
    ("reddit-G.json", "reddit-feats.npy", "reddit-id_map.json", "reddit-class_map.json"): _read_graphsage,
    ("reddit_graph.npz", "reddit_data.npz"): _read_reddit,
}
