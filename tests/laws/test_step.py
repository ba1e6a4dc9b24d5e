"""The step as it is computed equals plain autograd of the five steps as the paper writes them, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from torch import nn

from infomax.kernels import Backend
from infomax.parts.corruptions import shuffle_features
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, PathMean
from infomax.parts.fused import FUSED_ENCODERS, FusedDeepGraphInfomax, accelerate
from infomax.parts.methods import Model
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
from infomax.parts.readouts import DiffPool, Set2Set, SigmoidMean
from infomax.views import SYMMETRIC, WholeView
from infomax.views.operands import operand
from infomax.views.propagation import Propagation

CPU = torch.device("cpu")


def papers_loss(model: Model, graph, rows: torch.Tensor) -> torch.Tensor:
    """Every formula of the paper, densely and by torch's own parts."""
    hat = torch.from_numpy(graph.adjacency.toarray()).double() + torch.eye(
        graph.num_nodes, dtype=torch.float64
    )
    scale = torch.diag(hat.sum(1) ** -0.5)
    x = torch.from_numpy(graph.features.toarray()).double()

    def encode(x):
        encoder = model.encoder
        for weight, bias, slope in zip(
            encoder.weights, encoder.biases, encoder.slopes, strict=True
        ):
            x = nn.functional.prelu(scale @ hat @ scale @ x @ weight + bias, slope)
        return x

    h, h_negative = encode(x), encode(x[rows])
    summary = torch.sigmoid(h.mean(0)).expand_as(h)
    weight, bias = model.discriminator.weight[None], model.discriminator.bias[None]
    logits = torch.cat(
        [nn.functional.bilinear(part, summary, weight, bias) for part in (h, h_negative)]
    )
    targets = torch.cat([torch.ones_like(h[:, :1]), torch.zeros_like(h[:, :1])])
    return nn.functional.binary_cross_entropy_with_logits(logits, targets)


def method_for(model: Model, is_accelerated: bool) -> DeepGraphInfomax:
    """The method as it is written, or its equivalent in closed form."""
    method = DeepGraphInfomax()
    if not is_accelerated:
        return method
    equivalent = accelerate(method, model)
    assert isinstance(equivalent, FusedDeepGraphInfomax)
    return equivalent


both_ways = pytest.mark.parametrize("is_accelerated", [True, False], ids=["fused", "part by part"])


@both_ways
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_paper(layers, weighted, is_accelerated, generator):
    graph = random_graph(weighted=weighted)
    encoder = GCN(graph.num_features, 8, layers=layers, generator=generator)
    model = DeepGraphInfomax().build(encoder, generator).double()
    with torch.no_grad():  # biases away from zero, so that a wrong gradient of theirs would show
        for bias in model.encoder.biases:
            bias.normal_(generator=generator)
        model.discriminator.weight.normal_(generator=generator)
    double = torch.float64
    view = WholeView.of_one_path(
        operand(graph.features, Backend(CPU), double),
        Propagation.of(graph, SYMMETRIC, Backend(CPU), double),
    )
    negative = shuffle_features(view, generator)

    ours = method_for(model, is_accelerated).loss(model, (view, negative))[0]
    found = torch.autograd.grad(ours, list(model.parameters()))
    papers = papers_loss(model, graph, negative.shuffled_rows[""])
    expected = torch.autograd.grad(papers, list(model.parameters()))
    torch.testing.assert_close(ours, papers)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)
    assert any(gradient.abs().max() > 1e-3 for gradient in found)


@pytest.mark.parametrize("readout", [SigmoidMean, Set2Set, DiffPool])
def test_readouts_do_not_depend_on_the_order_of_nodes(readout, generator):
    graph = random_graph()
    order = np.random.default_rng(1).permutation(graph.num_nodes)
    moved = graph.replace(
        adjacency=graph.adjacency[order][:, order], features=graph.features[order]
    )
    part = readout(8, generator=generator)
    h = torch.randn(graph.num_nodes, 8, generator=generator)
    views = [
        WholeView.of_one_path(
            operand(g.features, Backend(CPU)), Propagation.of(g, SYMMETRIC, Backend(CPU))
        )
        for g in (graph, moved)
    ]
    summary, again = part(h, views[0]), part(h[order], views[1])
    assert summary.shape == (8,)
    assert ((summary > 0) & (summary < 1)).all()
    torch.testing.assert_close(summary, again)
    assert not torch.allclose(summary, part(h + 1, views[0]))


