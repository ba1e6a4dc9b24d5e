"""A layer knows its number: in every view and every layer, None stands for the features of the nodes that it computes.

The encoder reads X in all of its layers, by `own` and by `pooled`; on every kind of view it computes what the dense
formula says.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sample_graphs import embed
from scipy import sparse

from infomax import DGI, Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import glorot
from infomax.parts.corruptions import shuffle_features
from infomax.parts.encoders import Encoder
from infomax.views import MEAN, Batches, ManyGraphs, WholeView
from infomax_paper.patches import Neighbours, Patches, shuffle_within_patches

CPU = torch.device("cpu")
N, F, D = 30, 5, 4


class Again(Encoder):
    """H_k = tanh(P H A_k + carried H + X B_k - P X C_k), of three layers."""

    rule, depth = MEAN, 3

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim = dim
        shapes = [(in_dim, dim), (dim, dim), (dim, dim)]
        self.along = torch.nn.ParameterList(glorot(shape, generator=generator) for shape in shapes)
        self.own, self.pooled = (
            torch.nn.ParameterList(glorot((in_dim, dim), generator=generator) for _ in range(3))
            for _ in range(2)
        )

    def layer(self, k, view, h):
        out = (
            view.own(None, self.own[k])
            - view.pooled(None, self.pooled[k])
            + view.pooled(h, self.along[k])
        )
        return torch.tanh(out if h is None else out + view.carry(h))


def ring(dense: bool) -> Graph:
    """Every node joined to two on either side: four neighbours each."""
    start = np.arange(N)
    edges = np.concatenate([np.stack([start, (start + step) % N]) for step in (1, 2)], axis=1)
    features = np.random.default_rng(0).standard_normal((N, F)).astype(np.float32)
    return Graph.from_arrays(edges, features if dense else sparse.csr_array(features))


@pytest.fixture(params=[True, False], ids=["dense", "sparse"])
def graph(request) -> Graph:
    return ring(request.param)


@pytest.fixture
def model(generator) -> Again:
    return Again(F, D, generator=generator)


def by_hand(model: Again, graph: Graph) -> torch.Tensor:
    x = torch.from_numpy(
        graph.features.toarray() if sparse.issparse(graph.features) else graph.features
    )
    p = (torch.from_numpy(graph.adjacency.toarray()) + torch.eye(N)) / 5
    h = None
    for along, own, pooled in zip(model.along, model.own, model.pooled, strict=True):
        out = x @ own - p @ x @ pooled + p @ (x if h is None else h) @ along
        h = torch.tanh(out if h is None else out + h)
    return h


def test_on_the_whole_graph_and_in_blocks(graph, model):
    view, expected = WholeView.of(graph, MEAN, Backend(CPU)), by_hand(model, graph)
    torch.testing.assert_close(model(view)[0], expected)
    for block in (1, 7, N):
        torch.testing.assert_close(embed(model, view, block=block), expected.detach())


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("batch", [3, 20, N])
def test_in_batches(graph, model, generator, compiled, batch):
    """With 20 of 30 nodes, all nodes are in the first hop, and the next one has no further node."""
    place = Backend(CPU, fewest_numbers=0 if compiled else math.inf)
    views = Batches(graph, MEAN, shuffle_features, place, batch=batch)
    views.prepare(3)
    view, negative = views.pair(torch.zeros(1), generator)
    shuffled = Graph.from_scipy(
        graph.adjacency, graph.features[negative.permutations[""](torch.arange(N)).numpy()]
    )
    for ours, source in ((view, graph), (negative, shuffled)):
        torch.testing.assert_close(model(ours)[0], by_hand(model, source)[view.hops.nodes])


def test_in_patches_of_full_fan_out(graph, model, generator, monkeypatch):
    everyone = Neighbours.of(graph, CPU).senders.view(-1, 4).long()
    monkeypatch.setattr(Neighbours, "pick", lambda self, nodes, chance: everyone[nodes])
    centres = torch.randperm(N, generator=generator)[:7]
    patches = Patches(graph, MEAN, shuffle_within_patches, Backend(CPU), fan_out=(4, 4, 4), batch=7)
    torch.testing.assert_close(
        model(patches.around(centres, generator))[0], by_hand(model, graph)[centres]
    )


def test_in_padded_graphs(model):
    graph = ring(dense=True)
    groups = np.zeros(N, dtype=np.int64)
    groups[N // 2 :] = 1
    inside = sparse.csr_array(graph.adjacency.toarray() * (groups[:, None] == groups[None, :]))
    two = Graph.from_scipy(inside, graph.features, groups=groups)
    views = ManyGraphs(two, MEAN, shuffle_features, Backend(CPU))
    plain = [model(view)[0] for view in views.views]
    views.pad()
    for view, expected in zip(views.padded.pair(torch.arange(2)), plain, strict=True):
        torch.testing.assert_close(model(view)[0][: N // 2], expected)


def test_of_a_graph_folder(tmp_path, graph):
    """By the table of the layer before, and by hops from some nodes."""
    graph.save(tmp_path / "ring.graph")
    stored = Graph.open(tmp_path / "ring.graph")
    fitted = DGI(
        D, preset="batches", encoder=Again, epochs=1, scale="none", device="cpu", vectors="paper"
    ).fit(stored)
    expected = by_hand(fitted.model_.encoder, graph).detach().numpy()
    np.testing.assert_allclose(fitted.transform(stored).vectors, expected, rtol=1e-4, atol=1e-6)
    rows = np.array([0, 3, 17])
    np.testing.assert_allclose(
        fitted.transform(stored, rows=rows).vectors, expected[rows], rtol=1e-4, atol=1e-6
    )
