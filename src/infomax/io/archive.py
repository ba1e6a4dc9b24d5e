"""Plain arrays in an npz file, an archive that `numpy.load` reads, too."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax import machine
from infomax.arrays.checks import MOST_FEATURES
from infomax.errors import InputError

Arrays: TypeAlias = dict[str, NDArray[Any]]

_PIECE = 1 << 18
"""Bytes that are written at once: they stay in the cache from their checksum to their copy for the disk."""
_DEFLATED = 1032
"""What deflate can compress at best: a file that claims more is damaged or crafted."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, as `numpy.savez` does, but without copying them."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            array = np.asarray(values, order="C")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(array))
                data = array.reshape(-1).view(np.uint8)
                for first in range(0, len(data), _PIECE):
                    member.write(data[first : first + _PIECE].data)


def read_arrays(path: Path) -> Arrays:
    """Every array of an npz file. A damaged file is refused, and so is one whose arrays this machine cannot hold."""
    where, arrays = str(path), {}
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("another format, or a file cut short")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            # numpy writes no comments: where there is one, a damaged length made it swallow the entries that follow.
            if any(entry.comment for entry in archive.zip.infolist()):
                raise ValueError("a damaged table of contents")
            _check_sizes(path, archive.zip)
            for key in archive.files:
                where = f'{path}, key "{key}"'
                arrays[key] = np.asarray(archive[f"{key}.npy"])  # of the keys x and x.npy, numpy takes one for both
    except InputError:
        raise
    except Exception as error:  # a damaged archive makes zipfile, zlib and numpy raise almost anything
        found = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise InputError(where, "an npz file of plain arrays", found) from error
    return arrays


def _check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse arrays that do not fit, by their headers: a small compressed file may hold very large arrays."""
    total = 0
    for entry in archive.infolist():
        key = entry.filename.removesuffix(".npy")
        with archive.open(entry) as member:
            shape, size = _read_header(member)
            there = entry.file_size - member.tell()
        # Only an entry that is read to its very end has its checksum verified.
        if size != there or entry.file_size > _DEFLATED * entry.compress_size + 1000:
            raise InputError(f'{path}, key "{key}"', f"an array of shape {list(shape)}", "less or more data than that")
        if key.endswith("features") and len(shape) == 2 and shape[1] > MOST_FEATURES:
            raise InputError(f'{path}, key "{key}"', f"at most {MOST_FEATURES:,} columns", f"{shape[1]:,}")
        total += size
    free = machine.free_bytes()
    if total > free:
        raise InputError(str(path), f"arrays of at most {machine.size(free)}, the free memory", machine.size(total))


def _read_header(member: IO[bytes]) -> tuple[tuple[int, ...], int]:
    """The shape of an array in npy format, and its size in bytes."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, math.prod(shape) * dtype.itemsize


def contents_hash(path: Path) -> str:
    """SHA-256 of what an npz file says of its arrays: name, size and CRC-32 of each, which reading verifies."""
    try:
        with zipfile.ZipFile(path) as archive:
            told = [(entry.filename, entry.file_size, entry.CRC) for entry in archive.infolist()]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InputError(str(path), "an npz file", str(error)) from error
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
