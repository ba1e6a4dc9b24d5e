import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from infomax.evaluation.clustering import _rand
from infomax.evaluation.kmeans import kmeans, nearest_centres, starts


def sets(count=3, n=400, d=8, groups=6):
    generator = np.random.default_rng(0)
    middles = 2 * generator.normal(size=(count, groups, d))
    return (middles[:, np.arange(n) % groups] + generator.normal(size=(count, n, d))).astype(np.float32)


def test_several_sets_at_once_are_each_by_itself():
    points = sets()
    first = starts(points, 6, np.random.default_rng(1))
    centres, distances = kmeans(points, first)
    for one in range(len(points)):
        alone, distance = kmeans(points[one : one + 1], first[one : one + 1])
        np.testing.assert_allclose(centres[one], alone[0], rtol=1e-5, atol=1e-6)
        assert distances[one] == pytest.approx(distance[0], rel=1e-4)


def test_centres_are_the_means_of_what_is_nearest_and_no_worse_than_those_of_scikit_learn():
    points = sets(1)
    several = np.repeat(points, 3, axis=0)
    centres, distances = kmeans(several, starts(several, 6, np.random.default_rng(0)))
    best = distances.argmin()
    codes = nearest_centres(points, centres[best : best + 1])[0][0]
    means = np.array([points[0][codes == code].mean(axis=0) for code in range(6)])
    np.testing.assert_allclose(centres[best], means, atol=0.02)
    theirs = KMeans(6, n_init=3, random_state=0).fit(points[0]).inertia_ / points.shape[1]
    assert distances[best] < 1.01 * theirs


def test_starts_are_different_points_while_there_are_some():
    points = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)[None]
    first = starts(points, 4, np.random.default_rng(0))[0]
    assert len(np.unique(first, axis=0)) == 4
    centres, distances = kmeans(points, starts(points, 6, np.random.default_rng(0)))
    assert np.isfinite(centres).all()
    assert distances[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_rand_index_is_that_of_scikit_learn(k):
    one, other = np.random.default_rng(k).integers(k, size=(2, 50))
    other = np.where(np.arange(50) < 20, one, other)
    assert _rand(one, other, k) == pytest.approx(adjusted_rand_score(one, other))
