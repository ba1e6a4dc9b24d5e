"""What vectors are made of: the encoder, the node's own features, the same pooled, and positions."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from sample_graphs import random_graph, typed_graph
from scipy import sparse

from infomax import DGI, Embeddings, Graph, InputError
from infomax.arrays.relations import Relation
from infomax.embeddings import StoredEmbeddings
from infomax.io.building import with_structural_features, without_features
from infomax.io.nodes import Nodes
from infomax.kernels import Backend
from infomax.training import embed as engine
from infomax.training.recipe import HALF_LENGTH, RAISED_LENGTH, part_lengths, parts_for
from infomax.training.schedule import ConstantRate
from infomax.training.spectral_positions import PositionSettings, start_rows
from infomax.views import WholeView
from infomax.views.batch_view import BatchSource

LENGTHS = {"encoder": 1.0, "own": HALF_LENGTH, "pooled": HALF_LENGTH, "positions": HALF_LENGTH}


def balanced(part, length, known):
    part = part - part.mean(0)
    return length * part / np.linalg.norm(part[known], axis=1).mean()


def have_features(graph):
    return dense(graph.features).any(axis=1)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.fixture
def graph():
    return random_graph(40)


@pytest.mark.parametrize("block", [64, 3])
@pytest.mark.parametrize("features", [12, 150])
def test_vectors_are_what_the_definition_says(features, block, monkeypatch):
    monkeypatch.setattr(engine, "NODES_PER_BLOCK", {"cpu": block})
    graph = random_graph(40, f=features, dense=True)
    model = DGI(7, epochs=2, device="cpu").fit(graph)
    embeddings = model.transform(graph)
    hat = graph.adjacency.toarray().astype(np.float64) + np.eye(40)
    twice = np.linalg.matrix_power(hat / np.sqrt(np.outer(hat.sum(1), hat.sum(1))), 2)
    h = model.transform(graph, vectors="paper").vectors
    smoothed = h + twice @ h
    smoothed /= np.linalg.norm(smoothed, axis=1, keepdims=True)
    rows = model.scaler_.transform(graph.features)
    own = rows / rows.std(0) ** (1 if features == 12 else 0.5)
    own = own if features == 12 else own @ np.linalg.svd(own)[2][:128].T
    expected = {"encoder": smoothed, "own": own, "pooled": twice @ own}
    length = LENGTHS | {"own": part_lengths(graph, model.health_["resemblance"])["own"]}
    for name, part in expected.items():
        mine, theirs = (
            embeddings.vectors[:, embeddings.columns[name]],
            balanced(part, length[name], rows.any(axis=1)),
        )
        np.testing.assert_allclose(
            mine @ mine.T, theirs @ theirs.T, atol=2e-4, err_msg=name
        )  # whatever the signs
    if features == 12:
        assert list(embeddings.parts["own"]) == list(graph.feature_names)
        assert embeddings.parts["pooled"][0] == f"mean of {graph.feature_names[0]} over two hops"
    else:
        assert (embeddings.parts["own"][0], embeddings.parts["pooled"][0]) == (
            "own 1 of 128",
            "pooled 1 of 128",
        )


def test_pooled_columns_of_types_say_what_they_are_a_mean_of():
    columns = DGI(4, epochs=0).fit_transform(typed_graph()).parts["pooled"]
    assert {"mean of x0 over author", "mean of x6 over paper", "mean of x2 over subject"} <= {
        *columns
    }


def test_positions_are_eigenvectors_of_the_normalised_graph_as_hops_weigh_them(graph):
    a = graph.adjacency.toarray().astype(np.float64)
    scale = 1 / np.sqrt(np.maximum(a.sum(1), 1))  # a node without edges has zeros
    values, vectors = (one[..., ::-1] for one in np.linalg.eigh(scale[:, None] * a * scale))
    model = DGI(4, epochs=0, vectors="positions").fit(graph)
    positions = model.fitted_.positions
    assert positions.values[0] == 0  # no part of the graph is small
    np.testing.assert_allclose(positions.values[1:], values[: positions.width], atol=1e-3)
    first = vectors[:, :5] * sum(values[:5] ** power for power in range(2, 25))
    np.testing.assert_allclose(np.abs(positions.of_type("")[:, :5]), np.abs(first), atol=1e-3)


def test_all_types_stand_in_one_space():
    rng = np.random.default_rng(0)
    users, films = np.arange(60), np.arange(40)
    rated = rng.random((60, 40)) < np.where(users[:, None] % 4 == films % 4, 0.4, 0.04)
    nodes = {"user": Nodes.of(60, rng.random((60, 3))), "film": Nodes.of(40, rng.random((40, 3)))}
    relation = Relation.of("user", "rated", "film", sparse.csr_array(rated.astype(np.float32)))
    graph = Graph(nodes, (relation,), node_type="user")
    models = [
        DGI(4, epochs=0, vectors="positions").fit(graph.target(kind)) for kind in ("user", "film")
    ]
    near, far = (model.transform(model.graph_).vectors for model in models)
    nearest = np.argsort(-(near @ far.T), axis=1)[:, :5]
    assert (nearest % 4 == users[:, None] % 4).mean() > 0.9
    v = np.concatenate([models[0].singular_vectors(kind).vectors for kind in ("film", "user")])[
        :, :8
    ]
    np.testing.assert_allclose(v.T @ v, np.eye(8), atol=1e-4)
    scale = 1 / np.sqrt(np.concatenate([rated.sum(axis=0), rated.sum(axis=1)]))
    normalised = scale[:40, None] * rated.T * scale[40:]
    np.testing.assert_allclose(
        normalised @ v[40:], v[:40] * models[0].fitted_.positions.values[1:9], atol=1e-3
    )


def test_parts_have_the_stated_widths_and_lengths_and_are_centred(graph):
    embeddings = DGI(8, epochs=2).fit_transform(graph)
    assert list(embeddings.parts) == ["encoder", "own", "pooled", "positions"]
    assert sum(map(len, embeddings.parts.values())) == embeddings.shape[1]
    for name, columns in embeddings.columns.items():
        part = embeddings.vectors[:, columns]
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-6)
        if name != "own":
            among = part if name == "positions" else part[have_features(graph)]
            assert np.linalg.norm(among, axis=1).mean() == pytest.approx(LENGTHS[name], rel=1e-5)


def test_the_papers_vectors_are_the_encoders_to_the_bit(graph):
    plain, all_parts = (
        DGI(8, epochs=3, vectors=vectors, schedule=ConstantRate).fit(graph)
        for vectors in ("paper", "recipe")
    )
    expected = plain.transform(graph).vectors
    assert expected.shape == (40, 8)
    np.testing.assert_array_equal(all_parts.transform(graph, vectors="paper").vectors, expected)
    with torch.no_grad():
        view = WholeView.of(
            graph.scaled(plain.scaler_), plain.model_.encoder.rule, Backend(torch.device("cpu"))
        )
        np.testing.assert_allclose(plain.model_.encoder(view)[0].numpy(), expected, atol=1e-5)


def test_some_parts_are_those_of_all(graph):
    model = DGI(8, epochs=2).fit(graph)
    whole, some = model.transform(graph), model.transform(graph, vectors="positions, own")
    assert list(some.parts) == ["own", "positions"]
    for name, columns in some.columns.items():
        np.testing.assert_allclose(
            some.vectors[:, columns], whole.vectors[:, whole.columns[name]], atol=1e-6
        )
    with pytest.raises(InputError, match="parts that this model has: encoder,own"):
        DGI(8, epochs=0, vectors="own,encoder").fit(graph).transform(graph, vectors="positions")
    for wrong in ("smooth", "", 5, "paper,own"):
        with pytest.raises(InputError, match="vectors: expected recipe, paper"):
            DGI(8, epochs=0, vectors=wrong).fit(graph)


def test_relabelled_nodes_have_the_same_vectors(graph):
    order = np.random.default_rng(0).permutation(40)
    again = Graph.from_scipy(
        graph.adjacency[order][:, order], graph.features[order], ids=graph.ids[order]
    )
    for vectors in ("own", "pooled", "positions"):
        one, other = (
            DGI(8, epochs=0, vectors=vectors).fit_transform(which).vectors
            for which in (graph, again)
        )
        np.testing.assert_allclose(np.abs(other), np.abs(one[order]), atol=1e-5)


def test_a_node_that_copies_another_has_its_own_part_and_nearly_its_position(graph):
    model = DGI(8, epochs=2).fit(graph)
    embeddings = model.transform(graph)
    known = int(np.argmax(graph.degrees()))
    neighbours = graph.ids[graph.adjacency[[known]].indices].tolist()
    vector = model.vector(dense(graph.features[[known]])[0], neighbours)
    own, at = embeddings.columns["own"], embeddings.columns["positions"]
    np.testing.assert_allclose(vector[own], embeddings.vectors[known, own], atol=1e-5)
    assert np.linalg.norm(embeddings.vectors[:, at] - vector[at], axis=1).argmin() == known


def test_unseen_nodes_decide_nothing():
    rng = np.random.default_rng(1)
    ends, seen = rng.integers(0, 60, (2, 200)), np.arange(60) < 40
    features = rng.random((60, 9))
    other = features.copy()
    other[~seen] *= rng.random(9) * 5
    graph, changed = (Graph.from_arrays(ends, x, splits={"seen": seen}) for x in (features, other))
    one, two = (DGI(8, epochs=2).fit(one) for one in (graph, changed))
    np.testing.assert_allclose(
        one.transform(graph).vectors, two.transform(graph).vectors, atol=1e-6
    )


def test_a_graph_folder_has_the_vectors_of_the_graph_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("infomax.training.spectral_positions.ROWS_PER_BLOCK", 7)
    monkeypatch.setattr(engine, "NODES_PER_BLOCK_ON_DISK", {"cpu": 7})
    graph = random_graph(50, dense=True)
    graph.save(tmp_path / "g.graph")
    folder = Graph.open(tmp_path / "g.graph")
    options = {"preset": "batches", "epochs": 2, "device": "cpu"}
    model = DGI(8, **options).fit(folder, run=tmp_path / "run")
    expected = DGI(8, **options).fit(graph).transform(graph).vectors
    np.testing.assert_allclose(model.transform(folder).vectors, expected, atol=1e-5)
    some = np.array([2, 9, 40])
    np.testing.assert_allclose(
        model.transform(folder, rows=some).vectors, expected[some], atol=1e-5
    )
    for out in ("v.npy", "parts"):
        DGI.load(tmp_path / "run", device="cpu").write_vectors(folder, tmp_path / out)
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-5)
    np.testing.assert_allclose(
        StoredEmbeddings.open(tmp_path / "parts").vectors[:], expected, atol=1e-5
    )
    assert Embeddings.read(tmp_path / "parts").parts == {
        k: list(v) for k, v in model.transform(folder).parts.items()
    }
    with pytest.raises(InputError):  # those of other vectors
        model.write_vectors(folder, tmp_path / "parts", vectors="own")


def test_what_is_pooled_may_be_kept_in_half_precision(tmp_path):
    """As of large graphs: nearly the same vectors, and the same in memory, on disk and in blocks."""
    graph = random_graph(50, dense=True)
    model = DGI(8, epochs=2, device="cpu").fit(graph)
    graph.save(tmp_path / "g.graph")
    folder = Graph.open(tmp_path / "g.graph")
    recipe = model.fitted_.recipe
    positions = {"positions": model.fitted_.positions.of_type("")}
    usual = model.transform(graph).vectors
    halved = []
    for source, view_class in ((graph, WholeView), (folder, BatchSource)):
        scaled = source.scaled(recipe.scaler)
        view = view_class.of(scaled, recipe.encoder.rule, Backend(torch.device("cpu")))
        embedder = engine.Embedder(
            recipe,
            view,
            scaled.table,
            positions,
            single_precision_nodes=49,
            nodes_per_block=50 if source is graph else 7,
        )
        halved.append(embedder.all())
    np.testing.assert_allclose(halved[0], halved[1], atol=2e-3)
    np.testing.assert_allclose(halved[0], usual, atol=5e-3)
    assert np.abs(halved[0] - usual).max() > 1e-7


def test_a_run_holds_it_and_gives_the_same_bytes(graph, tmp_path):
    model = DGI(8, epochs=2).fit(graph, run=tmp_path / "run")
    loaded, expected = DGI.load(tmp_path / "run"), model.transform(graph)
    np.testing.assert_array_equal(loaded.transform(graph).vectors, expected.vectors)
    np.testing.assert_array_equal(np.load(tmp_path / "run/vectors.npy"), expected.vectors)
    loaded.save(tmp_path / "again")
    for name in ("model.safetensors", "vectors.npy", "positions.npy", "health.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    expected.save(tmp_path / "v.parquet")
    read = Embeddings.read(tmp_path / "v.parquet")
    assert {name: tuple(one) for name, one in read.parts.items()} == dict(expected.parts)
    assert json.loads((tmp_path / "run/health.json").read_text())["parts"]["own"] == len(
        expected.parts["own"]
    )


def test_other_positions_are_refused(graph, tmp_path):
    DGI(8, epochs=1).fit(graph, run=tmp_path)
    (tmp_path / "positions.npy").unlink()
    with pytest.raises(InputError, match="positions"):
        DGI.load(tmp_path)


def test_the_own_part_is_longer_where_neighbours_are_not_alike():
    rng = np.random.default_rng(0)
    kind, ends = np.arange(300) % 3, rng.integers(300, size=(2, 12_000))
    features = (rng.random((300, 12)) < 0.1 + 0.6 * np.repeat(np.eye(3), 4, axis=1)[kind]).astype(
        np.float32
    )
    same = kind[ends[0]] == kind[ends[1]]
    for like, length in ((True, HALF_LENGTH), (False, RAISED_LENGTH)):
        embeddings = DGI(8, epochs=1).fit_transform(
            Graph.from_arrays(ends[:, same == like], features)
        )
        own = embeddings.vectors[features.any(axis=1)][:, embeddings.columns["own"]]
        assert np.linalg.norm(own, axis=1).mean() == pytest.approx(length, rel=1e-3)


@pytest.mark.parametrize("vectors", ["recipe", "encoder,positions"])
def test_lengths_are_those_at_the_nodes_that_have_features(vectors):
    rng = np.random.default_rng(0)
    features = rng.random((300, 12)).astype(np.float32)
    features[30:] = 0  # as where all types are one graph, and one of them has features
    graph = Graph.from_arrays(rng.integers(300, size=(2, 900)), features)
    model = DGI(8, epochs=1, scale="rows", vectors=vectors).fit(graph)
    embeddings, expected = model.transform(graph), part_lengths(graph, model.health_["resemblance"])
    length = {
        name: np.linalg.norm(embeddings.vectors[:, at], axis=1)
        for name, at in embeddings.columns.items()
    }
    for name, each in length.items():
        some = each if name == "positions" else each[:30]
        assert some.mean() == pytest.approx(expected[name], rel=1e-3), name
    assert length["encoder"][30:].mean() < 0.9


@pytest.mark.parametrize(
    ("resemblance", "length"),
    [(-0.0009, RAISED_LENGTH), (0.0010, HALF_LENGTH), (0.0091, HALF_LENGTH), (None, HALF_LENGTH)],
)
def test_the_own_part_is_as_long_as_actors_chameleons_and_proteins_want_it(resemblance, length):
    pairs = np.random.default_rng(0).integers(300, size=(2, 12_000))
    lengths = part_lengths(Graph.from_arrays(pairs, np.ones((300, 2))), resemblance)
    assert lengths["own"] == pytest.approx(length, abs=0.06)
    assert {**lengths, "own": HALF_LENGTH} == LENGTHS


def test_positions_are_as_long_as_the_encoder_between_several_types():
    assert part_lengths(typed_graph(), None) == {**LENGTHS, "positions": 1.0}
    embeddings = DGI(4, epochs=0).fit_transform(typed_graph())
    positions = embeddings.vectors[:, embeddings.columns["positions"]]
    assert np.linalg.norm(positions, axis=1).mean() == pytest.approx(1, abs=1e-3)


def test_what_a_graph_cannot_have_is_left_out_and_told(graph, monkeypatch):
    several = graph.replace(groups=np.zeros(40, np.int64))
    assert parts_for(several, "recipe") == (("encoder", "own", "pooled"), [])
    assert "several graphs" in parts_for(several, "own,positions")[1][0]
    with pytest.raises(InputError, match="a part that this graph can have"):
        parts_for(several, "positions")


def test_a_large_graph_has_all_parts_and_a_note_on_its_positions(graph):
    settings = PositionSettings(large_nodes=39, huge_nodes=60)
    part_names, notes = parts_for(graph, "recipe", settings=settings)
    assert part_names == ("encoder", "own", "pooled", "positions")
    assert len(notes) == 1
    assert notes[0].startswith("vectors have 64 positions, not 128: of 40 nodes")
    settings = PositionSettings(large_nodes=10, huge_nodes=39)
    assert "32 positions" in parts_for(graph, "recipe", settings=settings)[1][0]
    assert parts_for(graph, "encoder,own", settings=settings) == (("encoder", "own"), [])


def test_positions_take_the_place_of_what_nodes_without_features_say(graph):
    bare = Graph.from_scipy(graph.adjacency)
    assert parts_for(bare, "recipe") == (("encoder", "positions"), [])
    assert parts_for(bare, "own,positions") == (("own", "positions"), [])  # asked for by name
    embeddings = DGI(4, epochs=0).fit_transform(bare)
    length = np.linalg.norm(embeddings.vectors[:, embeddings.columns["positions"]], axis=1)
    assert length.mean() == pytest.approx(1, abs=1e-3)
    typed = typed_graph().with_nodes(
        lambda kind, one: without_features(one) if kind == "paper" else one
    )
    papers = Graph.of(with_structural_features(typed, {"paper": "positions"}))
    assert parts_for(papers, "recipe")[0] == (
        "encoder",
        "pooled",
        "positions",
    )  # authors have features
    typed = typed_graph().with_nodes(lambda _, one: without_features(one))
    nothing = Graph.of(with_structural_features(typed, dict.fromkeys(typed.nodes, "positions")))
    assert parts_for(nothing, "recipe")[0] == ("encoder", "positions")
    assert "pooled" in parts_for(nothing, "recipe", "60d")[0]  # asked for by its half-life


def test_features_that_say_nothing_give_finite_vectors():
    graph = Graph.from_arrays(np.array([[0, 1, 2], [1, 2, 3]]), np.ones((5, 3)))
    with pytest.warns(UserWarning, match="constant"):
        vectors = DGI(4, epochs=1).fit_transform(graph).vectors
    assert np.isfinite(vectors).all()


def test_a_part_that_is_the_same_at_every_node_is_not_its_rounding():
    rows = np.tile(np.random.default_rng(0).random((1, 6), np.float32), (300, 1))
    graph = Graph.from_arrays(np.random.default_rng(1).integers(300, size=(2, 900)), rows)
    # Without bias each row of H is a multiple of one, which at length 1 differs by rounding alone.
    embeddings = DGI(7, epochs=0, scale="none", device="cpu").fit_transform(graph)
    connected = graph.degrees() > 0
    for name in ("encoder", "own", "pooled"):
        assert (
            np.ptp(embeddings.vectors[connected][:, embeddings.columns[name]], axis=0).max() < 1e-6
        ), name
    assert np.linalg.norm(
        embeddings.vectors[:, embeddings.columns["positions"]], axis=1
    ).mean() == pytest.approx(HALF_LENGTH, abs=1e-3)


@pytest.mark.parametrize("asked", ["own", "encoder,positions", "recipe"])
def test_the_papers_vectors_are_not_given_for_parts_that_a_run_lacks(graph, asked):
    model = DGI(7, epochs=1, vectors="paper", device="cpu").fit(graph)
    with pytest.raises(InputError, match="the paper's vectors alone"):
        model.transform(graph, vectors=asked)


def test_an_id_decides_where_the_search_for_positions_begins():
    rows = start_rows([*range(5000), "ann", "7"], 160).astype(np.float64)
    assert rows.shape == (5002, 160)
    assert {*rows.ravel()} == {-1.0, 1.0}
    np.testing.assert_array_equal(rows[-1], rows[7])  # text files have no types
    np.testing.assert_array_equal(rows[-2], start_rows(["ann"], 160)[0])
    np.testing.assert_allclose(
        rows.T @ rows / len(rows), np.eye(160), atol=0.08
    )  # five standard errors
