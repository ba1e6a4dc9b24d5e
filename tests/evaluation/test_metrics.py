import numpy as np
import pytest
from sklearn.metrics import f1_score

from infomax.evaluation.metrics import accuracy, dead_dimensions, effective_rank, micro_f1, silhouette


def test_accuracy_of_several_predictions_at_once():
    actual = np.array([0, 1, 2, 2])
    predicted = np.array([[0, 1, 2, 2], [0, 0, 0, 2], [1, 0, 0, 0]])
    np.testing.assert_allclose(accuracy(predicted, actual), [1, 0.5, 0])


def test_micro_f1_is_pooled_over_the_whole_matrix():
    generator = np.random.default_rng(0)
    actual = generator.random((50, 9)) < np.linspace(0.02, 0.8, 9)
    predicted = generator.random((3, 50, 9)) < 0.4
    expected = [f1_score(actual, one, average="micro") for one in predicted]
    np.testing.assert_allclose(micro_f1(predicted.astype(np.uint8), actual.astype(np.uint8)), expected)
    assert micro_f1(np.zeros((4, 2)), np.zeros((4, 2))) == 0


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
    assert effective_rank(vectors) == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-6)


def test_dead_dimensions_hardly_vary():
    vectors = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    assert dead_dimensions(vectors) == 0
    assert dead_dimensions(vectors * [1, 1e-9, 1, 1e-3]) == 1
    assert dead_dimensions(vectors * [1, 0, 1, 0] + np.float32(0.1)) == 2
    assert dead_dimensions(np.full((100, 4), 0.3, dtype=np.float32)) == 4
