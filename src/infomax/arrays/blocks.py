"""Large arrays are read some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

BLOCK_BYTES = 1 << 25
"""About as many bytes are read at once."""


def row_blocks(table: Any) -> Iterator[Any]:
    """The rows of a dense table ``[N, F]``, an array or one on disk, some at a time."""
    step = max(1, BLOCK_BYTES // (4 * table.shape[1]))
    return (table[first : first + step] for first in range(0, table.shape[0], step))
