"""Files appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infomax.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved into its place when the block ends well, removed when it does not.

    The block should do nothing but write: an OSError inside it is told as a place that cannot be written.
    """
    # A random hidden name, so that two writers of one file do not meet and no pattern such as *.csv finds it.
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "a folder of that name")
        temporary.touch(exist_ok=False)
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = "Create the folder, or choose another place."
        raise InputError(str(path), "a place where a file can be written", reason, remedy) from error
    finally:
        with suppress(OSError):  # it has moved, or could not even be created
            temporary.unlink()
