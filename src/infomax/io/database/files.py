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
from infomax.io.database.snapshot import Snapshot, Table, refuse_same_names
from infomax.io.text import AS_THE_EXTENSION_SAYS, TextFormat

EMPTY_CELLS = ("", "\\N", "NULL", "null")
"""What stands for nothing in a text file."""
ROWS_PER_BATCH = 1 << 16


def table_files(folder: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> dict[str, Path]:
    """The tables in a folder by their names, those of files without the extension."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        extension = text.extension(path)
        is_table = text.is_table_file(path, text_format)
        if not is_table or not path.is_file() or path.name.startswith("."):
            continue
        name = path.name[: -len(extension)]
        if name in files:
            both_names = f"{files[name].name} and {path.name}"
            raise InputError(str(folder), f"one file {name}.*", both_names)
        files[name] = path
    return files


def copy_files(folder: Path, snapshot: Snapshot, text_format: TextFormat) -> None:
    """Copy the tables of a folder."""
    for name, path in table_files(folder, text_format).items():
        if not snapshot.wants(name):
            continue
        if text.is_text(path, text_format):
            _copy_text(name, path, snapshot, text_format)
        else:
            from infomax.io.parquet import opened

            with opened(path) as parquet:
                batches = map(_columns, parquet.iter_batches(batch_size=ROWS_PER_BATCH))
                snapshot.copy(Table(name), batches, names=parquet.schema_arrow.names)


def copy_frames(frames: Mapping[str, Any], snapshot: Snapshot) -> None:
    """Copy frames of pyarrow."""
    for name, frame in frames.items():
        batches = map(_columns, frame.to_batches())
        snapshot.copy(Table(name), batches, names=frame.schema.names)


def _columns(batch: Any) -> dict[str, Any]:
    """The columns of a record batch by name."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _copy_text(name: str, path: Path, snapshot: Snapshot, text_format: TextFormat) -> None:
    """Copy a text file, all cells as text; cells that a row lacks at its end are empty."""
    file = text.TextFile(path, text_format)
    refuse_same_names(str(path), file.names)
    table = Table(name, is_text=True)
    batches = (_columns(batch) for batch in file.batches(file.names, ROWS_PER_BATCH))
    try:
        snapshot.copy(table, map(_without_empty_cells, batches), names=file.names)
    except InputError:
        # The fast reader refuses rows that end early; Python's takes them, but is slow.
        text.refuse_wide(path, text_format)
        if not _has_short_rows(path, file.names, text_format):
            raise
        batches_of_filled_rows = _filled_rows(path, file.names, text_format)
        snapshot.copy(table, map(_without_empty_cells, batches_of_filled_rows), names=file.names)


def _without_empty_cells(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of text with null in place of what stands for nothing."""
    import pyarrow as pa
    from pyarrow import compute

    empty_cells = pa.array(EMPTY_CELLS, pa.large_string())
    null = pa.scalar(None, pa.large_string())
    return {
        name: compute.if_else(compute.is_in(cells, value_set=empty_cells), null, cells)
        for name, cells in columns.items()
    }


def _has_short_rows(path: Path, names: Sequence[str], text_format: TextFormat) -> bool:
    """Whether a file can be read but for rows with fewer cells than the header has."""
    try:
        with text.opened(path, text_format.encoding) as file, _cells_of_any_length():
            delimiter = text.delimiter_of(path, text_format)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            return any(0 < len(row) < len(names) for row in reader)
    except (csv.Error, UnicodeDecodeError):
        return False


def _filled_rows(
    path: Path, names: Sequence[str], text_format: TextFormat
) -> Iterator[dict[str, Any]]:
    """The rows of a text file as columns, with empty cells where a row ends early."""
    import pyarrow as pa

    with text.opened(path, text_format.encoding) as file, _cells_of_any_length():
        reader = csv.reader(file, delimiter=text.delimiter_of(path, text_format))
        rows = (row + [""] * (len(names) - len(row)) for row in reader if row)
        if text_format.has_header:
            next(rows)
        while block := list(islice(rows, ROWS_PER_BATCH)):
            columns = zip(names, zip(*block, strict=True), strict=True)
            yield {name: pa.array(cells, pa.large_string()) for name, cells in columns}


@contextmanager
def _cells_of_any_length() -> Iterator[None]:
    """Let Python's reader take cells of more than 131,072 characters, the limit of the process."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
