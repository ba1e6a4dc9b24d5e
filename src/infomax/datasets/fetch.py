"""Public files: find or download them, and check their size and SHA-256."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from infomax.arrays.hashes import file_hash
from infomax.errors import InputError
from infomax.io.atomic import locked
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
    total, before, paths = sum(file.size for file in files), 0, []
    for file in files:
        if path := _find(file):
            check(path, file)
        else:
            path = data_folders()[-1] / file.path
            download(file, path, lambda done, note="", _=None, before=before: progress(before + done, note, total))
        paths.append(path)
        before += file.size
        progress(before, "bytes", total)
    return paths


def download(file: PublicFile, target: Path, progress: Progress = silent) -> None:
    """Download to ``target``, continuing a ``target.part`` of an earlier attempt.

    Where another process is downloading the same file, wait for it and take its result.
    """
    from http.client import HTTPException

    remedy = "Try again, and it continues from there; or put the file into a folder and set INFOMAX_DATA to that."
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(target.parent), "a folder that can be written", str(error), remedy) from error
    with locked(target.with_name(f"{target.name}.lock"), target, wait=True):
        if target.is_file():
            check(target, file)
            return
        part = target.with_name(f"{target.name}.part")
        try:
            _receive(file, part, progress)
        except (OSError, HTTPException) as error:
            raise InputError(file.url, f"a file of {file.size:,} bytes", str(error), remedy) from error
        try:
            check(part, file)
        except InputError:
            part.unlink()
            raise
        part.replace(target)


def check(path: Path, file: PublicFile) -> None:
    """Refuse a file of any other size or SHA-256."""
    found = f"{path.stat().st_size:,} bytes"
    if path.stat().st_size == file.size:
        if (digest := file_hash(path)) == file.sha256:
            return
        found = f"SHA-256 {digest}"
    expected = f"{file.size:,} bytes with SHA-256 {file.sha256}"
    raise InputError(str(path), expected, found, "Remove it if it still exists, and it is downloaded again.")


def _find(file: PublicFile) -> Path | None:
    places = [folder / name for folder in data_folders() for name in (file.path, Path(file.path).name)]
    return next((place for place in places if place.is_file()), None)


def _receive(file: PublicFile, part: Path, progress: Progress) -> None:
    import ssl
    from urllib.request import Request, urlopen

    done = part.stat().st_size if part.exists() else 0
    if done >= file.size:  # stopped just before the check
        return
    request = Request(file.url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310 - from our own table
    verified = ssl.create_default_context()
    with urlopen(request, timeout=_TIMEOUT, context=verified) as response, part.open("ab") as content:  # noqa: S310
        if response.status != 206:  # the server does not support ranges and sends everything
            done = content.truncate(0)
        while done <= file.size and (chunk := response.read(_CHUNK)):
            content.write(chunk)
            done += len(chunk)
            progress(done, "bytes", file.size)
        content.flush()
        os.fsync(content.fileno())
    if done < file.size:
        raise ConnectionError(f"a connection that closed after {done:,} bytes")
