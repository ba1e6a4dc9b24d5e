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

_CHUNK, _TIMEOUT = 1 << 16, 30.0


class PublicFile(NamedTuple):
    """A file that anybody can download, with its expected size and hash."""

    path: str
    """Its path inside the data folder: ``planetoid/ind.cora.x``."""
    url: str
    size: int
    sha256: str


def data_folders() -> list[Path]:
    """The folders to look for files in, in this order; downloads go to the last, the cache."""
    given = os.environ.get("INFOMAX_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "infomax"
    return [Path(given), cache] if given else [cache]


def data_path() -> Path:
    """The first of `data_folders`: ``$INFOMAX_DATA`` where it is set, else the cache."""
    return data_folders()[0]


def obtain(files: Sequence[PublicFile], progress: Progress = silent) -> list[Path]:
    """The path of every file, checked by size and SHA-256; missing files are downloaded."""
    total = sum(file.size for file in files)
    before = 0
    paths = []
    for file in files:
        if path := _find(file):
            _refuse_other(str(path), path.stat().st_size, file_hash(path), file)
        else:
            path = data_folders()[-1] / file.path
            download(
                file,
                path,
                lambda done, note="", _=None, before=before: progress(before + done, note, total),
            )
        paths.append(path)
        before += file.size
        progress(before, "bytes", total)
    return paths


def download(file: PublicFile, target: Path, progress: Progress = silent) -> None:
    """Download to ``target``, which appears whole and checked, or not at all."""
    import ssl
    from http.client import HTTPException
    from urllib.request import urlopen

    content = bytearray()
    try:
        verified = ssl.create_default_context()
        with urlopen(file.url, timeout=_TIMEOUT, context=verified) as response:  # noqa: S310 - from our own table
            while len(content) <= file.size and (chunk := response.read(_CHUNK)):
                content += chunk
                progress(len(content), "bytes", file.size)
    except (OSError, HTTPException) as error:
        remedy = "Try again; or put the file into a folder and set INFOMAX_DATA to that."
        raise InputError(file.url, f"a file of {file.size:,} bytes", str(error), remedy) from error
    _refuse_other(file.url, len(content), hashlib.sha256(content).hexdigest(), file)
    make_folder(target.parent)
    with replacing(target) as temporary:
        temporary.write_bytes(content)


def _find(file: PublicFile) -> Path | None:
    places = [
        folder / name for folder in data_folders() for name in (file.path, Path(file.path).name)
    ]
    return next((place for place in places if place.is_file()), None)


def _refuse_other(where: str, size: int, sha256: str, file: PublicFile) -> None:
    """Refuse content of any other size or SHA-256."""
    if (size, sha256) != (file.size, file.sha256):
        expected = f"{file.size:,} bytes with SHA-256 {file.sha256}"
        found = f"{size:,} bytes with SHA-256 {sha256}"
        raise InputError(
            where, expected, found, "Remove it if it is a file, and it is downloaded again."
        )
