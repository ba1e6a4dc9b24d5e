"""The validated probe and its regression: the score does not depend on the scale of the vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from infomax.evaluation.logistic import RegressionSettings, logistic_path
from infomax.evaluation.probes import PROBE_COSTS, validated_probe

WITHOUT_AXES = RegressionSettings(largest_sparse_basis=0)
"""Of sparse vectors, whose columns are fitted as they are."""


def case(n=400, d=24, classes=5, noise=1.0, seed=0):
    """Vectors of a common direction, of very different lengths and with all-zero rows; codes; a split."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(classes, size=n)
    vectors = (
        0.8 * rng.normal(size=(classes, d))[codes]
        + noise * rng.normal(size=(n, d))
        + 3 * rng.normal(size=d)
    )
    vectors *= 0.02 * rng.lognormal(
        sigma=0.7, size=(n, 1)
    )  # as short as those of row-scaled features
    vectors[rng.permutation(n)[: n // 50]] = 0
    part = rng.integers(4, size=n)
    splits = {"train": part == 0, "validation": part == 1, "test": part > 1}
    return vectors.astype(np.float32), codes, splits


@pytest.fixture(
    scope="module", params=[(400, 24), (200, 300)], ids=["more rows than columns", "more columns"]
)
def vectors_codes_splits(request):
    n, d = request.param
    return case(n, d)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("factor", [1e-6, 1e-3, 0.7, 30.0, 1e6])
def test_the_score_of_a_multiple_is_the_same(vectors_codes_splits, factor, form):
    vectors, codes, splits = vectors_codes_splits
    before = validated_probe(form(vectors), codes, splits)
    after = validated_probe(form((np.float32(factor) * vectors).astype(np.float32)), codes, splits)
    assert after.hyperparameters == before.hyperparameters
    assert after.value == pytest.approx(
        before.value, abs=1.5 / splits["test"].sum()
    )  # one node near a border
    assert before.value > 0.5


@pytest.mark.parametrize("factor", [1e-6, 30.0, 1e6])
def test_nor_does_it_depend_on_it_without_principal_axes(factor):
    """Fits then end further from the minimum, so that rounding moves a few predictions."""
    vectors, codes, splits = case()
    before, after = (
        validated_probe(
            sparse.csr_array(np.float32(by) * vectors), codes, splits, settings=WITHOUT_AXES
        )
        for by in (1, factor)
    )
    assert after.value == pytest.approx(before.value, abs=0.03)
    assert before.value > 0.5


def test_constant_columns_change_no_score():
    """Most features are 0 in all rows, as hashed words may be: on them MKL does not converge in single precision."""
    vectors, codes, splits = case(1200, 24)
    wide = np.zeros((1200, 240), np.float32)
    wide[:, ::10] = np.where(vectors > 0.05, vectors, 0)
    before, after = (validated_probe(x, codes, splits) for x in (wide[:, ::10], wide))
    assert after.value == pytest.approx(before.value, abs=1.5 / splits["test"].sum())


@pytest.mark.parametrize("seed", range(3))
def test_the_score_of_a_rotation_and_of_a_shift_is_the_same(vectors_codes_splits, seed):
    vectors, codes, splits = vectors_codes_splits
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(vectors.shape[1], vectors.shape[1])))
    turned = (vectors @ rotation + 0.1 * rng.normal(size=vectors.shape[1])).astype(np.float32)
    before, after = (validated_probe(x, codes, splits) for x in (vectors, turned))
    assert after.hyperparameters == before.hyperparameters
    assert after.value == pytest.approx(before.value, abs=2.5 / splits["test"].sum())


def test_one_very_long_row_does_not_make_the_others_short():
    vectors, codes, splits = case(noise=0.5)
    before = validated_probe(vectors, codes, splits)
    vectors[np.flatnonzero(splits["train"])[0]] *= 1e3
    after = validated_probe(vectors, codes, splits)
    assert after.value > before.value - 0.08


def test_the_lengths_of_rows_are_kept():
    """A single column tells two classes apart by its size, and all of it is positive."""
    rng = np.random.default_rng(0)
    column = rng.uniform(1, 3, size=(400, 1)).astype(np.float32)
    _, _, splits = case()
    assert validated_probe(column, (column[:, 0] > 2).astype(np.int64), splits).value > 0.95


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_vectors_that_are_all_the_same_give_the_most_frequent_class(form, value):
    _, codes, splits = case()
    codes = np.where(codes > 1, 2, codes)
    score = validated_probe(form(np.full((400, 7), value, dtype=np.float32)), codes, splits)
    assert set(score.predictions[0]) == {2}


def scaled_by_hand(x):
    centred = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    return centred / np.sqrt(np.square(centred).sum() / len(x))


