"""The propagation against its formula, written densely."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from torch.autograd import gradcheck

from infomax.kernels import Backend
from infomax.views import MEAN, SYMMETRIC
from infomax.views.operands import operand
from infomax.views.propagation import Propagation

CPU = torch.device("cpu")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rule", [SYMMETRIC, MEAN], ids=["symmetric", "mean"])
def test_equals_the_formula(rule, directed, weighted):
    graph = random_graph(weighted=weighted, directed=directed)
    received = graph.adjacency.toarray().T + np.eye(graph.num_nodes)
    degree = received.sum(1)
    if rule is SYMMETRIC:
        expected = received / np.sqrt(np.outer(degree, degree))
    else:
        expected = received / degree[:, None]
    propagated = Propagation.of(graph, rule, Backend(CPU), torch.float64) @ torch.eye(
        graph.num_nodes, dtype=torch.float64
    )
    np.testing.assert_allclose(propagated.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("rule", [SYMMETRIC, MEAN], ids=["symmetric", "mean"])
def test_gradient_is_the_transpose(rule, directed):
    propagation = Propagation.of(
        random_graph(9, directed=directed), rule, Backend(CPU), torch.float64
    )
    y = torch.randn(
        9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True
    )
    assert gradcheck(lambda y: propagation @ y, (y,))


def test_directed_messages_run_along_the_arrows():
    from infomax import Graph

    graph = Graph.from_arrays([[0], [1]], np.eye(2), directed=True)
    received = Propagation.of(graph, MEAN, Backend(CPU)) @ torch.eye(2)
    assert received.tolist() == [[1, 0], [0.5, 0.5]]


def test_equals_pygs_normalisation():
    norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv")
    graph = random_graph(weighted=True)
    coo = graph.adjacency.tocoo()
    index, weight = norm.gcn_norm(
        torch.tensor(np.array([coo.row, coo.col])), torch.tensor(coo.data), graph.num_nodes
    )
    expected = torch.zeros(graph.num_nodes, graph.num_nodes).index_put((index[1], index[0]), weight)
    propagated = Propagation.of(graph, SYMMETRIC, Backend(CPU)) @ torch.eye(graph.num_nodes)
    torch.testing.assert_close(propagated, expected)


def test_sparse_features_multiply_and_back_propagate():
    graph = random_graph(9)
    features = operand(graph.features, Backend(CPU), torch.float64)
    weight = torch.randn(graph.num_features, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(
        features @ weight, torch.from_numpy(graph.features.toarray()).double() @ weight
    )
    assert gradcheck(lambda weight: features @ weight, (weight,))
