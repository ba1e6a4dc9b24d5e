"""Tables of any size, some rows at a time, checked as the readers of whole tables check them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, place, shorten
from infomax.io import parquet, tables, text
from infomax.io.columns import Columns, NodeColumns
from infomax.io.parquet import PartOfTable
from infomax.io.tables import Table

EXTENSIONS = (*text.DELIMITERS, ".parquet")
ROWS = 1 << 17
"""Rows that are read at once; fewer of wide tables."""
CELLS = 1 << 22
FILE = 1 << 40
"""Each row has a number: that of its file times this, and its line or row. Rows in order have ascending numbers."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        columns: pyarrow arrays ``[n]``
        features: ``[n, F]``; None where there is no feature column
    """

    numbers: NDArray[np.int64]
    columns: list[Any]
    features: NDArray[np.float32] | None = None


def find_files(name: str) -> list[Path]:
    """The tables that a name means: a file, all tables in a folder, or those that a pattern such as ``*.csv`` fits."""
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if text.extension(file) in EXTENSIONS)
        found = "none in the folder"
    elif not path.exists() and has_magic(name):
        files, found = sorted(map(Path, glob(name, recursive=True))), "no file of such a name"  # noqa: PTH207  of any root
    else:
        files, found = [path] if path.is_file() else [], "nothing of that name"
    if not files:
        raise InputError(name, f"tables ({', '.join(EXTENSIONS)})" if path.is_dir() else "a file", found)
    for file in files:
        if text.extension(file) not in EXTENSIONS:
            expected = f"one of {', '.join(EXTENSIONS)}"
            raise InputError(str(file), expected, f"the extension {shorten(file.suffix)}")
    return files


@dataclass
class Source:
    """The files of one table, and what is known about it once they have been read."""

    files: list[Path]
    columns: Columns
    names: list[str] = field(default_factory=list)
    schema: Any = None
    """The types of the columns, of a parquet file."""
    widths: dict[str, int] = field(default_factory=dict)
    kinds: tuple[Path, dict[str, str]] | None = None
    """The first parquet file with rows, and the kinds of its columns, which are those of all files."""
    integers: bool = True
    """Whether every id so far is an integer, or written as one."""

    def __post_init__(self) -> None:
        for path in self.files:
            if (text.extension(path) == ".parquet") == self.lines:
                expected, remedy = f"a table as {self.path} is", "Give all files one kind."
                raise InputError(str(path), expected, "one of another kind", remedy)

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages about all of it."""
        return self.files[0]

    @property
    def lines(self) -> bool:
        """Whether it is text: rows have lines, and ids have no type."""
        return text.extension(self.path) != ".parquet"

    def place(self, number: int, column: str = "") -> str:
        """``edges.csv, line 3, column "weight"``, of a row by its number."""
        path, at = self.files[number // FILE], number % FILE
        return place(f"{path}, {'line' if self.lines else 'row'} {at}", column=column or None)

    def edges(self) -> Iterator[Rows]:
        """The rows of an edge table: source, target and, where there is such a column, weight."""
        for number, path in enumerate(self.files):
            reader = self._text_edges if self.lines else self._parquet_edges
            yield from reader(path, number * FILE)

    def nodes(self) -> Iterator[Rows]:
        """The rows of a node table: id, then labels and splits; and the features."""
        for number, path in enumerate(self.files):
            reader = self._text_nodes if self.lines else self._parquet_nodes
            yield from reader(path, number * FILE)

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the columns that hold the ends of edges."""
        source, target, _ = self.columns.of_edges(self.path, self.names)
        return self.names[source], self.names[target]

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; complete when all rows have been read."""
        return parquet.feature_names([self.names[column] for column in self.chosen.features], self.widths)

    @property
    def chosen(self) -> NodeColumns:
        """The columns of a node table."""
        columns = self.columns
        if self.schema is not None:
            columns = replace(columns, features=parquet.feature_columns(self.schema, columns.features))
        return columns.of_nodes(self.path, self.names)

    def _same_names(self, path: Path, names: list[str]) -> None:
        self.names = self.names or names
        if names != self.names:
            found = ", ".join(map(shorten, names))
            raise InputError(str(path), f"the columns of {self.path}", found, "Give all files the same columns.")

    def _typed(self, ids: list[str]) -> None:
        self.integers = self.integers and (not ids or not isinstance(tables.typed(ids)[0], str))

    def _text_rows(self, path: Path, number: int) -> Iterator[tuple[Table, NDArray[np.int64], list[text.Row]]]:
        names, rows = text.read_rows(path)
        self._same_names(path, names)
        while chunk := list(islice(rows, min(ROWS, max(1, CELLS // len(names))))):
            lines = [line for line, _ in chunk]
            yield Table(path, lines), np.array(lines, dtype=np.int64) + number, chunk

    def _text_edges(self, path: Path, number: int) -> Iterator[Rows]:
        import pyarrow as pa

        for table, numbers, chunk in self._text_rows(path, number):
            source, target, weight = self.columns.of_edges(path, self.names)
            ends = [[row[column] for _, row in chunk] for column in (source, target)]
            if any("" in end for end in ends):
                at, side = min((ends[side].index(""), side) for side in (0, 1) if "" in ends[side])
                raise InputError(table.place(at, self.names[(source, target)[side]]), "an id", "an empty cell")
            for end in ends:
                self._typed(end)
            columns = [pa.array(end, pa.large_string()) for end in ends]
            if weight is not None:
                cells = [row[weight] for _, row in chunk]
                columns.append(_text_weight(table, self.names[weight], cells))
            yield Rows(numbers, columns)

    def _text_nodes(self, path: Path, number: int) -> Iterator[Rows]:
        import pyarrow as pa

        remedy = "" if self.columns.features is None else tables.FILL_IN
        for table, numbers, chunk in self._text_rows(path, number):
            identifier, features, *_ = chosen = self.chosen
            block = text.feature_block(table, self.names, features, chunk, remedy) if features else None
            ids = [row[identifier] for _, row in chunk]
            if "" in ids:
                raise InputError(table.place(ids.index(""), self.names[identifier]), "an id", "an empty cell")
            self._typed(ids)
            cells = {at: np.array([row[at] for _, row in chunk], dtype=object) for at in chosen.marks}
            yield Rows(numbers, [pa.array(ids, pa.large_string()), *_marks(table, self.names, chosen, cells)], block)

    def _parquet_batches(self, file: Any, path: Path, columns: list[str], width: int) -> Iterator[tuple[Table, Any]]:
        first = 0
        for batch in file.iter_batches(batch_size=min(ROWS, max(1, CELLS // width)), columns=columns):
            yield PartOfTable(path, None, first), batch
            first += len(batch)

    def _same_kinds(self, path: Path, ids: Any, identifier: str, lists: Sequence[str] = ()) -> None:
        """Refuse columns of another kind than in the files before: 1 and "1" are two ids."""
        self.integers = str(ids.type) == "int64"
        kinds = dict.fromkeys(lists, "lists") | {identifier: "integer ids" if self.integers else "text ids"}
        first, known = self.kinds = self.kinds or (path, kinds)
        for column in kinds | known:
            here, there = (one.get(column, "single numbers") for one in (kinds, known))
            if here != there:
                expected, remedy = f"{there}, as in {first}", "Give the columns of all files one type."
                raise InputError(place(path, column=column), expected, here, remedy)

    def _parquet_edges(self, path: Path, number: int) -> Iterator[Rows]:
        with parquet.opened(path) as file:
            self._same_names(path, parquet.column_names(file, path))
            if not file.metadata.num_rows:  # pandas has no types for its columns
                return
            source, target, weight = self.columns.of_edges(path, self.names)
            wanted = [self.names[column] for column in (source, target, weight) if column is not None]
            for table, batch in self._parquet_batches(file, path, wanted, 3):
                columns = parquet.end_columns(table, wanted, batch)
                self._same_kinds(path, columns[0], wanted[0])
                columns += [parquet.weight_column(table, name, batch[name]) for name in wanted[2:]]
                yield Rows(_numbers(table, batch, number), columns)

    def _parquet_nodes(self, path: Path, number: int) -> Iterator[Rows]:
        with parquet.opened(path) as file:
            self._same_names(path, parquet.column_names(file, path))
            if not file.metadata.num_rows:
                return
            self.schema = file.schema_arrow
            chosen, names = self.chosen, self.names
            remedy = "" if self.columns.features is None else tables.FILL_IN
            features = [names[column] for column in chosen.features]
            parquet.check_feature_types(path, file.schema_arrow, features, remedy)
            lists = [name for name in features if parquet.is_list(file.schema_arrow.field(name).type)]
            for at in chosen.marks:
                if parquet.is_list(file.schema_arrow.field(names[at]).type):
                    expected = "one label per node, in a graph folder"
                    raise InputError(place(path, column=names[at]), expected, "lists", "Give each label its column.")
            wanted = [names[column] for column in (chosen.identifier, *chosen.marks, *chosen.features)]
            for table, batch in self._parquet_batches(file, path, wanted, _width(file, wanted)):
                ids = parquet.id_column(table, names[chosen.identifier], batch[names[chosen.identifier]])
                self._same_kinds(path, ids, names[chosen.identifier], lists)
                block = parquet.feature_block(table, batch, features, self.widths, remedy) if features else None
                cells = {at: parquet.label_column(table, names[at], batch[names[at]]) for at in chosen.marks}
                yield Rows(_numbers(table, batch, number), [ids, *_marks(table, names, chosen, cells)], block)


def _width(file: Any, names: Sequence[str]) -> int:
    """About how many cells a row of these columns has: a column of lists has those of its values."""
    notes = file.metadata
    parts = [notes.row_group(0).column(column) for column in range(notes.num_columns)] if notes.num_row_groups else []
    cells = sum(part.num_values for part in parts if part.path_in_schema.split(".")[0] in names)
    return max(1, cells // max(1, notes.row_group(0).num_rows)) if parts else 1


def _numbers(table: Any, batch: Any, number: int) -> NDArray[np.int64]:
    first: int = number + table.first + 1
    return np.arange(first, first + len(batch), dtype=np.int64)


def _marks(table: Table, names: list[str], chosen: NodeColumns, cells: dict[int, NDArray[Any]]) -> list[Any]:
    """The columns of the labels, as text, and of the splits, as booleans."""
    import pyarrow as pa

    found = tables.marks(table, names, chosen, cells)
    return [*(pa.array(column, pa.large_string()) for column in found["labels"].values()), *found["splits"].values()]


def _text_weight(table: Table, name: str, cells: list[str]) -> NDArray[np.float32]:
    return tables.check_weight(table, name, text.numbers(cells), lambda row: text.written(cells[row]))
