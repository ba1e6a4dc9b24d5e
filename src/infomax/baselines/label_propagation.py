"""Label propagation (Zhu and Ghahramani, 2002): every node takes the mean of its neighbours, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from infomax.graphs.graph import Graph

ROUNDS = 10
"""As Junto is shipped, the program that the paper's figures were made with. The limit of many rounds misleads where
labels are few: far from all of them it is nearly constant, and one class takes the graph."""


def label_propagation(graph: Graph, codes: NDArray[Any], seed: int, device: torch.device) -> NDArray[np.int64]:
    """Class codes ``[N]``, -1 where no label comes within so many rounds; no randomness, on the CPU.

    In each round every node has the mean of its neighbours, scaled to sum to 1, and labelled nodes their label again.
    """
    train = np.flatnonzero(graph.splits["train"] & (codes >= 0))
    labels = np.eye(codes.max() + 1)[codes[train]]
    values = np.zeros((graph.num_nodes, labels.shape[1]))
    values[train] = labels
    for _ in range(ROUNDS):
        values = normalize(graph.adjacency @ values, norm="l1")
        values[train] = labels
    return np.where(values.any(axis=1), values.argmax(axis=1), -1)
