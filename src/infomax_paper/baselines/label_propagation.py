"""Label propagation (Zhu and Ghahramani, 2002): every node repeatedly takes the mean of its
neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from infomax.graphs.graph import Graph

ROUNDS = 10
"""The default of Junto, the program behind the paper's figures. Many more rounds do harm where
labels are few: far from all labels the limit is nearly constant, so that one class takes over the
graph."""


def label_propagation(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device
) -> NDArray[np.int64]:
    """Predict class codes ``[N]``, -1 for nodes that no label reaches; on the CPU, without
    randomness.

    In each round every node takes the mean of its neighbours, scaled to sum to 1; labelled nodes
    are then reset.
    """
    train = np.flatnonzero(graph.splits["train"] & (codes >= 0))
    labels = np.eye(codes.max() + 1)[codes[train]]
    values = np.zeros((graph.num_nodes, labels.shape[1]))
    values[train] = labels
    for _ in range(ROUNDS):
        values = normalize(graph.adjacency @ values, norm="l1")
        values[train] = labels
    return np.where(values.any(axis=1), values.argmax(axis=1), -1)
