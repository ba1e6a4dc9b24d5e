"""Several relations between the same nodes: each is pooled along by its name, by whole graphs, blocks and batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import InputError, kernels
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import shuffle_features, shuffle_within_patches
from infomax.parts.encoders import Encoder
from infomax.training.embed import embed
from infomax.views import MEAN, NEIGHBOURS, Batches, BatchView, ManyGraphs, Patches, WholeView
from infomax.views.neighbourhoods import Hops, read_neighbourhoods
from infomax.views.propagation import Propagation
from infomax.views.whole import Products

CPU = torch.device("cpu")


class Relational(Encoder):
    """Two layers, tanh(H A + P H B + Q H C), with Q of the relation "cites"."""

    rule, depth = MEAN, 2

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim = dim
        self.own, self.near, self.cited = (
            torch.nn.ParameterList(glorot((width, dim), generator=generator) for width in (in_dim, dim))
            for _ in range(3)
        )

    def layer(self, k, view, h):
        pooled = view.pooled(h, self.near[k]) + view.pooled(h, self.cited[k], "cites")
        return torch.tanh(view.own(h, self.own[k]) + pooled)


@pytest.fixture(params=[True, False], ids=["dense", "sparse"])
def graphs(request):
    """Two relations over the same nodes: undirected with self-loops, directed without."""
    one = random_graph(40, 9, dense=request.param)
    return one, random_graph(40, 9, seed=1, dense=request.param, directed=True).replace(features=one.features)


@pytest.fixture
def model(generator) -> Relational:
    return Relational(9, 5, generator=generator)


def by_hand(model, graphs, features) -> torch.Tensor:
    one, other = (torch.from_numpy(graph.adjacency.toarray().T) for graph in graphs)
    p, q = one + torch.eye(40), other
    p, q = (matrix / matrix.sum(1, keepdim=True).clamp(min=1) for matrix in (p, q))
    h = torch.from_numpy(np.asarray(features.todense() if hasattr(features, "todense") else features))
    for own, near, cited in zip(model.own, model.near, model.cited, strict=True):
        h = torch.tanh(h @ own + p @ h @ near + q @ h @ cited)
    return h


def test_the_whole_graph_and_blocks(graphs, model, generator):
    one, other = graphs
    view = replace(WholeView.of(one, MEAN, CPU), relations={"cites": Propagation.of(other, NEIGHBOURS, CPU)})
    expected = by_hand(model, graphs, one.features)
    torch.testing.assert_close(model(view)[0], expected)
    torch.testing.assert_close(embed(model, view, block=7), expected.detach())
    negative = shuffle_features(view, generator)
    torch.testing.assert_close(model(negative)[0], by_hand(model, graphs, one.features[negative.rows.numpy()]))


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_batches(graphs, model, generator, monkeypatch, compiled):
    monkeypatch.setattr(kernels, "LARGE", 0 if compiled else 1 << 62)
    one, other = graphs
    views = Batches(one, MEAN, shuffle_features, CPU)
    cites = {"cites": read_neighbourhoods(other, NEIGHBOURS, CPU, cap=1000)}
    nodes = torch.tensor([5, 0, 39, 17])
    hops = Hops(views.neighbourhoods, nodes, model.depth, torch.tensor(0), cites)
    view = BatchView(hops, Products(views.features))
    torch.testing.assert_close(model(view)[0], by_hand(model, graphs, one.features)[nodes])
    negative = shuffle_features(view, generator)
    carried = one.features[negative.permutation(torch.arange(40)).numpy()]
    torch.testing.assert_close(model(negative)[0], by_hand(model, graphs, carried)[nodes])


def test_a_relation_that_is_not_there_is_refused(model, generator):
    graph = random_graph(40, 9, dense=True)
    views = ManyGraphs(graph.replace(groups=np.repeat([0, 1], 20)), MEAN, shuffle_features, CPU)
    views.pad()
    for view in (
        WholeView.of(graph, MEAN, CPU),
        Batches(graph, MEAN, shuffle_features, CPU).pair(torch.zeros(1), generator)[0],
        Patches(graph, MEAN, shuffle_within_patches, CPU, fan_out=(2, 2)).around(torch.arange(3), generator),
        views.padded.pair(torch.arange(2))[0],
    ):
        with pytest.raises(InputError, match="relation: expected None, the only one, found 'cites'"):
            view.at(0).pooled(None, model.cited[0], "cites")
    two = replace(WholeView.of(graph, MEAN, CPU), relations={"likes": Propagation.of(graph, MEAN, CPU)})
    with pytest.raises(InputError, match="relation: expected one of likes, found 'cites'"):
        two.pooled(None, model.cited[0], "cites")
