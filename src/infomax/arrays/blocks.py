"""Large arrays are read some rows at a time, or into memory if there is room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax import memory
from infomax.errors import InputError
from infomax.memory import format_size

BLOCK_BYTES = 1 << 25
"""About as many bytes are read at once."""


def row_blocks(table: Any, bytes_per_block: int = BLOCK_BYTES) -> Iterator[Any]:
    """The rows of a table ``[N, F]``, an array or one on disk, some at a time."""
    # A column of parquet files is read from its beginning to its end.
    if hasattr(table, "blocks"):
        return table.blocks()  # type: ignore[no-any-return]
    num_rows, width = table.shape
    rows_per_block = max(1, bytes_per_block // (4 * width))
    return (table[first : first + rows_per_block] for first in range(0, num_rows, rows_per_block))


def unit(vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Vectors ``[n, d]`` of length 1; zeros stay zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    units: NDArray[Any] = vectors / np.where(lengths > 0, lengths, 1)
    return units.astype(np.float32, copy=False)


def require_room(needed: int, use: str, remedy: str = "", where: str = "graph folder") -> None:
    """Refuse to take more memory than is free.

    Args:
        needed: bytes.
        use: what they are for, as in "read all of its edges".
        remedy: what to do; without one, what to do about a graph folder.
        where: what the message is about.
    """
    if needed == 0:
        return
    free = memory.free_bytes()
    if needed > free:
        default_remedy = (
            "Use --preset batches, which reads a graph folder row by row; or allow more memory."
        )
        expected = f"{format_size(needed)} free, to {use}"
        raise InputError(where, expected, format_size(free), remedy or default_remedy)
