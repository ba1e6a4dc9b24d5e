"""A graph with new nodes: the new ones are in memory, the known ones stay where they are, and nothing is copied."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import GrownAdjacency
from infomax.arrays.degrees import DEGREE_NAMES
from infomax.arrays.table import Appended
from infomax.graphs.graph import Graph


def grow(
    known: Graph, edges: NDArray[np.int64], weight: NDArray[np.float32] | None, ids: list[Any], features: Any
) -> Graph:
    """A graph with new nodes appended; the split "new" marks them, and there are no labels.

    Args:
        known: the graph.
        edges: ``[2, E]`` rows; those from N on are the new nodes.
        weight: ``[E]``.
        ids: M, of the new nodes.
        features: ``[M, F]`` of the new nodes; None: all nodes get degree features.
    """
    n = known.num_nodes + len(ids)
    values = np.ones(edges.shape[1], np.float32) if weight is None else weight
    listed = sparse.coo_array((values, (edges[0], edges[1])), shape=(n, n))
    matrix, dropped = checks.clean(listed, known.directed, weight is None)
    grown = GrownAdjacency.of(known.edges, matrix, binary=weight is None)
    dropped["duplicates"] += grown.duplicates if known.directed else grown.duplicates // 2
    text = known.ids.dtype == object or isinstance(ids[0], str)
    late = np.array(list(map(str, ids)) if text else ids, dtype=object if text else np.int64)
    ids_of_all = Appended(known.ids, late)
    return dataclasses.replace(
        known,
        edges=grown,
        table=known.table.of_degrees(grown.degrees()) if features is None else known.table.grown(features),
        feature_names=DEGREE_NAMES if features is None else known.feature_names,
        folder=None,
        ids=ids_of_all[:] if isinstance(known.ids, np.ndarray) else ids_of_all,
        labels={},
        splits={"new": np.arange(n) >= known.num_nodes},
        dropped=dropped,
    )
