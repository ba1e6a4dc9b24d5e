"""Whether the arrays of a graph folder hold what they must: no value leads outside another array.

Compiled code reads these arrays without looking. So their values are checked when a folder is
written, and when it is first opened in another state: the size and the times of each file. The
state is remembered in a file beside them (by the process alone, where that cannot be written), and
openings compare states.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.hashes import file_state
from infomax.errors import InputError

CHECKED = ".checked.json"
"""The file that holds the state in which a graph folder was checked."""
PREPARE_AGAIN = "Restore a copy, or make it again: infomax prepare."
VALUES_PER_PIECE = 1 << 20
"""Values that one thread checks at a time."""
NOT_FINITE_BITS = 0x7F800000
"""The bits of float32 numbers from here on are infinite, not a number or negative."""

NamedArrays: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays by the names of their files."""

_checked_states = set[str]()
"""The states that this process has checked."""


def check_once(
    folder: Path,
    files: Mapping[str, Mapping[str, Any]],
    description_hash: str,
    matrices: Sequence[tuple[NamedArrays, int]],
) -> None:
    """Check the values of a graph folder, unless that was done in this state.

    Args:
        folder: the graph folder.
        files: what graph.json says of each file.
        description_hash: the hash of graph.json.
        matrices: the arrays and the width of each matrix, as in `check_values`.
    """
    file_states = {name: file_state(folder / name) for name in files}
    state = json.dumps([description_hash, file_states], sort_keys=True)
    with suppress(OSError):
        # A process that has checked the folder does not even read the file.
        if state in _checked_states or (folder / CHECKED).read_bytes() == state.encode():
            return
    for arrays, width in matrices:
        check_values(folder, arrays, width)
    _checked_states.add(state)
    with suppress(OSError):
        (folder / CHECKED).write_text(state, encoding="utf-8")


def check_values(
    folder: Path, arrays: NamedArrays, width: int, values_per_piece: int = VALUES_PER_PIECE
) -> None:
    """Refuse values that lead outside of an array, and weights that are negative or not finite.

    Args:
        folder: the graph folder.
        arrays: those of a matrix ``[N, width]`` of neighbours or of features: the starts
            ``[N + 1]``, the columns ``[E]`` and, if there are any, the weights ``[E]``.
        width: the number of columns.
        values_per_piece: values that one thread checks at a time.
    """
    (starts_name, starts), *entry_arrays = arrays.items()
    num_rows = len(starts) - 1
    num_entries = len(entry_arrays[0][1])

    def falls(first: int) -> bool:
        # One value more than a piece, so that pieces leave no pair of values out.
        piece = _piece(starts, first, values_per_piece + 1)
        return bool((piece[1:] < piece[:-1]).any())

    def highest_bits(array: NDArray[Any], first: int) -> int:
        # As numbers without a sign, negative ones are larger than all others.
        return int(_piece(array, first, values_per_piece).view(np.uint32).max())

    column_name = "feature" if starts_name.startswith("feature") else "node"
    limits = {
        np.dtype(np.int32): (width, f"a {column_name}, from 0 to {width - 1}"),
        np.dtype(np.float32): (NOT_FINITE_BITS, "a finite weight"),
    }
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        has_wrong_ends = starts[0] != 0 or starts[-1] != num_entries
        first_rows = range(0, num_rows, values_per_piece)
        if has_wrong_ends or any(pool.map(falls, first_rows)):
            expected = f"numbers that ascend from 0 to {num_entries}, the number of entries"
            raise InputError(str(folder / starts_name), expected, "others", PREPARE_AGAIN)

        first_entries = range(0, num_entries, values_per_piece)
        for name, array in entry_arrays:
            limit, expected = limits[array.dtype]
            highest_of_pieces = pool.map(partial(highest_bits, array), first_entries)
            for first, highest in zip(first_entries, highest_of_pieces, strict=True):
                if highest >= limit:
                    piece = array[first : first + values_per_piece].view(np.uint32)
                    entry = first + int(np.argmax(piece >= limit))
                    location = f"{folder / name}, entry {entry + 1}"
                    raise InputError(location, expected, str(array[entry]), PREPARE_AGAIN)


def _piece(array: NDArray[Any], first: int, count: int) -> NDArray[Any]:
    """At most so many values; a mapped file is read, since page faults would take longer."""
    if not isinstance(array, np.memmap) or array.filename is None:
        return array[first : first + count]
    first_byte = array.offset + first * array.itemsize
    return np.fromfile(array.filename, array.dtype, count, offset=first_byte)


def refuse_not_finite(rows: Any) -> None:
    """Refuse mapped rows ``[N, F]`` that hold NaN or infinity.

    To be called when a result that was computed from such rows is not finite, to name the file.
    """
    # Rows of new nodes may follow; rows may be stored sparse.
    stored_rows = getattr(rows, "known", rows)
    array = getattr(stored_rows, "entries", stored_rows)
    if not isinstance(array, np.memmap):
        return
    numbers = array.reshape(-1)
    for first in range(0, len(numbers), VALUES_PER_PIECE):
        if not np.isfinite(numbers[first : first + VALUES_PER_PIECE]).all():
            raise InputError(str(array.filename), "finite numbers", "others", PREPARE_AGAIN)
