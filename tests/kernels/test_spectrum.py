"""Leading eigenvectors as ARPACK finds them; orthonormal columns; eigenvectors where MKL finds
none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.sparse.linalg import eigsh

from infomax.kernels import host
from infomax.kernels.host import symmetric_eigen
from infomax.kernels.spectrum import LeadingVectors, leading_vectors, make_orthonormal


def flat_graph(n: int, degree: int, seed: int) -> sparse.csr_array:
    """D^-1/2 A D^-1/2 of a random graph, whose eigenvalues lie close together but for the first."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(n, size=(2, n * degree // 2))
    adjacency = sparse.csr_array((np.ones(ends.shape[1]), ends), shape=(n, n))
    adjacency = sparse.csr_array(adjacency + adjacency.T)
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(adjacency.sum(axis=1), 1)))
    return sparse.csr_array(scale @ adjacency @ scale)


def search(matrix: sparse.csr_array, count: int, spare: int, **options: float) -> LeadingVectors:
    def product(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.from_numpy(matrix @ x.numpy()))

    start = np.random.default_rng(0).choice([-1.0, 1.0], (matrix.shape[0], count + spare))
    return leading_vectors(
        product, torch.from_numpy(start), torch.empty(start.shape).double(), count, **options
    )


@pytest.mark.parametrize("degree", [8, 16, 30])
@pytest.mark.parametrize("tolerance", [1e-2, 3e-3, 1e-5])
def test_the_search_holds_its_tolerance_where_the_spectrum_is_flat(degree, tolerance):
    matrix = flat_graph(1500, degree, seed=degree)
    leading = search(matrix, 24, 16, tolerance=tolerance)
    values = leading.values.double().numpy()
    vectors = leading.vectors.numpy() / values
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert leading.residual <= tolerance
    assert residuals.max() < 1.1 * tolerance + 2e-6  # values are rounded to single precision

    # Eigenvectors whose values are well above those that were not taken are in the span of the
    # vectors found, by the residuals over that distance (Davis and Kahan).
    exact_values, exact = eigsh(matrix, k=40, which="LA", v0=np.ones(1500), tol=1e-10)
    np.testing.assert_allclose(values, np.sort(exact_values)[::-1][:24], atol=1.1 * tolerance)
    next_value = np.sort(exact_values)[::-1][24]
    for value, vector in zip(exact_values, exact.T, strict=True):
        distance = value - next_value
        if distance > 0:
            outside = vector - vectors @ (vectors.T @ vector)
            assert np.linalg.norm(outside) <= np.sqrt(24) * tolerance / distance + 1e-5


def test_a_search_of_many_nodes_does_not_end_where_it_begins():
    """Random columns have values near 0, the more so the more nodes there are, and large
    residuals."""
    matrix = flat_graph(60_000, 20, seed=0)
    leading = search(matrix, 4, 4, tolerance=3e-2)
    assert len(leading.values) == 4
    assert leading.values[0] == pytest.approx(1, abs=1e-3)


def test_a_search_ends_after_the_products_that_it_may_take():
    matrix = flat_graph(1500, 8, seed=0)
    leading = search(matrix, 24, 4, tolerance=1e-9, most_products=30)
    assert leading.products == 30
    assert leading.residual > 1e-9


def test_eigenvectors_of_one_value_are_the_same_ones_from_another_start():
    parts = sparse.block_diag([flat_graph(60, 6, seed=1)] * 5, format="csr")

    def product(x: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_(torch.from_numpy(parts @ x.numpy()))

    signs = np.random.default_rng(0).choice([-1.0, 1.0], (300, 24))
    others = np.random.default_rng(1).choice([-1.0, 1.0], (300, 24))
    others[:, 0] = signs[:, 0]  # the change of P that decides is that of the first column
    first, second = (
        leading_vectors(
            product, torch.from_numpy(start), torch.empty(300, 24).double(), 10, tolerance=1e-8
        )
        for start in (signs, others)
    )
    np.testing.assert_allclose(first.vectors[:, :5], second.vectors[:, :5], atol=1e-3)


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
