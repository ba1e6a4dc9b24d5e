"""The index of faiss: what it finds is near, as near as it says, and with all lists searched it is exact."""

from __future__ import annotations

import numpy as np
import pytest

from infomax import index
from infomax.embeddings import Embeddings
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


@pytest.mark.parametrize("half", [False, True])
def test_the_recall_is_what_it_says_on_other_nodes_as_well(half):
    """Among vectors of no clusters, where one list in sixteen holds half of the neighbours."""
    vectors = np.random.default_rng(0).normal(size=(20_000, 12)).astype(np.float32)
    lists, recall = index.build(vectors, half=half)
    nodes = np.random.default_rng(5).permutation(len(vectors))[:400]
    rows, _ = index.nearest_found(lists, vectors.__getitem__, vectors[nodes], nodes, 10)
    assert recall >= 0.95
    assert exact_share(rows, vectors, nodes) == pytest.approx(recall, abs=0.02)
    lists.nprobe = 1  # so few lists would not do, and the recall says so
    few = index.measure_recall(lists, vectors, *index.sampled(vectors))
    assert few < 0.7
    rows, _ = index.nearest_found(lists, vectors.__getitem__, vectors[nodes], nodes, 10)
    assert exact_share(rows, vectors, nodes) == pytest.approx(few, abs=0.05)


def test_neighbours_of_all_nodes_are_found_and_their_cosines_are_exact():
    vectors = clusters(2000, groups=40)
    vectors[7] = 0
    rows, cosines, told = index.nearest_of_all(vectors, 10)
    assert "of 89 lists of similar nodes searched, recall@10" in told
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
    found, similar = index.NeighbourIndex(lists, np.arange(n), 1.0).nearest(np.arange(n), k)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(exact, axis=1))
    np.testing.assert_allclose(similar, cosines, atol=1e-6)
    rows, similar, _ = index.nearest_of_all(vectors, k)
    assert (rows.shape, similar.shape) == (exact.shape, exact.shape)
    assert (rows >= 0).all()
    lists.nprobe = 1
    found, _ = index.NeighbourIndex(lists, np.arange(n), 1.0).nearest(np.arange(n), k)
    assert (found >= 0).all()
    one = Embeddings(vectors, np.arange(n)).neighbours(0, k)
    assert [row for row, _ in one] == exact[0].tolist()


def test_without_faiss_all_vectors_are_searched_and_a_warning_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(index, "find_spec", lambda name: None)
    embeddings = Embeddings(clusters(), np.arange(90))
    with pytest.warns(
        UserWarning, match=r"without faiss all vectors are searched.*infomax\[search\]"
    ):
        assert index.open_index(tmp_path, embeddings.ids, lambda: embeddings) is embeddings
