"""Plain arrays in an npz file, an archive that `numpy.load` reads, too."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError

Arrays: TypeAlias = dict[str, NDArray[Any]]

BYTES_PER_WRITE = 1 << 18
"""So many bytes stay in the cache from their checksum to their copy for the disk."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name, as `numpy.savez` does, but without copying them."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            array = np.asarray(values, order="C")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = np.lib.format.header_data_from_array_1_0(array)
                np.lib.format.write_array_header_1_0(member, header)
                data = array.reshape(-1).view(np.uint8)
                for first in range(0, len(data), BYTES_PER_WRITE):
                    member.write(data[first : first + BYTES_PER_WRITE].data)


def read_arrays(path: Path) -> Arrays:
    """Every array of an npz file; a damaged file is refused."""
    arrays = {}
    # The key that is being read, for a message.
    key = ""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise ValueError("another format, or a file cut short")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            # NumPy writes no comments: where there is one, a damaged length made it swallow the
            # entries that follow.
            if any(entry.comment for entry in archive.zip.infolist()):
                raise ValueError("a damaged table of contents")
            for entry in archive.zip.infolist():
                key = entry.filename.removesuffix(".npy")
                with archive.zip.open(entry) as member:
                    arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
                    # Only an entry that is read to its very end has its checksum verified.
                    if member.read(1):
                        raise ValueError("more data than the shape of the array tells")
    # A damaged archive makes zipfile, zlib and numpy raise almost anything.
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        location = f'{path}, key "{key}"' if key else str(path)
        raise InputError(location, "an npz file of plain arrays", reason) from error
    return arrays
