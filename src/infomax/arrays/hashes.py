"""The hash of a file, and the state of a file by which a change is noticed without reading it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_hash(path: Path) -> str:
    """SHA-256 of a file.

    Like any hash beside a file, it does not stop somebody who changes both.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_state(path: Path) -> list[int]:
    """The size and the times of a file. On Linux and macOS no program can set the last one back."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
