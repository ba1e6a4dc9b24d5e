"""Ids and their vectors in files: parquet, npy, npz, csv, tsv and kv (word2vec's text format)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.checks import check_ids
from infomax.arrays.folder_layout import map_array
from infomax.arrays.parquet_columns import StoredRows, stored_ids, stored_vectors
from infomax.arrays.sparsity import dense
from infomax.errors import (
    InputError,
    format_count,
    format_location,
    other_extension,
    readable,
    shorten,
    within,
)
from infomax.io import parquet, text
from infomax.io.archive import read_arrays, write_arrays
from infomax.io.atomic import replacing
from infomax.io.choices import UserChoices
from infomax.io.features import finite
from infomax.io.json import to_json
from infomax.io.parts import (
    MODEL_KEY,
    PARTS_KEY,
    checked_part_files,
    has_parts,
    stored_model_hash,
    stored_part_columns,
)
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.schema.resolving import resolve_node_table
from infomax.io.schema.schema import TableSchema, Use
from infomax.io.sources import FILL_IN, Source, existing, typed
from infomax.progress import Progress, followed, silent

Vectors: TypeAlias = NDArray[np.float32]
TABLE_OF_VECTORS = TableSchema(name=Use(("name",)))
"""How a table of vectors is read: a column "name" holds the names of nodes."""


class VectorTable(NamedTuple):
    """The content of a file of vectors.

    Shapes:
        ids: ``[N]``
        vectors: ``[N, d]``
        node_names: ``[N]``, or None
    """

    ids: NDArray[Any]
    vectors: Vectors
    node_names: NDArray[Any] | None
    model_hash: str
    """The hash of the model that made the vectors; "" where the file does not say."""
    part_columns: dict[str, list[str]]
    """The names of the columns of each part; none where the file does not say."""


EXTENSIONS = (".parquet", ".npy", ".npz", ".csv", ".tsv", ".kv")
TEXT = (".csv", ".tsv", ".kv")
"""Extensions of formats that hold numbers as text."""
ROWS_PER_BLOCK = 1 << 14
"""Rows that are written as text at once."""
# The numbers hardly repeat, so a dictionary or compression would save little.
_PLAIN = {
    "use_dictionary": False,
    "compression": "none",
    "write_statistics": ["id"],
    "write_page_checksum": True,
}


def write_vectors(
    ids: NDArray[Any],
    vectors: Vectors,
    path: Path,
    names: NDArray[Any] | None = None,
    model: str = "",
    progress: Progress = silent,
    parts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write ids and names ``[N]`` and vectors ``[N, d]`` in the format of the path's extension.

    In csv, tsv and kv, numbers have the fewest digits that read back as the same float32.

    Args:
        ids: not in an npy.
        vectors: float32.
        path: the file.
        names: not in an npy or a kv.
        model: the hash of the model that made the vectors; only in parquet.
        progress: is told the rows that a csv, tsv or kv holds so far.
        parts: the names of the columns of each part of the vectors; only in parquet.
    """
    check_extension(path)
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix == ".parquet":
            write_blocks(temporary, [(ids, vectors, names)], model=model, parts=parts)
        elif suffix == ".npy":
            with temporary.open("wb") as file:
                np.save(file, vectors, allow_pickle=False)
        elif suffix == ".npz":
            write_arrays(temporary, {"vectors": vectors, **_npz_columns(path, ids, names)})
        elif suffix == ".kv":
            _write_kv(ids, vectors, path, temporary, progress)
        else:
            first_rows = range(0, len(ids), ROWS_PER_BLOCK)
            tables = (
                flat_table(ids, vectors, names, slice(first, first + ROWS_PER_BLOCK))
                for first in first_rows
            )
            followed_tables = followed(tables, progress, "blocks of nodes", len(first_rows), 1)
            text.write_tables(temporary, suffix, followed_tables)


def check_extension(path: Path) -> None:
    """Refuse a path whose extension `write_vectors` does not know, before the work is done."""
    if path.suffix.lower() not in EXTENSIONS:
        raise other_extension(path, EXTENSIONS)


