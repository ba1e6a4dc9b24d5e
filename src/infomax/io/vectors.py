"""Ids and their vectors in files: parquet, npy, npz, csv, tsv and kv (the text format of word2vec)."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, starmap
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.checks import check_ids
from infomax.arrays.folder import map_array
from infomax.arrays.sparsity import dense
from infomax.errors import InputError, number_of, other_extension, place, shorten, within
from infomax.io import parquet, text
from infomax.io.archive import read_arrays, write_arrays
from infomax.io.atomic import replacing
from infomax.io.blocks import typed
from infomax.io.columns import Columns
from infomax.io.features import existing, finite
from infomax.io.json import to_json
from infomax.io.parts import (
    MODEL_KEY,
    PARTS_KEY,
    check_columns,
    has_parts,
    parquet_files,
    told_model,
    told_parts,
)
from infomax.io.prepare.in_memory import read_node_table
from infomax.io.sources import Source
from infomax.progress import Progress, followed, silent

Vectors: TypeAlias = NDArray[np.float32]
COLUMNS = Columns(earlier={"name": "name"}, learns=False)
"""How a table of vectors is read: a column "name" holds the names of nodes."""

NO_PARTS: Mapping[str, Sequence[str]] = {}
TEXT = (".csv", ".tsv", ".kv")
_ROWS = 1 << 14
"""Rows of a parquet file that are read at once."""
# The numbers hardly repeat, so a dictionary or compression would save little.
_PLAIN = {"use_dictionary": False, "compression": "none", "write_statistics": ["id"], "write_page_checksum": True}


def write_vectors(
    ids: NDArray[Any],
    vectors: Vectors,
    path: Path,
    names: NDArray[Any] | None = None,
    model: str = "",
    progress: Progress = silent,
    parts: Mapping[str, Sequence[str]] = NO_PARTS,
) -> None:
    """Write ids and names ``[N]`` and vectors ``[N, d]`` in the format of the path's extension.

    An npy holds no ids, and a kv no names. In csv, tsv and kv, numbers have the fewest digits that read back as the
    same float32; their rows are told as progress. Only parquet holds the hash of the model and the names of the parts
    of vectors.
    """
    write, _ = _format(path)
    if write is _write_parquet:
        with replacing(path) as temporary:
            write_blocks(temporary, [(ids, vectors, names)], model=model, parts=parts)
    else:
        write(ids, vectors, names, path, progress)


def check_extension(path: Path) -> None:
    """Refuse a path whose extension `write_vectors` does not know, before the work is done."""
    _format(path)


def read_vectors(path: Path) -> tuple[NDArray[Any], Vectors, NDArray[Any] | None]:
    """Ids ``[N]``, vectors ``[N, d]`` and, if any, names ``[N]`` of a file, or of a folder of parquet parts.

    An npy has no ids: row numbers are used. In csv, tsv and kv ids have no type: they are integers if all are written
    as integers.
    """
    if has_parts(path):
        columns: Any = zip(*map(read_vectors, parquet_files(path)), strict=True)
        ids, vectors, names = columns
        vectors = np.concatenate(vectors)
        return (
            check_ids(np.concatenate(ids), len(vectors)),
            vectors,
            None if names[0] is None else np.concatenate(names),
        )
    _, read = _format(path)
    ids, vectors, *names = read(existing(path))
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(str(path), "numbers of shape [N, d]", f"{vectors.dtype} of shape {list(vectors.shape)}")
    if read is not _read_parquet:  # which looks at each row as it is read
        vectors = finite(path, vectors, copy=None)
    with within(path):
        return check_ids(ids, len(vectors)), vectors, names[0] if names else None


def _format(path: Path) -> tuple[Callable[..., None], Callable[[Path], Any]]:
    """The functions that write and read the format of the path's extension."""
    if path.suffix.lower() not in _FORMATS:
        raise other_extension(path, _FORMATS)
    return _FORMATS[path.suffix.lower()]


