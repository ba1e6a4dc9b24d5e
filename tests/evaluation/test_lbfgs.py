import numpy as np
import pytest
import torch
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

    def in_torch(point):
        value, slope = loss(point[0].numpy())
        return torch.tensor([value]), torch.from_numpy(slope)[None]

    found = minimise(in_torch, torch.from_numpy(generator.normal(size=(1, 12))), 1e-5)[0].numpy()
    expected = minimize(loss, np.zeros(12), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-15}).x
    np.testing.assert_allclose(found, expected, atol=1e-2)
    assert loss(found)[0] == pytest.approx(loss(expected)[0], abs=1e-8)


def test_it_ends_where_it_starts_if_that_is_the_minimum():
    calls = []
    minimise(lambda point: (calls.append(0) or torch.zeros(2), torch.zeros(2, 3)), torch.ones(2, 3), 1e-3)
    assert len(calls) == 1


def test_it_ends_where_rounding_hides_the_gain():
    """A slope that promises what no step gives."""
    flat = torch.ones(1, dtype=torch.float64)
    found = minimise(lambda point: (flat, torch.ones(1, 2)), torch.zeros(1, 2), 1e-3)
    np.testing.assert_array_equal(found.numpy(), 0)


def test_functions_side_by_side_end_where_each_ends_alone():
    """One starts at its minimum, one is hidden by rounding, and two take different numbers of steps."""
    centres = torch.tensor([[0.0, 0, 0], [1, 2, 3], [-50, 0.5, 7], [9, 9, 9]], dtype=torch.float64)
    curves = torch.tensor([[1.0, 1, 1], [1, 4, 9], [0.01, 5, 100], [0, 0, 0]], dtype=torch.float64)

    def loss_of(some):
        def loss(point):
            apart = point - centres[some]
            # The last has a slope that promises what no step gives.
            return (curves[some] * apart**2).sum(1), 2 * curves[some] * apart + (curves[some] == 0)

        return loss

    start = torch.zeros(4, 3, dtype=torch.float64)
    together = minimise(loss_of(slice(None)), start, 1e-6)
    for at in range(4):
        alone = minimise(loss_of([at]), start[[at]], 1e-6)
        torch.testing.assert_close(together[[at]], alone, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(together[:3], centres[:3], rtol=1e-3, atol=1e-3)
    assert not together[3].any()
