"""Whether the arrays of a graph folder hold what they must: no value in them leads outside another array.

Compiled code reads these arrays without looking. So their values are checked when a folder is written, and when it is
first opened in another state: the size and the times of each file. The state is remembered in a file beside them (by
the process alone, where that cannot be written), and openings compare states.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.hashes import file_state
from infomax.errors import InputError

CHECKED = ".checked.json"
AGAIN = "Restore a copy, or make it again: infomax prepare."
FINITE = 0x7F800000
"""Bits of float32 from here on are infinite, not a number or negative."""

_PIECE = 1 << 20
_known = set[str]()


def check_once(
    folder: Path,
    files: dict[str, dict[str, Any]],
    described: str,
    matrices: Sequence[tuple[dict[str, NDArray[Any]], int]],
) -> None:
    """Check the values of a graph folder, unless that was done in this state.

    ``files`` is what graph.json says of each file, ``described`` its hash. Each of the ``matrices`` is as in
    `check_values`.
    """
    state = json.dumps(
        [described, {name: file_state(folder / name) for name in files}], sort_keys=True
    )
    with suppress(OSError):
        if state in _known or (folder / CHECKED).read_bytes() == state.encode():
            return
    for arrays, width in matrices:
        check_values(folder, arrays, width)
    _known.add(state)
    with suppress(OSError):
        (folder / CHECKED).write_text(state, encoding="utf-8")


def check_values(folder: Path, arrays: dict[str, NDArray[Any]], width: int) -> None:
    """Refuse values that lead outside of an array, and weights that are negative or not finite.

    The arrays, by the names of their files, are the starts ``[N + 1]``, the columns ``[E]``, and the weights ``[E]`` if
    any, of a matrix ``[N, width]``: of neighbours or of features.
    """
    (name, starts), *others = arrays.items()
    n, entries = len(starts) - 1, len(others[0][1])
    thing = "feature" if name.startswith("feature") else "node"
    limits = {
        np.dtype(np.int32): (width, f"a {thing}, from 0 to {width - 1}"),
        np.dtype(np.float32): (FINITE, "a finite weight"),
    }

    def falls(at: int) -> bool:
        part = _piece(starts, at, _PIECE + 1)
        return bool((part[1:] < part[:-1]).any())

    def highest(array: NDArray[Any], at: int) -> int:
        return int(
            _piece(array, at, _PIECE).view(np.uint32).max()
        )  # negative numbers are larger than all others

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        if starts[0] != 0 or starts[-1] != entries or any(pool.map(falls, range(0, n, _PIECE))):
            expected = f"numbers that ascend from 0 to {entries}, the number of entries"
            raise InputError(str(folder / name), expected, "others", AGAIN)
        for name, array in others:
            limit, expected = limits[array.dtype]
            places = range(0, entries, _PIECE)
            for at, found in zip(places, pool.map(partial(highest, array), places), strict=True):
                if found >= limit:
                    at += int(np.argmax(array[at : at + _PIECE].view(np.uint32) >= limit))
                    raise InputError(
                        f"{folder / name}, entry {at + 1}", expected, str(array[at]), AGAIN
                    )


def _piece(array: NDArray[Any], at: int, count: int) -> NDArray[Any]:
    """At most ``count`` values from one on; a mapped file is read, since page faults would take longer."""
    if not isinstance(array, np.memmap) or array.filename is None:
        return array[at : at + count]
    return np.fromfile(
        array.filename, array.dtype, count, offset=array.offset + at * array.itemsize
    )


def refuse_not_finite(array: Any) -> None:
    """Refuse mapped rows ``[N, F]`` that hold NaN or infinity; for when what was computed from them does."""
    rows = getattr(array, "known", array)  # rows of new nodes may follow
    array = getattr(rows, "entries", rows)  # rows may be stored sparse
    if not isinstance(array, np.memmap):
        return
    numbers = array.reshape(-1)
    for first in range(0, len(numbers), _PIECE):
        if not np.isfinite(numbers[first : first + _PIECE]).all():
            raise InputError(str(array.filename), "finite numbers", "others", AGAIN)
