"""Every view pools as the dense formula P = D^-left (A + loops I) D^-right says, with self-loops and without."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sample_graphs import embed, random_graph
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.kernels import Backend
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.parts.encoders import Encoder
from infomax.views import (
    MEAN,
    NEIGHBOURS,
    SYMMETRIC,
    Batches,
    ManyGraphs,
    Normalisation,
    WholeView,
)
from infomax_paper.patches import Neighbours, Patches, shuffle_within_patches

CPU = torch.device("cpu")
RULES = [SYMMETRIC, MEAN, NEIGHBOURS, Normalisation(False, 0.5, 0.5), Normalisation(True, 0.25, 0)]
KINDS = ["plain", "sparse", "directed", "weighted"]


def dense(adjacency, rule) -> torch.Tensor:
    """P in double precision; row i has the messages that node i receives."""
    hat = adjacency.astype(np.float64).T + rule.loops * np.eye(len(adjacency))
    with np.errstate(divide="ignore"):
        left, right = (
            np.nan_to_num(hat.sum(1) ** -power, posinf=0) for power in (rule.left, rule.right)
        )
    return torch.from_numpy(left[:, None] * hat * right[None, :])


class Two(Encoder):
    """Two layers that keep a node apart from what it receives: tanh(H A + P H B)."""

    depth = 2

    def __init__(self, rule, in_dim, dim, *, generator=None):
        super().__init__()
        self.rule, self.out_dim = rule, dim
        self.own, self.pooled = (
            torch.nn.ParameterList(
                glorot((width, dim), generator=generator) for width in (in_dim, dim)
            )
            for _ in range(2)
        )

    def layer(self, k, view, h):
        return torch.tanh(view.own(h, self.own[k]) + view.pooled(h, self.pooled[k]))

    def by_hand(self, graph, p=None) -> torch.Tensor:
        x = (
            graph.features.toarray()
            if sparse.issparse(graph.features)
            else np.asarray(graph.features)
        )
        p = dense(graph.adjacency.toarray(), self.rule) if p is None else p
        h = torch.from_numpy(x).double()
        for own, pooled in zip(self.own, self.pooled, strict=True):
            h = torch.tanh(h @ own.double() + p @ h @ pooled.double())
        return h.float()


@pytest.fixture(params=KINDS)
def graph(request) -> Graph:
    """With an isolated node, the last."""
    kind = request.param
    return random_graph(
        40, 9, dense=kind != "sparse", directed=kind == "directed", weighted=kind == "weighted"
    )


@pytest.fixture(params=RULES, ids=str)
def model(request, generator) -> Two:
    return Two(request.param, 9, 5, generator=generator)


def test_the_whole_graph_and_blocks(graph, model):
    view, expected = WholeView.of(graph, model.rule, Backend(CPU)), model.by_hand(graph)
    torch.testing.assert_close(model(view)[0], expected)
    torch.testing.assert_close(embed(model, view, block=7), expected.detach())


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("batch", [6, 40])
def test_batches(graph, model, generator, compiled, batch):
    place = Backend(CPU, fewest_numbers=0 if compiled else math.inf)
    views = Batches(graph, model.rule, shuffle_features, place, batch=batch)
    views.prepare(2)
    view, negative = views.pair(torch.zeros(1), generator)
    shuffled = graph.replace(
        features=graph.features[negative.permutations[""](torch.arange(40)).numpy()]
    )
    for ours, source in ((view, graph), (negative, shuffled)):
        torch.testing.assert_close(model(ours)[0], model.by_hand(source)[view.hops.nodes])


def test_gradients_do_not_depend_on_the_view(graph, model, generator):
    views = Batches(graph, model.rule, shuffle_features, Backend(CPU), batch=40)
    views.prepare(2)
    ours = (
        model(views.pair(torch.zeros(1), generator)[0])[0],
        model(WholeView.of(graph, model.rule, Backend(CPU)))[0],
    )
    parameters = list(model.parameters())
    expected = torch.autograd.grad(model.by_hand(graph).square().sum(), parameters)
    for h in ours:
        for a, b in zip(torch.autograd.grad(h.square().sum(), parameters), expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighting", ["sample", "degree"])
@pytest.mark.parametrize("rule", [MEAN, NEIGHBOURS], ids=["loops", "no loops"])
def test_patches_of_full_fan_out(rule, weighting, generator, monkeypatch):
    """On a ring and a node without neighbours, which draws itself."""
    start = np.arange(11)
    edges = np.concatenate([np.stack([start, (start + step) % 11]) for step in (1, 2)], axis=1)
    graph = Graph.from_arrays(edges, np.random.default_rng(0).random((12, 9)))
    everyone = torch.cat(
        [Neighbours.of(graph, CPU).senders.view(-1, 4).long(), torch.full((1, 4), 11)]
    )
    monkeypatch.setattr(Neighbours, "pick", lambda self, nodes, chance: everyone[nodes])
    model = Two(rule, 9, 5, generator=generator)
    patches = Patches(
        graph,
        rule,
        shuffle_within_patches,
        Backend(CPU),
        fan_out=(4, 4),
        batch=12,
        weighting=weighting,
    )
    torch.testing.assert_close(
        model(patches.around(torch.arange(12), generator))[0], model.by_hand(graph)
    )


def test_patches_pool_by_a_mean():
    with pytest.raises(InputError, match=r"an encoder that pools by the mean, found .*left=0.5"):
        Patches(random_graph(), SYMMETRIC, shuffle_within_patches, Backend(CPU))


@pytest.mark.parametrize("rho", [0.01, 0.3])
def test_flipped_edges(model, generator, rho):
    """Of few flips, and of so many that the graph is drawn in blocks: P of the unweighted negative graph."""
    view = WholeView.of(random_graph(40, 9, dense=True), model.rule, Backend(CPU))
    negative = flip_edges(view, generator, rho=rho)
    found = negative.propagation @ torch.eye(40)
    adjacency = (found.numpy() != 0) & ~np.eye(40, dtype=bool)
    assert 0 < adjacency.sum() < 40 * 39
    torch.testing.assert_close(found, dense(adjacency.T, model.rule).float())


def test_padded_graphs(model):
    graph = random_graph(40, 9, dense=True)
    groups = np.repeat([0, 1], 20)
    inside = sparse.csr_array(graph.adjacency.toarray() * (groups[:, None] == groups[None, :]))
    views = ManyGraphs(
        Graph.from_scipy(inside, graph.features, groups=groups),
        model.rule,
        shuffle_features,
        Backend(CPU),
    )
    expected = [model(view)[0] for view in views.views]
    views.pad()
    for view, plain in zip(views.padded.pair(torch.arange(2)), expected, strict=True):
        torch.testing.assert_close(model(view)[0][:20], plain)


class Apart(Two):
    """Keeps a node apart from its neighbours."""

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__(NEIGHBOURS, in_dim, dim, generator=generator)


@pytest.mark.parametrize("kind", ["plain", "directed", "weighted"])
def test_graph_folders(tmp_path, kind):
    graph = random_graph(
        40, 9, dense=True, directed=kind == "directed", weighted=kind == "weighted"
    )
    graph.save(tmp_path / "g.graph")
    stored = Graph.open(tmp_path / "g.graph")
    fitted = DGI(
        5, preset="batches", encoder=Apart, epochs=1, scale="none", device="cpu", vectors="paper"
    ).fit(stored)
    expected = fitted.model_.encoder.by_hand(graph).detach().numpy()
    np.testing.assert_allclose(fitted.transform(stored).vectors, expected, rtol=1e-4, atol=1e-6)
    rows = np.array([0, 3, 17, 39])
    np.testing.assert_allclose(
        fitted.transform(stored, rows=rows).vectors, expected[rows], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(fitted.transform(graph).vectors, expected, rtol=1e-4, atol=1e-6)
