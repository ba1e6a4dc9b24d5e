"""The inductive baselines: equal to plain loops, unbiased, able to learn, and blind to unseen
nodes."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph

from infomax import Graph
from infomax.evaluation.metrics import accuracy, micro_f1
from infomax.kernels import Backend
from infomax.views import SYMMETRIC
from infomax.views.propagation import Propagation
from infomax_paper.baselines import average_pooling as pooling
from infomax_paper.baselines import fastgcn as fast
from infomax_paper.baselines import gcn
from infomax_paper.baselines import graphsage as sage
from infomax_paper.baselines.shared import keep
from infomax_paper.patches import Neighbours, level_sizes

CPU = torch.device("cpu")
SAGE = sage.Settings(steps=3, batch=16, negatives=4, fan_out=(3, 2), dim=4)
POOLING = pooling.Settings(hidden=8, dim=4, lr=1e-2, epochs=3, looks=1, batch=16, fan_out=(3, 2))
FAST = fast.Settings(dim=8, draws=8, batch=16, epochs=3)
WIDE = dataclasses.replace(gcn.WIDE, epochs=3)


def communities(
    groups: int = 4, size: int = 24, *, many: bool = False, separate: bool = False
) -> Graph:
    """Groups of two communities each, which differ in the mean of the features over a
    neighbourhood, hardly per node.

    The last group is unseen, and every fifth of the seen is for validation. ``many``: a label for
    each community, and one that every node has; otherwise one label per node.
    """
    rng = np.random.default_rng(0)
    n = groups * size
    group, community = np.arange(n) // size, np.arange(n) % 2
    inside = (group[:, None] == group) & (community[:, None] == community)
    near = np.triu(inside & (rng.random((n, n)) < 0.7), 1)
    features = rng.normal(size=(n, 6)) + 0.8 * np.where(community, 1, -1)[:, None]
    seen = group < groups - 1
    labels = (
        np.stack([community, 1 - community, np.ones(n)], axis=1).astype(np.int8)
        if many
        else community
    )
    return Graph.from_arrays(
        np.stack(np.nonzero(near)),
        features,
        labels={"y": labels},
        splits={
            "train": seen & (np.arange(n) % 5 > 0),
            "validation": seen & (np.arange(n) % 5 == 0),
            "test": ~seen,
            "seen": seen,
        },
        groups=group if separate else None,
    )


def plain_layer(layer: torch.nn.Module, own: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The layer for one node ``[d]`` and its neighbours ``[k, d]``, as in the paper."""
    if isinstance(layer, sage.GCN):
        return sum(others, own) / (len(others) + 1) @ layer.weight
    if isinstance(layer, sage.Mean):
        digest = sum(others) / len(others)
    elif isinstance(layer, sage.Pool):
        hidden = [torch.relu(one @ layer.hidden + layer.bias) for one in others]
        digest = torch.stack(
            [torch.stack([h[j] for h in hidden]).max() for j in range(hidden[0].shape[0])]
        )
    else:
        lstm, digest, cell = (
            layer.lstm,
            torch.zeros(layer.lstm.hidden_size),
            torch.zeros(layer.lstm.hidden_size),
        )
        for one in others:
            gates = (
                lstm.weight_ih_l0 @ one
                + lstm.bias_ih_l0
                + lstm.weight_hh_l0 @ digest
                + lstm.bias_hh_l0
            )
            enter, forget, candidate, leave = gates.chunk(4)
            cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
            digest = leave.sigmoid() * cell.tanh()
    return torch.cat([own @ layer.own_weight, digest @ layer.digest_weight])


@pytest.mark.parametrize("name", sage.AGGREGATORS)
def test_vectors_are_those_of_plain_loops_over_a_tree(name, generator):
    """A patch of fan-out (3, 2) by hand: two layers, ReLU between them, length 1 at the end."""
    model = sage.GraphSage(name, 5, SAGE, generator)
    if name == "pool":  # a bias of zero would hide where it is added
        torch.nn.init.normal_(model.layers[0].bias, generator=generator)
    features = torch.randn(30, 5, generator=generator)
    rows = torch.randint(30, (4, sum(level_sizes(1, SAGE.fan_out))), generator=generator)
    for vector, (centre, *inner) in zip(model(features, rows), features[rows], strict=True):
        children, leaves = inner[:3], [inner[3 + 2 * i : 5 + 2 * i] for i in range(3)]
        first, second = model.layers
        hidden = [
            plain_layer(first, child, torch.stack(own)).relu()
            for child, own in zip(children, leaves, strict=True)
        ]
        top = plain_layer(first, centre, torch.stack(children)).relu()
        expected = plain_layer(second, top, torch.stack(hidden))
        torch.testing.assert_close(vector, expected / expected.norm())


