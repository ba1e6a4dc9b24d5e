"""Padded graphs, as a GPU computes them: padding counts nowhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from scipy import sparse

from infomax import Graph
from infomax.estimator import build
from infomax.kernels import Backend
from infomax.parts.corruptions import drop_features, flip_edges, is_replayable, shuffle_features
from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.fused import accelerate
from infomax.training.presets import PRESETS
from infomax.views import MEAN, ManyGraphs, PaddedView

CPU = torch.device("cpu")
SIZES = {"a": 13, "b": 21, "c": 9}


def graphs(sizes=SIZES):
    """Graphs of different sizes, as one."""
    parts = [random_graph(n, 5, n, dense=True) for n in sizes.values()]
    adjacency = sparse.block_diag([part.adjacency for part in parts], format="csr")
    joined = Graph.from_scipy(adjacency, np.concatenate([part.features for part in parts]))
    return joined.replace(groups=np.repeat(np.arange(len(parts)), list(sizes.values())))


def unchanged(view, generator):
    return view


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2), (2, 0)])
def test_a_padded_pair_has_the_loss_and_the_gradients_of_the_pair(one, other):
    preset = dataclasses.replace(PRESETS["many-graphs"], dim=7)
    model = build(preset, 5, torch.Generator().manual_seed(0))
    for bias in model.encoder.biases:
        torch.nn.init.constant_(bias, 0.1)  # so that padding has an output other than 0
    outcomes = []
    for pad in (False, True):
        views = ManyGraphs(graphs(), MEAN, unchanged, Backend(CPU))
        if pad:
            views.pad()
        assert views.uniform == pad
        pair = views.pair(torch.tensor([one, other]), torch.Generator())
        assert isinstance(pair[0], PaddedView) == pad
        record = accelerate(DeepGraphInfomax(), model).loss(model, pair)
        outcomes.append(
            [record.detach(), *torch.autograd.grad(record[0], list(model.parameters()))]
        )
    for a, b in zip(*outcomes, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_all_pairs_have_one_shape_and_an_epoch_is_the_same():
    padded, plain = (ManyGraphs(graphs(), MEAN, shuffle_features, Backend(CPU)) for _ in range(2))
    padded.pad()
    drawn = [list(views.batches(torch.Generator().manual_seed(3))) for views in (padded, plain)]
    assert torch.equal(torch.stack(drawn[0]), torch.stack(drawn[1]))
    shapes = {
        padded.pair(batch, torch.Generator())[side].features.shape
        for batch in drawn[0]
        for side in (0, 1)
    }
    assert shapes == {(1, 24, 5)}


def test_a_shuffle_leaves_padding_where_it_is():
    views = ManyGraphs(graphs(), MEAN, shuffle_features, Backend(CPU))
    views.pad()
    positive, _ = views.pair(torch.tensor([0, 1]), torch.Generator())
    shuffled = positive.shuffled(torch.Generator().manual_seed(0))
    assert not torch.equal(shuffled.features, positive.features)
    assert not shuffled.features[0, 13:].any()
    rows, before = (
        sorted(map(tuple, view.features[0, :13].tolist())) for view in (shuffled, positive)
    )
    assert rows == before


@pytest.mark.parametrize(
    "sizes", [{"a": 20}, {f"{k}": 5 for k in range(9)} | {"large": 200}], ids=["one", "uneven"]
)
def test_graphs_that_are_not_padded(sizes):
    graph = random_graph(20, 5, dense=True) if len(sizes) == 1 else graphs(sizes)
    views = ManyGraphs(graph, MEAN, drop_features, Backend(CPU))
    views.pad()
    assert not views.uniform


def test_what_a_gpu_can_replay():
    dropping = PRESETS["many-graphs"].corruption
    assert [is_replayable(dropping, is_sparse) for is_sparse in (True, False)] == [False, True]
    assert is_replayable(shuffle_features, True)
    assert not is_replayable(flip_edges, False)
