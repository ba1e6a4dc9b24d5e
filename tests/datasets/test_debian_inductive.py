"""A fifth of Debian is unseen, edges and all, and nothing is fitted on it."""

import hashlib

import numpy as np
import pytest

from infomax.datasets import load_dataset
from infomax.graphs.graph import Graph


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset("debian-inductive")


def test_golden_counts(graph: Graph) -> None:
    assert {name: mask.sum() for name, mask in graph.splits.items()} == {
        "train": 800,
        "validation": 500,
        "test": 31_980,
        "seen": 27_202,
        "test-seen": 25_321,
        "test-unseen": 6_659,
    }
    assert (~graph.splits["seen"]).mean() == pytest.approx(0.2, abs=1e-4)
    unseen = "\n".join(graph.ids[~graph.splits["seen"]])
    assert hashlib.sha256(unseen.encode()).hexdigest()[:16] == "28cabfdb8e06def6"


def test_only_the_splits_differ_from_debian(graph: Graph) -> None:
    whole = load_dataset("debian")
    assert (graph.adjacency != whole.adjacency).nnz == 0
    assert (graph.ids == whole.ids).all()
    assert all((graph.splits[name] == mask).all() for name, mask in whole.splits.items())


def test_nothing_is_fitted_or_chosen_on_an_unseen_package(graph: Graph) -> None:
    splits = graph.splits
    assert splits["seen"][splits["train"] | splits["validation"]].all()
    assert (splits["test-seen"] ^ splits["test-unseen"] == splits["test"]).all()
    assert not splits["seen"][splits["test-unseen"]].any()


def test_unseen_packages_are_like_the_others(graph: Graph) -> None:
    """Drawn without regard to degree: 0.8 x 0.8 of the edges are left, give or take those of a few hubs."""
    degree, seen = np.diff(graph.adjacency.indptr), graph.splits["seen"]
    assert degree[~seen].mean() == pytest.approx(degree[seen].mean(), rel=0.15)
    assert graph.seen().num_edges == pytest.approx(0.64 * graph.num_edges, rel=0.1)