def test_pairs_lie_on_a_walk(generator):
    """On a path 0 - 1 - ... - 9 and an isolated node: all distances up to the length, none beyond,
    none of 0."""
    path = Graph.from_arrays(np.stack([np.arange(9), np.arange(1, 10)]), np.ones((11, 1)))
    starts = torch.arange(11).repeat(200)
    nodes, passed = sage.walk_pairs(Neighbours.of(path, CPU), starts, 3, generator)
    assert set((nodes - passed).abs().tolist()) == {1, 2, 3}
    assert 10 not in torch.cat([nodes, passed])
    # Of a walk's three places each is taken equally often, and only the second of an inner node's
    # can be its own.
    inner = (starts > 2) & (starts < 7)
    share = ((nodes > 2) & (nodes < 7)).sum() / inner.sum()
    assert abs(float(share) - (1 - 1 / 6)) < 0.04


@pytest.mark.parametrize("name", sage.AGGREGATORS)
def test_training_brings_walkers_together(name, generator):
    """Training lowers the loss over all pairs of the unseen part."""
    graph = communities()
    unseen = torch.arange(72, 96)
    nodes, passed = sage.walk_pairs(Neighbours.of(graph, CPU), unseen.repeat(20), 4, generator)

    def objective(steps: int) -> float:
        settings = dataclasses.replace(SAGE, steps=steps, lr=1e-2, batch=32)
        h = torch.nn.functional.normalize(
            torch.from_numpy(sage.graphsage(name, graph, np.empty(0), 0, CPU, settings))
        )
        near, far = (h[nodes] * h[passed]).sum(1), h[unseen] @ h.T
        return float(
            torch.nn.functional.softplus(-near).mean()
            + 4 * torch.nn.functional.softplus(far).mean()
        )

    assert objective(40) < objective(0) - 0.3


def test_a_layer_sample_is_right_on_average(generator):
    """The mean of the estimates is P H, within four standard errors at every entry."""
    propagation = Propagation.of(random_graph(weighted=True), SYMMETRIC, Backend(CPU))
    importance = fast.Importance(propagation)
    h, batch = torch.randn(40, 3, generator=generator), torch.tensor([0, 5, 39, 17])
    estimates = []
    for _ in range(3000):
        drawn, weights = importance.draw(batch, 8, generator)
        assert (weights != 0).any(0).all()  # whoever tells the batch nothing is not drawn
        estimates.append(weights @ h[drawn])
    found = torch.stack(estimates)
    error = (found.mean(0) - (propagation @ h)[batch]).abs()
    assert (error <= 4 * found.std(0) / len(found) ** 0.5).all()
    assert found.std(0).max() > 0.05  # a sample, not the sum


def test_importance_is_the_squared_length_of_a_column():
    propagation = Propagation.of(random_graph(), SYMMETRIC, Backend(CPU))
    squares = propagation.operand.matrix.to_dense().double().square().sum(0)
    torch.testing.assert_close(fast.Importance(propagation).chance, squares)


def test_a_sample_of_every_node_is_the_whole_layer(generator):
    """With each node drawn once and the weights of P, the estimate is the logits of the whole
    graph."""
    graph = random_graph(dense=True)
    features, propagation = gcn.graph_inputs(graph, CPU)
    model = gcn.GCN(12, 5, 3, generator)
    sampled = fast.sampled_logits(
        model, propagation @ features, propagation.operand.matrix.to_dense()
    )
    torch.testing.assert_close(sampled, model(features, propagation))


def test_patches_of_every_neighbour_are_the_whole_graph(generator):
    """On a ring, where a node has two neighbours: if both are sampled, patches and graph give the
    same logits."""
    ring = np.arange(7)
    graph = Graph.from_arrays(
        np.stack([ring, (ring + 1) % 7]), np.random.default_rng(0).normal(size=(7, 3))
    )
    model = pooling.AveragePooling(3, 2, POOLING, generator)
    features, mean = pooling.graph_inputs(graph, CPU)
    centres = torch.arange(7)
    children = torch.stack([centres - 1, centres + 1], dim=1).flatten() % 7
    leaves = torch.stack([children - 1, children + 1], dim=1).flatten() % 7
    levels = [features[level] for level in (centres, children, leaves)]
    torch.testing.assert_close(
        model.over_patches(levels, keep), model.over_graph(features, mean, keep)
    )


