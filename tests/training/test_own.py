"""The node's own part of the vectors: singular vectors of its features."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sample_graphs import random_graph, typed_graph
from scipy import sparse

from infomax import DGI, Graph, InputError, read_graph
from infomax.arrays.table import Table
from infomax.embeddings import StoredEmbeddings
from infomax.training import checkpoints
from infomax.training import embed as engine
from infomax.training import own as module
from infomax.training.own import LENGTH, LONG, directions


def balanced(part, length):
    part = part - part.mean(0)
    return length * part / np.linalg.norm(part, axis=1).mean()


@pytest.mark.parametrize("smooth", [0, 2])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("block", [64, 3])
def test_vectors_are_what_the_definition_says(dense, smooth, block, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK", {"cpu": block})
    graph = random_graph(40, dense=dense)
    model = DGI(7, own=5, smooth=smooth, epochs=2, device="cpu").fit(graph)
    rows = model.scaler_.transform(graph.features)
    rows = rows if dense else rows.toarray()
    turn = np.linalg.svd(rows)[2][:5].T
    own = balanced(rows @ turn, LENGTH)
    found = model.transform(graph).vectors
    assert found.shape == (40, 12)
    np.testing.assert_allclose(found[:, :7], balanced(model.transform(graph, own=0).vectors, 1), atol=1e-5)
    np.testing.assert_allclose(found[:, 7:] @ found[:, 7:].T, own @ own.T, atol=1e-5)  # whatever the signs


def test_without_own_vectors_are_the_encoder_s_to_the_bit():
    graph = random_graph(40)
    plain, beside = (DGI(8, epochs=3, own=own).fit(graph) for own in (None, 4))
    np.testing.assert_array_equal(plain.transform(graph).vectors, beside.transform(graph, own=0).vectors)
    np.testing.assert_array_equal(plain.transform(graph, own=4).vectors, beside.transform(graph).vectors)
    np.testing.assert_array_equal(plain.transform(graph, own=0).vectors, plain.transform(graph).vectors)


def test_there_are_at_most_as_many_as_features():
    graph = random_graph(40, f=6)
    assert DGI(8, epochs=1, own=128).fit_transform(graph).vectors.shape == (40, 14)


@pytest.mark.parametrize("smooth", [0, 3])
def test_a_run_holds_it_and_gives_the_same_bytes(tmp_path, smooth):
    graph = random_graph(40)
    model = DGI(8, epochs=2, own=4, smooth=smooth).fit(graph, run=tmp_path / "run")
    loaded = DGI.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.transform(graph).vectors, model.transform(graph).vectors)
    np.testing.assert_array_equal(np.load(tmp_path / "run/vectors.npy"), model.transform(graph).vectors)
    loaded.save(tmp_path / "again")
    for name in ("model.safetensors", "vectors.npy", "health.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert (model.health_["dimensions"], model.health_["own"]) == (8, 4)  # of what was learnt, and beside it


@pytest.mark.parametrize(
    "change",
    [
        {"own.projection": None},
        {"own.projection": torch.zeros(12, 3)},
        {"own.projection": torch.zeros(3, 4)},
        {"own.projection": torch.zeros(4)},
        {"own.centre": torch.zeros(5), "own.factor": torch.ones(5)},
        {"own.centre": torch.zeros(5)},
        {"own.factor": torch.full((12,), torch.nan)},
        {"own.projection": None, "own.centre": None, "own.factor": None},
    ],
)
def test_a_crafted_one_is_refused(tmp_path, change):
    DGI(8, epochs=1, own=4).fit(random_graph(40), run=tmp_path)
    tensors, values = checkpoints.load(tmp_path / "model.safetensors")
    changed = {name: tensor for name, tensor in (tensors | change).items() if tensor is not None}
    checkpoints.save(tmp_path / "model.safetensors", changed, values)
    with pytest.raises(InputError, match=r"expected own\.\w+ of shape"):
        DGI.load(tmp_path)


def test_another_number_is_another_training(tmp_path):
    graph = random_graph(40)

    def stop(training):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DGI(8, epochs=5, own=4).fit(graph, run=tmp_path, progress=stop)
    with pytest.raises(InputError, match="own"):
        DGI(8, epochs=5, own=3).fit(graph, run=tmp_path)


def test_a_part_of_a_graph_has_the_vectors_of_that_part():
    rng = np.random.default_rng(0)
    ends = np.hstack([rng.integers(0, 20, (2, 60)), rng.integers(20, 50, (2, 90))])  # no edge between the two
    graph = Graph.from_arrays(ends, rng.random((50, 9)))
    model = DGI(8, epochs=2, own=4).fit(graph)
    mask = np.arange(50) < 20
    whole, part = model.transform(graph).vectors[mask], model.transform(graph.part(mask)).vectors
    np.testing.assert_allclose(part, whole, atol=1e-5)
    some = np.array([3, 7, 30])
    np.testing.assert_allclose(
        model.transform(graph, rows=some).vectors, model.transform(graph).vectors[some], atol=1e-6
    )


def test_it_is_fitted_to_seen_nodes_alone():
    rng = np.random.default_rng(1)
    ends, seen = rng.integers(0, 60, (2, 200)), np.arange(60) < 40
    features = rng.random((60, 9))
    other = features.copy()
    other[~seen] *= rng.random(9) * 5
    graph, changed = (Graph.from_arrays(ends, x, splits={"seen": seen}) for x in (features, other))
    one, two = (DGI(8, epochs=2, own=4).fit(one) for one in (graph, changed))
    np.testing.assert_array_equal(one.transform(graph).vectors, two.transform(graph).vectors)


@pytest.mark.parametrize("smooth", [0, 2])
def test_a_graph_folder_has_the_vectors_of_the_graph_in_memory(tmp_path, smooth, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_ON_DISK", {"cpu": 7})
    graph = random_graph(50, dense=True)
    graph.save(tmp_path / "g.graph")
    folder = Graph.open(tmp_path / "g.graph")
    options = {"preset": "batches", "epochs": 2, "own": 4, "smooth": smooth, "device": "cpu"}
    model = DGI(8, **options).fit(folder, run=tmp_path / "run")
    expected = DGI(8, **options).fit(graph).transform(graph).vectors
    np.testing.assert_allclose(model.transform(folder).vectors, expected, atol=1e-4)
    some = np.array([2, 9, 40])
    np.testing.assert_allclose(model.transform(folder, rows=some).vectors, expected[some], atol=1e-4)
    for out in ("v.npy", "parts"):
        DGI.load(tmp_path / "run", device="cpu").write_vectors(folder, tmp_path / out)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-4)
    np.testing.assert_allclose(StoredEmbeddings.open(tmp_path / "parts").vectors[:], expected, atol=1e-4)
    with pytest.raises(InputError):  # those of other vectors
        model.write_vectors(folder, tmp_path / "parts", own=3)


def test_attached_nodes_have_theirs(tmp_path):
    graph = random_graph(40, dense=True)
    model = DGI(8, epochs=2, own=4, preset="mean-pool").fit(graph)
    names = ",".join(graph.feature_names)
    (tmp_path / "nodes.csv").write_text(f"id,{names}\nnew,{','.join('1' * graph.num_features)}\n")
    (tmp_path / "edges.csv").write_text("source,target\nnew,1\n")
    grown = read_graph(tmp_path, attach_to=graph)
    new = np.flatnonzero(grown.splits["new"])
    vector = model.transform(grown, rows=new).vectors[0]
    fitted = model._own_part(None, 0)
    own = (model.scaler_.transform(np.ones((1, graph.num_features), np.float32)) @ fitted.projection.numpy())[0]
    expected = (own - fitted.centre.numpy()[8:]) * fitted.factor.numpy()[8:]
    np.testing.assert_allclose(vector[8:], expected, atol=1e-5)


def test_many_features_are_searched_and_found(monkeypatch):
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(200, 8)) * [9, 8, 7, 6, 5, 4, 3, 2]) @ rng.normal(size=(8, 120))
    table, nodes = Table(features.astype(np.float32)), np.arange(200)
    exact = directions(table, nodes, 6, seed=0)
    monkeypatch.setattr(module, "EXACT", 0)
    monkeypatch.setattr(module, "BLOCK_BYTES", 4 * 120 * 30)
    found = directions(table, nodes, 6, seed=0)
    np.testing.assert_allclose(found, exact, atol=1e-3)
    np.testing.assert_array_equal(found, directions(table, nodes, 6, seed=0))
    sparse_table = Table(sparse.csr_array(features.astype(np.float32)))
    np.testing.assert_allclose(directions(sparse_table, nodes, 6, seed=0), exact, atol=1e-3)


def test_wide_sparse_features_are_not_read_a_few_nodes_at_a_time(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 1 << 16)
    features = np.ones((500, 1000), np.float32)
    for given, count in ((features, 32), (sparse.csr_array(features), 1)):
        assert len(list(module.blocks(Table(given), np.arange(500)))) == count


def test_a_hundred_thousand_features_need_no_square_of_them():
    rng = np.random.default_rng(0)
    places = np.arange(2000) % 50, rng.integers(100_000, size=2000)
    table = Table(sparse.csr_array((np.ones(2000, np.float32), places), shape=(50, 100_000)))
    found = directions(table, np.arange(50), 3, seed=0)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-5)


def test_features_that_say_nothing_give_finite_vectors():
    graph = Graph.from_arrays(np.array([[0, 1, 2], [1, 2, 3]]), np.ones((5, 3)))
    with pytest.warns(UserWarning, match="constant"):
        vectors = DGI(4, epochs=1, own=2).fit_transform(graph).vectors
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("own", [-1, 1.5])
def test_it_is_counted(own):
    graph = random_graph(10)
    with pytest.raises(InputError, match="own"):
        DGI(4, epochs=0, own=own).fit(graph)
    with pytest.raises(InputError, match="own"):
        DGI(4, epochs=0).fit(graph).transform(graph, own=own)


def joined(like: bool) -> Graph:
    """Nodes of three kinds with features of their kind, joined to others of the same kind, or of other kinds."""
    rng = np.random.default_rng(0)
    kind, ends = np.arange(300) % 3, rng.integers(300, size=(2, 12_000))
    features = rng.random((300, 12)) < 0.1 + 0.6 * np.repeat(np.eye(3), 4, axis=1)[kind]
    return Graph.from_arrays(ends[:, (kind[ends[0]] == kind[ends[1]]) == like], features.astype(np.float32))


def test_auto_keeps_the_node_s_own_part_where_neighbours_are_no_more_alike_than_random_pairs():
    differ = joined(like=False)
    kept = DGI(8, epochs=1).fit(differ)
    assert (kept.preset_.own, kept.transform(differ).vectors.shape) == (128, (300, 8 + 12))
    lengths = np.linalg.norm(kept.transform(differ).vectors[:, 8:], axis=1)
    assert lengths.mean() == pytest.approx(LONG, rel=1e-4)
    for model, graph in (
        (DGI(8, epochs=1), joined(like=True)),
        (DGI(8, epochs=1, preset="whole-graph"), differ),  # named, and so as it is
        (DGI(8, epochs=1, own=0), differ),
        (DGI(8, epochs=1), differ.hold_out_edges(0.9, seed=0)),  # too few edges to tell
    ):
        assert (model.fit(graph).preset_.own, model.preset_.smooth) == (0, 0)


def test_positions_are_smoothed_unless_that_is_asked_for_otherwise(tmp_path):
    graph = Graph.from_arrays(joined(like=True).adjacency.nonzero(), None)
    assert DGI(8, epochs=1).fit(graph).preset_.smooth == 5
    assert DGI(8, epochs=1, smooth=0).fit(graph).preset_.smooth == 0
    assert DGI(8, epochs=1, preset="whole-graph").fit(graph).preset_.smooth == 0
    graph.save(tmp_path / "g.graph")  # five more passes over a disk are not the default
    assert DGI(8, epochs=1).fit(Graph.open(tmp_path / "g.graph")).preset_.smooth == 0


def test_a_training_that_auto_chose_goes_on(tmp_path):
    def stop(training):
        raise KeyboardInterrupt

    graph = joined(like=False)
    with pytest.raises(KeyboardInterrupt):
        DGI(8, epochs=5).fit(graph, run=tmp_path, progress=stop)
    resumed = DGI(8, epochs=5).fit(graph, run=tmp_path)
    np.testing.assert_array_equal(resumed.transform(graph).vectors, DGI(8, epochs=5).fit_transform(graph).vectors)


def test_many_graphs_have_it(tmp_path):
    graphs = joined(like=False), joined(like=True)
    ends = np.hstack([graphs[0].adjacency.nonzero(), np.array(graphs[1].adjacency.nonzero()) + 300])
    features = np.vstack([graph.table[:300] for graph in graphs])
    both = Graph.from_arrays(ends, features, groups=np.repeat([0, 1], 300))
    model = DGI(8, epochs=1, own=4).fit(both, run=tmp_path)
    vectors = model.transform(both).vectors
    assert (model.preset_.name, vectors.shape) == ("many-graphs", (600, 12))
    np.testing.assert_array_equal(DGI.load(tmp_path).transform(both).vectors, vectors)
    alone = model.transform(Graph.from_arrays(graphs[1].adjacency.nonzero(), features[300:])).vectors
    np.testing.assert_allclose(alone, vectors[300:], atol=1e-4)


def test_the_hash_of_a_model_is_another_with_other_scalers_of_other_types():
    graph = typed_graph()
    recipe = DGI(8, epochs=1, scale="columns").fit(graph)._recipe()
    hashes = {recipe.hash}
    for kind, scaler in recipe.scaler.others.items():
        for name in ("mean", "deviation"):
            other = dataclasses.replace(scaler, **{name: getattr(scaler, name) + 1})
            others = {**recipe.scaler.others, kind: other}
            changed = dataclasses.replace(recipe, scaler=dataclasses.replace(recipe.scaler, others=others))
            hashes.add(changed.hash)
    assert len(hashes) == 1 + 2 * len(recipe.scaler.others)
    back = dict(reversed(recipe.scaler.others.items()))
    assert dataclasses.replace(recipe, scaler=dataclasses.replace(recipe.scaler, others=back)).hash == recipe.hash