def read_vectors(path: Path) -> VectorTable:
    """Read a file that `write_vectors` wrote, or a folder of parquet parts.

    An npy has no ids: row numbers are used. In csv, tsv and kv ids have no type: they are integers
    if all are written as integers.
    """
    if has_parts(path):
        return _read_parquet(path)
    check_extension(path)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(existing(path))
    ids, vectors, names = _READERS[suffix](existing(path))
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        found = f"{vectors.dtype} of shape {list(vectors.shape)}"
        raise InputError(str(path), "numbers of shape [N, d]", found)
    vectors = finite(path, vectors, copy=None)
    with within(path):
        return VectorTable(check_ids(ids, len(vectors)), vectors, names, "", {})


def write_blocks(
    path: Path,
    blocks: Iterable[tuple[Any, NDArray[Any], Any]],
    metadata: Mapping[bytes, bytes] | None = None,
    model: str = "",
    parts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a parquet file block by block.

    Its columns are ``id`` (int64 or string), ``name`` if any, and ``vector`` (fixed-size list).

    Args:
        path: the file.
        blocks: at least one, of ids ``[n]``, vectors ``[n, d]`` and names ``[n]`` or None.
        metadata: what the footer has besides the following.
        model: the hash of the model that made the vectors.
        parts: the names of the columns of each part of the vectors.
    """
    import pyarrow

    def table(ids: Any, vectors: NDArray[Any], names: Any) -> Any:
        columns = {"id": pyarrow.array(ids)}
        if names is not None:
            columns["name"] = pyarrow.array(names, pyarrow.string())
        columns["vector"] = parquet.arrow_column(vectors)
        return pyarrow.table(columns)

    # The footer ties the vectors to the model that made them.
    footer: dict[Any, Any] = dict(metadata or {})
    if model:
        footer[MODEL_KEY] = model
    if parts:
        footer[PARTS_KEY] = to_json({name: list(columns) for name, columns in parts.items()})
    parquet.write_tables(path, starmap(table, blocks), footer, **_PLAIN)


def _read_parquet(path: Path) -> VectorTable:
    """The vectors of a parquet file or of a folder of parts."""
    files = checked_part_files(path)
    with readable(path), np.errstate(over="ignore"):
        ids = stored_ids(*files)
        stored = stored_vectors(*files)
        names = StoredRows(*files, column="name")[:] if "name" in ids.names else None
        vectors = np.empty(stored.shape, np.float32)
        first = 0
        # Block by block, since reading all at once would take three times the memory.
        for rows in stored.blocks():
            vectors[first : first + len(rows)] = finite(path, rows, first, copy=None)
            first += len(rows)
        if first != len(ids):
            raise ValueError(f"{len(ids) - first} vectors fewer than ids, or null")
        with within(path), parquet.opened(files[0]) as file:
            return VectorTable(
                check_ids(ids[:], len(ids)),
                vectors,
                names,
                stored_model_hash(file),
                stored_part_columns(file),
            )


def _read_npy(path: Path) -> tuple[Any, NDArray[Any], None]:
    vectors = np.array(map_array(path, remedy=""))
    return np.arange(len(np.atleast_1d(vectors))), vectors, None


def _npz_columns(
    path: Path, ids: NDArray[Any], names: NDArray[Any] | None
) -> dict[str, NDArray[Any]]:
    """The arrays ``ids`` and, if there are names, ``node_names``.

    Text becomes NumPy's text of a fixed width, so that nothing is pickled.
    """
    columns = {"ids": ids}
    if names is not None:
        columns["node_names"] = names
    stored_columns = {}
    for name, column in columns.items():
        stored = column.astype(str) if column.dtype == object else column
        # NumPy drops NUL characters at the end of text.
        lost_rows = np.flatnonzero(stored != column)
        if len(lost_rows):
            expected = "ids that do not end in a NUL character"
            found = repr(column[lost_rows[0]])
            raise InputError(str(path), expected, found, "Save as parquet or csv.")
        stored_columns[name] = stored
    return stored_columns


def _read_npz(path: Path) -> tuple[Any, NDArray[Any], Any]:
    arrays = read_arrays(path)
    if not {"ids", "vectors"} <= set(arrays):
        raise InputError(str(path), "arrays ids and vectors", "others", "Is it an npz of a graph?")
    return arrays["ids"], arrays["vectors"], arrays.get("node_names")


def flat_table(ids: NDArray[Any], vectors: Vectors, names: NDArray[Any] | None, rows: slice) -> Any:
    """Some rows as a pyarrow table with the columns id, name if any, d0, d1, ..."""
    import pyarrow as pa

    columns = {"id": pa.array(ids[rows])}
    if names is not None:
        columns["name"] = pa.array(names[rows], pa.string())
    for index in range(vectors.shape[1]):
        columns[f"d{index}"] = pa.array(np.ascontiguousarray(vectors[rows, index]))
    return pa.table(columns)


def _read_table(path: Path) -> tuple[Any, NDArray[Any], Any]:
    # A node table, given by mistake, is read up to here.
    remedy = "This is not a file that embed wrote: columns id, d0, d1, ..., a number in every row."
    return table_vectors(Source([path]), remedy)


def table_vectors(source: Source, remedy: str = FILL_IN) -> tuple[Any, Vectors, Any]:
    """The ids ``[N]``, vectors ``[N, d]`` and names ``[N]``, if any, of a table.

    All columns but those of ids and names are numbers.
    """
    table = resolve_node_table(source, UserChoices(), TABLE_OF_VECTORS, may_learn=False)
    columns = read_node_table(replace(table, remedy=remedy))
    if columns["features"] is None:
        raise InputError(str(source.path), "columns of numbers beside the ids", "none")
    return columns["ids"], dense(columns["features"]), columns["node_names"]


def _write_kv(
    ids: NDArray[Any], vectors: Vectors, path: Path, temporary: Path, progress: Progress
) -> None:
    """Write word2vec's text format: a line ``N d``, then a line ``id v1 v2 ...`` per vector.

    Ids must be without white space.
    """
    texts = [str(node_id) for node_id in ids.tolist()]
    for node_id in texts:
        if node_id.split() != [node_id]:
            expected = "ids without white space, as kv separates by it"
            remedy = "Save as parquet, csv or tsv instead."
            raise InputError(str(path), expected, repr(node_id), remedy)
    rows = zip(texts, vectors, strict=True)
    with temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{vectors.shape[0]} {vectors.shape[1]}\n")
        for node_id, vector in followed(rows, progress, "nodes written", len(texts)):
            # NumPy writes a float32 with the fewest digits that identify it.
            file.write(f"{node_id} {' '.join(vector.astype(str).tolist())}\n")


def _read_kv(path: Path) -> tuple[Any, NDArray[Any], None]:
    import pyarrow as pa

    ids: list[str] = []
    values = array("f")
    with text.opened(path) as file:
        header = file.readline().split()
        if len(header) != 2 or not all(cell.isdecimal() for cell in header):
            expected = "the number of vectors and their length"
            raise InputError(format_location(path, 1), expected, shorten(" ".join(header)))
        count, width = map(int, header)
        for line, row in enumerate(file, 2):
            # An empty line, such as one at the end, is no vector.
            if row.isspace():
                continue
            identifier, *cells = row.split()
            try:
                numbers = array("f", map(float, cells))
            except ValueError:
                numbers = array("f")
            if len(numbers) != width or not np.isfinite(numbers).all():
                expected = f"an id and {width} finite numbers"
                raise InputError(format_location(path, line), expected, shorten(row.strip()))
            ids.append(identifier)
            values.extend(numbers)
    if len(ids) != count:
        expected = f"{format_count(count, 'vector')}, as its first line says"
        raise InputError(str(path), expected, str(len(ids)), "Was it cut short?")
    vectors = np.array(values, dtype=np.float32).reshape(count, width)
    return typed(pa.array(ids, pa.large_string())).to_pylist(), vectors, None


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_table,
    ".tsv": _read_table,
    ".kv": _read_kv,
}
