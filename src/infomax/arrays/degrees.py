"""The features that a graph without features gets: bins of the degrees of its nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

DEGREE_NAMES = tuple(f"degree {2**b - 1}-{2 ** (b + 1) - 2}" for b in range(32))
"""The names of the features of `degree_features`."""


def degree_features(degrees: NDArray[np.int64]) -> tuple[sparse.csr_array, list[str]]:
    """One-hot features ``[N, 32]`` of the degrees ``[N]``, for graphs that have no features; and their names.

    Column b is 1 where a degree d has ``floor(log2(d + 1)) == b``. The columns do not depend on the graph, so that a
    model trained on one graph can embed another.
    """
    bucket = np.minimum(np.log2(degrees + 1).astype(np.int64), 31)
    n = len(degrees)
    onehot = sparse.csr_array((np.ones(n, dtype=np.float32), bucket, np.arange(n + 1)), shape=(n, 32))
    return onehot, list(DEGREE_NAMES)
