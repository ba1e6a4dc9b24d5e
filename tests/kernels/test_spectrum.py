"""Orthonormal columns, of independent ones and of others; eigenvectors where MKL finds none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from infomax.kernels import host
from infomax.kernels.host import symmetric_eigen
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


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_eigenvectors_of_mostly_zero_matrices_whatever_their_unit(unit, fails, monkeypatch):
    if fails:

        def failing(*_):
            raise torch.linalg.LinAlgError("linalg.eigh: The algorithm failed to converge")

        monkeypatch.setattr(host, "on_one_thread", failing)
    rng = np.random.default_rng(0)
    symmetric = np.zeros((60, 60))
    rows = rng.normal(size=(40, 9))
    symmetric[:9, :9] = unit * rows.T @ rows
    values, vectors = (part.numpy() for part in symmetric_eigen(torch.from_numpy(symmetric)))
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(60), atol=1e-12)
    np.testing.assert_allclose((vectors * values) @ vectors.T / unit, symmetric / unit, atol=1e-12)


def test_a_matrix_of_zeros_has_eigenvectors():
    values, vectors = symmetric_eigen(torch.zeros(4, 4))
    assert values.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(vectors.numpy(), np.eye(4))
