"""Columns of a result, such as ids and clusters, as a table: csv, tsv, parquet or JSON."""

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
    suffix = path.suffix.lower()
    if suffix != ".parquet":
        blocks = map(_with_six_digits, blocks)
    with replacing(path) as temporary:
        if suffix == ".json":
            _write_json(temporary, blocks)
        else:
            text.write_tables(temporary, suffix, map(_arrow_table, blocks))


def _arrow_table(block: Mapping[str, NDArray[Any]]) -> Any:
    import pyarrow as pa

    columns = {
        name: pa.array(cells, pa.string() if cells.dtype == object else None)
        for name, cells in block.items()
    }
    return pa.table(columns)


def _with_six_digits(block: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns with numbers of six digits: more digits of a float32 would mean nothing."""
    rounded_columns = {
        name: np.round(cells.astype(np.float64), 6)
        for name, cells in block.items()
        if cells.dtype == np.float32
    }
    return {**block, **rounded_columns}


def _write_json(path: Path, blocks: Blocks) -> None:
    with path.open("w", encoding="utf-8") as file:
        separator = "[\n"
        for block in blocks:
            columns = [cells.tolist() for cells in block.values()]
            for row in zip(*columns, strict=True):
                file.write(separator + to_json(dict(zip(block, row, strict=True))))
                separator = ",\n"
        file.write("\n]\n")
