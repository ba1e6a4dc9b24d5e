"""Tables in parquet files, read column by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.arrays.table import Features
from infomax.errors import InputError, place
from infomax.io import tables
from infomax.io.columns import Columns
from infomax.io.tables import EdgeTable, NodeTable, Table

_BLOCK_CELLS = 1 << 20
INDEX = "__index_level_"
"""How pandas names the column of the row numbers of a filtered frame."""


@dataclass(frozen=True, eq=False)
class PartOfTable(Table):
    """Some rows of a parquet file, from row ``first`` on."""

    first: int

    def name(self, row: int) -> str:
        """``row 2``, counted from the begin of the file."""
        return super().name(self.first + row)


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
    with (
        telling(path, "a parquet file that can be read"),
        # Read-ahead would keep all that has been read. A relative path may look like an address, as md:x does.
        parquet.ParquetFile(
            path.absolute(), page_checksum_verification=True, pre_buffer=False, buffer_size=1 << 20
        ) as file,
    ):
        yield file


@contextmanager
def telling(path: Path, expected: str) -> Iterator[None]:
    """Tell as an InputError what pyarrow, or a conversion after it, cannot do with the data."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(str(path), "text in UTF-8", "other bytes", "Write the file again, in UTF-8.") from None
    except Exception as error:  # a damaged file makes pyarrow and the conversions after it raise almost anything
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(str(path), expected, reason) from error


def read_edges(path: Path, columns: Columns) -> EdgeTable:
    """The edge table of a parquet file."""
    with opened(path) as file:
        return edge_table(file, path, columns)


def edge_table(file: Any, path: Path, columns: Columns) -> EdgeTable:
    """The edge table of an open parquet file, or of what can be read like one."""
    names = column_names(file, path)
    source, target, weight = columns.of_edges(path, names)
    wanted = [names[column] for column in (source, target, weight) if column is not None]
    data = file.read(columns=wanted)
    table = Table(path, None)
    columns.warn_unused(path, names)
    # Without rows, the types of columns tell nothing: pandas, for one, has none for them.
    ids, codes = _encode(end_columns(table, wanted, data)) if len(data) else ([], np.empty((2, 0), dtype=np.int64))
    return EdgeTable(
        path=path,
        lines=None,
        names=(names[source], names[target]),
        ids=ids,
        ends=codes,
        weight=weight_column(table, names[weight], data[names[weight]]) if weight is not None and len(data) else None,
        named=columns.names_ends((names[source], names[target])),
    )


def read_nodes(path: Path, columns: Columns) -> NodeTable:
    """The node table of a parquet file."""
    with opened(path) as file:
        return node_table(file, path, columns)


def node_table(file: Any, path: Path, columns: Columns) -> NodeTable:
    """The node table of an open parquet file, or of what can be read like one."""
    names = column_names(file, path)
    chosen = replace(columns, features=feature_columns(file.schema_arrow, columns.features)).of_nodes(path, names)
    table = Table(path, None)
    remedy = "" if columns.features is None else tables.FILL_IN
    data = file.read(columns=[names[column] for column in (chosen.identifier, *chosen.marks)])
    identifier = names[chosen.identifier]
    ids = id_column(table, identifier, data[identifier]).to_pylist() if len(data) else []
    tables.check_nodes(table, ids, identifier)
    widths: dict[str, int] = {}
    features = [names[column] for column in chosen.features]
    blocks = list(_blocks(table, file, features, widths, remedy)) if features else []
    if features and sum(block.shape[0] for block in blocks) != len(ids):
        raise InputError(str(path), f"{len(ids):,} rows in every column", "another number of rows")
    cells = {at: label_column(table, names[at], data[names[at]]) for at in chosen.marks}
    return NodeTable(
        path=path,
        lines=None,
        ids=ids,
        feature_names=feature_names(features, widths),
        features=stack(blocks) if features else None,
        **tables.marks(table, names, chosen, cells),
    )


def column_names(file: Any, path: Path) -> list[str]:
    """The names of the columns of a file; at least one, and each once."""
    names = [name for name in file.schema_arrow.names if not name.startswith(INDEX)]
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
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    raise InputError(place(table.path, column=name), "ids that are integers or text", f"type {column.type}")


def end_columns(table: Table, names: Sequence[str], data: Any) -> list[Any]:
    """The ids at both ends of edges, of one type; names are those of both columns, and of others."""
    ends = [id_column(table, name, data[name]) for name in names[:2]]
    if ends[0].type != ends[1].type:
        found = " and ".join(f'{end.type} in "{name}"' for end, name in zip(ends, names, strict=False))
        raise InputError(str(table.path), "ids of one type", found, "Give both columns one type.")
    return ends


def _encode(ends: Sequence[Any]) -> tuple[tables.Ids, NDArray[np.int64]]:
    """Each id of two columns ``[E]`` once, in order of appearance row by row; and the positions ``[2, E]`` in it."""
    import pyarrow as pa

    both = pa.chunked_array([chunk for end in ends for chunk in end.chunks], type=ends[0].type).combine_chunks()
    by_column = both.dictionary_encode()
    by_row = pa.array(by_column.indices.to_numpy().reshape(2, -1).T.ravel()).dictionary_encode()
    ids = by_column.dictionary.take(by_row.dictionary).to_pylist()
    return ids, by_row.indices.to_numpy().astype(np.int64).reshape(-1, 2).T


