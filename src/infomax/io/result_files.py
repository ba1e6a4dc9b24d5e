"""Columns of a result, such as ids and clusters, in a table that others read: csv, tsv, parquet or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import other_extension
from infomax.io import text
from infomax.io.atomic import replacing
from infomax.io.json import to_json

Blocks: TypeAlias = Iterable[Mapping[str, NDArray[Any]]]
"""Some rows of all columns ``[n]`` at a time, at least once."""
EXTENSIONS = (".csv", ".tsv", ".parquet", ".json")


def check_result(path: Path | None) -> Path | None:
    """Refuse a path whose extension `write_result` does not know, before the work is done."""
    if path is not None and path.suffix.lower() not in EXTENSIONS:
        raise other_extension(path, EXTENSIONS)
    return path


def write_result(path: Path, blocks: Blocks) -> None:
    """Write a file in the format of its extension, which appears whole or not at all."""
    kind = path.suffix.lower()
    rows = blocks if kind == ".parquet" else map(_short, blocks)
    with replacing(path) as temporary:
        if kind == ".json":
            _write_json(temporary, rows)
        else:
            text.write_tables(temporary, kind, map(_table, rows))


def _table(block: Mapping[str, NDArray[Any]]) -> Any:
    import pyarrow as pa

    columns = {
        name: pa.array(cells, pa.string() if cells.dtype == object else None)
        for name, cells in block.items()
    }
    return pa.table(columns)


def _short(block: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns with numbers of six digits: more of a float32 would mean nothing."""
    short = {
        name: np.round(cells.astype(np.float64), 6)
        for name, cells in block.items()
        if cells.dtype == np.float32
    }
    return {**block, **short}


def _write_json(path: Path, blocks: Blocks) -> None:
    with path.open("w", encoding="utf-8") as file:
        before = "[\n"
        for block in blocks:
            for cells in zip(*(cells.tolist() for cells in block.values()), strict=True):
                file.write(before + to_json(dict(zip(block, cells, strict=True))))
                before = ",\n"
        file.write("\n]\n")
