"""Yesterday's model on today's graph: the vectors are those of the whole graph, and what no change reaches stays."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.arrays.relations import Relation
from infomax.estimator.later_graphs import Update
from infomax.io.nodes import Nodes
from infomax.parts.encoders import GCN, MeanPool, PathMean, SkipMeanPool

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


def check_law(model: DGI, today: Graph, later: Graph) -> Update:
    """The vectors are those of the later graph, and those that no change reaches have yesterday's bytes."""
    vectors, expected = model.transform(today), model.transform(later)
    found = model.update(later, vectors)
    assert found.model.graph_ is later
    assert found.embeddings.ids.tolist() == later.ids.tolist()
    np.testing.assert_allclose(found.embeddings.vectors, expected.vectors, rtol=1e-4, atol=1e-6)
    common = [node for node in later.ids if node in vectors]
    kept = {node for node in common if np.array_equal(found.embeddings[node], vectors[node])}
    moved = {node for node in common if not np.allclose(expected[node], vectors[node], atol=1e-5)}
    assert len(later.ids) - len(kept) <= found.computed
    assert len(kept) > len(later.ids) / 10
    assert moved
    assert not moved & kept
    return found


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("kind", ["plain", "directed", "sparse_features", "weighted"])
@pytest.mark.parametrize("share", [0, 9], ids=["whole", "around"])
def test_an_update_is_the_embedding_of_the_new_graph_and_the_rest_keeps_its_bytes(
    settings, kind, share, monkeypatch
):
    monkeypatch.setattr("infomax.training.vectors.MOST_NODES_AROUND", share)
    today = line(**({} if kind == "plain" else {kind: True}))
    model = DGI(dim=8, epochs=2, scale="columns", **settings).fit(today)
    vectors = model.transform(today)
    found = check_law(model, today, tomorrow(today))
    assert found.computed < 80
    for row in (*range(5), *range(34, 44), *range(90, 95)):  # far from every change
        assert np.array_equal(found.embeddings[f"n{row}"], vectors[f"n{row}"])
    for row in (21, 50, 80, 99):
        assert not np.allclose(found.embeddings[f"n{row}"], vectors[f"n{row}"], atol=1e-5)
    near = np.zeros(6), {"n3": 1.0}
    np.testing.assert_allclose(found.model.vector(*near), model.vector(*near), rtol=1e-4, atol=1e-6)


def test_only_what_is_reached_is_computed():
    today = line()
    for encoder, changes in ((GCN, 5), (MeanPool, 3)):
        model = DGI(dim=8, epochs=2, encoder=encoder, vectors="paper").fit(today)
        matrix = today.adjacency.copy()
        matrix.data[today.adjacency.indptr[70] : today.adjacency.indptr[71]] *= (
            2  # both neighbours of 70
        )
        later = today.replace(adjacency=sparse.csr_array(matrix.maximum(matrix.T)))
        # A GCN weighs a message by its sender's degree: neighbours of 69 and 71 are reached as well.
        assert model.update(later, model.transform(today)).computed == changes
    same = model.update(today, model.transform(today))
    assert same.computed == 0
    assert np.array_equal(same.embeddings.vectors, model.transform(today).vectors)


def test_training_goes_on_and_aligned_vectors_stay_comparable(tmp_path):
    rng = np.random.default_rng(0)
    group = np.arange(300) % 3
    ends = rng.integers(100, size=(2, 900)) * 3 + rng.integers(3, size=900)
    features = rng.random((300, 20)) + 0.6 * (np.arange(20) % 3 == group[:, None])
    today = Graph.from_arrays(ends, features, labels={"kind": group})
    model = DGI(dim=16, epochs=60, seed=1).fit(today)
    vectors = model.transform(today)
    later = Graph.from_arrays(ends[:, :-20], features, labels={"kind": group})
    found = model.update(later, vectors, train=True, align=True)
    plain = model.update(later, vectors, train=True)
    assert not np.allclose(
        plain.embeddings.vectors, model.transform(later).vectors, atol=1e-3
    )  # weights have changed
    distance = [np.linalg.norm(one.embeddings.vectors - vectors.vectors) for one in (found, plain)]
    assert distance[0] <= distance[1]
    gram = [one.embeddings.vectors @ one.embeddings.vectors.T for one in (found, plain)]
    np.testing.assert_allclose(*gram, rtol=1e-3, atol=1e-3)  # a rotation changes no product
    # The run keeps the rotation: its vectors are the aligned ones, also of new nodes and after another update.
    found.model.save(tmp_path / "run")
    loaded = DGI.load(tmp_path / "run")
    np.testing.assert_allclose(
        loaded.transform(later).vectors, found.embeddings.vectors, rtol=1e-4, atol=1e-5
    )
    assert loaded.hash_ == found.embeddings.model != plain.embeddings.model
    again = loaded.update(today, found.embeddings)
    np.testing.assert_allclose(
        again.embeddings.vectors, loaded.transform(today).vectors, rtol=1e-4, atol=1e-5
    )


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
    uninterrupted = model.update(later, train=True, align=True)
    np.testing.assert_array_equal(resumed.embeddings.vectors, uninterrupted.embeddings.vectors)
    kept = DGI.load(tmp_path / "run")
    np.testing.assert_allclose(
        kept.transform(later).vectors, uninterrupted.embeddings.vectors, rtol=1e-4, atol=1e-6
    )
    assert kept.hash_ == uninterrupted.model.hash_
    anew = [
        one.fit_transform(later).vectors
        for one in (uninterrupted.model, DGI(preset=model.preset_, seed=model.seed_))
    ]
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


