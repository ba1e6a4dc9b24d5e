"""Rows of features that are stored sparse are those of the dense table, however they are asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from infomax import DGI, Graph
from infomax.arrays.scaling import Scaler, Statistics
from infomax.arrays.table import FeatureTable, SparseRows

ROWS = st.one_of(
    st.slices(30),
    st.lists(st.booleans(), min_size=30, max_size=30).map(np.array),
    st.lists(st.integers(0, 29)).map(lambda rows: np.array(rows, np.int64)),
)


def bags(n: int = 30, f: int = 200, seed: int = 0) -> sparse.csr_array:
    """Ten words per row, some rows without any."""
    draws = np.random.default_rng(seed)
    rows, columns = np.repeat(np.arange(n), 10), draws.integers(f, size=10 * n)
    kept = rows % 7 > 0
    entries = draws.normal(size=10 * n).astype(np.float32)[kept]
    return sparse.csr_array(sparse.coo_array((entries, (rows[kept], columns[kept])), shape=(n, f)))


@given(rows=ROWS, precision=st.sampled_from([np.float32, np.float16]))
def test_any_rows_are_those_of_the_dense_table(rows, precision):
    x = bags()
    stored = SparseRows(x.indptr, x.indices, x.data.astype(precision), 200)
    expected = x.toarray().astype(precision).astype(np.float32)[rows]
    np.testing.assert_array_equal(stored[rows].toarray(), expected)
    np.testing.assert_array_equal(FeatureTable(stored, mapped=True)[rows].toarray(), expected)
    centred = Scaler("columns", np.ones(200, np.float32), np.full(200, 2, np.float32))
    np.testing.assert_array_equal(
        FeatureTable(stored, scaler=centred, mapped=True)[rows], (expected - 1) / 2
    )


def test_statistics_do_not_depend_on_how_rows_are_stored():
    x = bags()
    seven_rows = 4 * 200 * 7
    statistics = [
        Statistics.of(features, seven_rows)
        for features in (
            x,
            x.toarray(),
            FeatureTable(SparseRows(x.indptr, x.indices, x.data, x.shape[1]), mapped=True),
        )
    ]
    for other in statistics[1:]:
        np.testing.assert_allclose(other.mean, statistics[0].mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(other.variance, statistics[0].variance, rtol=1e-12)
        assert other[2:] == statistics[0][2:]


@pytest.mark.parametrize("scale", ["none", "columns", "rows"])
def test_a_folder_of_sparse_features_is_the_graph_in_memory(scale, tmp_path: Path):
    pytest.importorskip("pyarrow", reason="a graph folder has a parquet file")
    draws = np.random.default_rng(0)
    graph = Graph.from_arrays(draws.integers(0, 300, (2, 900)), abs(bags(300)))
    graph.save(tmp_path / "g.graph")
    stored = Graph.open(tmp_path / "g.graph")
    assert (tmp_path / "g.graph" / "feature_indices.npy").exists()
    assert stored.loaded().table.sparse
    np.testing.assert_array_equal(stored.loaded().features.toarray(), graph.features.toarray())
    for value, stored_value in zip(
        graph.scaler(scale).__dict__.values(), stored.scaler(scale).__dict__.values(), strict=True
    ):
        np.testing.assert_array_equal(value, stored_value)
    models = [DGI(8, preset="batches", scale=scale, epochs=3).fit(one) for one in (graph, stored)]
    vectors = [
        model.transform(one).vectors for model, one in zip(models, (graph, stored), strict=True)
    ]
    np.testing.assert_allclose(vectors[1], vectors[0], atol=1e-4)


def test_features_with_few_zeros_are_stored_dense(tmp_path: Path):
    pytest.importorskip("pyarrow", reason="a graph folder has a parquet file")
    draws = np.random.default_rng(0)
    graph = Graph.from_arrays(draws.integers(0, 30, (2, 90)), draws.normal(size=(30, 5)))
    graph.save(tmp_path / "g.graph")
    assert not (tmp_path / "g.graph" / "feature_indices.npy").exists()
    assert not Graph.open(tmp_path / "g.graph").loaded().table.sparse


def test_new_nodes_follow_rows_that_are_stored_sparse():
    x = bags()
    grown = FeatureTable(SparseRows(x.indptr, x.indices, x.data, 200), mapped=True).grown(
        bags(3, seed=1)
    )
    dense_rows = np.vstack([x.toarray(), bags(3, seed=1).toarray()])
    np.testing.assert_array_equal(grown[np.array([32, 4, 30])], dense_rows[[32, 4, 30]])
    assert grown.shape == (33, 200)


def test_sparse_rows_in_memory_stay_sparse_with_new_ones():
    x, new = bags(), bags(3, seed=1)
    grown = FeatureTable(x).grown(new)
    rows = np.array([32, 4, 30, 0])
    dense_rows = np.vstack([x.toarray(), new.toarray()])
    np.testing.assert_array_equal(grown[rows].toarray(), dense_rows[rows])
    assert grown.bytes_to_load() < 4 * grown.shape[0] * grown.shape[1]  # not that of dense rows
    loaded = grown.loaded()
    assert loaded.sparse
    np.testing.assert_array_equal(loaded.values.toarray(), dense_rows)
