import numpy as np
import pytest
from sklearn.manifold import TSNE

from infomax.analysis.pictures import tsne
from infomax.analysis.tsne import _repulsion, affinities


def clusters(n=300, d=20, groups=5):
    generator = np.random.default_rng(0)
    return 2 * generator.normal(size=(groups, d))[np.arange(n) % groups] + generator.normal(
        size=(n, d)
    )


def divergence(edges, points):
    """KL(P || Q), which t-SNE minimises: P the affinities ``[N, N]``, Q those of the points ``[N, 2]``."""
    closeness = 1 / (1 + ((points[:, None].astype(np.float64) - points) ** 2).sum(axis=2))
    np.fill_diagonal(closeness, 0)
    closeness /= closeness.sum()
    row, column = edges.nonzero()
    return float((edges.data * np.log(edges.data / closeness[row, column])).sum())


@pytest.mark.parametrize(("fine", "error"), [(False, 0.1), (True, 0.03)])
def test_repulsion_on_the_grid_is_that_of_all_pairs(fine, error):
    generator = np.random.default_rng(0)
    points = (25 * generator.normal(size=(2000, 2))).astype(np.float32)
    differences = points[:, None] - points
    closeness = 1 / (1 + (differences**2).sum(axis=2, keepdims=True))
    exact = (differences * closeness**2).sum(axis=1) / (closeness.sum() - len(points))
    wrong = np.linalg.norm(_repulsion(points, fine) - exact) / np.linalg.norm(exact)
    assert wrong < error


def test_affinities_are_those_of_normal_distributions_with_the_perplexity():
    vectors, perplexity = clusters(60), 15.0
    expected = np.zeros((60, 60))
    for node in range(60):
        others = np.delete(np.arange(60), node)
        squares = ((vectors[others] - vectors[node]) ** 2).sum(axis=1)
        others, squares = others[np.argsort(squares)[:46]], np.sort(squares)[:46]
        candidates = np.exp(-np.geomspace(1e-4, 10, 20_000)[:, None] * (squares - squares[0]))
        candidates /= candidates.sum(axis=1, keepdims=True)
        entropies = -(candidates * np.log(np.maximum(candidates, 1e-300))).sum(axis=1)
        expected[node, others] = candidates[np.abs(entropies - np.log(perplexity)).argmin()]
    edges = affinities(vectors, perplexity)
    np.testing.assert_allclose(edges.toarray(), (expected + expected.T) / 120, atol=2e-6)
    assert edges.sum() == pytest.approx(1)


def test_tsne_is_as_good_as_that_of_scikit_learn():
    vectors = clusters()
    edges = affinities(vectors, 30.0)
    theirs = TSNE(init="pca", random_state=0).fit_transform(vectors)
    assert divergence(edges, tsne(vectors, seed=0)) < 1.05 * divergence(edges, theirs)
