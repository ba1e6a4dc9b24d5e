"""The transductive baselines: closed solutions, plain loops, walks along edges, and models that
learn."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sample_graphs import random_graph
from scipy import sparse

from infomax import Graph
from infomax.kernels import Backend
from infomax.views import SYMMETRIC, WholeView
from infomax.views.operands import operand
from infomax_paper.baselines import BASELINES, average_pooling, deepwalk, gcn, planetoid
from infomax_paper.baselines.deepwalk import closeness, random_walks, skip_gram_loss
from infomax_paper.baselines.label_propagation import label_propagation
from infomax_paper.patches import Neighbours
from infomax_paper.printed import PAPER

CPU = torch.device("cpu")
WALK = deepwalk.Settings(dim=8, walks=60, length=10, window=3, lr=0.05, batch=30, drawn=16)
POOLING = average_pooling.Settings(hidden=8, dim=4, lr=3e-2, epochs=30, looks=30)


def path(n: int) -> Graph:
    return Graph.from_arrays(np.array([np.arange(n - 1), np.arange(1, n)]), np.ones((n, 1)))


def communities(size: int = 30, seed: int = 0) -> tuple[Graph, np.ndarray]:
    """Two communities with four labels each for training and validation; features that identify
    half of the nodes."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1], size)
    likely = np.where(codes[:, None] == codes, 0.3, 0.01)
    edges = np.argwhere(np.triu(rng.random(likely.shape) < likely, 1)).T
    features = rng.random((2 * size, 6)) < np.where(np.arange(6) % 2 == codes[:, None], 0.5, 0.2)
    part = np.tile(np.r_[[0] * 4, [1] * 4, [2] * (size - 8)], 2)
    splits = {name: part == number for number, name in enumerate(("train", "validation", "test"))}
    graph = Graph.from_arrays(edges, sparse.csr_array(features.astype(np.float32)), splits=splits)
    return graph, codes


def hidden(graph: Graph, codes: np.ndarray) -> np.ndarray:
    return np.where(graph.splits["test"], -1, codes)


def right(graph: Graph, predicted: np.ndarray, codes: np.ndarray) -> float:
    return float((predicted == codes)[graph.splits["test"]].mean())


def nearest(vectors: torch.Tensor, codes: np.ndarray, known: np.ndarray) -> float:
    """The share of vectors (of unseen nodes, if any) that are nearest to the mean of their own
    community."""
    centres = torch.stack([vectors[known & (codes == code)].mean(0) for code in (0, 1)])
    asked = np.ones_like(known) if known.all() else ~known
    return float((torch.cdist(vectors, centres).argmin(1).numpy() == codes)[asked].mean())


def test_rows_are_the_papers():
    assert set(BASELINES) <= {method for _, method in PAPER}


def test_label_propagation_spreads_to_the_nearer_label_and_no_further_than_its_rounds():
    ends = path(30).replace(splits={"train": np.isin(np.arange(30), [0, 29])})
    codes = np.full(30, -1)
    codes[[0, 29]] = [1, 0]
    assert label_propagation(ends, codes, 0, CPU).tolist() == [1] * 11 + [-1] * 8 + [0] * 11


def test_label_propagation_is_the_mean_of_neighbours_again_and_again():
    graph = random_graph(weighted=True)
    train, codes = np.arange(40) < 6, np.where(np.arange(40) < 9, np.arange(40) % 3, -1)
    values = [
        np.eye(3)[code] if known else np.zeros(3) for known, code in zip(train, codes, strict=True)
    ]
    weights = graph.adjacency.toarray()
    for _ in range(10):
        sums = [
            sum((w * v for w, v in zip(row, values, strict=True)), np.zeros(3)) for row in weights
        ]
        means = [total / max(total.sum(), 1e-9) for total in sums]
        values = [
            old if known else mean for known, old, mean in zip(train, values, means, strict=True)
        ]
    expected = [int(v.argmax()) if v.any() else -1 for v in values]
    found = label_propagation(graph.replace(splits={"train": train}), codes, 0, CPU).tolist()
    assert found == expected
    assert found[-1] == -1  # isolated: no label reaches it


def test_walks_stay_on_edges(generator):
    graph = random_graph()
    walks = random_walks(
        Neighbours.of(graph, CPU), torch.arange(40).repeat(5), 12, generator
    ).numpy()
    assert walks.shape == (200, 12)
    steps = graph.adjacency.toarray()[walks[:, :-1], walks[:, 1:]] > 0
    alone = walks[:, 0] == 39
    assert steps[~alone].all()
    assert (walks[alone] == 39).all()


def test_closeness_is_the_chance_of_a_shrunk_window():
    near = closeness(8, 4, CPU)
    for i in range(8):
        for j in range(8):
            chance = np.mean([abs(i - j) <= window for window in range(1, 5)]) if i != j else 0
            assert near[i, j] == pytest.approx(chance)


def test_skip_gram_is_the_sum_over_pairs(generator):
    centres, contexts = (torch.randn(10, 3, generator=generator) for _ in range(2))
    walks = torch.randint(10, (4, 6), generator=generator)
    others, near = torch.tensor([1, 7]), closeness(6, 2, CPU)
    found, weight = 0.0, 0.0
    for walk in walks.tolist():
        for i, one in enumerate(walk):
            for j, other in enumerate(walk):
                cost = -torch.log(torch.sigmoid(centres[one] @ contexts[other]))
                for far in others.tolist():
                    cost = cost - 5 / 2 * torch.log(torch.sigmoid(-(centres[one] @ contexts[far])))
                found, weight = found + float(near[i, j] * cost), weight + float(near[i, j])
    loss = skip_gram_loss(centres, contexts, walks, near, others, 5)
    assert float(loss) == pytest.approx(found / weight, rel=1e-5)


