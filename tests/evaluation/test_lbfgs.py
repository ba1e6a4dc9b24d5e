import numpy as np
import pytest
from scipy.optimize import minimize

from infomax.evaluation.lbfgs import minimise


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_minimum_that_scipy_finds(seed):
    generator = np.random.default_rng(seed)
    rows, signs = generator.normal(size=(60, 12)) * np.geomspace(0.1, 3, 12), generator.choice([-1, 1], 60)

    def loss(point):
        margins = signs * (rows @ point)
        value = np.logaddexp(0, -margins).mean() + 0.01 * point @ point
        return value, -(rows * (signs / (1 + np.exp(margins)))[:, None]).mean(axis=0) + 0.02 * point

    found = minimise(loss, generator.normal(size=12), 1e-5)
    expected = minimize(loss, np.zeros(12), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15}).x
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert loss(found)[0] == pytest.approx(loss(expected)[0], abs=1e-8)


def test_it_ends_where_it_starts_if_that_is_the_minimum():
    calls = []
    minimise(lambda point: (calls.append(0) or 0.0, np.zeros(3)), np.ones(3), 1e-3)
    assert len(calls) == 1


def test_it_ends_where_rounding_hides_the_gain():
    """A slope that promises what no step gives."""
    found = minimise(lambda point: (1.0, np.ones(2)), np.zeros(2), 1e-3)
    np.testing.assert_array_equal(found, 0)
