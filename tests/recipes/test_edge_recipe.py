"""The recipe's encoder: a plain mean before training, and a law of symmetry with features of edges."""

from functools import partial

import numpy as np
import pytest
import torch
from recipes.edge_features import EdgeWeightedMean, example_graph

from infomax import DGI, Graph
from infomax.errors import InputError
from infomax.kernels import Backend
from infomax.views import NEIGHBOURS, WholeView


def view_of(graph: Graph) -> WholeView:
    return WholeView.of(graph, NEIGHBOURS, Backend.of_training(torch.device("cpu"), 0, 0))


def encoder_of(graph: Graph) -> EdgeWeightedMean:
    generator = torch.Generator().manual_seed(0)
    return EdgeWeightedMean(graph.num_features, 8, num_edge_features=2, generator=generator)


def test_training_begins_with_the_plain_mean_over_the_neighbours() -> None:
    graph, _ = example_graph(0, num_nodes=60)
    encoder, view = encoder_of(graph), view_of(graph)
    halves = [view.own(None, encoder.self_weight), view.pooled(None, encoder.neighbour_weight)]
    expected = torch.nn.functional.prelu(torch.cat(halves, dim=1), encoder.slope)
    torch.testing.assert_close(encoder(view)[0], expected, rtol=1e-4, atol=1e-5)


def test_other_numbers_of_the_nodes_permute_the_vectors() -> None:
    random = np.random.default_rng(1)
    edges, values = random.integers(40, size=(2, 150)), random.normal(size=(150, 2))
    features, order = random.normal(size=(40, 5)), random.permutation(40)
    graph = Graph.from_arrays(edges, features, edge_features=values)
    renumbered = Graph.from_arrays(np.argsort(order)[edges], features[order], edge_features=values)
    encoder = encoder_of(graph)
    torch.nn.init.normal_(encoder.edge_weight, generator=torch.Generator().manual_seed(2))
    vectors = encoder(view_of(graph))[0]
    torch.testing.assert_close(encoder(view_of(renumbered))[0], vectors[order])


def test_it_trains_embeds_and_refuses_a_graph_without_features_of_edges() -> None:
    graph, _ = example_graph(0, num_nodes=80)
    encoder = partial(EdgeWeightedMean, num_edge_features=2)
    model = DGI(dim=8, encoder=encoder, epochs=3).fit(graph)
    assert np.isfinite(model.transform(graph).vectors).all()
    bare = Graph.from_arrays(np.stack([np.arange(80), np.roll(np.arange(80), 1)]), graph.features)
    with pytest.raises(InputError, match="with_edge_features"):
        DGI(dim=8, encoder=encoder, epochs=3).fit(bare)