@pytest.mark.parametrize("many", [False, True], ids=["one label", "many labels"])
@pytest.mark.parametrize("method", ["patches", "graphs", "fastgcn", "gcn"])
def test_supervised_rows_learn_and_carry_over(method, many):
    """Trained on three groups, they classify the communities of the fourth, which they have not
    seen."""
    graph = communities(many=many, separate=method == "graphs")
    codes, test = graph.labels["y"], graph.splits["test"]
    if method == "fastgcn":
        settings = dataclasses.replace(FAST, draws=24, epochs=30, lr=1e-2)
        predicted = fast.fastgcn(graph, codes, 0, CPU, settings)
    elif method == "gcn":
        predicted = gcn.gcn(graph, codes, 0, CPU, dataclasses.replace(WIDE, epochs=20))
    else:
        settings = dataclasses.replace(POOLING, epochs=20, lr=1e-2)
        predicted = pooling.average_pooling(graph, codes, 0, CPU, settings)
    measure = micro_f1 if many else accuracy
    assert predicted.shape == codes.shape
    assert measure(predicted[test], codes[test]) > 0.95


ROWS = {
    **{name: (sage, partial(sage.graphsage, name), SAGE) for name in sage.AGGREGATORS},
    "average pooling": (pooling, pooling.average_pooling, POOLING),
    "fastgcn": (fast, fast.fastgcn, FAST),
    "gcn": (gcn, gcn.gcn, WIDE),
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("separate", [False, True], ids=["one graph", "many graphs"])
def test_training_is_blind_to_the_unseen(row, separate, monkeypatch):
    """NaN features, other edges and other labels at unseen nodes leave all weights unchanged, bit
    for bit."""
    module, run, settings = ROWS[row]
    train, models = module.train, []

    def spy(*arguments: object) -> torch.nn.Module:
        models.append(train(*arguments))
        return models[-1]

    monkeypatch.setattr(module, "train", spy)
    graph = communities(separate=separate)
    unseen = np.flatnonzero(~graph.splits["seen"])
    edges = np.stack(graph.adjacency.nonzero())
    strange = np.stack([unseen, unseen[::-1] if separate else np.arange(len(unseen))])
    other = Graph.from_arrays(
        np.concatenate([edges, strange], axis=1), graph.features, groups=graph.groups
    )
    features, codes = graph.features.copy(), graph.labels["y"].copy()
    features[unseen] = np.nan
    codes[~graph.splits["train"]] ^= 1
    run(graph, graph.labels["y"], 0, CPU, settings)
    run(graph.replace(adjacency=other.adjacency, features=features), codes, 0, CPU, settings)
    run(graph, graph.labels["y"], 1, CPU, settings)
    first, poisoned, reseeded = (
        torch.cat([p.flatten() for p in model.parameters()]) for model in models
    )
    assert torch.isfinite(first).all()
    assert torch.equal(first, poisoned)
    assert not torch.equal(first, reseeded)


def test_average_pooling_keeps_what_does_best_on_validation_nodes():
    graph = communities()
    codes, liked = (
        torch.from_numpy(graph.labels["y"][graph.splits["seen"]]),
        iter([0.2, 0.7, 0.7, 0.1]),
    )
    looks: list[torch.Tensor] = []

    def judge(model: torch.nn.Module) -> float:
        looks.append(model.head.detach().clone())
        return next(liked)

    settings = dataclasses.replace(POOLING, epochs=8, looks=4)
    model = pooling.train(graph.seen(), codes, settings, 0, CPU, judge)
    assert len(looks) == 4
    assert torch.equal(model.head, looks[1])
    assert not torch.equal(model.head, looks[2])


def test_vectors_of_unseen_nodes_hear_their_neighbours():
    """The vector of an unseen node is computed on the whole graph: it depends on its neighbours'
    features."""
    graph = communities()
    model = sage.train("mean", graph.seen(), SAGE, 0, CPU)
    node = graph.num_nodes - 1
    near = graph.adjacency[[node]].indices
    features = graph.features.copy()
    features[near] += 1
    before = sage.vectors(model, graph, SAGE, 0, CPU)
    after = sage.vectors(model, graph.replace(features=features), SAGE, 0, CPU)
    assert node not in near
    assert not graph.splits["seen"][[node, *near]].any()
    assert not np.allclose(before[node], after[node])
