"""Tables of a folder of text and parquet files, and of frames."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io import text
from infomax.io.database.snapshot import Snapshot, refuse_same_names
from infomax.io.database.tables import Table
from infomax.io.sources import EXTENSIONS

EMPTY_CELLS = ("", "\\N", "NULL", "null")
"""What stands for nothing in a text file."""
ROWS_PER_BATCH = 1 << 16


def table_files(folder: Path) -> dict[str, Path]:
    """The tables in a folder by their names, those of files without the extension."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        suffix = text.extension(path)
        if suffix not in EXTENSIONS or not path.is_file() or path.name.startswith("."):
            continue
        name = path.name[: -len(suffix)]
        if name in files:
            found = f"{files[name].name} and {path.name}"
            raise InputError(str(folder), f"one file {name}.*", found)
        files[name] = path
    return files


def copy_files(folder: Path, snapshot: Snapshot) -> None:
    """Copy the tables of a folder."""
    for name, path in table_files(folder).items():
        if not snapshot.wants(name):
            continue
        if text.extension(path) in text.DELIMITERS:
            _copy_text(name, path, snapshot)
        else:
            from infomax.io.parquet import opened

            with opened(path) as parquet:
                batches = map(_columns, parquet.iter_batches(batch_size=ROWS_PER_BATCH))
                snapshot.copy(Table(name, "", {}), batches, names=parquet.schema_arrow.names)


def copy_frames(frames: Mapping[str, Any], snapshot: Snapshot) -> None:
    """Copy frames of pyarrow."""
    for name, frame in frames.items():
        batches = map(_columns, frame.to_batches())
        snapshot.copy(Table(name, "", {}), batches, names=frame.schema.names)


def _columns(batch: Any) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _copy_text(name: str, path: Path, snapshot: Snapshot) -> None:
    """Copy a text file, all cells as text; rows that end early are filled up: exports may leave the last cells out."""
    file = text.TextFile(path)
    refuse_same_names(str(path), file.names)
    table = Table(name, "", {}, is_text=True)
    batches = (_columns(batch) for batch in file.batches(file.names, ROWS_PER_BATCH))
    try:
        snapshot.copy(table, map(_without_empty_cells, batches), names=file.names)
    except InputError:
        text.refuse_wide(path)
        if not _has_short_rows(path, file.names):
            raise
        filled_rows = _filled_rows(path, file.names)
        snapshot.copy(table, map(_without_empty_cells, filled_rows), names=file.names)


def _without_empty_cells(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of text with null in place of what stands for nothing."""
    import pyarrow as pa
    from pyarrow import compute

    empty_cells = pa.array(EMPTY_CELLS, pa.large_string())
    nothing = pa.scalar(None, pa.large_string())
    return {
        name: compute.if_else(compute.is_in(cells, value_set=empty_cells), nothing, cells)
        for name, cells in columns.items()
    }


def _has_short_rows(path: Path, names: Sequence[str]) -> bool:
    """Whether a file can be read but for rows with fewer cells than the header has."""
    try:
        with text.opened(path) as file, _cells_of_any_length():
            reader = csv.reader(file, delimiter=text.DELIMITERS[text.extension(path)], strict=True)
            return any(0 < len(row) < len(names) for row in reader)
    except (csv.Error, UnicodeDecodeError):
        return False


def _filled_rows(path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a text file as columns, with empty cells where a row ends early."""
    import pyarrow as pa

    with text.opened(path) as file, _cells_of_any_length():
        reader = csv.reader(file, delimiter=text.DELIMITERS[text.extension(path)])
        rows = (row + [""] * (len(names) - len(row)) for row in reader if row)
        next(rows)
        while some := list(islice(rows, ROWS_PER_BATCH)):
            columns = zip(names, zip(*some, strict=True), strict=True)
            yield {name: pa.array(cells, pa.large_string()) for name, cells in columns}


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let Python's reader take a cell that is longer than its limit of 131,072 signs, which holds for a process."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
