"""Tables in parquet files, and frames that are read like them: columns of pyarrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, readable
from infomax.io.column_names import check_column_names

INDEX = "__index_level_"
"""How pandas names the column of the row numbers of a filtered frame."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A ``pyarrow.parquet.ParquetFile``; whatever pyarrow cannot read becomes an InputError."""
    from pyarrow import parquet

    with (
        readable(path),
        # Read-ahead would keep all that has been read. A relative path may look like an address, as
        # md:x does.
        parquet.ParquetFile(
            path.absolute(), page_checksum_verification=True, pre_buffer=False, buffer_size=1 << 20
        ) as file,
    ):
        yield file


def write_tables(
    path: Path, tables: Iterable[Any], metadata: Mapping[Any, Any] | None = None, **layout: Any
) -> None:
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

    def batches(self, wanted: Sequence[str], size: int) -> Iterator[Any]:
        """The rows of some columns as batches of at most so many rows."""
        if self.schema is None:
            return
        done = 0
        if self.metadata is None:
            batches = iter(self.file.select(wanted).to_batches(max_chunksize=size))
        else:
            batches = self.file.iter_batches(batch_size=size, columns=wanted)
        for batch in batches:
            done += len(batch)
            self.share = done / (self.metadata or self.file).num_rows
            yield batch

    def width(self, columns: Sequence[str]) -> int:
        """About how many cells a row of these columns has; a value of a list counts as one."""
        if self.metadata is None or not self.metadata.num_row_groups:
            return len(columns)
        group = self.metadata.row_group(0)
        parts = (group.column(column) for column in range(self.metadata.num_columns))
        cells = sum(
            part.num_values for part in parts if part.path_in_schema.split(".")[0] in columns
        )
        return max(1, int(cells // max(1, group.num_rows)))


def arrow_column(values: NDArray[Any]) -> Any:
    """An array ``[n]`` as one of pyarrow, an array ``[n, W]`` as one of lists of W values."""
    import pyarrow as pa

    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(values).ravel()), values.shape[1]
    )
