"""The own part: singular vectors of many features, exact and searched."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from scipy import sparse

from infomax import DGI, Graph
from infomax.arrays.table import FeatureTable
from infomax.kernels import Backend
from infomax.training.own_features import (
    MOST_OWN_COLUMNS,
    blocks,
    directions,
    own_projection,
    project,
)

CPU = Backend(torch.device("cpu"))


def test_many_features_are_searched_and_found():
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(200, 8)) * [9, 8, 7, 6, 5, 4, 3, 2]) @ rng.normal(size=(8, 120))
    table, nodes = FeatureTable(features.astype(np.float32)), np.arange(200)
    exact = directions(table, nodes, 6, CPU)
    search = partial(directions, most_exact_features=0, block_bytes=4 * 120 * 30)
    searched = search(table, nodes, 6, CPU)
    np.testing.assert_allclose(searched, exact, atol=1e-3)
    np.testing.assert_array_equal(searched, search(table, nodes, 6, CPU))
    sparse_table = FeatureTable(sparse.csr_array(features.astype(np.float32)))
    np.testing.assert_allclose(search(sparse_table, nodes, 6, CPU), exact, atol=1e-3)


def test_wide_sparse_features_are_not_read_a_few_nodes_at_a_time():
    features = np.ones((500, 1000), np.float32)
    for values, block_count in ((features, 32), (sparse.csr_array(features), 1)):
        table = FeatureTable(values)
        assert len(list(blocks(table, np.arange(500), block_bytes=1 << 16))) == block_count


def test_a_hundred_thousand_features_need_no_square_of_them():
    rng = np.random.default_rng(0)
    entries = np.arange(2000) % 50, rng.integers(100_000, size=2000)
    table = FeatureTable(
        sparse.csr_array((np.ones(2000, np.float32), entries), shape=(50, 100_000))
    )
    axes = directions(table, np.arange(50), 3, CPU)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("make", [np.array, sparse.csr_array])
@pytest.mark.parametrize("wide", [False, True])
def test_the_own_part_is_the_same_on_every_device(device, make, wide):
    rng = np.random.default_rng(0)
    x = (
        rng.random((400, 300)) * (rng.random((400, 300)) < 0.1) * np.geomspace(1, 0.01, 300)
    ).astype(np.float32)
    x = x if wide else x[:, :100]
    backend = Backend(torch.device(device), small=True)
    projection = own_projection(FeatureTable(make(x)), np.arange(400), backend)
    deviation = x.astype(np.float64).std(axis=0)
    own_part = project(make(x), projection, backend).cpu().numpy()
    if not wide:
        np.testing.assert_allclose(own_part, x / deviation, rtol=1e-5)
        return
    *_, axes = np.linalg.svd(x / np.sqrt(deviation), full_matrices=False)
    expected = np.abs(x / np.sqrt(deviation) @ axes[:MOST_OWN_COLUMNS].T)
    np.testing.assert_allclose(np.abs(own_part), expected, atol=2e-4 * np.abs(expected).max())


def test_small_tables_of_two_short_texts_are_trained():
    """MKL finds no eigenvectors of the products of these columns, most of which are zero."""
    import pandas as pd

    words = [start + end for start in "kmprst" for end in ("oak", "elm", "sun", "owl")]
    rng = np.random.default_rng(6)
    texts = [[" ".join(rng.choice(words[:13], 7)) for _ in range(40)] for _ in "ab"]
    nodes = pd.DataFrame({"id": range(40), "a": texts[0], "b": texts[1]})
    ring = pd.DataFrame({"source": range(40), "target": np.roll(range(40), -1)})
    model = DGI(4, epochs=1).fit(Graph.from_frames(ring, nodes))
    assert np.isfinite(model.transform(model.graph_).vectors).all()


@pytest.mark.parametrize("unit", [1e-44, 1e-40, 1e-37])
@pytest.mark.parametrize("columns", [2, 200])
def test_columns_too_small_to_scale_say_nothing_and_spoil_nothing(unit, columns):
    rng = np.random.default_rng(0)
    features = rng.integers(1, 9, (60, columns)).astype(np.float32)
    features[:, 0] *= unit
    projection = own_projection(FeatureTable(features), np.arange(60), CPU)
    own = project(features, projection, CPU).numpy()
    assert np.isfinite(own).all()
    assert own.std(axis=0)[1] > 0
    vectors = DGI(8, epochs=2).fit_transform(Graph.from_arrays([range(59), range(1, 60)], features))
    assert np.isfinite(vectors.vectors).all()