def write_blocks(
    path: Path,
    blocks: Iterable[tuple[Any, NDArray[Any], Any]],
    metadata: Mapping[bytes, bytes] | None = None,
    model: str = "",
    parts: Mapping[str, Sequence[str]] = NO_PARTS,
) -> None:
    """Write a parquet file block by block: ``id`` (int64 or string), ``name`` if any, ``vector`` (fixed-size list).

    Args:
        path: the file.
        blocks: ids ``[n]``, vectors ``[n, d]`` and names ``[n]`` or None, at least once.
        metadata: what else the footer says.
        model: the hash of the model that made the vectors.
        parts: the names of the columns of each part of vectors.
    """
    import pyarrow

    def table(ids: Any, vectors: NDArray[Any], names: Any) -> Any:
        named = {} if names is None else {"name": pyarrow.array(names, pyarrow.string())}
        return pyarrow.table({"id": pyarrow.array(ids), **named, "vector": parquet.arrow_column(vectors)})

    about: dict[Any, Any] = dict(metadata or {})
    if model:
        about[MODEL_KEY] = model
    if parts:
        about[PARTS_KEY] = to_json({name: list(one) for name, one in parts.items()})
    parquet.write_tables(path, starmap(table, blocks), about, **_PLAIN)


def _write_parquet(*_: Any) -> None:
    """`write_vectors` does it by blocks."""


def told_of(path: Path) -> tuple[str, dict[str, list[str]]]:
    """What a parquet file, or a folder of parts, says of its vectors: the hash of their model, the names of parts."""
    files = parquet_files(path) if has_parts(path) else [path]
    if files[0].suffix.lower() != ".parquet":
        return "", {}
    with parquet.opened(files[0]) as file:
        return told_model(file), told_parts(file)


def _read_parquet(path: Path) -> tuple[Any, NDArray[Any], Any]:
    with parquet.opened(path) as file:
        kind = check_columns(file.schema_arrow, path)[1]
        data = file.read(columns=["id", *({"name"} & set(file.schema_arrow.names))])
        block = parquet.ArrowBlock(path, data)
        ids, names = block.ids("id"), block.node_names("name") if "name" in data.column_names else None
        ids = ids.to_numpy() if str(ids.type) == "int64" else ids.to_pylist()
        number = np.dtype(kind.value_type.to_pandas_dtype()).kind in "fiu"
        vectors = np.empty((len(data), kind.list_size), np.float32 if number else object)
        counts = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]

    def read(groups: NDArray[np.int64]) -> None:
        first, end = (sum(counts[:group]) for group in (groups[0], groups[-1] + 1))
        with parquet.opened(path) as file:
            # At once it would take three times the memory.
            for batch in file.iter_batches(_ROWS, groups.tolist(), ["vector"], use_threads=False):
                last = first + len(batch)
                block = parquet.ArrowBlock(path, batch, numbers=np.arange(first + 1, last + 1))
                values = block.filled("vector").flatten().to_numpy(zero_copy_only=False)
                rows = values.reshape(len(batch), kind.list_size)
                vectors[first:last] = finite(path, rows, first, copy=None) if number else rows
                first = last
            if first != end:
                raise ValueError(f"{end - first} vectors fewer than ids")

    with ThreadPoolExecutor(threads := min(8, os.cpu_count() or 1)) as pool:
        some = np.array_split(np.arange(len(counts)), threads)
        list(pool.map(read, [groups for groups in some if len(groups)]))
    return ids, vectors, names


def _write_npy(ids: NDArray[Any], vectors: Vectors, names: Any, path: Path, progress: Progress) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)


def _read_npy(path: Path) -> tuple[Any, NDArray[Any]]:
    vectors = np.array(map_array(path, remedy=""))
    return np.arange(len(np.atleast_1d(vectors))), vectors


def _write_npz(ids: NDArray[Any], vectors: Vectors, names: Any, path: Path, progress: Progress) -> None:
    """Arrays ``ids`` (int64, or numpy's fixed-width text), ``vectors`` and, where there are any, ``node_names``."""
    columns = {"ids": ids} | ({} if names is None else {"node_names": names})
    for name, column in columns.items():
        columns[name] = column.astype(str) if column.dtype == object else column
        lost = np.flatnonzero(columns[name] != column)
        if len(lost):
            remedy = "Save as parquet or csv."
            raise InputError(str(path), "ids that do not end in a NUL character", repr(column[lost[0]]), remedy)
    with replacing(path) as temporary:
        write_arrays(temporary, {"vectors": vectors, **columns})