@pytest.mark.parametrize("types", [False, True], ids=["one type", "types"])
def test_vectors_that_a_file_lacks_are_computed_though_no_change_reaches_them(types):
    graph = world(*draw()) if types else line()
    model = DGI(8, epochs=2).fit(graph)
    all_vectors = model.transform(graph)
    some = np.arange(N) % 3 > 0
    few = dataclasses.replace(
        all_vectors, vectors=all_vectors.vectors[some], ids=all_vectors.ids[some]
    )
    found = model.update(graph, few)
    assert found.computed == N - some.sum()
    assert found.embeddings.ids.tolist() == graph.ids.tolist()
    np.testing.assert_array_equal(found.embeddings.vectors[some], few.vectors)
    np.testing.assert_allclose(found.embeddings.vectors, all_vectors.vectors, rtol=1e-4, atol=1e-6)


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


SIZES = {"author": 90, "paper": 120, "subject": 40}
WIDTHS = {"author": 4, "paper": 6, "subject": 3}
ENDS = {"by": ("paper", "author"), "on": ("paper", "subject"), "cites": ("paper", "paper")}


def draw(directed=False, weighted=False, sparse_features=False, seed=0):
    """Features of each type, and a matrix of each relation that joins only nodes of similar rows."""
    rng, features, matrices = np.random.default_rng(seed), {}, {}
    for node_type, size in SIZES.items():
        x = rng.normal(size=(size, WIDTHS[node_type])).astype(np.float32)
        features[node_type] = np.where(x > 0.5, x, 0).astype(np.float32) if sparse_features else x
    for name, (source, target) in ENDS.items():
        positions = [
            np.arange(SIZES[node_type]) / SIZES[node_type] for node_type in (source, target)
        ]
        is_linked = (np.abs(positions[0][:, None] - positions[1]) < 0.02) & (
            rng.random((SIZES[source], SIZES[target])) < 0.8
        )
        matrix = is_linked * (rng.integers(1, 4, is_linked.shape) if weighted else 1)
        if name == "cites":
            matrix = np.triu(matrix, 1)
            matrix = matrix if directed else matrix + matrix.T
        matrices[name] = matrix.astype(np.float32)
    return features, matrices


def world(features, matrices, rows=None, *, node_type="paper", sparse_features=False):
    """The graph of some rows of each type, whose ids are their numbers."""
    rows = rows or {one: np.arange(len(x)) for one, x in features.items()}
    nodes = {}
    for one, x in features.items():
        x = x[rows[one]]
        x = sparse.csr_array(x) if sparse_features else x
        nodes[one] = Nodes.of(x.shape[0], x, ids=np.array([f"{one[0]}{row}" for row in rows[one]]))
    relations = []
    for name, matrix in matrices.items():
        source, target = ENDS[name]
        directed = source == target and not np.array_equal(matrix, matrix.T)
        chosen = sparse.csr_array(matrix[rows[source]][:, rows[target]])
        relations.append(Relation.of(source, name, target, chosen, directed))
    return Graph(nodes, tuple(relations), node_type)


def tomorrow_of_types(features, matrices, *, shuffled):
    """A node more and one less of each type, an edge more and one less of each relation, other features of one node."""
    features = {one: np.concatenate([x, x[:1] + 1]) for one, x in features.items()}
    features["subject"][11, 0] += 1
    matrices = {name: np.pad(matrix, (0, 1)) for name, matrix in matrices.items()}
    for name, matrix in matrices.items():
        matrix[-1, 20] = matrix[70, 30] = 2
        matrix[60] = 0
        if name == "cites" and (matrix == matrix.T)[:20].all():
            matrix[20, -1] = matrix[30, 70] = 2
            matrix[:, 60] = 0
    rng, rows = np.random.default_rng(1), {}
    for one, x in features.items():
        rows[one] = np.setdiff1d(np.arange(len(x)), [5])
        rows[one] = rng.permutation(rows[one]) if shuffled else rows[one]
    return features, matrices, rows


