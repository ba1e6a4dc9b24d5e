"""Orthonormal columns, of independent ones and of others."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from infomax.kernels.spectrum import make_orthonormal


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize("rank", [12, 7])
def test_columns_become_orthonormal_and_keep_their_span(rank, scale):
    rng = np.random.default_rng(0)
    given = rng.normal(size=(200, rank)) @ rng.normal(size=(rank, 12)) * np.geomspace(1, scale, 12)
    columns = torch.from_numpy(given.copy())
    make_orthonormal(columns)
    found = columns.numpy()
    products = found.T @ found
    kept = np.flatnonzero(products.diagonal() > 0.5)
    assert len(kept) == rank if scale > 1e-5 else 3 < len(kept) < rank
    np.testing.assert_allclose(
        products, np.diag(np.isin(np.arange(12), kept).astype(float)), atol=1e-5
    )
    left = np.linalg.norm(given - found @ (found.T @ given), axis=0)
    assert left.max() < 1e-4 * np.linalg.norm(given, axis=0).max()
