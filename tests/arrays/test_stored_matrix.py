"""Parts of a graph that stay on disk do not depend on how much is read at once."""

from __future__ import annotations

import numpy as np
import pytest
from sample_graphs import random_graph

from infomax.arrays.adjacency import Senders


@pytest.mark.parametrize("bytes_per_block", [8, 56, 1 << 25])
def test_sums_of_weights_do_not_depend_on_the_blocks_they_are_read_in(bytes_per_block):
    matrix = random_graph(30, weighted=True, directed=True).adjacency
    sums = Senders(matrix.indptr, matrix.indices, matrix.data).sums(bytes_per_block)
    np.testing.assert_allclose(sums, matrix.sum(axis=1), rtol=1e-6)
