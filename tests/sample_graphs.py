"""Small graphs for the tests."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from infomax import Graph


def random_graph(
    n: int = 40, f: int = 12, seed: int = 0, *, weighted: bool = False, directed: bool = False, dense: bool = False
) -> Graph:
    """A graph with an isolated node (the last) and an all-zero row of features (the first)."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, (2, 3 * n))
    features = rng.random((n, f)) * (rng.random((n, f)) < 0.3)
    features[0] = 0
    return Graph.from_arrays(
        edges,
        features if dense else sparse.csr_array(features),
        weight=rng.random(3 * n) + 0.1 if weighted else None,
        directed=directed,
        labels={"class": rng.integers(0, 3, n)},
    )
