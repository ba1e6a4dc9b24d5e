"""Large text files in pieces that pyarrow parses, as long as they are plain; Python's csv reader reads all others."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from csv import Error, field_size_limit, reader
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

LARGE = 1 << 20
"""Bytes of a file from which it is worth loading pyarrow."""
PIECE = 1 << 24
"""Bytes that are parsed at once, after the first eighth of so many."""


def opened_packed(path: Path, mode: str, **how: Any) -> Any:
    """Open a file as ``open`` does; gzip packs it, or unpacks it, where its name ends in .gz."""
    return (gzip.open if path.suffix.lower() == ".gz" else open)(path, mode, **how)


def pieces(path: Path, names: Sequence[str], wanted: Sequence[str], mark: str) -> Iterator[tuple[Any, float]]:
    """The rows below the header as pyarrow tables of text, up to the first piece that is not plain; then None.

    With each comes the share of the file that has been read. Nothing follows where these are all rows. Not plain is
    what Python's reader may refuse, or find other cells in.
    """
    length = path.stat().st_size
    if length < LARGE or find_spec("pyarrow") is None:
        yield None, 0.0
        return
    try:
        with opened_packed(path, "rb") as file:
            header = file.readline().decode("utf-8-sig")
            if f"{mark} " in header or [name.strip() for name in next(reader([header], delimiter=mark))] != names:
                raise ValueError("another header")
            # Less at first, which often shows that columns are no numbers.
            rest, size, packed = b"", PIECE // 8, getattr(file, "fileobj", file)
            while piece := file.read(size):
                size = PIECE
                lines, end, rest = (rest + piece).rpartition(b"\n")
                if end:
                    yield _table(lines + end, names, wanted, mark), packed.tell() / length
            if rest:
                yield _table(rest + b"\n", names, wanted, mark), 1.0
    except (ValueError, OSError, EOFError, zlib.error, Error):  # Python's reader tells what is wrong
        yield None, 0.0


def _table(data: bytes, names: Sequence[str], wanted: Sequence[str], mark: str) -> Any:
    """The columns of a piece, which ends with a line; ValueError where it is not plain."""
    import pyarrow as pa
    from pyarrow import csv

    data.decode()
    if b"\0" in data or data.count(b"\r") != data.count(b"\r\n") or not _well_quoted(data, mark):
        raise ValueError("other than lines of cells")
    threads = len(data) > LARGE
    found = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=threads),
        csv.ParseOptions(delimiter=mark),
        csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False, include_columns=wanted
        ),
    )
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    if len(found) != len(ends) or np.diff(ends).max(initial=ends[0]) > field_size_limit():
        raise ValueError("rows that are no lines, or long ones")
    return found


def _well_quoted(data: bytes, mark: str) -> bool:
    """Whether every quoted cell is quoted as a whole, and a quote inside one is doubled: the others are in pairs.

    Of the quotes, every second one then begins a cell or follows a quote; those between end one or precede a quote.
    """
    text = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    around = np.isin(np.arange(256), np.frombuffer(f'{mark}\n\r"'.encode(), np.uint8))
    before, after = text[np.maximum(quotes[::2] - 1, 0)], text[quotes[1::2] + 1]
    return bool(around[before].all() and around[after].all())
