"""Hashes of files: by SHA-256, or faster by checksums."""

from __future__ import annotations

import hashlib
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

_PIECE, _PART = 1 << 24, 1 << 18
"""Bytes that have one CRC-32, and those that are read at once, which stay in the cache."""


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_state(path: Path) -> list[int]:
    """The size and the times of a file. On Linux and macOS a write changes a time that no program sets back."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def checksum(path: Path) -> str:
    """SHA-256 of the CRC-32s of a file's pieces: finds damage and other files in a fifth of the time.

    Like any hash that stands beside a file, it does not stop somebody who changes both.
    """

    def crc(at: int) -> int:
        found, left = 0, _PIECE
        with path.open("rb", buffering=0) as file:
            file.seek(at)
            while part := file.read(min(left, _PART)):
                found, left = zlib.crc32(part, found), left - len(part)
        return found

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        found = pool.map(crc, range(0, path.stat().st_size, _PIECE))
        return hashlib.sha256(np.fromiter(found, "<u4").tobytes()).hexdigest()
