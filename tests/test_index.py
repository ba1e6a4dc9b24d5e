"""The index of faiss: what it finds is near, as near as it says, and with all lists searched it is exact."""

from __future__ import annotations

import numpy as np
import pytest

from infomax import index
from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.neighbours.of_all import nearest

pytest.importorskip("faiss", reason="the index is made with it")


def clusters(n=90, d=32, groups=3, seed=0):
    generator = np.random.default_rng(seed)
    group = np.arange(n) % groups
    return (6 * generator.normal(size=(groups, d))[group] + generator.normal(size=(n, d))).astype(
        np.float32
    )


def exact_share(rows, vectors, nodes, k=10):
    """The share of the exact neighbours of some nodes among rows ``[n, k]``, counted by hand."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    similar = units[nodes] @ units.T
    similar[np.arange(len(nodes)), nodes] = -2
    best = np.argsort(-similar, axis=1)[:, :k]
    return np.mean(
        [
            len(set(one) & set(other)) / k
            for one, other in zip(best.tolist(), rows.tolist(), strict=True)
        ]
    )


def test_the_recall_is_what_it_says_on_other_nodes_as_well():
    """Among vectors of no clusters, where one list in sixteen holds half of the neighbours."""
    vectors = np.random.default_rng(0).normal(size=(20_000, 12)).astype(np.float32)
    lists, recall = index.build(vectors)
    nodes = np.random.default_rng(5).permutation(len(vectors))[:400]
    rows, _ = index.nearest_found(lists, vectors, vectors[nodes], nodes, 10)
    assert recall >= 0.95
    assert exact_share(rows, vectors, nodes) == pytest.approx(recall, abs=0.02)
    lists.nprobe = 1  # so few lists would not do, and the recall says so
    few = index.measure_recall(lists, vectors, *index.exact_neighbours_of_sample(vectors))
    assert few < 0.7
    rows, _ = index.nearest_found(lists, vectors, vectors[nodes], nodes, 10)
    assert exact_share(rows, vectors, nodes) == pytest.approx(few, abs=0.05)


def test_neighbours_of_all_nodes_are_found_and_their_cosines_are_exact():
    vectors = clusters(2000, groups=40)
    vectors[7] = 0
    rows, cosines, description = index.nearest_of_all(vectors, 10)
    assert "of 89 lists of similar nodes searched, recall@10" in description
    others = np.delete(np.arange(2000), 7)
    assert exact_share(rows[others], vectors, others) > 0.9
    assert (rows != np.arange(2000)[:, None]).all()  # no node is its own neighbour
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(cosines, np.einsum("nd,nkd->nk", units, units[rows]), atol=1e-5)
    assert (np.diff(cosines, axis=1) <= 0).all()


@pytest.mark.parametrize("n", [2, 3, 12, 300])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_with_all_lists_searched_it_is_exact_however_many_are_asked_for(n, k):
    """Also where more neighbours are asked for than there are nodes, and where a list holds fewer."""
    vectors = clusters(n)
    exact, cosines = nearest(vectors, k)
    assert exact.shape == (n, min(k, n - 1))
    lists, _ = index.build(vectors)
    lists.nprobe = lists.nlist
    found, similar = index.NeighbourIndex(vectors, np.arange(n), None, lists, 1.0).nearest(
        np.arange(n), k
    )
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(exact, axis=1))
    np.testing.assert_allclose(similar, cosines, atol=1e-6)
    rows, similar, _ = index.nearest_of_all(vectors, k)
    assert (rows.shape, similar.shape) == (exact.shape, exact.shape)
    assert (rows >= 0).all()
    lists.nprobe = 1
    found, _ = index.NeighbourIndex(vectors, np.arange(n), None, lists, 1.0).nearest(
        np.arange(n), k
    )
    assert (found >= 0).all()
    one = Embeddings(vectors, np.arange(n)).neighbours(0, k)
    assert [row for row, _ in one] == exact[0].tolist()


def test_an_index_answers_as_exact_search_does_and_says_how_nearly():
    vectors = clusters(1500, d=16, groups=20)
    vectors[7] = 0
    exact = Embeddings(vectors, np.arange(10, 1510))
    found = index.NeighbourIndex.of(exact)
    assert 0.9 < found.recall <= 1
    recall = f"recall@10 {found.recall:.2f} against exact, on 400 sampled nodes"
    description = f"of 77 lists of similar nodes searched, {recall}"
    assert str(found) == f"index: {found.lists.nprobe} {description}"
    agreeing = [
        found.neighbours(node, 5)[0] == exact.neighbours(node, 5)[0] for node in range(100, 200)
    ]
    assert np.mean(agreeing) > 0.9
    assert all(len(found.neighbours(node, 5)) == 5 for node in (10, 17))
    cosines = [0.0, 0.5, 0.9, 0.99]
    assert found.standing(cosines).tolist() == exact.standing(cosines).tolist()
    with pytest.raises(InputError, match="one of 1,500 ids"):
        found.neighbours(9)


def test_without_faiss_a_warning_says_that_all_vectors_are_searched(monkeypatch):
    monkeypatch.setattr(index, "find_spec", lambda name: None)
    with pytest.warns(
        UserWarning, match=r"without faiss all vectors are searched.*infomax\[search\]"
    ):
        assert not index.has_faiss()
