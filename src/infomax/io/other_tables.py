"""Tables with other delimiters, encodings or extensions: the line of pandas that makes them readable."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any

LOOK = 1 << 16
"""Bytes of a file that are looked at."""


def by_pandas(path: Path, instead: str = "utf-8") -> str:
    """The line of pandas that turns a file into one that is read, by a look at its start; "" for what is no text.

    A first line that begins with a number names no columns. Then all of them are named: pandas would take the first
    ones for an index if there were more columns than names, and leave them out. ``instead`` is the encoding where the
    start would be UTF-8 and the file is known not to be.
    """
    try:
        with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb") as file:
            start = file.read(LOOK)
    except (OSError, EOFError, zlib.error):
        return ""
    encoding = _encoding(start) or instead
    first = next(iter(start.decode(encoding, errors="ignore").strip("\ufeff\r\n").splitlines()), "")
    if not first or "\0" in first:
        return ""
    mark = next((one for one in ("::", "\t") if one in first), max(";|,", key=first.count))
    cells = first.split(mark) if mark in first else first.split()
    how: dict[str, Any] = {"sep": mark if mark in first else r"\s+"}
    if cells[0].strip().lstrip("-").isdecimal():
        how["names"] = ["source", "target", *(f"column{at}" for at in range(3, len(cells) + 1))]
    if encoding != "utf-8":
        how["encoding"] = encoding
    if len(mark) > 1:
        how["engine"] = "python"
    said = ", ".join(f"{word}={value!r}" for word, value in how.items())
    said += ", decimal=','" if how["sep"] == ";" else ", dtype=str"
    name = path.name.removesuffix(".gz")
    target = Path(name).with_suffix(".csv").name
    new = target if target != name else f"new-{name}"
    return f'Python: pandas.read_csv("{path.name}", {said}).to_csv("{new}", index=False)'


def _encoding(start: bytes) -> str:
    """UTF-16 by its mark; "" where all whole lines are UTF-8; else Latin-1."""
    lines = start.rpartition(b"\n")[0] or start
    is_utf8 = lines.decode(errors="ignore").encode() == lines
    return "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "" if is_utf8 else "latin-1"
