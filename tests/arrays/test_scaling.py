"""Scaling: what was fitted is what is applied, however the features are stored."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from infomax import DGI, Graph, InputError
from infomax.arrays.scaling import Scaler
from infomax.errors import InputWarning

RNG = np.random.default_rng(0)
TABLE = (RNG.normal(3, 2, (50, 4)) * [1, 10, 0.1, 0]).astype(np.float32)
BAG = (RNG.random((50, 9)) < 0.2).astype(np.float32)


def test_auto_tells_bags_of_words_from_tables():
    assert Scaler.fit(BAG).scale == Scaler.fit(sparse.csr_array(BAG)).scale == "rows"
    assert Scaler.fit(TABLE).scale == "columns"


def test_rows_sum_to_one_and_empty_rows_are_left_alone():
    bag = BAG.copy()
    bag[3] = 0
    for features in (bag, sparse.csr_array(bag)):
        scaled = Scaler.fit(features, "rows").transform(features)
        totals = np.asarray(scaled.sum(axis=1)).ravel()
        np.testing.assert_allclose(totals[[0, 1, 3]], [1, 1, 0], rtol=1e-6)
        assert sparse.issparse(scaled) == sparse.issparse(features)


def test_columns_have_mean_zero_and_deviation_one_and_constants_stay():
    scaled = Scaler.fit(TABLE, "columns").transform(TABLE)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(0), [1, 1, 1, 0], atol=1e-5)


def test_a_column_far_from_zero_is_no_constant():
    """Timestamps of a few minutes, which float32 tells apart two minutes at a time."""
    stamps = (1.7e9 + np.arange(40) * 128).astype(np.float32)[:, None]
    np.testing.assert_allclose(Scaler.fit(stamps, "columns").transform(stamps).std(0), 1, rtol=1e-3)


def test_sparse_columns_stay_sparse():
    features = sparse.csr_array(BAG)
    scaled = Scaler.fit(features, "columns").transform(features)
    assert sparse.issparse(scaled)
    np.testing.assert_allclose(scaled.toarray(), BAG / BAG.std(0), rtol=1e-5)


@pytest.mark.parametrize("fitted", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_small_deviation_from_a_large_mean_is_not_lost(fitted):
    """A year among many nodes; beside it a column far from zero in half of the rows."""
    years = 2000 + 5 * np.random.default_rng(1).standard_normal(200_000)
    table = np.column_stack([years, np.arange(len(years)) % 2 * 1e6 + 1e-3 * years]).astype(
        np.float32
    )
    deviation = Scaler.fit(fitted(table), "columns").deviation
    np.testing.assert_allclose(deviation, table.std(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(deviation[0], 5, rtol=0.01)


@pytest.mark.parametrize("scale", ["rows", "columns", "none"])
@pytest.mark.parametrize("fitted", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_same_table_scales_alike_dense_and_sparse(scale, fitted):
    scaler = Scaler.fit(fitted(BAG), scale)
    dense, other = scaler.transform(BAG), scaler.transform(sparse.csr_array(BAG))
    np.testing.assert_allclose(
        other.toarray() if sparse.issparse(other) else other, dense, rtol=1e-5
    )


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="one of auto, rows, columns, none"):
        Scaler.fit(BAG, "cells")


@pytest.mark.parametrize(
    ("features", "scale", "message"),
    [
        (np.ones((3, 2)), "auto", "every column of the features is constant"),
        (np.zeros((3, 2)), "auto", "all features are zero"),
        (sparse.csr_array((3, 2)), "none", "all features are zero"),
    ],
    ids=["constant", "zero", "sparse"],
)
def test_features_that_make_every_vector_zero_are_told(features, scale, message):
    graph = Graph.from_arrays([[0, 1], [1, 2]], features)
    with pytest.warns(InputWarning, match=f"{message}.* makes of them will be zero"):
        model = DGI(dim=4, epochs=2, scale=scale, vectors="paper").fit(graph)
    assert not model.transform(graph).vectors.any()


def test_one_column_that_differs_is_enough():
    graph = Graph.from_arrays([[0, 1], [1, 2]], [[1, 0], [1, 2], [1, 3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        assert DGI(dim=4, epochs=2).fit_transform(graph).vectors.any()