def weight_column(table: Table, name: str, column: Any) -> NDArray[np.float32]:
    """The weights ``[E]`` of a pyarrow column, each finite and not negative."""
    if not _numeric(column.type):
        raise InputError(place(table.path, column=name), "numbers", f"type {column.type}")
    refuse_nulls(table, name, column)
    weight = _floats(column)
    return tables.check_weight(table, name, weight, lambda row: str(column[row].as_py()))


def check_feature_types(path: Path, schema: Any, names: Sequence[str], remedy: str) -> None:
    """Refuse feature columns that hold neither numbers nor lists of numbers; remedy as in `tables.bad_feature`."""
    for name in names:
        kind = schema.field(name).type
        if not _numeric(kind.value_type if is_list(kind) else kind):
            where, recast = place(path, column=name), remedy and "Store it as numbers."
            raise tables.bad_feature(where, name, "a column of numbers", f"type {kind}", recast)


def feature_block(
    table: Table, batch: Any, names: Sequence[str], widths: dict[str, int], remedy: str
) -> NDArray[np.float32]:
    """The features ``[rows, F]`` of a record batch, every value finite; a column of lists of W numbers is W features.

    ``widths`` holds the W of each column of lists, and learns those that it lacks.
    """
    block = np.column_stack([_feature(table, batch, name, widths) for name in names])
    good = np.isfinite(block)
    if not good.all():
        row = int(np.argmin(good.all(axis=1)))
        column = int(np.argmin(good[row]))
        owner, entry = [(name, entry) for name in names for entry in range(widths.get(name, 1))][column]
        value = batch[owner][row].as_py()
        value = value[entry] if owner in widths else value
        found = "null" if value is None else str(value)
        raise tables.bad_feature(table.place(row, owner), owner, "a finite number (32-bit float)", found, remedy)
    return block


def _feature(table: Table, batch: Any, name: str, widths: dict[str, int]) -> NDArray[np.float32]:
    """A column of a batch as ``[rows]``; lists of W numbers as ``[rows, W]``."""
    from pyarrow import compute

    column = batch[name]
    if not is_list(column.type):
        return _floats(column)
    refuse_nulls(table, name, column)
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    width = widths.setdefault(name, int(lengths[0]) if len(lengths) else 0)
    if (lengths != width).any():
        row = int(np.argmax(lengths != width))
        expected = f"a list of {width} numbers, as in the rows before"
        raise InputError(table.place(row, name), expected, f"{lengths[row]} numbers")
    return _floats(column.flatten()).reshape(-1, width)


def feature_names(names: Sequence[str], widths: dict[str, int]) -> list[str]:
    """The names of features: of a column ``v`` of lists of W numbers ``v[0]`` to ``v[W-1]``, else the column's."""
    named = ([f"{name}[{entry}]" for entry in range(widths[name])] if name in widths else [name] for name in names)
    return list(chain.from_iterable(named))


def feature_columns(schema: Any, wanted: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns that hold features of these names: ``v`` for ``v[0]`` to ``v[W-1]`` where v is a column of lists."""
    if wanted is None:
        return None
    lists = {name for name in schema.names if is_list(schema.field(name).type)}
    owners = (name.rpartition("[")[0] for name in wanted)
    return tuple(dict.fromkeys(owner if owner in lists else name for owner, name in zip(owners, wanted, strict=True)))


def is_list(kind: Any) -> bool:
    """Whether a type of pyarrow is that of lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _blocks(table: Table, file: Any, names: Sequence[str], widths: dict[str, int], remedy: str) -> Iterator[Features]:
    """Blocks of features ``[rows, F]``, every value finite."""
    check_feature_types(table.path, file.schema_arrow, names, remedy)
    first = 0
    for batch in file.iter_batches(batch_size=max(1, _BLOCK_CELLS // len(names)), columns=list(names)):
        yield pack(feature_block(PartOfTable(table.path, None, first), batch, names, widths, remedy))
        first += len(batch)


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _floats(column: Any) -> NDArray[np.float32]:
    """A pyarrow array of numbers as float32, NaN for null."""
    values = column.to_numpy(**({} if hasattr(column, "chunks") else {"zero_copy_only": False}))
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def label_column(table: Table, name: str, column: Any) -> NDArray[Any]:
    """A label column ``[N]`` as str objects, "" where it is null or NaN; lists of C values 0 and 1 as ``[N, C]``."""
    import pyarrow as pa
    from pyarrow import compute

    if is_list(column.type):
        check_feature_types(table.path, pa.schema([(name, column.type)]), [name], "Store it as numbers.")
        whole = column.combine_chunks() if hasattr(column, "chunks") else column
        values = _feature(table, {name: whole}, name, {})
        if not np.isin(values, (0, 1)).all():
            raise InputError(place(table.path, column=name), "lists of 0 and 1, one per label", "other numbers")
        return values.astype(np.uint8)
    text = compute.if_else(compute.is_null(column, nan_is_null=True), "", column.cast(pa.large_string()))
    return np.array(text.to_pylist(), dtype=object)


def refuse_nulls(table: Table, name: str, column: Any) -> None:
    """Refuse a column that has a null in any row."""
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(table.place(row, name), "a value", "null", tables.FILL_IN)
