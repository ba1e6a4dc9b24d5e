"""Write files that appear whole or not at all, and let one process at a time write a folder."""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infomax.errors import InputError

_FILE = "a place where a file can be written"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which replaces ``path`` when the block succeeds.

    Otherwise it is removed. The block should only write: an OSError inside it is reported as a
    place that cannot be written.
    """
    with writable(path, _FILE):
        temporary = _create(path)
        mode = temporary.stat().st_mode
        try:
            yield temporary
            # A library may have created the file anew, readable by its owner alone.
            temporary.chmod(mode)
            # On the disk before it is renamed, so that a crash leaves the old file or the new one.
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_place(path: Path) -> None:
    """Refuse a path that `replacing` could not write, before the work is done."""
    with writable(path, _FILE):
        _create(path).unlink()


def make_folder(path: Path) -> None:
    """Create a folder and its parents where they are missing; refuse one that cannot be written."""
    with writable(path, "a folder that can be written"):
        path.mkdir(parents=True, exist_ok=True)
        _create(path / "file").unlink()


def refuse_existing(path: Path) -> None:
    """Refuse a place for a new folder where there is something already."""
    if path.exists():
        remedy = "Remove it, or choose another."
        raise InputError(str(path), "a place for a new folder", "one that exists", remedy)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files for ``path`` that a killed process has left.

    The caller holds a lock on the path.
    """
    pattern = f".{glob.escape(path.stem)}-tmp-*{path.suffix}"
    for temporary in path.parent.glob(pattern):
        temporary.unlink(missing_ok=True)


def _create(path: Path) -> Path:
    """Create an empty temporary file beside ``path``."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder of that name")
    # Random, so that two writers of one path do not share a file; hidden, so that no pattern such
    # as *.csv matches it.
    temporary = path.absolute().with_name(f".{path.stem}-tmp-{secrets.token_hex(4)}{path.suffix}")
    temporary.touch(exist_ok=False)
    return temporary


@contextmanager
def writable(path: Path, expected: str) -> Iterator[None]:
    """Turn an OSError in this context into an InputError: ``path`` is not what is expected."""
    try:
        yield
    except OSError as error:
        remedy = "Choose another place, or make room there and permit writing."
        if isinstance(error, FileNotFoundError):
            remedy = f"Make the folder first: {path.parent}."
        elif isinstance(error, FileExistsError | IsADirectoryError | NotADirectoryError):
            remedy = "Choose another place."
        raise InputError(str(path), expected, error.strerror or str(error), remedy) from error


@contextmanager
def locked(lock_path: Path, folder: Path) -> Iterator[None]:
    """Hold a lock file until the block ends, so that nobody else writes into a folder.

    The operating system releases the lock when its process ends, however it ends: a killed process
    leaves nothing that would keep the next one out. A lock that another process holds is refused.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(lock_path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        expected = "a place that no other process is writing"
        found = "one that another process is writing"
        remedy = "Wait until it has ended, or choose another place."
        raise InputError(str(folder), expected, found, remedy) from None
    except OSError as error:
        expected = "a place where files can be locked"
        raise InputError(str(folder), expected, error.strerror or str(error)) from error
    try:
        yield
    finally:
        # Removed while it is held, so that it is never the file of another process. Windows removes
        # it on release.
        with suppress(OSError):
            lock_path.unlink(missing_ok=True)
        lock.release()