@both_ways
@pytest.mark.parametrize("encoder", [GCN, DenseSkipMeanPool], ids=["one layer", "three layers"])
def test_the_loss_is_a_mean_over_n_positives_and_m_negatives(encoder, is_accelerated, generator):
    """The positive and the negative of a pair of graphs differ in size: every node counts the same."""
    graphs = random_graph(30, 6, dense=True), random_graph(11, 6, seed=1, dense=True)
    views = [WholeView.of(graph, encoder.rule, Backend(CPU)) for graph in graphs]
    model = DeepGraphInfomax().build(encoder(6, 8, generator=generator), generator)
    torch.nn.init.normal_(model.discriminator.weight, generator=generator)
    h, h_negative = model.encoder(*(view.fresh() for view in views))
    direction, bias = (
        model.discriminator.weight @ torch.sigmoid(h.mean(0)),
        model.discriminator.bias,
    )
    losses = (
        nn.functional.softplus(-(h @ direction + bias)),
        nn.functional.softplus(h_negative @ direction + bias),
    )
    expected = torch.cat(losses).mean()
    assert (
        abs(losses[0].mean() - losses[1].mean()) > 0.05
    )  # otherwise other weights would give the same
    method = method_for(model, is_accelerated)
    found = method.loss(model, [view.fresh() for view in views])[0]
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in (found, expected)]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_objectives(generator):
    positive, negative = torch.randn(7, generator=generator), torch.randn(4, generator=generator)
    expected = (
        -(torch.log(torch.sigmoid(positive)).sum() + torch.log(1 - torch.sigmoid(negative)).sum())
        / 11
    )
    torch.testing.assert_close(binary_cross_entropy(positive, negative), expected)
    both = (
        -torch.log(torch.sigmoid(positive)).mean() - torch.log(1 - torch.sigmoid(negative)).mean()
    )
    torch.testing.assert_close(jensen_shannon(positive, negative), both)
    same = torch.randn(7, generator=generator)
    torch.testing.assert_close(
        jensen_shannon(positive, same), 2 * binary_cross_entropy(positive, same)
    )
    assert torch.isfinite(binary_cross_entropy(torch.tensor([-1e4]), torch.tensor([1e4])))


def test_glorot_bound_of_the_bilinear_form(generator):
    weight = Bilinear(512, generator=generator).weight
    assert 0.0047 < weight.abs().max() < (6 / (512 * 512 + 512)) ** 0.5


@pytest.mark.parametrize(
    "encoder", [encoder for encoder in FUSED_ENCODERS if encoder is not PathMean]
)
def test_the_written_loss_and_its_equivalent_agree_for_each_encoder(encoder, generator):
    """The whole record, and the gradient of every weight, in float64."""
    graph, double = random_graph(weighted=True), torch.float64
    built = encoder(graph.num_features, 8, generator=generator)
    model = DeepGraphInfomax().build(built, generator).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    view = WholeView.of_one_path(
        operand(graph.features, Backend(CPU), double),
        Propagation.of(graph, encoder.rule, Backend(CPU), double),
    )
    negative = shuffle_features(view, generator)
    records, gradients = [], []
    for is_accelerated in (True, False):
        pair = view.fresh(), negative.fresh()
        record = method_for(model, is_accelerated).loss(model, pair)
        records.append(record.detach())
        gradients.append(torch.autograd.grad(record[0], list(model.parameters())))
    torch.testing.assert_close(*records)
    for fused, written in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, written)


class Heir(GCN):
    """An encoder that may do anything else."""


@pytest.mark.parametrize(
    ("encoder", "method"),
    [
        (Heir, DeepGraphInfomax()),
        (GCN, DeepGraphInfomax(readout=Set2Set)),
        (GCN, DeepGraphInfomax(objective=jensen_shannon)),
        (GCN, type("Own", (DeepGraphInfomax,), {})()),
    ],
    ids=["encoder", "readout", "objective", "method"],
)
def test_other_parts_are_trained_as_they_are_written(encoder, method, generator):
    model = method.build(encoder(5, 4, generator=generator), generator)
    assert accelerate(method, model) is method
    assert not method.repeats_the_same_work
