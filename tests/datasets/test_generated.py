"""The stand-in for Reddit: its shape, its difficulty, and the same graph every time."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from infomax.datasets import load_dataset
from infomax.errors import InputError
from infomax.graphs.graph import Graph


def generate(**options) -> Graph:
    return load_dataset("generated-reddit", **options)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return generate(scale=0.02)


def test_reddits_shape() -> None:
    graph = generate(features=1)
    assert graph.num_nodes == 232_965
    assert graph.adjacency.nnz == pytest.approx(23_213_838, rel=0.005)
    degree = np.diff(graph.adjacency.indptr)
    assert degree.max() > 50 * degree.mean()  # heavy-tailed
    assert np.median(degree) < 0.6 * degree.mean()


def test_a_small_one(graph: Graph) -> None:
    assert (graph.num_nodes, graph.num_features) == (4_659, 602)
    assert graph.features.dtype == np.float32
    assert set(graph.labels["community"].tolist()) == set(range(41))
    train, validation, test = (graph.splits[name] for name in ("train", "validation", "test"))
    assert (train.astype(int) + validation + test == 1).all()
    assert [mask.mean() for mask in (train, validation, test)] == pytest.approx(
        [0.655, 0.102, 0.243], abs=0.02
    )
    assert (graph.splits["seen"] == train).all()


def test_communities_are_not_in_order(graph: Graph) -> None:
    """Else neighbours would lie side by side in memory, and every measurement would flatter."""
    community = graph.labels["community"]
    assert (np.diff(community) == 0).mean() < 0.1
    ends = graph.adjacency.tocoo()
    assert 0.3 < (community[ends.row] == community[ends.col]).mean() < 0.6
    assert np.abs(ends.row - ends.col).mean() == pytest.approx(graph.num_nodes / 3, rel=0.1)


def linear_accuracy(graph: Graph, vectors: np.ndarray) -> float:
    train, test, y = graph.splits["train"], graph.splits["test"], graph.labels["community"]
    return RidgeClassifier(alpha=10).fit(vectors[train], y[train]).score(vectors[test], y[test])


def test_a_node_alone_says_little_and_its_neighbours_much(graph: Graph) -> None:
    degree = np.maximum(np.diff(graph.adjacency.indptr), 1)[:, None]
    assert 0.15 < linear_accuracy(graph, graph.features) < 0.7
    assert linear_accuracy(graph, graph.adjacency @ graph.features / degree) > 0.9


def test_the_same_arguments_give_the_same_graph(graph: Graph) -> None:
    again, other = generate(scale=0.02), generate(scale=0.02, seed=1)
    assert (graph.adjacency != again.adjacency).nnz == 0
    assert (graph.features == again.features).all()
    assert all((graph.splits[name] == again.splits[name]).all() for name in graph.splits)
    assert (graph.adjacency != other.adjacency).nnz > graph.adjacency.nnz / 2
    assert (graph.features != other.features).mean() > 0.9


def test_fewer_features_leave_the_edges_alone(graph: Graph) -> None:
    assert (graph.adjacency != generate(scale=0.02, features=3).adjacency).nnz == 0


@pytest.mark.parametrize("degree", [4, 20])
def test_degree(degree: float) -> None:
    graph = generate(scale=0.2, features=2, degree=degree)
    assert graph.adjacency.nnz / graph.num_nodes == pytest.approx(degree, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.001}, "scale.*0.0043 to 42.9.*233 nodes"),
        ({"scale": 100}, "scale"),
        ({"size": 3}, 'one of scale, seed, features, degree, found "size"'),
    ],
)
def test_options_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(**options)


def test_other_data_sets_take_no_options() -> None:
    with pytest.raises(InputError, match='options of debian: expected none, found "scale"'):
        load_dataset("debian", scale=2)