@pytest.mark.parametrize(
    ("form", "n", "d", "basis"),
    [
        (np.asarray, 150, 6, 9),
        (np.asarray, 150, 6, 0),
        (np.asarray, 40, 60, 99),
        (sparse.csr_array, 150, 6, 0),
    ],
    ids=["tall", "not rotated", "wide", "sparse"],
)
def test_it_is_scikit_learns_regression_of_vectors_scaled_by_hand(form, n, d, basis):
    """In all its coordinates, fitted to the end."""
    from sklearn.linear_model import LogisticRegression

    vectors, codes, _ = case(n, d)
    settings = RegressionSettings(1e-6, largest_basis=basis, largest_sparse_basis=basis)
    costs = (0.01, 1.0, 100.0)
    for cost, model in logistic_path(form(vectors), codes, costs, settings=settings):
        expected = LogisticRegression(C=cost, tol=1e-7, max_iter=10_000).fit(
            scaled_by_hand(vectors), codes
        )
        logits = model.logits(form(vectors))
        logits -= logits.mean(axis=1, keepdims=True)  # softmax does not see a number added to all
        expected = expected.decision_function(scaled_by_hand(vectors))
        np.testing.assert_allclose(logits, expected, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_several_labels_are_as_many_regressions_of_two_classes(form):
    from sklearn.linear_model import LogisticRegression

    vectors, codes, _ = case(150, 6)
    settings = RegressionSettings(1e-6, largest_sparse_basis=0)
    flags = np.stack([codes == 0, codes < 3], axis=1)
    for cost, model in logistic_path(form(vectors), flags, (0.1, 10.0), settings=settings):
        for found, flag in zip(model.logits(form(vectors)).T, flags.T, strict=True):
            alone = LogisticRegression(C=cost, tol=1e-7, max_iter=10_000).fit(
                scaled_by_hand(vectors), flag
            )
            expected = alone.decision_function(scaled_by_hand(vectors))
            np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)


def test_rows_in_blocks_give_the_same():
    vectors, codes, splits = case()
    at_once = validated_probe(vectors, codes, splits)
    in_blocks = validated_probe(
        vectors, codes, splits, settings=RegressionSettings(rows_per_block=17)
    )
    np.testing.assert_array_equal(in_blocks.predictions, at_once.predictions)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("d", [8, 200], ids=["more rows than columns", "more columns"])
@pytest.mark.parametrize("basis", [0, 2048], ids=["its own columns", "principal axes"])
def test_rows_that_differ_by_rounding_only_are_equal(form, d, basis):
    """The last bit tells the class, but it is no signal: the most frequent class is predicted."""
    settings = RegressionSettings(largest_basis=basis, largest_sparse_basis=basis)
    codes = (np.arange(100) % 3 == 0).astype(np.int64)
    vectors = np.full((100, d), 1000, np.float32)
    vectors[codes == 1] = np.nextafter(np.float32(1000), np.float32(2000))
    for _, model in logistic_path(form(vectors), codes, (1.0, 100.0), settings=settings):
        assert (model.predict(form(vectors)) == 0).all()
        assert np.abs(model.weights).max() < 1


def test_the_order_of_stored_entries_changes_nothing():
    vectors, codes, splits = case()
    ordered = sparse.csr_array(np.where(np.abs(vectors) < 0.03, 0, vectors))
    shuffled = ordered.copy()
    for start, end in zip(ordered.indptr[:-1], ordered.indptr[1:], strict=True):
        shuffled.indices[start:end] = ordered.indices[start:end][::-1]
        shuffled.data[start:end] = ordered.data[start:end][::-1]
    shuffled.has_sorted_indices = False
    before = shuffled.indices.copy()
    rows = np.flatnonzero(splits["train"])
    models = [
        next(logistic_path(x[rows], codes[rows], (1.0,), settings=WITHOUT_AXES))[1]
        for x in (ordered, shuffled)
    ]
    np.testing.assert_allclose(models[1].weights, models[0].weights, rtol=1e-4, atol=1e-4)
    next(logistic_path(shuffled, codes, (1.0,), settings=WITHOUT_AXES))
    np.testing.assert_array_equal(shuffled.indices, before)


def test_of_equally_accurate_costs_the_one_nearest_to_one_is_chosen():
    codes = np.arange(400) % 3
    apart = np.eye(3)[codes] + 0.01 * np.random.default_rng(0).normal(size=(400, 3))
    assert validated_probe(apart, codes, case()[2]).hyperparameters == {"C": 1.0}


def test_the_search_goes_on_while_nothing_is_learnt():
    """A signal that is small beside the noise in another column needs a large C; before it, all costs are as bad."""
    rng = np.random.default_rng(0)
    codes = (np.arange(400) % 3 == 0).astype(np.int64)
    vectors = np.column_stack(
        [rng.normal(size=400), 1e-3 * (codes + 0.2 * rng.normal(size=400))]
    ).astype(np.float32)
    score = validated_probe(vectors, codes, case()[2])
    assert score.hyperparameters["C"] >= 1e4
    assert score.value > 0.95


def test_the_range_is_wide():
    assert PROBE_COSTS[0] <= 1e-3
    assert PROBE_COSTS[-1] >= 1e6
