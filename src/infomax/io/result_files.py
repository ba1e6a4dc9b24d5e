"""Columns of a result, such as ids and clusters, in a table that others read: csv, tsv, parquet or JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import other_extension
from infomax.io.atomic import replacing
from infomax.io.json import to_json
from infomax.io.parquet import write_tables

Blocks: TypeAlias = Iterable[Mapping[str, NDArray[Any]]]
"""Some rows of all columns ``[n]`` at a time, at least once."""


def check_result(path: Path | None) -> Path | None:
    """Refuse a path whose extension `write_result` does not know, before the work is done."""
    if path is not None and path.suffix.lower() not in _WRITERS:
        raise other_extension(path, _WRITERS)
    return path


def write_result(path: Path, blocks: Blocks) -> None:
    """Write a file in the format of its extension, which appears whole or not at all."""
    with replacing(path) as temporary:
        _WRITERS[path.suffix.lower()](path, temporary, blocks)


def _rows(block: Mapping[str, NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    # A float32 as a double would have digits that mean nothing.
    short = (np.round(cells.astype(np.float64), 6) if cells.dtype == np.float32 else cells for cells in block.values())
    return zip(*(cells.tolist() for cells in short), strict=True)


def _write_text(path: Path, temporary: Path, blocks: Blocks) -> None:
    with temporary.open("w", encoding="utf-8", newline="") as file:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        # All text is quoted: csv would leave a lone carriage return bare, which then reads as the end of a row.
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        for number, block in enumerate(blocks):
            if not number:
                writer.writerow(block)
            writer.writerows(_rows(block))


def _write_json(path: Path, temporary: Path, blocks: Blocks) -> None:
    with temporary.open("w", encoding="utf-8") as file:
        before = "[\n"
        for block in blocks:
            for cells in _rows(block):
                file.write(before + to_json(dict(zip(block, cells, strict=True))))
                before = ",\n"
        file.write("\n]\n")


def _write_parquet(path: Path, temporary: Path, blocks: Blocks) -> None:
    import pyarrow

    def column(cells: NDArray[Any]) -> Any:
        return pyarrow.array(cells, pyarrow.string() if cells.dtype == object else None)

    tables = (pyarrow.table({name: column(cells) for name, cells in block.items()}) for block in blocks)
    write_tables(temporary, tables)


_WRITERS = {".csv": _write_text, ".tsv": _write_text, ".parquet": _write_parquet, ".json": _write_json}
