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
    """A block of rows, sparse where most entries are zero, or where it was before."""
    return sparse.csr_array(block) if mostly_zero([block]) else block


def stack(blocks: Sequence[Any]) -> Any:
    """All rows ``[N, F]`` of blocks made by `pack`, sparse where most entries are zero."""
    if mostly_zero(blocks):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(block) for block in blocks]))
    return np.vstack([dense(block) for block in blocks])


def dense(features: Any) -> NDArray[np.float32]:
    """The features as a dense array."""
    array: NDArray[np.float32] = (
        features if isinstance(features, np.ndarray) else features.toarray()
    )
    return array


def mostly_zero(blocks: Sequence[Any]) -> bool:
    """Whether rows ``[N, F]`` in blocks, dense or sparse, have so few entries that they are stored sparse."""
    nonzero = sum(
        int(np.count_nonzero(block if isinstance(block, np.ndarray) else block.data))
        for block in blocks
    )
    cells = sum(int(block.shape[0] * block.shape[1]) for block in blocks)
    return nonzero < SPARSE_BELOW * cells
