"""Features are stored sparse where most of them are zero: the one rule for all sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

SPARSE_BELOW = 0.1
"""Features are stored sparse where a smaller share of them than this is not zero."""


def pack(block: Any) -> Any:
    """A block of rows, sparse where most entries are zero, or where it is sparse already."""
    return sparse.csr_array(block) if mostly_zero([block]) else block


def stack(blocks: Sequence[Any]) -> Any:
    """All rows ``[N, F]`` of blocks made by `pack`, sparse where most entries are zero."""
    if mostly_zero(blocks):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    return np.vstack([dense(block) for block in blocks])


def dense(features: Any) -> NDArray[np.float32]:
    """The features as a dense array."""
    if isinstance(features, np.ndarray):
        return features
    array: NDArray[np.float32] = features.toarray()
    return array


def mostly_zero(blocks: Sequence[Any]) -> bool:
    """Whether rows ``[N, F]`` in blocks have so few entries that they are stored sparse."""
    nonzero_count = 0
    cell_count = 0
    for block in blocks:
        numbers = block if isinstance(block, np.ndarray) else block.data
        nonzero_count += int(np.count_nonzero(numbers))
        cell_count += int(block.shape[0] * block.shape[1])
    return nonzero_count < SPARSE_BELOW * cell_count
