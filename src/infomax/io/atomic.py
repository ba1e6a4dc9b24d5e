"""Files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infomax.errors import InputError

_FILE = "a place where a file can be written"
_REMEDIES = {
    errno.ENOENT: "Create the folder",
    errno.EISDIR: "Name a file in it",
    errno.EACCES: "Permit writing there",
    errno.ENOSPC: "Make room there",
    errno.EFBIG: "Raise the limit on the size of a file",
}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved into its place when the block ends well, removed when it does not.

    The block should do nothing but write: an OSError inside it is told as a place that cannot be written.
    """
    with _telling(path, _FILE):
        temporary = _create(path)
        mode = temporary.stat().st_mode
        try:
            yield temporary
            temporary.chmod(mode)  # a library may have made the file anew, for its owner alone
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def check_place(path: Path) -> None:
    """Refuse, before the work is done, a path that `replacing` could not write."""
    with _telling(path, _FILE):
        _create(path).unlink()


def make_folder(path: Path) -> None:
    """Make a folder, and those that it lies in, where they are not there yet; refuse one that cannot be written."""
    with _telling(path, "a folder that can be written"):
        path.mkdir(parents=True, exist_ok=True)
        _create(path / "file").unlink()


def _create(path: Path) -> Path:
    """An empty file beside ``path``."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder of that name")
    # A random hidden name, so that two writers of one file do not meet and no pattern such as *.csv finds it.
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    temporary.touch(exist_ok=False)
    return temporary


@contextmanager
def _telling(path: Path, expected: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        first = _REMEDIES.get(error.errno or 0)
        remedy = f"{first}, or choose another place." if first else "Choose another place."
        raise InputError(str(path), expected, error.strerror or str(error), remedy) from error
