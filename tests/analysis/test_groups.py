"""Groups of similar nodes: what they find is near, and with all groups searched it is what an exact search finds."""

import dataclasses

import numpy as np
import pytest

from infomax import index
from infomax.analysis.groups import Groups
from infomax.analysis.map import nearest


def clusters(n=90, d=32, groups=3, seed=0):
    generator = np.random.default_rng(seed)
    group = np.arange(n) % groups
    return (6 * generator.normal(size=(groups, d))[group] + generator.normal(size=(n, d))).astype(np.float32)


def divided(vectors, dtype=np.float32):
    return Groups.of(vectors, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_groups_hold_every_node_once_and_its_vector(dtype):
    vectors = clusters(500)
    vectors[7] = 0
    groups = divided(vectors, dtype)
    assert np.sort(groups.members).tolist() == list(range(500))
    assert (len(groups), len(groups.middles), groups.starts[-1]) == (500, 45, 500)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(groups.units[groups.places], units, atol=1e-6 if dtype is np.float32 else 1e-3)
    np.testing.assert_allclose(groups.get(np.arange(500)), vectors, atol=1e-4 if dtype is np.float32 else 0.05)
    near = (units @ groups.middles.T).argmax(axis=1)  # each is in the group of the nearest middle
    owner = np.searchsorted(groups.starts, groups.places, side="right") - 1
    assert (owner == near)[np.arange(500) != 7].all()


def test_most_neighbours_are_found_and_their_cosines_are_exact():
    vectors = clusters(2000, groups=40)
    vectors[7] = 0
    exact, _ = nearest(vectors, 10)
    groups, recall = index.build(vectors, together=True)
    rows, cosines = groups.nearest(10)
    assert recall >= 0.95
    assert np.mean([len(set(one) & set(other)) / 10 for one, other in zip(rows, exact, strict=True)]) > 0.9
    assert (rows != np.arange(2000)[:, None]).all()  # no node is its own neighbour
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(cosines, np.einsum("nd,nkd->nk", units, units[rows]), atol=1e-5)
    assert (np.diff(cosines, axis=1) <= 0).all()


@pytest.mark.parametrize("n", [2, 3, 12, 300])
def test_with_all_groups_searched_it_is_exact(n):
    vectors = clusters(n)
    vectors[1:3] = vectors[0]  # ties are told in input order
    groups = dataclasses.replace(divided(vectors), searched=n)
    for found, exact in zip(groups.nearest(10), nearest(vectors, 10), strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-6)
    for together in (False, True):
        assert np.sort(groups.search(vectors, n, together=together), axis=1).tolist() == [list(range(n))] * n


def test_as_many_groups_are_searched_as_it_takes(monkeypatch):
    vectors = np.random.default_rng(0).normal(size=(400, 24)).astype(np.float32)  # nothing is near to anything
    nodes, _, exact = index.sampled(vectors)
    for together in (False, True):
        groups, recall = index.build(vectors, together=together)
        fewer = dataclasses.replace(groups, searched=groups.searched * 3 // 4)
        assert index.measure_recall(fewer, vectors, nodes, exact, together=together) < 0.95 <= recall
    monkeypatch.setattr(index, "RECALL", 2.0)
    assert index.build(vectors)[1] == 1


def test_the_recall_is_that_of_other_nodes_as_well():
    vectors = np.random.default_rng(0).normal(size=(40_000, 12)).astype(np.float32)
    groups, recall = index.build(vectors)
    nodes, _, exact = index.sampled(vectors, seed=5)
    assert index.measure_recall(groups, vectors, nodes, exact) == pytest.approx(recall, abs=0.015)


def test_a_file_holds_all_of_it(tmp_path):
    vectors = clusters(300)
    groups = dataclasses.replace(divided(vectors, np.float16), searched=8)
    groups.save(tmp_path / "g")
    mapped = Groups.restore(tmp_path / "g")
    assert isinstance(mapped.units.base, np.memmap)
    assert mapped.searched == 8
    for name in ("middles", "starts", "members", "units", "lengths"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(groups, name))
    np.testing.assert_array_equal(mapped.search(vectors[:9], 5), groups.search(vectors[:9], 5))