@pytest.mark.parametrize(
    "settings", [{}, {"directed": True}, {"weighted": True}, {"sparse_features": True}], ids=str
)
@pytest.mark.parametrize("node_type", SIZES)
@pytest.mark.parametrize(("hops", "shuffled", "share"), [(1, True, 9), (2, False, 0), (3, True, 9)])
def test_an_update_of_several_types_is_the_embedding_of_the_new_graph(
    settings, node_type, hops, shuffled, share, monkeypatch
):
    monkeypatch.setattr("infomax.training.vectors.MOST_NODES_AROUND", share)
    as_drawn = {"node_type": node_type, "sparse_features": "sparse_features" in settings}
    drawn = draw(**settings)
    today, later = (
        world(*drawn, **as_drawn),
        world(*tomorrow_of_types(*drawn, shuffled=shuffled), **as_drawn),
    )
    vectors = "recipe" if hops == 2 else "paper"
    model = DGI(dim=8, epochs=2, encoder=partial(PathMean, hops=hops), vectors=vectors).fit(today)
    found = check_law(model, today, later)
    assert (found.changes.gone, (found.changes.before < 0).sum()) == (1, 1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("node_type", "hops", "computed"), [("author", 1, 1), ("paper", 1, 1), ("subject", 1, 0)]
)
def test_of_one_changed_edge_only_its_ends_are_reached_in_one_step(
    node_type, hops, computed, directed
):
    features, matrices = draw(directed)
    today = world(features, matrices, node_type=node_type)
    matrices["by"][70, 20] = 1
    later = world(features, matrices, node_type=node_type)
    model = DGI(dim=8, epochs=2, encoder=partial(PathMean, hops=hops)).fit(today)
    found = model.update(later, model.transform(today))
    assert (found.changes.edges, found.computed) == (1, computed)
    assert "1 edge came, went or changed; 0 nodes with other features" in str(found.changes)
    same = model.update(today, model.transform(today))
    assert (same.changes.edges, same.computed) == (0, 0)


def test_a_directed_edge_reaches_those_who_receive_by_it():
    features, matrices = draw(directed=True)
    today = world(features, matrices)
    matrices["cites"][50, 100] = 1
    model = DGI(dim=8, epochs=2, encoder=partial(PathMean, paths=["paper-paper"])).fit(today)
    found = model.update(world(features, matrices), vectors := model.transform(today))
    changed = [
        node for node in vectors if not np.array_equal(vectors[node], found.embeddings[node])
    ]
    assert (changed, found.computed) == (["p100"], 1)


def test_edges_under_another_name_are_all_compared_as_new():
    features, matrices = draw()
    today = world(features, {"by": matrices["by"]} | {"on": matrices["on"]})
    later = world(features, {"by": matrices["by"]} | {"on": np.zeros_like(matrices["on"])})
    renamed = [
        dataclasses.replace(one, name="about") if one.name == "on" else one
        for one in later.relations
    ]
    later = dataclasses.replace(later, relations=tuple(renamed))
    model = DGI(dim=8, epochs=2).fit(today)
    found = model.update(later, model.transform(today))
    np.testing.assert_allclose(
        found.embeddings.vectors, model.transform(later).vectors, rtol=1e-4, atol=1e-6
    )


def test_other_features_of_another_type_are_refused():
    features, matrices = draw()
    model = DGI(dim=8, epochs=1).fit(world(features, matrices))
    wider = features | {"author": np.concatenate([features["author"]] * 2, axis=1)}
    with pytest.raises(InputError, match="features of nodes of type author"):
        model.update(world(wider, matrices))


def test_a_type_is_chosen_by_the_user_or_the_model_not_by_the_alphabet():
    graph = world(*draw())
    found = dataclasses.replace(
        graph.target("author"), node_type_is_first=True
    )  # as a file is read
    for fit in (DGI(dim=8, epochs=1).fit, DGI(dim=8, epochs=1).fit_transform):
        with pytest.raises(
            InputError, match=r"found types author, paper, subject\. .* graph\.target\('author'\)"
        ):
            fit(found)
    assert DGI(dim=8, epochs=1).fit(found.target("author")).graph_.node_type == "author"
    assert (
        DGI(dim=8, epochs=1).fit(found.target("paper").part(np.ones(120, bool))).graph_.node_type
        == "paper"
    )
    model = DGI(dim=8, epochs=1).fit(graph)
    assert model.update(found).model.graph_.node_type == "paper"
    with pytest.raises(InputError, match="nodes of type paper, found nodes of type author"):
        model.update(found.target("author"))
