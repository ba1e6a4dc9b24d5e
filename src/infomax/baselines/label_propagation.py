"""Label propagation (Zhu, Ghahramani and Lafferty, 2003): labels spread along edges until every node is a mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, cg

from infomax.graph import Graph

TOLERANCE = 1e-8


def label_propagation(graph: Graph, codes: NDArray[Any], seed: int, device: torch.device) -> NDArray[np.int64]:
    """Class codes ``[N]`` by class mass normalisation of the harmonic function; no randomness, on the CPU.

    The harmonic function alone misleads where labels are few: far from all of them it is nearly constant, and one
    class takes the graph. So, as its authors do, each class is weighed such that its mass over the unlabelled nodes is
    its share of the training nodes. A node that no label reaches gets the commonest class of training.
    """
    train = graph.splits["train"] & (codes >= 0)
    values = harmonic(graph.adjacency, np.where(train, codes, -1))
    share = values[train].mean(axis=0)
    reached = values.any(axis=1)
    mass = values[reached & ~train].sum(axis=0)
    weighed = values * np.divide(share, mass, out=np.zeros_like(mass), where=mass > 0)
    return np.where(train, codes, np.where(reached, weighed.argmax(axis=1), share.argmax()))


def harmonic(adjacency: sparse.csr_array, codes: NDArray[Any]) -> NDArray[np.float64]:
    """The harmonic function ``[N, C]``: 0/1 at labelled nodes, the mean of its neighbours at every other.

    It solves ``L_uu f_u = A_ul y_l`` with the Laplacian L = D - A. Zero at nodes that no label reaches.

    Shapes:
        adjacency: ``[N, N]``, symmetric
        codes: ``[N]``, -1 where there is no label
    """
    component = connected_components(adjacency, directed=False)[1]
    labelled = codes >= 0
    free = np.flatnonzero(np.isin(component, component[labelled]) & ~labelled)
    values = np.zeros((len(codes), int(codes.max()) + 1))
    values[np.flatnonzero(labelled), codes[labelled]] = 1
    rows = adjacency[free].astype(np.float64)
    degree = np.asarray(rows.sum(axis=1))
    laplacian = sparse.diags_array(degree).tocsr() - rows[:, free]
    jacobi = LinearOperator(laplacian.shape, lambda x: x.reshape(-1) / degree)
    # Symmetric and positive: conjugate gradients, class by class, take a fiftieth of elimination's time on Pubmed.
    for column, boundary in zip(values.T, (rows @ values).T, strict=True):
        column[free] = cg(laplacian, boundary, rtol=TOLERANCE, M=jacobi)[0]
    return values
