import numpy as np
import pytest
from sklearn.metrics import f1_score

from infomax.evaluation.metrics import (
    accuracy,
    auc,
    auc_of_values,
    auc_standard_error,
    dead_dimensions,
    effective_rank,
    macro_f1,
    micro_f1,
    silhouette,
)


def test_accuracy_of_several_predictions_at_once():
    actual = np.array([0, 1, 2, 2])
    predicted = np.array([[0, 1, 2, 2], [0, 0, 0, 2], [1, 0, 0, 0]])
    np.testing.assert_allclose(accuracy(predicted, actual), [1, 0.5, 0])


def test_micro_f1_is_pooled_over_the_whole_matrix():
    generator = np.random.default_rng(0)
    actual = generator.random((50, 9)) < np.linspace(0.02, 0.8, 9)
    predicted = generator.random((3, 50, 9)) < 0.4
    expected = [f1_score(actual, one, average="micro") for one in predicted]
    np.testing.assert_allclose(
        micro_f1(predicted.astype(np.uint8), actual.astype(np.uint8)), expected
    )
    assert micro_f1(np.zeros((4, 2)), np.zeros((4, 2))) == 0


@pytest.mark.parametrize(
    ("family", "positives", "negatives"), [("normal", 200, 200), ("exponential", 300, 80)]
)
def test_the_standard_error_of_an_auc_is_how_far_draws_of_values_deviate(
    family, positives, negatives
):
    draws = np.random.default_rng(0)
    aucs = []
    for _ in range(1000):
        if family == "normal":
            values = draws.normal(1, 1, positives), draws.normal(0, 1, negatives)
        else:  # the family that the formula assumes, so numbers may differ
            values = draws.exponential(3, positives), draws.exponential(1, negatives)
        aucs.append(auc_of_values(*values))
    expected = auc_standard_error(float(np.mean(aucs)), positives, negatives)
    assert np.std(aucs) == pytest.approx(expected, rel=0.08)
    assert auc_standard_error(1.0, positives, negatives) == 0


def test_silhouette_leaves_unknown_nodes_out():
    points = np.array([[0.0, 0], [0, 1], [9, 0], [9, 1], [4, 400]])
    assert silhouette(points, np.array([0, 0, 1, 1, -1])) == pytest.approx(
        silhouette(points[:4], np.array([0, 0, 1, 1]))
    )
    assert silhouette(points, np.array([0, 0, 1, 1, -1])) > 0.8


def test_effective_rank_counts_directions():
    generator = np.random.default_rng(0)
    assert effective_rank(np.eye(6)) == pytest.approx(6)
    assert effective_rank(-3 * np.eye(6, dtype=np.float32)) == pytest.approx(6)
    line = np.outer(generator.normal(size=50_000), generator.normal(size=8)).astype(np.float32)
    assert effective_rank(line) == pytest.approx(1, abs=1e-4)
    assert effective_rank(np.zeros((5, 3))) == 0


def test_effective_rank_is_the_entropy_of_the_singular_values():
    vectors = np.random.default_rng(0).normal(size=(300, 20)) * np.logspace(0, -3, 20)
    share = np.linalg.svd(vectors, compute_uv=False)
    share /= share.sum()
    assert effective_rank(vectors) == pytest.approx(
        np.exp(-(share * np.log(share)).sum()), rel=1e-6
    )


def test_dead_dimensions_hardly_vary():
    vectors = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    assert dead_dimensions(vectors) == 0
    assert dead_dimensions(vectors * [1, 1e-9, 1, 1e-3]) == 1
    assert dead_dimensions(vectors * [1, 0, 1, 0] + np.float32(0.1)) == 2
    assert dead_dimensions(np.full((100, 4), 0.3, dtype=np.float32)) == 4


def test_rare_classes_count_like_others_in_macro_f1_and_auc():
    from sklearn.metrics import f1_score, roc_auc_score

    rng = np.random.default_rng(0)
    actual = rng.choice(4, 300, p=[0.8, 0.1, 0.06, 0.04])
    logits = rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[actual] * (rng.random((300, 1)) < 0.7)
    predicted = logits.argmax(axis=1)
    assert macro_f1(predicted, actual) == pytest.approx(
        f1_score(actual, predicted, average="macro")
    )
    share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert auc(logits, np.arange(4), actual) == pytest.approx(
        roc_auc_score(actual, share, multi_class="ovr")
    )
    assert auc(np.zeros((300, 4)), np.arange(4), actual) == 0.5
