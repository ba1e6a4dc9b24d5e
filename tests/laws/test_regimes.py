"""The three regimes agree where they must, and none sees what it must not."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import embed, random_graph
from scipy import sparse, stats

from infomax import DGI, Graph, InputError
from infomax.kernels import Backend
from infomax.kernels.initialisation import glorot
from infomax.kernels.plain import bias_prelu
from infomax.parts.corruptions import drop_features, shuffle_features
from infomax.parts.encoders import GCN, DenseSkipMeanPool, Encoder, MeanPool, SkipMeanPool, TwoHops
from infomax.views import MEAN, SYMMETRIC, ManyGraphs, WholeGraph, WholeView
from infomax.views.whole import shuffle_of
from infomax_paper.patches import (
    PATCHES,
    Neighbours,
    Patches,
    by_level,
    level_sizes,
    sample_patches,
    shuffle_within_patches,
)

CPU = torch.device("cpu")
ENCODERS = [
    partial(MeanPool, layers=2),
    partial(SkipMeanPool, layers=2),
    partial(SkipMeanPool, layers=3),
    DenseSkipMeanPool,
    TwoHops,
]


def ring(n: int = 24, dense: bool = True) -> Graph:
    """Every node joined to two on either side: four neighbours each."""
    start = np.arange(n)
    edges = np.concatenate([np.stack([start, (start + step) % n]) for step in (1, 2)], axis=1)
    features = np.random.default_rng(0).random((n, 5))
    return Graph.from_arrays(edges, features if dense else sparse.csr_array(features))


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_full_fan_out_is_the_whole_graph(encoder, dense, generator, monkeypatch):
    graph = ring(dense=dense)
    neighbours = Neighbours.of(graph, CPU)
    everyone = neighbours.senders.view(-1, 4).long()
    monkeypatch.setattr(Neighbours, "pick", lambda self, nodes, chance: everyone[nodes])
    model = encoder(5, 6, generator=generator)
    for slope in model.slopes:
        torch.nn.init.constant_(slope, 0.3)
    centres = torch.randperm(24, generator=generator)[:7]
    patches = Patches(
        graph, MEAN, shuffle_within_patches, Backend(CPU), fan_out=(4,) * model.depth, batch=7
    )
    (sampled,) = model(patches.around(centres, generator))
    (whole,) = model(WholeView.of(graph, MEAN, Backend(CPU)))
    torch.testing.assert_close(sampled, whole[centres])
    gradients = [
        torch.autograd.grad(h.square().sum(), list(model.parameters()))
        for h in (sampled, whole[centres])
    ]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("layers", [2, 4])
def test_an_encoder_that_leaves_more_or_less_than_the_centres_is_refused(layers):
    with pytest.raises(
        InputError, match=f"3 layers, one for each number of the fan-out 10,10,25, found {layers}"
    ):
        DGI(4, preset=PATCHES, encoder=partial(SkipMeanPool, layers=layers), epochs=1).fit(ring())


def test_a_patch_is_a_graph_of_its_own(generator):
    """The paper's mean is over the node and its sampled neighbours, whatever the degree of the node."""
    graph = random_graph(12, 4, dense=True)
    patches = Patches(graph, MEAN, shuffle_within_patches, Backend(CPU), fan_out=(3, 2), batch=12)
    view, model = (
        patches.around(torch.arange(12), generator),
        MeanPool(4, 5, layers=2, generator=generator),
    )
    centres, near, far = by_level(view.rows, (3, 2))
    x = torch.from_numpy(graph.features)

    def layer(k, own, others):
        both = torch.cat([own[:, None], others.view(len(own), -1, own.shape[1])], dim=1)
        return bias_prelu(model.biases[k], model.slopes[k], both.mean(1) @ model.weights[k])

    expected = layer(1, layer(0, x[centres], x[near]), layer(0, x[near], x[far]))
    torch.testing.assert_close(model(view)[0], expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_layer_weighted_by_degree_is_right_on_average(weighted, generator):
    """The estimate of P X Θ has the graph's own as its expectation, whatever the degrees."""
    graph = random_graph(12, 4, weighted=weighted, dense=True)
    patches = Patches(
        graph,
        MEAN,
        shuffle_within_patches,
        Backend(CPU),
        fan_out=(3,),
        batch=12,
        weighting="degree",
    )
    weight = torch.eye(4)
    nodes = torch.arange(12)
    draws = torch.stack(
        [patches.around(nodes, generator).at(0).pooled(None, weight) for _ in range(1500)]
    )
    error = draws.std(0) / 1500**0.5
    exact = WholeView.of(graph, MEAN, Backend(CPU)).pooled(None, weight)
    assert ((draws.mean(0) - exact).abs() <= 5 * error + 1e-6).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_sampling_is_with_replacement_and_by_weight(weighted, generator):
    graph = random_graph(15, weighted=weighted, directed=True)
    neighbours = Neighbours.of(graph, CPU)
    nodes = torch.arange(15)
    drawn = neighbours.draw(nodes, 20_000, generator).numpy()
    received = graph.adjacency.toarray().T
    for node in range(15):
        counts = np.bincount(drawn[node], minlength=15)
        if received[node].sum() == 0:
            assert counts[node] == 20_000
            continue
        chances = received[node].astype(np.float64)
        expected = 20_000 * chances / chances.sum()
        assert (counts[expected == 0] == 0).all()
        if (expected > 0).sum() > 1:
            assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-4
    # Two draws for one node are independent: equal about as often as chance has it, hence with replacement.
    pairs = drawn.reshape(15, -1, 2)
    for node in np.flatnonzero(received.sum(1)):
        chance = np.square(received[node] / received[node].sum()).sum()
        assert (
            abs((pairs[node, :, 0] == pairs[node, :, 1]).mean() - chance)
            < 5 * (chance / 10_000) ** 0.5
        )


def test_patches_are_trees_of_the_paper(generator):
    graph = random_graph(50)
    neighbours = Neighbours.of(graph, CPU)
    rows = sample_patches(neighbours, torch.arange(8), (10, 10, 25), generator)
    assert rows.shape == (8, 2611)
    levels = by_level(rows, (10, 10, 25))
    assert [len(level) for level in levels] == level_sizes(8, (10, 10, 25)) == [8, 80, 800, 20_000]
    joined = graph.adjacency.toarray() + np.eye(50)
    for parents, children, count in zip(levels, levels[1:], (10, 10, 25), strict=False):
        ends = torch.repeat_interleave(parents, count).numpy(), children.numpy()
        assert (joined[ends] > 0).all()


def test_shuffling_keeps_every_patchs_features(generator):
    graph = random_graph(50)
    view = Patches(
        graph, MEAN, shuffle_within_patches, Backend(CPU), fan_out=(3, 2), batch=5
    ).around(torch.arange(5), generator)
    shuffled = shuffle_within_patches(view, generator)
    assert (shuffled.rows.sort(1).values == view.rows.sort(1).values).all()
    assert (shuffled.rows != view.rows).any()
    assert (shuffled.rows[:, 0] != view.rows[:, 0]).any()
    assert shuffled.share is view.share


def test_one_graph_among_many_is_the_whole_graph():
    graph = random_graph(dense=True)
    models = [
        DGI(dim=8, epochs=5, seed=1, preset=dataclasses.replace(DGI().settings(), views=views)).fit(
            graph
        )
        for views in (WholeGraph, ManyGraphs)
    ]
    np.testing.assert_array_equal(*(model.transform(graph).vectors for model in models))


def many(seed: int = 0) -> Graph:
    """Three graphs, the last one unseen."""
    parts = [random_graph(n, 6, seed=seed + n, dense=True) for n in (20, 14, 17)]
    groups = np.repeat([0, 1, 2], [20, 14, 17])
    return Graph.from_scipy(
        sparse.block_diag([part.adjacency for part in parts]),
        np.concatenate([part.features for part in parts]),
        groups=groups,
        splits={"seen": groups < 2},
    )


def epoch(views, generator):
    return (views.pair(batch, generator) for batch in views.batches(generator))


def test_many_graphs_pair_each_graph_with_another(generator):
    views = ManyGraphs(many(), MEAN, partial(drop_features, rate=0.5), Backend(CPU))
    pairs = [
        (len(p.features), len(n.features)) for _ in range(20) for p, n in epoch(views, generator)
    ]
    assert {positive for positive, _ in pairs} == {20, 14, 17}
    assert all(positive != negative for positive, negative in pairs)
    assert len(set(pairs)) == 6
    _, negative = next(epoch(views, generator))
    dropped = (negative.features == 0).float().mean()
    assert 0.7 < dropped < 0.95  # 0.7 of the entries were zero before


def test_sparse_features_of_many_graphs_train_as_dense_ones_do():
    """From the same seed, for what is dropped is the same."""
    graph = many()
    losses, vectors = [], []
    for features in (graph.features, sparse.csr_array(graph.features)):
        model = DGI(preset="many-graphs", dim=8, epochs=5, scale="none", device="cpu")
        vectors.append(model.fit_transform(graph.replace(features=features)).vectors)
        losses.append(model.health_["curve"]["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    np.testing.assert_allclose(vectors[1], vectors[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("preset", ["whole-graph", "batches", "mean-pool", PATCHES, "many-graphs"])
def test_training_never_sees_the_unseen(preset):
    """Every unseen node is poisoned with NaN and given other edges: training is the same, bit for bit."""
    graph = many()
    unseen = ~graph.splits["seen"]
    features = graph.features.copy()
    features[unseen] = np.nan
    adjacency = graph.adjacency.tolil()
    adjacency[40, :20], adjacency[:20, 40] = 1, 1  # an unseen node reaches into a seen graph
    poisoned = graph.replace(features=features, adjacency=sparse.csr_array(adjacency))
    clean, other = (DGI(dim=8, preset=preset, epochs=3).fit(g) for g in (graph, poisoned))
    for a, b in zip(clean.model_.parameters(), other.model_.parameters(), strict=True):
        assert torch.equal(a, b)
    np.testing.assert_equal(clean.scaler_.mean, other.scaler_.mean)


class OneMapTwice(Encoder):
    """Asks for two products with one Θ."""

    rule, depth = SYMMETRIC, 2

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim = dim
        self.first, self.second = (
            glorot(shape, generator=generator) for shape in ((in_dim, dim), (dim, dim))
        )

    def layer(self, k, view, h):
        if h is None:
            return view.pooled(h, self.first)
        return view.pooled(h, self.second) - 3 * view.pooled(h.relu(), self.second)


@pytest.mark.parametrize("encoder", [*ENCODERS, partial(GCN, layers=2), OneMapTwice], ids=str)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "sparse"])
def test_layer_by_layer_is_one_forward_pass(encoder, dense, generator):
    graph = random_graph(50, dense=dense)
    model = encoder(graph.num_features, 8, generator=generator)
    view = WholeView.of(graph, model.rule, Backend(CPU))
    (forward,) = model(view.fresh())
    for block in (1, 7, 50):
        torch.testing.assert_close(embed(model, view, block=block), forward.detach())


def test_mean_pooling_is_constant_attention(generator):
    """The paper says so: compared with PyG's GATConv whose attention is zero, hence uniform."""
    conv = pytest.importorskip("torch_geometric.nn").GATConv
    graph = random_graph(dense=True)
    model = MeanPool(graph.num_features, 8, generator=generator)
    attention = conv(graph.num_features, 8)
    with torch.no_grad():
        attention.lin.weight.copy_(model.weights[0].T)
        attention.att_src.zero_()
        attention.att_dst.zero_()
    coo = graph.adjacency.tocoo()
    expected = attention(
        torch.from_numpy(graph.features), torch.tensor(np.array([coo.row, coo.col]))
    )
    found = WholeView.of(graph, MEAN, Backend(CPU)).pooled(None, model.weights[0])
    torch.testing.assert_close(found, expected)


def test_shuffled_whole_view_shares_the_product(generator):
    view = WholeView.of(random_graph(), SYMMETRIC, Backend(CPU))
    weight = torch.randn(12, 4, generator=generator)
    negative = shuffle_features(view, generator)
    expected = view.own(None, weight)[negative.shuffled_rows[""]]
    assert torch.equal(negative.own(None, weight), expected)
    assert negative.products is view.products
    assert view.products[""].of(None, weight, view.backend) is view.own(None, weight)


def test_a_view_with_other_features_shares_no_product(generator):
    """Whoever writes a corruption cannot get the positive's product by forgetting something."""
    view = WholeView.of(random_graph(dense=True), SYMMETRIC, Backend(CPU))
    weight = torch.randn(12, 4, generator=generator)
    before = view.own(None, weight)
    negative = view.with_features(view.features + 1)
    torch.testing.assert_close(negative.own(None, weight), (view.features + 1) @ weight)
    assert view.own(None, weight) is before
    assert shuffle_of(view, negative) is None
    assert shuffle_of(view, negative.shuffled(generator)) is None
    assert shuffle_of(view, view.shuffled(generator)) is not None


@torch.no_grad()
def test_an_activation_leaves_the_shared_product_as_it_was(generator):
    view = WholeView.of(random_graph(dense=True), SYMMETRIC, Backend(CPU))
    weight = torch.randn(12, 4, generator=generator)
    before = view.own(None, weight).clone()
    bias_prelu(torch.ones(4), torch.tensor([0.25]), view.own(None, weight))
    assert torch.equal(view.own(None, weight), before)
