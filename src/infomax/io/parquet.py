"""Tables in parquet files, read column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, place
from infomax.graphs.graph import Features
from infomax.io import tables
from infomax.io.tables import EdgeTable, NodeTable, Table

_BLOCK_CELLS = 1 << 20


def need_pyarrow(path: Path) -> tuple[Any, Any]:
    """``pyarrow`` and ``pyarrow.parquet``; where they are missing, an error that says how to install them."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        remedy = "Install it: pip install 'infomax[parquet]'. Or use csv."
        raise InputError(str(path), "pyarrow, which reads and writes parquet", "none installed", remedy) from None
    return pyarrow, parquet


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; whatever pyarrow cannot read becomes an InputError."""
    _, parquet = need_pyarrow(path)
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(str(path), "text in UTF-8", "other bytes", "Write the file again, in UTF-8.") from None
    except Exception as error:  # a damaged file makes pyarrow and the conversions after it raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(str(path), "a parquet file that can be read", reason) from error


def read_edges(path: Path) -> EdgeTable:
    """The edge table of a parquet file."""
    with opened(path) as file:
        names = _names(file, path)
        source, target, weight = tables.edge_columns(path, names)
        wanted = [names[column] for column in (source, target, weight) if column is not None]
        data = file.read(columns=wanted)
        table = Table(path, None)
        ends = [id_column(table, name, data[name]) for name in wanted[:2]]
        if ends[0].type != ends[1].type:
            found = " and ".join(f'{end.type} in "{name}"' for end, name in zip(ends, wanted, strict=False))
            raise InputError(str(path), "ids of one type", found, "Give both columns one type.")
        ids, codes = _encode(ends)
        return EdgeTable(
            path=path,
            lines=None,
            names=(names[source], names[target]),
            ids=ids,
            ends=codes,
            weight=None if weight is None else _weight(table, names[weight], data[names[weight]]),
        )


def read_nodes(path: Path, labels: Sequence[str], wanted: Sequence[str] | None = None) -> NodeTable:
    """The node table of a parquet file; labels and features as in `tables.node_columns`."""
    with opened(path) as file:
        names = _names(file, path)
        identifier, features, marks = tables.node_columns(path, names, labels, wanted)
        table = Table(path, None)
        remedy = "" if wanted is None else tables.FILL_IN
        data = file.read(columns=[names[column] for column in (identifier, *marks)])
        ids = id_column(table, names[identifier], data[names[identifier]]).to_pylist()
        tables.check_nodes(table, ids, names[identifier])
        feature_names = [names[column] for column in features]
        blocks = list(_blocks(table, file, feature_names, remedy)) if features else []
        if features and sum(block.shape[0] for block in blocks) != len(ids):
            raise InputError(str(path), f"{len(ids):,} rows in every column", "another number of rows")
        return NodeTable(
            path=path,
            lines=None,
            ids=ids,
            feature_names=feature_names,
            features=tables.stack(blocks) if features else None,
            labels={names[mark]: _text(data[names[mark]]) for mark in marks},
        )


def _names(file: Any, path: Path) -> list[str]:
    # pandas writes the row numbers of a filtered frame into a column of this name.
    names = [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]
    if not names:
        raise InputError(str(path), "at least one column", "none")
    tables.check_column_names(str(path), names)
    return names


def id_column(table: Table, name: str, column: Any) -> Any:
    """The ids of a pyarrow column as int64 or large_string; nulls are refused."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    refuse_nulls(table, name, column)
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.large_string())
    raise InputError(place(table.path, column=name), "ids that are integers or text", f"type {column.type}")


def _encode(ends: Sequence[Any]) -> tuple[tables.Ids, NDArray[np.int64]]:
    """Each id of two columns ``[E]`` once, in order of appearance row by row; and the positions ``[2, E]`` in it."""
    import pyarrow as pa

    both = pa.chunked_array([chunk for end in ends for chunk in end.chunks], type=ends[0].type).combine_chunks()
    by_column = both.dictionary_encode()
    by_row = pa.array(by_column.indices.to_numpy().reshape(2, -1).T.ravel()).dictionary_encode()
    ids = by_column.dictionary.take(by_row.dictionary).to_pylist()
    return ids, by_row.indices.to_numpy().astype(np.int64).reshape(-1, 2).T


def _weight(table: Table, name: str, column: Any) -> NDArray[np.float32]:
    if not _numeric(column.type):
        raise InputError(place(table.path, column=name), "numbers", f"type {column.type}")
    refuse_nulls(table, name, column)
    weight = _floats(column.combine_chunks())
    return tables.check_weight(table, name, weight, lambda row: str(column[row].as_py()))


def _blocks(table: Table, file: Any, names: Sequence[str], remedy: str) -> Iterator[Features]:
    """Blocks of features ``[rows, F]``; values that are not finite are refused."""
    schema = file.schema_arrow
    for name in names:
        kind = schema.field(name).type
        if not _numeric(kind):
            where, recast = place(table.path, column=name), remedy and "Store it as numbers."
            raise tables.bad_feature(where, name, "a column of numbers", f"type {kind}", recast)
    first = 0
    for batch in file.iter_batches(batch_size=max(1, _BLOCK_CELLS // len(names)), columns=list(names)):
        block = np.column_stack([_floats(batch[name]) for name in names])
        good = np.isfinite(block)
        if not good.all():
            row, column = divmod(int(np.argmin(good)), len(names))
            where, value = table.place(first + row, names[column]), batch[names[column]][row].as_py()
            found = "null" if value is None else str(value)
            raise tables.bad_feature(where, names[column], "a finite number (32-bit float)", found, remedy)
        yield tables.pack(block)
        first += len(block)


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _floats(column: Any) -> NDArray[np.float32]:
    """A pyarrow array of numbers as float32, NaN for null."""
    values = column.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _text(column: Any) -> NDArray[Any]:
    """A label column ``[N]`` as str objects, "" where it is null or NaN."""
    import pyarrow as pa
    from pyarrow import compute

    text = compute.if_else(compute.is_null(column, nan_is_null=True), "", column.cast(pa.large_string()))
    return np.array(text.to_pylist(), dtype=object)


def refuse_nulls(table: Table, name: str, column: Any) -> None:
    """Refuse a column that has a null in any row."""
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(table.place(row, name), "a value", "null", tables.FILL_IN)
