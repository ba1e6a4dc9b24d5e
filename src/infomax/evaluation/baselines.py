"""Vectors that need no training: singular vectors of the edges, and averaged features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

SVD_WIDTH = 128
"""Singular vectors that are taken."""
SVD_PRODUCTS = 10
"""Products with the matrix, and with its transpose, by which they are found."""
SVD_EXTRA = 16
"""Directions beside those that are kept, so that the last of them are exact enough."""


def normalised(matrix: sparse.csr_array) -> sparse.csr_array:
    """``D^-1/2 A D^-1/2`` of a matrix ``[N, M]``, where D has the sums of rows, or of columns."""
    row_factors = _inverse_roots(matrix.sum(axis=1))
    column_factors = _inverse_roots(matrix.sum(axis=0))
    scaled = sparse.diags_array(row_factors) @ matrix @ sparse.diags_array(column_factors)
    return sparse.csr_array(scaled, dtype=np.float32)


def _inverse_roots(sums: NDArray[Any]) -> NDArray[np.float64]:
    """One over the root of each sum; 0 where that is 0."""
    sums = np.asarray(sums, np.float64).ravel()
    return np.divide(1, np.sqrt(np.abs(sums)), out=np.zeros_like(sums), where=sums != 0)


def singular_vectors(
    matrix: sparse.csr_array,
    width: int = SVD_WIDTH,
    *,
    products: int = SVD_PRODUCTS,
    seed: int = 0,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors of rows ``[N, K]`` and columns ``[M, K]`` whose products approximate a matrix.

    They are U sqrt(S) and V sqrt(S) of its singular value decomposition, by subspace iteration from
    a random start. K is at most ``width``.
    """
    width = min(width, *matrix.shape)
    search_width = min(width + SVD_EXTRA, *matrix.shape)
    start = np.random.default_rng(seed).standard_normal((matrix.shape[1], search_width))
    transposed = sparse.csr_array(matrix.T)
    basis = _orthonormal(matrix @ start.astype(np.float32))
    for _ in range(products):
        basis = _orthonormal(matrix @ (transposed @ basis))

    # The matrix in this basis is small: its own decomposition is exact.
    left, values, right = np.linalg.svd((transposed @ basis).T, full_matrices=False)
    roots = np.sqrt(values[:width])
    rows = (basis @ left[:, :width]) * roots
    columns = right[:width].T * roots
    return rows.astype(np.float32), columns.astype(np.float32)


def _orthonormal(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """An orthonormal basis ``[N, K]`` of the space of some columns.

    The columns are multiplied by the inverse root of their Gram matrix, which takes a quarter of
    the time of a QR decomposition. Directions that the columns do not have become zeros.
    """
    gram = columns.astype(np.float64).T @ columns.astype(np.float64)
    values, rotation = np.linalg.eigh(gram)
    smallest = values[-1] * np.finfo(np.float32).eps
    inverse_roots = np.where(values > smallest, 1 / np.sqrt(np.maximum(values, smallest)), 0)
    return np.asarray(columns @ (rotation * inverse_roots).astype(np.float32))


def edge_vectors(adjacency: sparse.csr_array, width: int = SVD_WIDTH) -> NDArray[np.float32]:
    """What edges alone say: singular vectors ``[N, K]`` of the normalised adjacency ``[N, M]``.

    Each vector is multiplied by its singular value.
    """
    rows, _ = singular_vectors(normalised(adjacency), width)
    values = np.linalg.norm(rows, axis=0)
    return np.asarray(rows * values)


def averaged_features(features: Any, adjacency: sparse.csr_array, hops: int = 2) -> Any:
    """Features ``[N, F]`` averaged over a node and its neighbours ``hops`` times, dense or sparse.

    It is what a linear model on a graph uses (SGC): ``P^hops X`` with the GCN's ``P``, which has
    self-loops.
    """
    loops = sparse.eye_array(adjacency.shape[0], dtype=np.float32, format="csr")
    linked = sparse.csr_array(adjacency.maximum(adjacency.T))
    propagation = normalised(sparse.csr_array(linked + loops))
    averaged = features
    for _ in range(hops):
        averaged = propagation @ averaged
    return averaged


def neighbour_means(features: Any, linked: sparse.csr_array) -> Any:
    """The mean ``[N, F]`` of features ``[M, F]`` over the neighbours of a node, by edges
    ``[N, M]``."""
    counts = np.maximum(np.diff(linked.indptr), 1)
    ones = sparse.csr_array(
        (np.ones(linked.nnz, np.float32), linked.indices, linked.indptr), shape=linked.shape
    )
    return sparse.diags_array((1 / counts).astype(np.float32)) @ (ones @ features)
