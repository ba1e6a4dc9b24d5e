"""Batches of a text table that are parsed once, and read twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any

BYTES_KEPT = 1 << 28
"""Bytes of cells that are kept; larger tables are parsed twice."""


class KeptBatches:
    """The batches of the files of a table, kept from the pass that learns its columns.

    The pass that follows makes features of the same cells. Parsing them takes longer than all else
    that is done with wide tables. A batch is forgotten once it was read again.
    """

    def __init__(self, most_bytes: int = BYTES_KEPT) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._batches_of_file: dict[int, deque[tuple[Any, float]]] = {}

    def keep(
        self, file_number: int, batches: Iterator[Any], share_read: Callable[[], float]
    ) -> Iterator[tuple[Any, float]]:
        """The batches of a file, each with the share of it that has been read, which are kept."""
        kept: deque[tuple[Any, float]] = deque()
        for batch in batches:
            share = share_read()
            self._bytes += batch.nbytes
            if self._bytes <= self._most_bytes:
                kept.append((batch, share))
            else:
                kept.clear()
            yield batch, share
        # A file is kept once it was read to its end.
        if self._bytes <= self._most_bytes:
            self._batches_of_file[file_number] = kept

    def take(
        self, file_number: int, columns: Collection[str]
    ) -> Iterator[tuple[Any, float]] | None:
        """The batches of a file that were kept, with these columns; None: it is to be parsed."""
        kept = self._batches_of_file.pop(file_number, None)
        if not kept or not set(columns) <= set(kept[0][0].schema.names):
            return None
        return self._drain(kept)

    def _drain(self, kept: deque[tuple[Any, float]]) -> Iterator[tuple[Any, float]]:
        while kept:
            batch, share = kept.popleft()
            self._bytes -= batch.nbytes
            yield batch, share
