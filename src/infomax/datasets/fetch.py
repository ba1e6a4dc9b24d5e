"""Public files: find or download them, and check their size and SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from infomax.arrays.hashes import file_hash
from infomax.errors import InputError
from infomax.io.atomic import make_folder, replacing
from infomax.progress import Progress, silent

BYTES_AT_ONCE = 1 << 16
SECONDS_WITHOUT_ANSWER = 30.0
"""A download ends with an error if a server is silent for so long."""


class PublicFile(NamedTuple):
    """A file that anybody can download, with its expected size and hash."""

    path: str
    """Its path inside the data folder: ``planetoid/ind.cora.x``."""
    url: str
    size: int
    sha256: str


def data_folders() -> list[Path]:
    """The folders to look for files in, in this order; downloads go to the last, the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "infomax"
    users_folder = os.environ.get("INFOMAX_DATA")
    return [Path(users_folder), cache] if users_folder else [cache]


def data_path() -> Path:
    """The first of `data_folders`: ``$INFOMAX_DATA`` where it is set, else the cache."""
    return data_folders()[0]


def obtain(files: Sequence[PublicFile], progress: Progress = silent) -> list[Path]:
    """The path of every file, checked by size and SHA-256; missing files are downloaded."""
    total_bytes = sum(file.size for file in files)
    bytes_before = 0
    paths = []
    for file in files:
        path = _find(file)
        if path is not None:
            _refuse_other_content(str(path), path.stat().st_size, file_hash(path), file)
        else:
            path = data_folders()[-1] / file.path
            download(file, path, _progress_after(bytes_before, total_bytes, progress))
        paths.append(path)
        bytes_before += file.size
        progress(bytes_before, "bytes", total_bytes)
    return paths


def _progress_after(bytes_before: int, total_bytes: int, progress: Progress) -> Progress:
    """Tells of the bytes of one file as of those of all files."""

    def tell(done: int, note: str = "", total: int | None = None) -> None:
        progress(bytes_before + done, note, total_bytes)

    return tell


def download(file: PublicFile, target: Path, progress: Progress = silent) -> None:
    """Download to ``target``, which appears whole and checked, or not at all."""
    import ssl
    from http.client import HTTPException
    from urllib.request import urlopen

    content = bytearray()
    try:
        # The address is one of the tables of this package.
        with urlopen(  # noqa: S310
            file.url, timeout=SECONDS_WITHOUT_ANSWER, context=ssl.create_default_context()
        ) as response:
            # A server that sends more than was expected is not listened to for ever.
            while len(content) <= file.size:
                chunk = response.read(BYTES_AT_ONCE)
                if not chunk:
                    break
                content += chunk
                progress(len(content), "bytes", file.size)
    except (OSError, HTTPException) as error:
        remedy = "Try again; or put the file into a folder and set INFOMAX_DATA to that."
        raise InputError(file.url, f"a file of {file.size:,} bytes", str(error), remedy) from error
    _refuse_other_content(file.url, len(content), hashlib.sha256(content).hexdigest(), file)
    make_folder(target.parent)
    with replacing(target) as temporary:
        temporary.write_bytes(content)


def _find(file: PublicFile) -> Path | None:
    """The first data folder's copy of a file, at its path or beside the folders of data sets."""
    for folder in data_folders():
        for name in (file.path, Path(file.path).name):
            path = folder / name
            if path.is_file():
                return path
    return None


def _refuse_other_content(location: str, size: int, sha256: str, file: PublicFile) -> None:
    """Refuse content of any other size or SHA-256."""
    if (size, sha256) != (file.size, file.sha256):
        expected = f"{file.size:,} bytes with SHA-256 {file.sha256}"
        found = f"{size:,} bytes with SHA-256 {sha256}"
        remedy = "Remove it if it is a file, and it is downloaded again."
        raise InputError(location, expected, found, remedy)
