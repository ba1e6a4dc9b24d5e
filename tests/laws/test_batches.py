"""Exact batches: an unbiased part of the whole graph's objective."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, kernels
from infomax.kernels import Backend
from infomax.kernels.random import Permutation
from infomax.parts.corruptions import flip_edges, shuffle_features
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, SkipMeanPool, TwoHops
from infomax.parts.fused import accelerate
from infomax.parts.methods import Model
from infomax.parts.objectives import binary_cross_entropy
from infomax.views import MEAN, SYMMETRIC, Batches, WholeView

CPU = torch.device("cpu")
COMPILED = Backend(CPU, fewest_numbers=0)
ENCODERS = [
    GCN,
    partial(GCN, layers=3),
    partial(MeanPool, layers=2),
    partial(SkipMeanPool, layers=2),
    DenseSkipMeanPool,
    TwoHops,
]


@pytest.fixture(params=["plain", "compiled"])
def place(request) -> Backend:
    """Everything by the plain kernels, or by the compiled ones."""
    return Backend(CPU, fewest_numbers=0 if request.param == "compiled" else math.inf)


def model_of(encoder, graph, generator) -> Model:
    built = encoder(graph.num_features, 6, generator=generator)
    model = DeepGraphInfomax().build(built, generator)
    with torch.no_grad():
        for parameter in model.parameters():  # away from zero, so that a wrong gradient would show
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    return model


def batches_of(graph, encoder, place, **settings) -> Batches:
    views = Batches(graph, encoder.rule, shuffle_features, place, **settings)
    views.prepare(encoder.depth)
    return views


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "sparse", "directed", "weighted"])
def test_a_batch_of_all_nodes_is_the_whole_graph(encoder, kind, place, generator):
    """The same loss and the same gradients, for the same permutation."""
    graph = random_graph(
        40, 9, dense=kind != "sparse", directed=kind == "directed", weighted=kind == "weighted"
    )
    model = model_of(encoder, graph, generator)
    view, negative = batches_of(graph, model.encoder, place, batch=100).pair(
        torch.zeros(1), generator
    )
    whole = WholeView.of(graph, model.encoder.rule, place)
    shuffled = whole.shuffled(generator)
    shuffled.shuffled_rows[""].copy_(negative.permutations[""](torch.arange(40)))
    found, expected = (
        accelerate(DeepGraphInfomax(), model).loss(model, pair)
        for pair in ((view, negative), (whole, shuffled))
    )
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    for a, b in zip(
        *(torch.autograd.grad(loss[0], parameters) for loss in (found, expected)), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_a_batch_has_the_vectors_of_the_whole_graph(encoder, dense, place, generator):
    graph = random_graph(40, 9, dense=dense)
    model = encoder(9, 5, generator=generator)
    view, _ = batches_of(graph, model, place, batch=7).pair(torch.zeros(1), generator)
    (expected,) = model(WholeView.of(graph, model.rule, place))
    (found,) = model(view)
    assert len(view.hops.nodes.unique()) == 7
    torch.testing.assert_close(found, expected[view.hops.nodes])


@pytest.mark.parametrize("layers", [2, 3, 4])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_a_hop_may_reach_all_nodes_before_the_last(layers, dense, place, generator):
    """Of a star every node is reached in two hops; the others have no further node."""
    leaves = range(1, 9)
    star = Graph.from_arrays([[0] * 8, leaves], random_graph(9, 5, dense=dense).features)
    for encoder in (GCN, SkipMeanPool):
        model = encoder(5, 3, layers=layers, generator=generator)
        for batch in (1, 3, 9):
            view, negative = batches_of(star, model, place, batch=batch).pair(
                torch.zeros(1), generator
            )
            shuffled = Graph.from_arrays(
                [[0] * 8, leaves], star.features[negative.permutations[""](torch.arange(9)).numpy()]
            )
            for ours, graph in ((view, star), (negative, shuffled)):
                expected = model(WholeView.of(graph, model.rule, place))[0][view.hops.nodes]
                torch.testing.assert_close(model(ours)[0], expected)


def test_the_mean_gradient_over_batches_is_the_whole_graphs(generator):
    """With the summary held fixed, for then the loss is a mean over nodes."""
    graph = random_graph(30, 9, dense=True)
    model = model_of(GCN, graph, generator)
    summary = torch.rand(6, generator=generator)
    whole = WholeView.of(graph, SYMMETRIC, COMPILED)

    def gradient(positive, negative):
        h, h_negative = model.encoder(positive, negative)
        loss = binary_cross_entropy(
            model.discriminator(h, summary), model.discriminator(h_negative, summary)
        )
        return torch.cat(
            [part.flatten() for part in torch.autograd.grad(loss, list(model.parameters()))]
        )

    views = batches_of(graph, model.encoder, COMPILED, batch=10)
    drawn = torch.stack([gradient(*views.pair(torch.zeros(1), generator)) for _ in range(600)])
    exact = torch.stack(
        [gradient(whole.fresh(), whole.fresh().shuffled(generator)) for _ in range(600)]
    )
    error = (drawn.var(0) / 600 + exact.var(0) / 600).sqrt()
    assert ((drawn.mean(0) - exact.mean(0)).abs() <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_capped_neighbourhoods_are_right_on_average(weighted, dense, place, generator):
    graph = random_graph(25, 4, weighted=weighted, dense=dense)
    assert graph.adjacency.sum(axis=1).max() > 3
    views = Batches(graph, SYMMETRIC, shuffle_features, place, batch=25, cap=2)
    weight = torch.eye(4)
    draws = torch.stack(
        [views.pair(torch.zeros(1), generator)[0].at(0).pooled(None, weight) for _ in range(500)]
    )
    exact = WholeView.of(graph, SYMMETRIC, place).pooled(None, weight)
    error = draws.std(0) / 500**0.5
    assert ((draws.mean(0) - exact).abs() <= 5 * error + 1e-5).all()
    assert (draws.std(0) > 0).any()


def test_a_cap_takes_every_neighbour_equally_often_and_none_twice(generator):
    star = Graph.from_arrays([[0] * 10, list(range(1, 11))], np.eye(11, dtype=np.float32))
    views = Batches(star, MEAN, shuffle_features, COMPILED, batch=11, cap=4)
    counts = torch.zeros(11)
    for _ in range(3000):
        hops = views.pair(torch.zeros(1), generator)[0].hops
        starts, senders, _ = hops.rows(0)
        taken = senders[1 : starts[1]]
        assert senders[0] == 0
        assert len(taken) == len(taken.unique()) == 4
        counts[taken] += 1
    assert counts[0] == 0
    assert (counts[1:] / 3000 - 0.4).abs().max() < 5 * (0.24 / 3000) ** 0.5


@pytest.mark.parametrize("n", [1, 2, 5, 64, 65, 1000])
def test_a_permutation_permutes(n, place, generator):
    drawn = Permutation.draw(n, generator, place)
    assert (drawn(torch.arange(n)).sort().values == torch.arange(n)).all()
    assert (drawn.first(n) == drawn(torch.arange(n))).all()
    if n > 5:
        assert (
            drawn(torch.arange(n)) != Permutation.draw(n, generator, place)(torch.arange(n))
        ).any()


def test_a_permutation_sends_every_number_everywhere(generator):
    images = torch.stack([Permutation.draw(6, generator, COMPILED).first(6) for _ in range(3000)])
    counts = torch.stack([torch.bincount(column, minlength=6) for column in images.unbind(1)])
    assert (counts / 3000 - 1 / 6).abs().max() < 5 * (1 / 6 * 5 / 6 / 3000) ** 0.5


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_compiled_and_plain_train_alike(dense, monkeypatch):
    graph = random_graph(60, 9, dense=dense)
    vectors = []
    for limit in (0, 1 << 62):
        monkeypatch.setattr(kernels, "FEWEST_NUMBERS_FOR_NUMBA", limit)
        settings = {"preset": "batches", "views": partial(Batches, batch=20, cap=3), "epochs": 15}
        vectors.append(DGI(8, **settings, device="cpu").fit_transform(graph).vectors)
    np.testing.assert_allclose(*vectors, rtol=1e-3, atol=1e-5)


def test_a_graph_without_edges_trains():
    features = np.random.default_rng(0).random((12, 3))
    for x in (features, sparse.csr_array(features)):
        graph = Graph.from_arrays(np.zeros((2, 0), dtype=int), x)
        assert np.isfinite(DGI(4, preset="batches", epochs=2).fit_transform(graph).vectors).all()


def test_flipped_edges_need_the_whole_graph():
    with pytest.raises(InputError, match="shuffle_features, for Batches"):
        DGI(preset="batches", corruption=partial(flip_edges, rho=0.1)).settings()
