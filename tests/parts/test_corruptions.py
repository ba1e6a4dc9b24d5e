"""Corruptions keep what they promise."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from torch.autograd import gradcheck

from infomax import InputError
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.parts.corruptions import (
    DenseFlips,
    drop_features,
    flip_and_shuffle,
    flip_edges,
    shuffle_features,
)
from infomax.views import MEAN, SYMMETRIC, WholeView
from infomax.views.propagation import Propagation

CPU = torch.device("cpu")


def adjacency(propagation: Propagation) -> np.ndarray:
    """The 0/1 adjacency behind a propagation of the "mean" rule, from what it does to the
    identity."""
    matrix = (propagation @ torch.eye(propagation.n)).numpy() > 0
    np.fill_diagonal(matrix, False)
    return matrix


def weights_by_key(propagation: Propagation) -> dict[int, float]:
    return dict(zip(propagation.keys.tolist(), propagation.weights.tolist(), strict=True))


def view_of(graph: Graph):
    return WholeView.of(graph, MEAN, Backend(CPU))


def test_shuffle_keeps_the_rows(graph, generator):
    view = shuffle_features(view_of(graph), generator)
    assert sorted(view.shuffled_rows[""].tolist()) == list(range(graph.num_nodes))
    assert view.shuffled_rows[""].tolist() != list(range(graph.num_nodes))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "way_of_drawing",
    [
        {"largest_sparse_rate": -1.0, "stored_entries": 0},
        {"largest_sparse_rate": -1.0, "stored_entries": 1 << 24},
        {"largest_sparse_rate": 2.0},
    ],
    ids=["in blocks", "stored", "sparse"],
)
class TestFlips:
    """The same laws for all ways of drawing."""

    @pytest.fixture(autouse=True)
    def _setup(self, way_of_drawing, directed):
        self.flip_edges = partial(flip_edges, **way_of_drawing)
        self.graph = random_graph(60, directed=directed)
        self.before = adjacency(view_of(self.graph).propagation)

    def after(self, rho, generator):
        return adjacency(self.flip_edges(view_of(self.graph), generator, rho=rho).propagation)

    def test_rate_zero_is_the_identity(self, generator):
        assert (self.after(0.0, generator) == self.before).all()

    def test_rate_one_is_the_complement(self, generator):
        assert (self.after(1.0, generator) == ~self.before ^ np.eye(60, dtype=bool)).all()

    def test_undirected_stays_undirected(self, generator, directed):
        after = self.after(0.3, generator)
        assert (after == after.T).all() != directed

    def test_expected_flips(self, generator, directed):
        """Mean within four standard errors, over edges and over non-edges: each pair is switched
        alike."""
        rho, draws = 0.2, 60
        flips = np.stack([self.after(rho, generator) ^ self.before for _ in range(draws)])
        pairs = ~np.eye(60, dtype=bool) if directed else np.tri(60, k=-1, dtype=bool)
        for some_pairs in (pairs & self.before, pairs & ~self.before):
            tries = draws * some_pairs.sum()
            standard_error = np.sqrt(tries * rho * (1 - rho))
            assert abs(flips[:, some_pairs].sum() - tries * rho) < 4 * standard_error
        per_pair = flips[:, pairs].mean(0)
        assert np.isclose(per_pair.var(), rho * (1 - rho) / draws, rtol=0.2)

    def test_gradient_is_the_transpose(self, generator):
        small = random_graph(8, directed=self.graph.directed)
        view = WholeView.of(small, SYMMETRIC, Backend(CPU))
        flipped = _double(self.flip_edges(view, generator, rho=0.4).propagation)
        y = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
        assert gradcheck(lambda y: flipped @ y, (y,))


def _double(propagation):
    """The same messages in float64, drawn in blocks of a few rows if they were dense."""
    double = Propagation(
        propagation.keys,
        propagation.weights.double(),
        propagation.n,
        propagation.rule,
        propagation.backend,
        directed=propagation.directed,
    )
    if not isinstance(propagation, DenseFlips):
        return double
    stored_entries = 0 if propagation.stored_blocks is None else double.n**2
    return DenseFlips(
        double,
        propagation.rho,
        propagation.seed,
        entries_per_block=17,
        stored_entries=stored_entries,
    )


def test_blocks_of_any_height_draw_the_same_graph(graph):
    messages = view_of(graph).propagation
    seed = torch.tensor(5)
    stored = adjacency(DenseFlips(messages, 0.4, seed))
    for entries_per_block in (1 << 20, 100, 1):
        in_blocks = DenseFlips(
            messages, 0.4, seed, entries_per_block=entries_per_block, stored_entries=0
        )
        assert (adjacency(in_blocks) == stored).all()


def test_small_rates_never_need_an_n_by_n_matrix(generator):
    """A graph of 100,000 nodes, whose square would take 10 GB even at a byte an entry."""
    n = 100_000
    graph = Graph.from_arrays(np.array([np.arange(n - 1), np.arange(1, n)]), num_nodes=n)
    view = flip_edges(view_of(graph), generator, rho=1e-6)
    pairs = n * (n - 1) / 2
    assert abs(len(view.propagation.keys) / 2 - (n - 1) - pairs * 1e-6) < 5 * np.sqrt(pairs * 1e-6)


def test_weights_survive_and_new_edges_weigh_one(generator):
    graph = random_graph(30, weighted=True)
    view = flip_edges(view_of(graph), generator, rho=0.01)
    weights_before = weights_by_key(view_of(graph).propagation)
    weights_after = weights_by_key(view.propagation)
    assert set(weights_before) != set(weights_after)
    for key, weight in weights_after.items():
        assert weight == weights_before.get(key, 1.0)


def test_both_does_both(graph, generator):
    view = flip_and_shuffle(view_of(graph), generator, rho=0.01)
    assert view.shuffled_rows is not None
    assert (adjacency(view.propagation) != adjacency(view_of(graph).propagation)).any()


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rates_outside_0_and_1_are_refused(graph, generator, rate):
    with pytest.raises(InputError, match=f"rho: expected a rate from 0 to 1, found {rate}"):
        flip_edges(view_of(graph), generator, rho=rate)
    with pytest.raises(InputError, match=f"rate: expected a rate from 0 to below 1, found {rate}"):
        drop_features(view_of(graph), generator, rate=rate)


def test_not_every_feature_can_be_dropped(graph, generator):
    with pytest.raises(InputError, match="rate: expected a rate from 0 to below 1, found 1"):
        drop_features(view_of(graph), generator, rate=1.0)
