"""Write files so that they appear whole or not at all, and let only one process at a time write a place."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

from infomax.errors import InputError

_FILE = "a place where a file can be written"
_REMEDIES = {
    errno.ENOENT: "Create the folder",
    errno.EISDIR: "Name a file in it",
    errno.EACCES: "Permit writing there",
    errno.ENOSPC: "Make room there",
    errno.EFBIG: "Raise the limit on the size of a file",
}
_DAY = 24 * 60 * 60.0
_CLOCKS = 10.0
"""Seconds by which the clock of a disk, which may be that of a file server, may be behind that of this machine."""
_SECONDS, _LARGE = 0.1, 1 << 24
"""Seconds between two looks at a file that is being written, and the new bytes after which it is flushed."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; it replaces ``path`` when the block succeeds and is removed otherwise.

    The block should only write: an OSError inside it is reported as a place that cannot be written. Temporary files
    that a killed process left for the same path are removed first.
    """
    with writable(path, _FILE):
        temporary = _create(path)
        mode = temporary.stat().st_mode
        try:
            with _flushing(temporary):
                yield temporary
            temporary.chmod(mode)  # a library may have created the file anew, readable by its owner alone
            _flush(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _flushing(path: Path) -> Iterator[None]:
    """Let the disk write a large file while more of it comes: else the end would wait for all of it."""
    ended = Event()

    def flush() -> None:
        done = 0
        while not ended.wait(_SECONDS):
            with suppress(FileNotFoundError):  # a library may be creating the file anew
                if (size := path.stat().st_size) - done > _LARGE:
                    _flush(path)
                    done = size

    with ThreadPoolExecutor(1) as pool:
        flushed = pool.submit(flush)
        try:
            yield
        finally:
            ended.set()
        flushed.result()  # an error of the disk is told once only


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


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
        raise InputError(str(path), "a place for a new folder", "one that exists", "Remove it, or choose another.")


def remove_leftovers(path: Path, *, all_of_them: bool = False) -> None:
    """Remove the temporary files for ``path`` whose process on this machine has ended, or that are a day old.

    ``all_of_them`` is for a caller that holds a lock, so that no other process can be writing ``path``.
    """
    pattern = re.compile(rf"\.{re.escape(path.stem)}-tmp-(\w{{8}})-(\d{{1,9}})-\w{{8}}{re.escape(path.suffix)}")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            found = pattern.fullmatch(entry.name)
            if found and (all_of_them or _abandoned(entry, found[1], int(found[2]))):
                with suppress(OSError):
                    Path(entry.path).unlink()


def _abandoned(entry: os.DirEntry[str], machine: str, process: int) -> bool:
    """Whether nobody writes a temporary file any more."""
    written = entry.stat().st_mtime
    ended = machine == _machine() and _ended(process, written)
    return ended or time.time() - written > _DAY


def _ended(process: int, written: float) -> bool:
    """Whether a process that wrote at this time has ended; in a container, the next one may have the same number."""
    import psutil

    try:
        return bool(psutil.Process(process).create_time() > written + _CLOCKS)
    except psutil.NoSuchProcess:
        return True
    except psutil.Error:  # it is somebody else's
        return False


def _machine() -> str:
    """Eight characters that stand for the name of this machine."""
    return hashlib.sha256(platform.node().encode(errors="replace")).hexdigest()[:8]


def _create(path: Path) -> Path:
    """Create an empty temporary file beside ``path``."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a folder of that name")
    remove_leftovers(path)
    # Random, so that two writers of one path do not share a file; hidden, so that no pattern such as *.csv matches it.
    # The machine and the process tell later whether its writer is still running.
    owner = f"{_machine()}-{os.getpid()}-{secrets.token_hex(4)}"
    temporary = path.absolute().with_name(f".{path.stem}-tmp-{owner}{path.suffix}")
    temporary.touch(exist_ok=False)
    return temporary


@contextmanager
def writable(path: Path, expected: str) -> Iterator[None]:
    """Turn an OSError in this context into an InputError: ``path`` is not the ``expected`` place."""
    try:
        yield
    except OSError as error:
        cut = re.fullmatch(r"\d+ requested and \d+ written", str(error))  # NumPy's words, without a number
        first = _REMEDIES.get(errno.ENOSPC if cut else error.errno or 0)
        remedy = f"{first}, or choose another place." if first else "Choose another place."
        found = "no room for all of it" if cut else error.strerror or str(error)
        raise InputError(str(path), expected, found, remedy) from error


@contextmanager
def locked(lock: Path, where: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock file ``lock`` until the block ends, so that nobody else writes ``where``.

    The operating system releases the lock when its process ends, however it ends: a killed process leaves nothing that
    would keep the next one out. Where another process holds it, wait or refuse.
    """
    from filelock import FileLock, Timeout

    file = FileLock(lock)
    try:
        file.acquire(timeout=-1 if wait else 0)
    except Timeout:
        expected, found = "a place that no other process is writing", "one that another process is writing"
        remedy = "Wait until it has ended, or choose another place."
        raise InputError(str(where), expected, found, remedy) from None
    except OSError as error:
        raise InputError(str(where), "a place where files can be locked", error.strerror or str(error)) from error
    try:
        yield
    finally:
        # Removed while it is held, so that it is never the file of another process. Windows removes it on release.
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        file.release()
