"""Let only one process at a time write a folder or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infomax.errors import InputError

_FREE = "a place that no other process is writing"


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
        remedy = "Wait until it has ended, or choose another place."
        raise InputError(str(where), _FREE, "one that another process is writing", remedy) from None
    except OSError as error:
        raise InputError(str(where), "a place where files can be locked", error.strerror or str(error)) from error
    try:
        yield
    finally:
        # Removed while it is held, so that it is never the file of another process. Windows removes it on release.
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        file.release()
