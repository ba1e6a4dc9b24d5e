"""Yesterday's model on today's graph: the vectors are those of the whole graph, and what no change reaches stays."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from infomax import DGI, Embeddings, Graph, InputError
from infomax.parts.encoders import GCN, MeanPool, SkipMeanPool

N = 120


def line(directed=False, sparse_features=False, weighted=False, seed=0):
    """Nodes in a line with some chords: neighbourhoods are small, so that a change reaches few."""
    rng = np.random.default_rng(seed)
    start = np.arange(N - 1)
    edges = np.stack([start, start + 1])
    edges = np.concatenate([edges, edges[::-1], [[5, 60], [7, 62]]], axis=1) if directed else edges
    features = rng.random((N, 6)).astype(np.float32) * (rng.random((N, 6)) < 0.5)
    return Graph.from_arrays(
        edges,
        sparse.csr_array(features) if sparse_features else features,
        directed=directed,
        weight=rng.random(edges.shape[1]) + 0.5 if weighted else None,
        ids=np.array([f"n{row}" for row in range(N)], dtype=object),
    )


def tomorrow(graph, *, shuffled=True):
    """Two nodes new, two gone, an edge new, one gone, the features of one changed; in another order."""
    matrix, dense = graph.adjacency.toarray(), graph.features
    dense = dense.toarray() if sparse.issparse(dense) else dense
    matrix = np.pad(matrix, (0, 2))
    features = np.concatenate([dense, [[1, 0, 2, 0, 0, 1], [0, 1, 0, 0, 3, 0]]]).astype(np.float32)
    for source, target in ((20, 25), (20, N), (N, 21), (N, N + 1)):
        matrix[source, target] = 1
        if not graph.directed:
            matrix[target, source] = 1
    matrix[50, 51] = matrix[51, 50] = 0
    features[80, 2] += 1
    ids = np.array([*graph.ids, "new1", "new2"], dtype=object)
    order = np.setdiff1d(np.arange(N + 2), [100, 110])
    order = np.random.default_rng(1).permutation(order) if shuffled else order
    features = features[order]
    return Graph.from_scipy(
        sparse.csr_array(matrix[order][:, order]),
        sparse.csr_array(features) if sparse.issparse(graph.features) else features,
        directed=graph.directed,
        ids=ids[order],
    )


SETTINGS = {
    "gcn": {},
    "mean": {"encoder": MeanPool},
    "deep": {"encoder": partial(GCN, layers=3), "vectors": "paper"},
    "skip": {"encoder": partial(SkipMeanPool, layers=2)},
    "paper": {"vectors": "paper"},
    "own": {"vectors": "encoder,own"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", ["plain", "directed", "sparse_features", "weighted"])
@pytest.mark.parametrize("share", [0, 9], ids=["whole", "by rows"])
def test_an_update_is_the_embedding_of_the_new_graph_and_the_rest_keeps_its_bytes(settings, kind, share, monkeypatch):
    monkeypatch.setattr("infomax.training.embed.SHARE", share)
    today = line(**({} if kind == "plain" else {kind: True}))
    model = DGI(dim=8, epochs=2, scale="columns", **settings).fit(today)
    later, vectors = tomorrow(today), model.transform(today)
    found = model.update(later, vectors)
    expected = model.transform(later)
    assert found.embeddings.ids.tolist() == later.ids.tolist()
    np.testing.assert_allclose(found.embeddings.vectors, expected.vectors, rtol=1e-4, atol=1e-6)
    kept = [node for node in later.ids if node in vectors and np.array_equal(found.embeddings[node], vectors[node])]
    assert len(later.ids) - len(kept) <= found.computed < 80
    for row in (*range(5), *range(34, 44), *range(90, 95)):  # far from every change
        assert np.array_equal(found.embeddings[f"n{row}"], vectors[f"n{row}"])
    moved = [
        node for node in later.ids if node in vectors and not np.allclose(expected[node], vectors[node], atol=1e-5)
    ]
    assert {"n21", "n50", "n80", "n99"} <= set(moved)
    assert not set(moved) & set(kept)
    assert found.model.graph_ is later
    np.testing.assert_allclose(
        found.model.vector(np.zeros(6), {"n3": 1.0}), model.vector(np.zeros(6), {"n3": 1.0}), rtol=1e-4, atol=1e-6
    )


def test_only_what_is_reached_is_computed():
    today = line()
    for encoder, changes in ((GCN, 5), (MeanPool, 3)):
        model = DGI(dim=8, epochs=2, encoder=encoder, vectors="paper").fit(today)
        matrix = today.adjacency.copy()
        matrix.data[today.adjacency.indptr[70] : today.adjacency.indptr[71]] *= 2  # both neighbours of 70
        later = today.replace(adjacency=sparse.csr_array(matrix.maximum(matrix.T)))
        # A GCN weighs a message by its sender's degree: neighbours of 69 and 71 are reached as well.
        assert model.update(later, model.transform(today)).computed == changes
    same = model.update(today, model.transform(today))
    assert same.computed == 0
    assert np.array_equal(same.embeddings.vectors, model.transform(today).vectors)


def test_training_goes_on_and_aligned_vectors_stay_comparable(tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(300) % 3
    ends = rng.integers(100, size=(2, 900)) * 3 + rng.integers(3, size=900)
    features = rng.random((300, 20)) + 0.6 * (np.arange(20) % 3 == kind[:, None])
    today = Graph.from_arrays(ends, features, labels={"kind": kind})
    model = DGI(dim=16, epochs=60, seed=1).fit(today)
    vectors = model.transform(today)
    later = Graph.from_arrays(ends[:, :-20], features, labels={"kind": kind})
    found = model.update(later, vectors, train=True, align=True)
    plain = model.update(later, vectors, train=True)
    assert not np.allclose(plain.embeddings.vectors, model.transform(later).vectors, atol=1e-3)  # weights have changed
    distance = [np.linalg.norm(one.embeddings.vectors - vectors.vectors) for one in (found, plain)]
    assert distance[0] <= distance[1]
    gram = [one.embeddings.vectors @ one.embeddings.vectors.T for one in (found, plain)]
    np.testing.assert_allclose(*gram, rtol=1e-3, atol=1e-3)  # a rotation changes no product
    # The run keeps the rotation: its vectors are the aligned ones, also of new nodes and after another update.
    found.model.save(tmp_path / "run")
    loaded = DGI.load(tmp_path / "run")
    np.testing.assert_allclose(loaded.transform(later).vectors, found.embeddings.vectors, rtol=1e-4, atol=1e-5)
    assert loaded.hash_ == found.embeddings.model != plain.embeddings.model
    again = loaded.update(today, found.embeddings)
    np.testing.assert_allclose(again.embeddings.vectors, loaded.transform(today).vectors, rtol=1e-4, atol=1e-5)


def test_a_classifier_of_yesterday_is_of_use_after_alignment_only():
    rng = np.random.default_rng(0)
    kind = np.arange(600) % 4
    ends = rng.integers(150, size=(2, 2400)) * 4 + rng.integers(4, size=2400)
    today = Graph.from_arrays(ends, rng.random((600, 40)) + 0.5 * (np.arange(40) % 4 == kind[:, None]))
    before = DGI(32, epochs=40, seed=0, vectors="paper").fit(today).transform(today)
    anew = DGI(32, epochs=40, seed=1, vectors="paper").fit(today).transform(today)
    fitted = LogisticRegression(max_iter=1000).fit(before.vectors[:300], kind[:300])
    score = [fitted.score(one.vectors[300:], kind[300:]) for one in (before, anew, anew.align(before))]
    assert score[0] > 0.9
    assert score[1] < 0.6
    assert score[2] >= score[0] - 0.01


def test_the_rotation_is_found_again():
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    one = Embeddings(rng.standard_normal((30, 6)), np.arange(30))
    other = Embeddings(one.vectors[::-1][:20] @ turn, one.ids[::-1][:20])  # 20 of the nodes, in another order
    np.testing.assert_allclose(one.rotation(other), turn, atol=1e-5)
    np.testing.assert_allclose(one.align(other).vectors, one.vectors @ turn, atol=1e-5)
    with pytest.raises(InputError, match="common nodes"):
        one.align(Embeddings(one.vectors, one.ids + 100))


def test_vectors_of_another_model_are_refused():
    graph = line()
    model, other = (DGI(dim=8, epochs=2, seed=seed).fit(graph) for seed in (0, 1))
    with pytest.raises(InputError, match="those of another"):
        model.update(graph, other.transform(graph))
    with pytest.raises(InputError, match="those of another"):
        model.update(graph, model.transform(graph, vectors="own"))
    with pytest.raises(InputError, match="train as well"):
        model.update(graph, align=True)
    several = graph.replace(groups=np.zeros(N, np.int64))
    with pytest.raises(InputError, match="one graph"):
        model.update(several)


def test_a_training_that_goes_on_is_resumed_where_it_was_interrupted(tmp_path):
    graph = line()
    later = tomorrow(graph)
    model = DGI(8, epochs=6, preset="whole-graph").fit(graph)

    def stop(training):
        if len(training.history) >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.update(later, train=True, align=True, run=tmp_path / "run", progress=stop)
    assert (tmp_path / "run/checkpoint.safetensors").exists()
    assert not (tmp_path / "run/model.safetensors").exists()
    other = DGI(8, epochs=6, preset="whole-graph").fit(later)
    with pytest.raises(InputError, match="weights to start from"):
        other.update(later, train=True, run=tmp_path / "run")
    resumed = model.update(later, train=True, align=True, run=tmp_path / "run")
    whole = model.update(later, train=True, align=True)
    np.testing.assert_array_equal(resumed.embeddings.vectors, whole.embeddings.vectors)
    kept = DGI.load(tmp_path / "run")
    np.testing.assert_allclose(kept.transform(later).vectors, whole.embeddings.vectors, rtol=1e-4, atol=1e-6)
    assert kept.hash_ == whole.model.hash_
    anew = [one.fit_transform(later).vectors for one in (whole.model, DGI(preset=model.preset_, seed=model.seed_))]
    np.testing.assert_array_equal(*anew)  # another fit begins with initial weights


def test_an_update_is_shown_in_one_line():
    graph = line()
    found = DGI(dim=4, epochs=1).fit(graph).update(tomorrow(graph))
    for shown in (repr(found), repr(found.changes)):
        assert "\n" not in shown
        assert "2 new nodes, 2 gone" in shown


def test_a_graph_folder_with_sparse_features_is_a_later_graph(tmp_path):
    ends, features = np.arange(59), sparse.csr_array(np.eye(60, dtype=np.float32))
    yesterday = Graph.from_arrays([ends, ends + 1], features)
    model = DGI(dim=8, epochs=2).fit(yesterday)
    before = model.transform(yesterday)
    features.data[:3] += 1
    Graph.from_arrays([ends, ends + 1], features.copy()).save(tmp_path / "later.graph")
    later = Graph.open(tmp_path / "later.graph")
    assert later.table.sparse
    found = model.update(later, before)
    np.testing.assert_allclose(found.embeddings.vectors, model.transform(later).vectors, atol=1e-5)


def test_vectors_that_a_file_lacks_are_computed_though_no_change_reaches_them():
    graph = line()
    model = DGI(8, epochs=2).fit(graph)
    whole = model.transform(graph)
    some = np.arange(N) % 3 > 0
    few = dataclasses.replace(whole, vectors=whole.vectors[some], ids=whole.ids[some])
    found = model.update(graph, few)
    assert found.computed == N - some.sum()
    assert found.embeddings.ids.tolist() == graph.ids.tolist()
    np.testing.assert_array_equal(found.embeddings.vectors[some], few.vectors)
    np.testing.assert_allclose(found.embeddings.vectors, whole.vectors, rtol=1e-4, atol=1e-6)


def test_an_aligned_model_keeps_its_rotation_where_its_own_settings_are_named():
    graph = line()
    model = DGI(8, epochs=2).fit(graph)
    aligned = model.update(tomorrow(graph), model.transform(graph), train=True, align=True)
    expected = aligned.embeddings.vectors
    np.testing.assert_allclose(
        aligned.model.transform(aligned.model.graph_, vectors="recipe").vectors, expected, atol=1e-6
    )
    with pytest.raises(InputError, match="turned onto others"):
        aligned.model.transform(aligned.model.graph_, vectors="own")