def _read_npz(path: Path) -> tuple[Any, NDArray[Any], Any]:
    arrays = read_arrays(path)
    if not {"ids", "vectors"} <= set(arrays):
        raise InputError(str(path), "arrays ids and vectors", "others", "Is it an npz of a graph?")
    return arrays["ids"], arrays["vectors"], arrays.get("node_names")


def _write_table(ids: NDArray[Any], vectors: Vectors, names: Any, path: Path, progress: Progress) -> None:
    named = [()] * len(ids) if names is None else [(name,) for name in names]
    head = ["id", *([] if names is None else ["name"]), *(f"d{column}" for column in range(vectors.shape[1]))]
    written = _written(ids, vectors, progress)
    rows = ([str(one), *name, *cells] for (one, cells), name in zip(written, named, strict=True))
    with replacing(path) as temporary:
        text.write_rows(temporary, path.suffix.lower(), chain([head], rows))


def _written(ids: NDArray[Any], vectors: Vectors, progress: Progress) -> Iterator[tuple[Any, list[str]]]:
    rows = followed(zip(ids.tolist(), vectors, strict=True), progress, "nodes written", len(ids))
    # numpy writes a float32 with the fewest digits that identify it.
    return ((identifier, vector.astype(str).tolist()) for identifier, vector in rows)


def _read_table(path: Path) -> tuple[Any, NDArray[Any], Any]:
    # A node table, given by mistake, is read up to here.
    remedy = "This is not a file that embed wrote: columns id, d0, d1, ..., a number in every row."
    return table_vectors(Source([path], COLUMNS, remedy=remedy))


def table_vectors(source: Source) -> tuple[Any, Vectors, Any]:
    """The ids ``[N]``, vectors ``[N, d]`` and, if any, names ``[N]`` of a table whose other columns are numbers."""
    table = read_node_table(source)
    if table["features"] is None:
        raise InputError(str(source.path), "columns of numbers beside the ids", "none")
    return table["ids"], dense(table["features"]), table["node_names"]


def _write_kv(ids: NDArray[Any], vectors: Vectors, names: Any, path: Path, progress: Progress) -> None:
    """word2vec's text format: a line ``N d``, then one line ``id v1 v2 ...`` per vector; ids without white space."""
    for identifier in map(str, ids.tolist()):
        if identifier.split() != [identifier]:
            remedy = "Save as parquet, csv or tsv instead."
            raise InputError(str(path), "ids without white space, as kv separates by it", repr(identifier), remedy)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(f"{vectors.shape[0]} {vectors.shape[1]}\n")
        file.writelines(f"{identifier} {' '.join(cells)}\n" for identifier, cells in _written(ids, vectors, progress))


def _read_kv(path: Path) -> tuple[Any, NDArray[Any]]:
    ids: list[str] = []
    values = array("f")
    with text.opened(path) as file:
        header = file.readline().split()
        if len(header) != 2 or not all(cell.isdecimal() for cell in header):
            raise InputError(place(path, 1), "the number of vectors and their length", shorten(" ".join(header)))
        count, dim = map(int, header)
        for line, row in enumerate(file, 2):
            if row.isspace():
                continue
            identifier, *cells = row.split()
            with np.errstate(over="ignore"):
                numbers = text.numbers(cells).astype(np.float32)
            if len(numbers) != dim or not np.isfinite(numbers).all():
                raise InputError(place(path, line), f"an id and {dim} finite numbers", shorten(row.strip()))
            ids.append(identifier)
            values.frombytes(numbers.tobytes())
    if len(ids) != count:
        expected = f"{number_of(count, 'vector')}, as its first line says"
        raise InputError(str(path), expected, str(len(ids)), "Was it cut short?")
    return typed(ids), np.array(values, dtype=np.float32).reshape(count, dim)


_FORMATS: dict[str, tuple[Callable[..., None], Callable[[Path], Any]]] = {
    ".parquet": (_write_parquet, _read_parquet),
    ".npy": (_write_npy, _read_npy),
    ".npz": (_write_npz, _read_npz),
    ".csv": (_write_table, _read_table),
    ".tsv": (_write_table, _read_table),
    ".kv": (_write_kv, _read_kv),
}