def test_deepwalk_tells_communities_apart_and_follows_its_seed():
    graph, codes = communities()
    one, same, other = (deepwalk.deepwalk(graph, codes, seed, CPU, WALK) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert nearest(one, codes, np.ones(60, dtype=bool)) > 0.9


def test_new_nodes_find_their_place_among_the_old():
    graph, codes = communities()
    seen = np.arange(len(codes)) % 5 != 0
    inductive = graph.replace(splits={**graph.splits, "seen": seen})
    vectors = deepwalk.deepwalk(inductive, codes, 0, CPU, WALK)
    # What was seen is as if the rest were not there; the rest is near its own community's.
    without = inductive.replace(
        adjacency=sparse.csr_array(graph.adjacency.multiply(np.outer(seen, seen)))
    )
    assert torch.equal(vectors[seen], deepwalk.deepwalk(without, codes, 0, CPU, WALK)[seen])
    assert nearest(vectors, codes, seen) > 0.8


def test_features_of_length_one_stand_beside_the_vectors():
    graph, codes = communities()
    both = deepwalk.with_features(graph, codes, 0, CPU, "rows", WALK)
    assert sparse.issparse(both)
    vectors, features = np.split(both.toarray(), [8], axis=1)
    np.testing.assert_array_equal(vectors, deepwalk.deepwalk(graph, codes, 0, CPU, WALK))
    lengths = np.linalg.norm(features, axis=1)
    assert features.shape == (60, 6)
    assert ((np.abs(lengths - 1) < 1e-5) | (lengths == 0)).all()
    dense = graph.replace(features=graph.features.toarray())
    np.testing.assert_allclose(
        deepwalk.with_features(dense, codes, 0, CPU, "rows", WALK), both.toarray(), atol=1e-6
    )


def test_gcn_learns_communities_with_one_label_a_node_and_with_many():
    graph, codes = communities()
    settings = gcn.Settings(epochs=60)
    predicted = gcn.gcn(graph, hidden(graph, codes), 0, CPU, settings)
    assert right(graph, predicted, codes) > 0.9
    assert (gcn.gcn(graph, hidden(graph, codes), 0, CPU, settings) == predicted).all()
    many = np.stack([codes, 1 - codes], axis=1).astype(np.int8)
    masked = np.where(graph.splits["test"][:, None], -1, many).astype(np.int8)
    found = gcn.gcn(graph, masked, 0, CPU, gcn.Settings(epochs=100, scale="columns"))
    assert found.shape == many.shape
    assert (found == many)[graph.splits["test"]].mean() > 0.9


def test_the_supervised_encoder_is_dgis_own_with_two_layers(generator):
    graph = random_graph()
    model = gcn.TwoLayerEncoder(graph.num_features, 8, 3, generator)
    with torch.no_grad():
        for bias in model.encoder.biases:
            bias.normal_(generator=generator)
    (h,) = model.encoder(WholeView.of(graph, SYMMETRIC, Backend(CPU)))
    torch.testing.assert_close(model(*gcn.graph_inputs(graph, CPU)), h @ model.classifier)


def test_the_supervised_encoder_learns_communities():
    graph, codes = communities()
    settings = gcn.Settings(gcn.TwoLayerEncoder, epochs=60)
    assert right(graph, gcn.gcn(graph, hidden(graph, codes), 0, CPU, settings), codes) > 0.9


CHOOSERS = {
    "gcn": partial(gcn.gcn, settings=gcn.Settings(epochs=40, window=3)),
    "planetoid": partial(planetoid.planetoid, settings=planetoid.Settings(walk=WALK, steps=60)),
    "average pooling": partial(average_pooling.average_pooling, settings=POOLING),
}


@pytest.mark.parametrize("row", CHOOSERS)
def test_validation_nodes_choose_and_test_nodes_do_not(row):
    """Other labels at validation nodes select another model; other labels at test nodes change
    nothing."""
    graph, codes = communities()
    graph = graph.replace(features=graph.features.toarray())
    kept, same, other = (
        CHOOSERS[row](
            graph, np.where(graph.splits[part], 1 - codes, codes) if part else codes, 0, CPU
        )
        for part in ("", "test", "validation")
    )
    np.testing.assert_array_equal(same, kept)
    assert (other != kept).mean() > 0.1


def test_a_row_of_sparse_features_is_a_bag(generator):
    features = random_graph().features
    weight = torch.randn(12, 5, generator=generator)
    bags = gcn.product(operand(features, Backend(CPU)), weight, lambda entries: 2 * entries)
    np.testing.assert_allclose(bags.numpy(), 2 * (features @ weight.numpy()), atol=1e-5)


def test_planetoid_learns_communities_and_follows_its_seed():
    graph, codes = communities()
    settings = planetoid.Settings(walk=WALK, steps=60, trust=1.0)
    predicted = planetoid.planetoid(graph, hidden(graph, codes), 0, CPU, settings)
    assert right(graph, predicted, codes) > 0.9
    assert (planetoid.planetoid(graph, hidden(graph, codes), 0, CPU, settings) == predicted).all()


def test_the_label_context_is_low_where_classes_agree():
    codes = torch.tensor([0, 0, 1, 1])
    apart = torch.tensor([[3.0], [3.0], [-3.0], [-3.0]])
    assert planetoid.label_context_loss(apart, apart, codes, 5) < 0.01
    assert planetoid.label_context_loss(apart, -apart, codes, 5) > 9
