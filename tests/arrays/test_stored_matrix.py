"""Parts of a graph that stay on disk do not depend on how much is read at once."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax.arrays import adjacency


@pytest.mark.parametrize("bytes_read", [8, 56, 1 << 25])
def test_sums_of_weights_do_not_depend_on_the_blocks_they_are_read_in(bytes_read, monkeypatch):
    matrix = random_graph(30, weighted=True, directed=True).adjacency
    monkeypatch.setattr(adjacency, "BLOCK_BYTES", bytes_read)
    sums = adjacency.Senders(matrix.indptr, matrix.indices, matrix.data).sums()
    np.testing.assert_allclose(sums, matrix.sum(axis=1), rtol=1e-6)
