import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from infomax.evaluation.logistic import minimise


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_minimum_that_scipy_finds(seed):
    generator = np.random.default_rng(seed)
    rows, signs = (
        generator.normal(size=(60, 12)) * np.geomspace(0.1, 3, 12),
        generator.choice([-1, 1], 60),
    )

    def loss(point):
        margins = signs * (rows @ point)
        value = np.logaddexp(0, -margins).mean() + 0.01 * point @ point
        return value, -(rows * (signs / (1 + np.exp(margins)))[:, None]).mean(axis=0) + 0.02 * point

    def in_torch(point):
        value, slope = loss(point.numpy())
        return float(value), torch.from_numpy(slope)

    found = minimise(in_torch, torch.from_numpy(generator.normal(size=12)), 1e-5).numpy()
    expected = minimize(
        loss, np.zeros(12), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15}
    ).x
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert loss(found)[0] == pytest.approx(loss(expected)[0], abs=1e-8)


def test_it_ends_where_it_starts_if_that_is_the_minimum():
    calls = []
    minimise(lambda point: (calls.append(0) or 0.0, torch.zeros(3)), torch.ones(3), 1e-3)
    assert len(calls) == 1


def test_it_ends_where_rounding_hides_the_gain():
    """A slope that promises what no step gives."""
    found = minimise(lambda point: (1.0, torch.ones(2)), torch.zeros(2), 1e-3)
    np.testing.assert_array_equal(found.numpy(), 0)
