"""Tables in parquet files, and frames that are read like them: columns of pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.parquet_columns import readable
from infomax.errors import InputError, number_of, place
from infomax.io.blocks import FILL_IN, Block, NotNumbersError, check_column_names
from infomax.io.encoding.cells import is_list

INDEX = "__index_level_"
"""How pandas names the column of the row numbers of a filtered frame."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; whatever pyarrow cannot read becomes an InputError."""
    from pyarrow import parquet

    with (
        readable(path),
        # Read-ahead would keep all that has been read. A relative path may look like an address, as md:x does.
        parquet.ParquetFile(
            path.absolute(), page_checksum_verification=True, pre_buffer=False, buffer_size=1 << 20
        ) as file,
    ):
        yield file


def write_tables(path: Path, tables: Iterable[Any], metadata: Mapping[Any, Any] | None = None, **layout: Any) -> None:
    """Write tables, at least one, below each other; the footer has the metadata."""
    from pyarrow import parquet

    rest = iter(tables)
    first = next(rest)
    with parquet.ParquetWriter(path, first.schema, **layout) as writer:
        for table in chain([first], rest):
            writer.write_table(table)
        if metadata:
            writer.add_key_value_metadata(metadata)


class ArrowFile:
    """An open parquet file, or a pyarrow table."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        self.share = 0.0
        """How much of the rows has been read."""
        self.metadata = getattr(file, "metadata", None)
        schema = file.schema if self.metadata is None else file.schema_arrow
        # Without rows, the types of columns tell nothing: pandas, for one, has none for them.
        self.schema = schema if (self.metadata or file).num_rows else None
        self.names = [name for name in schema.names if not name.startswith(INDEX)]
        if not self.names:
            raise InputError(str(path), "at least one column", "none")
        check_column_names(str(path), self.names)

    def blocks(
        self, columns: Sequence[str], features: Sequence[str], rows: int, cells: int, only: tuple[str, str] | None
    ) -> Iterator[Block]:
        """All rows of some columns, in blocks of at most so many rows and about so many cells; see `Source.only`."""
        wanted, first = list(dict.fromkeys([*columns, *features, *(only or ())[:1]])), 0
        size = min(rows, max(1, cells // self._width(wanted)))
        if self.schema is None:
            return
        if self.metadata is None:
            batches = iter(self.file.select(wanted).to_batches(max_chunksize=size))
        else:
            batches = self.file.iter_batches(batch_size=size, columns=wanted)
        for batch in batches:
            block = ArrowBlock(self.path, batch, features, np.arange(first + 1, first + 1 + len(batch)))
            first += len(batch)
            self.share = first / (self.metadata or self.file).num_rows
            if only is not None:
                kept = block.words(only[0], {}) == only[1]
                block = ArrowBlock(self.path, batch.filter(kept), features, block.numbers[kept])
            if len(block.numbers) or only is None:
                yield block

    def _width(self, columns: Sequence[str]) -> int:
        """About how many cells a row of these columns has: a column of lists has those of its values."""
        if self.metadata is None or not self.metadata.num_row_groups:
            return len(columns)
        group = self.metadata.row_group(0)
        parts = (group.column(column) for column in range(self.metadata.num_columns))
        cells = sum(part.num_values for part in parts if part.path_in_schema.split(".")[0] in columns)
        return max(1, int(cells // max(1, group.num_rows)))


class ArrowBlock(Block):
    """Some rows of columns of pyarrow, and their numbers ``[n]``."""

    unit = "row"

    def __init__(
        self, path: Path, data: Any, features: Sequence[str] = (), numbers: NDArray[np.int64] | None = None
    ) -> None:
        self.path, self.data, self.names = path, data, features
        self.numbers = np.arange(1, len(data) + 1) if numbers is None else numbers

    def ids(self, column: str) -> Any:
        """The ids ``[n]`` of a column."""
        import pyarrow as pa

        values = self.filled(column)
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if pa.types.is_integer(kind):
            return values.cast(pa.int64())
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return values.cast(pa.large_string())
        where, remedy = place(self.path, column=column), 'Make them one of these (pandas: column.astype("Int64")).'
        raise InputError(where, "ids that are integers or text", f"type {values.type}", remedy)

    def ends(self, columns: Sequence[str]) -> list[Any]:
        """The ids ``[n]`` at both ends of edges, of one type."""
        ends = [self.ids(column) for column in columns]
        if ends[0].type != ends[1].type:
            found = " and ".join(f'{end.type} in "{name}"' for end, name in zip(ends, columns, strict=True))
            raise InputError(str(self.path), "ids of one type", found, "Give both columns one type.")
        return ends

    def filled_in(self, column: str) -> NDArray[np.bool_]:
        """See `Block.filled_in`."""
        return np.asarray(self.data[column].is_valid())

    def numbers_of(self, column: str) -> tuple[NDArray[np.float32], Callable[[int], str]]:
        """See `Block.numbers_of`."""
        if not _numeric(self.data[column].type):
            raise InputError(place(self.path, column=column), "numbers", f"type {self.data[column].type}")
        values = self.filled(column)
        with np.errstate(over="ignore"):
            return _floats(values).astype(np.float32), lambda row: str(values[row].as_py())

    def features(self, widths: dict[str, int], remedy: str, gaps: Sequence[float] = ()) -> NDArray[Any]:
        """Features ``[n, F]``; see `Block.features`."""
        block = np.column_stack([self._feature(column, widths, remedy) for column in self.names])
        good = self.fill(block, gaps)
        if not good.all():
            row = int(np.argmin(good.all(axis=1)))
            at = int(np.argmin(good[row]))
            owner, entry = [(name, entry) for name in self.names for entry in range(widths.get(name, 1))][at]
            value = self.data[owner][row].as_py()
            value = value[entry] if owner in widths else value
            found = "null" if value is None else str(value)
            raise NotNumbersError(self.place(row, owner), "a finite number (32-bit float)", found, remedy)
        return block

    def arrow(self) -> Any:
        """The columns of features."""
        return self.data.select(self.names)

    def words(self, column: str, widths: dict[str, int]) -> NDArray[Any]:
        """A column as text; see `Block.words`."""
        import pyarrow as pa
        from pyarrow import compute

        values = self.data[column]
        if is_list(values.type):
            if not _numeric(values.type.value_type):
                remedy = 'Give each label a column of 0 and 1 (pandas: column.str.join("|").str.get_dummies()).'
                where = place(self.path, column=column)
                raise InputError(where, "one label per node, or lists of 0 and 1", f"type {values.type}", remedy)
            flags = self._feature(column, widths, "Store it as numbers.")
            if not np.isin(flags, (0, 1)).all():
                raise InputError(place(self.path, column=column), "lists of 0 and 1, one per label", "other numbers")
            return flags.astype(np.uint8)
        text = compute.if_else(compute.is_null(values, nan_is_null=True), "", values.cast(pa.large_string()))
        return np.array(text.to_pylist(), dtype=object)

    def filled(self, column: str) -> Any:
        """A column that has no null in any row."""
        values = self.data[column]
        if values.null_count:
            row = values.is_null().to_pylist().index(True)
            raise InputError(self.place(row, column), "a value", "null", FILL_IN)
        return values

    def _feature(self, column: str, widths: dict[str, int], remedy: str) -> NDArray[Any]:
        """A column of numbers as ``[n]``; lists of W numbers as ``[n, W]``."""
        from pyarrow import compute

        values = self.data[column]
        lists = is_list(values.type)
        if not _numeric(values.type.value_type if lists else values.type):
            where, recast = place(self.path, column=column), remedy and "Store it as numbers."
            raise NotNumbersError(where, "a column of numbers", f"type {values.type}", recast)
        if not lists:
            return _floats(values)
        lengths = compute.fill_null(compute.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        if not lengths.all():
            row = int(np.argmin(lengths))
            found = "null" if values[row].as_py() is None else "an empty one"
            raise NotNumbersError(self.place(row, column), "a list of numbers", found, remedy)
        width = widths.setdefault(column, int(lengths[0]) if len(lengths) else 0)
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            expected = f"a list of {number_of(width, 'number')}, as in the rows before"
            raise InputError(self.place(row, column), expected, number_of(lengths[row], "number"))
        return _floats(values.flatten()).reshape(len(values), width)


def arrow_column(values: NDArray[Any]) -> Any:
    """An array ``[n]`` as one of pyarrow, an array ``[n, W]`` as one of lists of W values."""
    import pyarrow as pa

    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).ravel()), values.shape[1])


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


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests)


def _floats(column: Any) -> NDArray[Any]:
    """A pyarrow array of numbers as float64, NaN for null; float32 stays as it is."""
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values if values.dtype == np.float32 else values.astype(np.float64)
