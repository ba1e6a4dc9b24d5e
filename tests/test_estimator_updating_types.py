"""A later graph of several types: only vectors from which a path leads to a change are computed."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.arrays.relations import Relation
from infomax.io.nodes import Nodes
from infomax.parts.encoders import PathMean

SIZES = {"author": 90, "paper": 120, "subject": 40}
WIDTHS = {"author": 4, "paper": 6, "subject": 3}
ENDS = {"by": ("paper", "author"), "on": ("paper", "subject"), "cites": ("paper", "paper")}


def draw(directed=False, weighted=False, sparse_features=False, seed=0):
    """Features of each type, and a matrix of each relation that joins only nodes of similar rows."""
    rng, features, matrices = np.random.default_rng(seed), {}, {}
    for kind, size in SIZES.items():
        x = rng.normal(size=(size, WIDTHS[kind])).astype(np.float32)
        features[kind] = np.where(x > 0.5, x, 0).astype(np.float32) if sparse_features else x
    for name, (source, target) in ENDS.items():
        place = [np.arange(SIZES[kind]) / SIZES[kind] for kind in (source, target)]
        there = (np.abs(place[0][:, None] - place[1]) < 0.02) & (rng.random((SIZES[source], SIZES[target])) < 0.8)
        matrix = there * (rng.integers(1, 4, there.shape) if weighted else 1)
        if name == "cites":
            matrix = np.triu(matrix, 1)
            matrix = matrix if directed else matrix + matrix.T
        matrices[name] = matrix.astype(np.float32)
    return features, matrices


def world(features, matrices, rows=None, *, kind="paper", sparse_features=False):
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
    return Graph(nodes, tuple(relations), kind)


def tomorrow(features, matrices, *, shuffled):
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


@pytest.mark.parametrize("settings", [{}, {"directed": True}, {"weighted": True}, {"sparse_features": True}], ids=str)
@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize(("hops", "shuffled", "share"), [(1, True, 9), (2, False, 0), (3, True, 9)])
def test_an_update_is_the_embedding_of_the_new_graph_and_the_rest_keeps_its_bytes(
    settings, kind, hops, shuffled, share, monkeypatch
):
    monkeypatch.setattr("infomax.training.embed.SHARE", share)
    as_drawn = {"kind": kind, "sparse_features": "sparse_features" in settings}
    drawn = draw(**settings)
    today, later = world(*drawn, **as_drawn), world(*tomorrow(*drawn, shuffled=shuffled), **as_drawn)
    model = DGI(dim=8, epochs=2, encoder=partial(PathMean, hops=hops), vectors="recipe" if hops == 2 else "paper").fit(
        today
    )
    vectors, expected = model.transform(today), model.transform(later)
    found = model.update(later, vectors)
    np.testing.assert_allclose(found.embeddings.vectors, expected.vectors, rtol=1e-4, atol=1e-6)
    common = [node for node in later.ids if node in vectors]
    kept = {node for node in common if np.array_equal(found.embeddings[node], vectors[node])}
    moved = {node for node in common if not np.allclose(expected[node], vectors[node], atol=1e-5)}
    assert len(later.ids) - len(kept) <= found.computed
    assert len(kept) > len(later.ids) / 10
    assert moved
    assert not moved & kept
    assert (found.changes.gone, (found.changes.before < 0).sum()) == (1, 1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("kind", "hops", "computed"), [("author", 1, 1), ("paper", 1, 1), ("subject", 1, 0)])
def test_of_one_changed_edge_only_its_ends_are_reached_in_one_step(kind, hops, computed, directed):
    features, matrices = draw(directed)
    today = world(features, matrices, kind=kind)
    matrices["by"][70, 20] = 1
    later = world(features, matrices, kind=kind)
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
    changed = [node for node in vectors if not np.array_equal(vectors[node], found.embeddings[node])]
    assert (changed, found.computed) == (["p100"], 1)


def test_edges_under_another_name_are_all_compared_as_new():
    features, matrices = draw()
    today = world(features, {"by": matrices["by"]} | {"on": matrices["on"]})
    later = world(features, {"by": matrices["by"]} | {"on": np.zeros_like(matrices["on"])})
    renamed = [dataclasses.replace(one, name="about") if one.name == "on" else one for one in later.relations]
    later = dataclasses.replace(later, relations=tuple(renamed))
    model = DGI(dim=8, epochs=2).fit(today)
    found = model.update(later, model.transform(today))
    np.testing.assert_allclose(found.embeddings.vectors, model.transform(later).vectors, rtol=1e-4, atol=1e-6)


def test_other_features_of_another_type_are_refused():
    features, matrices = draw()
    model = DGI(dim=8, epochs=1).fit(world(features, matrices))
    wider = features | {"author": np.concatenate([features["author"]] * 2, axis=1)}
    with pytest.raises(InputError, match="features of nodes of type author"):
        model.update(world(wider, matrices))


def test_vectors_that_a_file_lacks_are_computed_of_a_type_too():
    graph = world(*draw())
    model = DGI(dim=8, epochs=2).fit(graph)
    whole = model.transform(graph)
    few = dataclasses.replace(whole, vectors=whole.vectors[7:], ids=whole.ids[7:])
    found = model.update(graph, few)
    assert found.computed == 7
    np.testing.assert_allclose(found.embeddings.vectors, whole.vectors, rtol=1e-4, atol=1e-6)


def test_a_type_is_chosen_by_the_user_or_the_model_not_by_the_alphabet():
    graph = world(*draw())
    found = dataclasses.replace(graph.target("author"), kind_is_first=True)  # as a file is read
    for fit in (DGI(dim=8, epochs=1).fit, DGI(dim=8, epochs=1).fit_transform):
        with pytest.raises(InputError, match=r"found types author, paper, subject\. .* graph\.target\('author'\)"):
            fit(found)
    assert DGI(dim=8, epochs=1).fit(found.target("author")).graph_.kind == "author"
    assert DGI(dim=8, epochs=1).fit(found.target("paper").part(np.ones(120, bool))).graph_.kind == "paper"
    model = DGI(dim=8, epochs=1).fit(graph)
    assert model.update(found).model.graph_.kind == "paper"
    with pytest.raises(InputError, match="nodes of type paper, found nodes of type author"):
        model.update(found.target("author"))
