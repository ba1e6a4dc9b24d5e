import numpy as np
import pytest
from scipy import sparse

from infomax.arrays.adjacency import transposed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (7, 300_000), (300_000, 200_001)])
def test_transpose_is_that_of_scipy(shape, weighted):
    draws, count = np.random.default_rng(0), 5000
    ends = [draws.integers(0, size, count) for size in shape]
    matrix = sparse.coo_array((draws.random(count, np.float32), ends), shape=shape).tocsr()
    matrix.data = matrix.data if weighted else np.ones_like(matrix.data)
    found, expected = transposed(matrix), matrix.T.tocsr()
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, part), getattr(expected, part))
