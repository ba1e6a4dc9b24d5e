"""Tables as rows: text files, parquet files, frames and queries, read in blocks of a bounded size.

A `Source` is one table, and a `Block` some of its rows. What a column is used for is not known
here; a block is asked for a column as ids, numbers, labels, times and so on, and refuses cells that
are no such thing by file, line and column.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.checks import MOST_WEIGHT, WEIGHT
from infomax.arrays.times import WRITTEN
from infomax.errors import InputError, format_count, format_location, readable, shorten
from infomax.io import parquet, text
from infomax.io.encoding import cells
from infomax.io.encoding.times import read_instants
from infomax.io.text import AS_THE_EXTENSION_SAYS, TextFormat

EXTENSIONS = (*text.DELIMITERS, ".parquet")
ROWS_PER_BLOCK = 1 << 17
"""Rows that are read at once; fewer of wide tables."""
CELLS_PER_BLOCK = 1 << 20
BYTES_KEPT = 1 << 28
"""Bytes of cells that are kept; larger tables are parsed twice."""
FILE = 1 << 40
"""Each row has a number: that of its file times this, plus that within the file, from 1.

Rows in order have ascending numbers.
"""
FILL_IN = "Fill it in, or remove the row."
_TRUE, _FALSE = ("1", "true"), ("0", "false", "")
"""What a split may hold, in any case."""

NoteUnlike: TypeAlias = Callable[[str, int, str], None]
"""Called with cells that are unlike those from which their column was learnt.

It gets the column, how many cells there are, and what is wrong with the first.
"""


class NotNumbersError(InputError):
    """Features that are no finite numbers: an encoding may make numbers of them."""


def existing(path: Path, remedy: str = "") -> Path:
    """The path of a file; refused where there is none."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing of that name"
        raise InputError(str(path), "a file", found, remedy)
    return path


@dataclass
class Source:
    """One table: the files of which it consists, or a frame.

    Attributes:
        files: of a frame, the name that messages have for it.
        frame: a pyarrow table, or a query of a database, which is read like one.
        text_format: how text files are written.
        rows_with: a column, and the word that the rows which are read have in it; None: all rows
            are read.
        tell: is told how much of the work with this table is done, from 0 to 1.
    """

    files: list[Path]
    frame: Any = None
    text_format: TextFormat = AS_THE_EXTENSION_SAYS
    rows_with: tuple[str, str] | None = None
    tell: Callable[[float], None] = lambda share: None
    kept_batches: KeptBatches = field(default_factory=lambda: KeptBatches(), init=False)
    """What the pass that learns has parsed, for the pass that follows it."""

    def __post_init__(self) -> None:
        if self.frame is not None:
            self.text_format = AS_THE_EXTENSION_SAYS
        for path in self.files:
            if text.is_text(path, self.text_format) != self.is_text:
                expected = f"a table as {self.path} is"
                raise InputError(
                    str(path), expected, "one of another kind", "Give all files one kind."
                )

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages about all of it."""
        return self.files[0]

    @property
    def is_text(self) -> bool:
        """Whether it is text: rows have lines, and cells have no types."""
        return text.is_text(self.path, self.text_format)

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._header[0]

    @property
    def list_columns(self) -> set[str]:
        """The columns that hold lists."""
        return self._header[1]

    def columns_of_features(self, feature_names: Sequence[str]) -> list[str]:
        """The columns that hold features of these names.

        For ``v[0]`` to ``v[W-1]`` this is ``v``, where v has lists.
        """
        columns: dict[str, None] = {}
        for name in feature_names:
            list_column = name.rpartition("[")[0]
            columns[list_column if list_column in self.list_columns else name] = None
        return list(columns)

    @cached_property
    def _header(self) -> tuple[list[str], set[str]]:
        """The names of all columns, and of those that hold lists, by the first file with rows."""
        names: list[str] = []
        for path in self.files:
            with self._opened(path) as file:
                names = names or file.names
                if self.is_text:
                    return names, set()
                if file.schema is not None:
                    types = {name: file.schema.field(name).type for name in file.names}
                    return names, {name for name, of in types.items() if cells.is_list(of)}
        return names, set()

    def location(self, number: int, column: str = "") -> str:
        """``edges.csv, line 3, column "weight"``, of a row by its number."""
        return text.row_place(self.files[number // FILE], number % FILE, column, self.text_format)

    def readable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Raise an InputError where pyarrow cannot read a file, by default the first one."""
        return readable(path or self.path, "a table that can be read")

    def blocks(
        self, columns: Sequence[str], feature_columns: Sequence[str], *, keep: bool = False
    ) -> Iterator[Block]:
        """The rows of all files in blocks of a bounded size.

        Args:
            columns: the columns that are read besides those of features.
            feature_columns: the columns of features.
            keep: whether text is kept as it was parsed, for the next pass.
        """
        wanted = [*columns, *feature_columns]
        if self.rows_with is not None:
            wanted.append(self.rows_with[0])
        wanted = list(dict.fromkeys(wanted))
        for file_number, path in enumerate(self.files):
            with self._opened(path) as file:
                if file.names != self.names:
                    found = ", ".join(map(shorten, file.names))
                    remedy = "Give all files the same columns."
                    raise InputError(str(path), f"the columns of {self.path}", found, remedy)
                most_rows = min(ROWS_PER_BLOCK, max(1, CELLS_PER_BLOCK // file.width(wanted)))
                next_number = file_number * FILE + 1
                batches = self._batches(file_number, file, wanted, most_rows, keep=keep)
                for batch, share_of_file in batches:
                    block = Block(
                        path,
                        batch,
                        feature_columns,
                        next_number + np.arange(len(batch)),
                        (file_number + share_of_file) / len(self.files),
                        self.text_format,
                    )
                    next_number += len(batch)
                    if self.rows_with is not None:
                        column, word = self.rows_with
                        block = block.part(block.words(column, {}) == word)
                    # A piece of text is parsed at once, and may have more rows than a block.
                    for first in range(0, len(block.numbers), most_rows):
                        numbers = block.numbers[first : first + most_rows]
                        yield replace(
                            block, data=block.data.slice(first, most_rows), numbers=numbers
                        )

    def _batches(
        self,
        file_number: int,
        file: text.TextFile | parquet.ArrowFile,
        columns: Sequence[str],
        row_count: int,
        *,
        keep: bool,
    ) -> Iterator[tuple[Any, float]]:
        """Batches of a file, parsed now or kept, each with the share of it that has been read."""
        kept = self.kept_batches.take(file_number, columns)
        if kept is not None:
            yield from kept
            return
        batches = file.batches(columns, row_count)
        if keep and self.is_text:
            yield from self.kept_batches.keep(file_number, batches, lambda: file.share)
            return
        for batch in batches:
            yield batch, file.share

    def filled_columns_by_word(self, column: str) -> dict[str, list[str]]:
        """The columns that are filled in rows with each word of a column, by the word, in order."""
        filled_by_word: dict[str, set[str]] = {}
        for block in self.blocks(self.names, []):
            words = block.words(column, {})
            for word in dict.fromkeys(words.tolist()):
                rows = np.flatnonzero(words == word)
                if not word:
                    location = block.location(int(rows[0]), column)
                    raise InputError(location, "a type of nodes", "an empty cell", FILL_IN)
                filled = filled_by_word.setdefault(word, set())
                for name in self.names:
                    if name not in filled and block.filled_in(name)[rows].any():
                        filled.add(name)
        return {
            word: [name for name in self.names if name in filled_by_word[word]]
            for word in sorted(filled_by_word)
        }

    @contextmanager
    def _opened(self, path: Path) -> Iterator[text.TextFile | parquet.ArrowFile]:
        if self.is_text:
            yield text.TextFile(path, self.text_format)
        elif self.frame is not None:
            yield parquet.ArrowFile(path, self.frame)
        else:
            with parquet.opened(path) as file:
                yield parquet.ArrowFile(path, file)


class KeptBatches:
    """The batches of the files of a table, kept from the pass that learns its columns.

    The pass that follows makes features of the same cells. Parsing them takes longer than all else
    that is done with wide tables. A batch is forgotten once it was read again.
    """

    def __init__(self, most_bytes: int = BYTES_KEPT) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._batches_of_file: dict[int, deque[tuple[Any, float]]] = {}

    def keep(
        self, file_number: int, batches: Iterator[Any], share_read: Callable[[], float]
    ) -> Iterator[tuple[Any, float]]:
        """The batches of a file, each with the share of it that has been read, which are kept."""
        kept: deque[tuple[Any, float]] = deque()
        for batch in batches:
            share = share_read()
            self._bytes += batch.nbytes
            if self._bytes <= self._most_bytes:
                kept.append((batch, share))
            else:
                kept.clear()
            yield batch, share
        # A file is kept once it was read to its end.
        if self._bytes <= self._most_bytes:
            self._batches_of_file[file_number] = kept

    def take(
        self, file_number: int, columns: Collection[str]
    ) -> Iterator[tuple[Any, float]] | None:
        """The batches of a file that were kept, with these columns; None: it is to be parsed."""
        kept = self._batches_of_file.pop(file_number, None)
        if not kept or not set(columns) <= set(kept[0][0].schema.names):
            return None
        return self._drain(kept)

    def _drain(self, kept: deque[tuple[Any, float]]) -> Iterator[tuple[Any, float]]:
        while kept:
            batch, share = kept.popleft()
            self._bytes -= batch.nbytes
            yield batch, share


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a file.

    Attributes:
        path: the file.
        data: a record batch of pyarrow. Cells of text files are text, "" where there is nothing;
            others have the types that the parquet file or the frame has.
        names: the columns of features.
        numbers: the numbers ``[n]`` of the rows, see `FILE`.
        share: how much of all files has been read once this block has.
        text_format: how text files are written.
    """

    path: Path
    data: Any
    names: Sequence[str]
    numbers: NDArray[np.int64]
    share: float = 1.0
    text_format: TextFormat = AS_THE_EXTENSION_SAYS

    @property
    def is_text(self) -> bool:
        """Whether the rows are of a text file, whose cells have no types."""
        return text.is_text(self.path, self.text_format)

    def location(self, row: int, column: str) -> str:
        """Where a cell is, in a message; ``row`` counts from 0 within the block."""
        return text.row_place(self.path, int(self.numbers[row]) % FILE, column, self.text_format)

    def part(self, kept: NDArray[np.bool_]) -> Block:
        """The rows of a mask ``[n]``."""
        return replace(self, data=self.data.filter(kept), numbers=self.numbers[kept])

    def ids(self, column: str) -> Any:
        """The ids ``[n]`` of a column: a pyarrow array of int64 or large_string."""
        from pyarrow import types

        values = self.filled(column)
        cell_type = values.type
        if types.is_dictionary(cell_type):
            cell_type = cell_type.value_type
        if types.is_integer(cell_type):
            return values.cast("int64")
        if _is_text(cell_type):
            return values.cast("large_string")
        remedy = 'Make them one of these (pandas: column.astype("Int64")).'
        raise InputError(
            format_location(self.path, column=column),
            "ids that are integers or text",
            f"type {values.type}",
            remedy,
        )

    def ends(self, columns: Sequence[str]) -> list[Any]:
        """The ids ``[n]`` at both ends of edges, of one type."""
        ends = [self.ids(column) for column in columns]
        if ends[0].type != ends[1].type:
            found = " and ".join(
                f'{end.type} in "{name}"' for end, name in zip(ends, columns, strict=True)
            )
            remedy = "Give both columns one type."
            raise InputError(str(self.path), "ids of one type", found, remedy)
        return ends

    def filled_in(self, column: str) -> NDArray[np.bool_]:
        """Whether there is something in each cell ``[n]`` of a column."""
        if self.is_text:
            return np.diff(cells.utf8(self.data[column])[0]) > 0
        return np.asarray(self.data[column].is_valid())

    def filled(self, column: str) -> Any:
        """A column that has something in every row."""
        is_filled = self.filled_in(column)
        if not is_filled.all():
            found = "an empty cell" if self.is_text else "null"
            location = self.location(int(np.argmin(is_filled)), column)
            raise InputError(location, "an id", found, FILL_IN)
        return self.data[column]

    def features(
        self,
        widths: dict[str, int],
        remedy: str,
        gaps: Sequence[float] = (),
        note_unlike: NoteUnlike = lambda column, count, first_refusal: None,
    ) -> NDArray[Any]:
        """Features ``[n, F]``, every one finite; a column of lists of W numbers is W features.

        Args:
            widths: the W of each column of lists; learns those that it lacks.
            remedy: for messages.
            gaps: what a missing cell of each column becomes, see `LearntFeatures.gaps`. Text
                becomes the same.
            note_unlike: is told of text in place of numbers, where there are ``gaps``.
        """
        fills_gaps = len(gaps) == len(self.names)  # else they are lists, or gaps are refused
        # The first row alone often shows that cells are no numbers, and looking through a block of
        # words takes long.
        row_counts = (len(self.numbers),) if fills_gaps else (1, len(self.numbers))
        for row_count in row_counts:
            columns = [
                self._numbers(column, row_count, widths, remedy, reads_text=fills_gaps)
                for column in self.names
            ]
            values = np.column_stack(columns)
            is_good: NDArray[np.bool_] = np.abs(values) <= cells.LARGEST
            if fills_gaps:
                self._fill(values, is_good, gaps, note_unlike)
            if not is_good.all():
                raise self._not_numbers(is_good, widths, remedy)
        return values

    def _fill(
        self,
        values: NDArray[Any],
        is_good: NDArray[np.bool_],
        gaps: Sequence[float],
        note_unlike: NoteUnlike,
    ) -> None:
        """Put what gaps become into features ``[n, F]``, and mark them as good."""
        for position in np.flatnonzero(~is_good.all(axis=0)).tolist():
            name = self.names[position]
            is_missing = np.asarray(cells.plain(self.data[name].slice(0, len(values))).is_null())
            is_text = np.isnan(values[:, position]) & ~is_missing
            if is_text.any():
                refusal = self._not_numbers(~(is_text[:, None]), {}, "", [name])
                note_unlike(name, int(np.count_nonzero(is_text)), str(refusal))
            is_gap = is_missing | is_text
            values[is_gap, position] = gaps[position]
            is_good[is_gap, position] = True

    def _not_numbers(
        self,
        is_good: NDArray[np.bool_],
        widths: Mapping[str, int],
        remedy: str,
        names: Sequence[str] = (),
    ) -> NotNumbersError:
        """The error for the first feature that is no finite number.

        Args:
            is_good: whether each feature ``[n, F]`` is a finite number.
            widths: the number of features of each column of lists.
            remedy: for the message.
            names: the columns of the F features; by default all columns of features.
        """
        row, position = divmod(int(np.argmin(is_good)), is_good.shape[1])
        entries = [
            (name, entry) for name in names or self.names for entry in range(widths.get(name, 1))
        ]
        column, entry = entries[position]
        value = self.data[column][row].as_py()
        if column in widths:
            value = value[entry]
        expected = "a finite number (32-bit float)"
        return NotNumbersError(self.location(row, column), expected, written(value), remedy)

    def _numbers(
        self,
        column: str,
        rows: int,
        widths: dict[str, int],
        remedy: str = "",
        *,
        reads_text: bool = False,
    ) -> NDArray[Any]:
        """A column of numbers as ``[n]``, or of lists of W numbers as ``[n, W]``.

        A cell without a number is NaN. Float32 stays as it is; all others are float64.

        Args:
            column: the column.
            rows: how many of the first rows to read.
            widths: the W of each column of lists; learns that of this column.
            remedy: for messages.
            reads_text: whether text is read as numbers in files whose columns have types.
        """
        import pyarrow as pa
        from pyarrow import compute

        values = self.data[column].slice(0, rows)
        if self.is_text:
            try:
                return numpy_of(values.cast("double"), np.float64)
            except pa.ArrowInvalid:
                # Some cells are no numbers, or not as pyarrow reads them, such as " +1".
                return cells.numbers(cells.plain(values))[0]
        has_lists = cells.is_list(values.type)
        if reads_text and _is_text(values.type):
            return cells.numbers(cells.plain(values))[0]
        if not _numeric(values.type.value_type if has_lists else values.type):
            location = format_location(self.path, column=column)
            remedy_of_type = "Store it as numbers." if remedy else ""
            raise NotNumbersError(location, "numbers", f"type {values.type}", remedy_of_type)
        if has_lists:
            list_lengths = compute.fill_null(compute.list_value_length(values), 0)
            lengths = list_lengths.to_numpy(zero_copy_only=False)
            if not lengths.all():
                location = self.location(int(np.argmin(lengths)), column)
                found = "null, or an empty one"
                raise NotNumbersError(location, "a list of numbers", found, remedy)
            width = widths.setdefault(column, int(lengths[0]) if len(lengths) else 0)
            if (lengths != width).any():
                row = int(np.argmax(lengths != width))
                expected = f"a list of {format_count(width, 'number')}, as in the rows before"
                found = format_count(int(lengths[row]), "number")
                raise InputError(self.location(row, column), expected, found)
            values = values.flatten()
        numbers = np.asarray(values.to_numpy(zero_copy_only=False))
        if numbers.dtype != np.float32:
            numbers = numbers.astype(np.float64)
        return numbers.reshape(-1, widths[column]) if has_lists else numbers

    def arrow(self) -> Any:
        """The columns of features as a pyarrow table."""
        return self.data.select(self.names)

    def words(self, column: str, widths: dict[str, int]) -> NDArray[Any]:
        """A column ``[n]`` as str objects, "" where a cell is missing.

        Lists of C values 0 and 1 are ``[n, C]``; ``widths`` learns their C.
        """
        from pyarrow import compute

        values = self.data[column]
        if cells.is_list(values.type):
            location = format_location(self.path, column=column)
            if not _numeric(values.type.value_type):
                expected = "one label per node, or lists of 0 and 1"
                remedy = (
                    "Give each label a column of 0 and 1 "
                    '(pandas: column.str.join("|").str.get_dummies()).'
                )
                raise InputError(location, expected, f"type {values.type}", remedy)
            flags = self._numbers(column, len(values), widths)
            if not np.isin(flags, (0, 1)).all():
                raise InputError(location, "lists of 0 and 1, one per label", "other numbers")
            return flags.astype(np.uint8)
        is_missing = compute.is_null(values, nan_is_null=True)
        texts = compute.if_else(is_missing, "", values.cast("large_string"))
        return np.array(texts.to_pylist(), dtype=object)

    def weight(self, column: str) -> NDArray[np.float32]:
        """The weights ``[n]`` of a column, each from zero to `MOST_WEIGHT`."""
        with np.errstate(over="ignore"):
            weights = self._numbers(column, len(self.numbers), {}).astype(np.float32)
        is_good = (weights >= 0) & (weights <= MOST_WEIGHT)
        if not is_good.all():
            row = int(np.argmin(is_good))
            found = written(self.data[column][row].as_py())
            remedy = "Correct it or remove the edge."
            raise InputError(self.location(row, column), WEIGHT, found, remedy)
        return weights

    def split(self, column: str) -> NDArray[np.bool_]:
        """The split ``[n]`` of a column: 1 or true, and 0, false or nothing."""
        texts = self.words(column, {})
        values = [cell.strip().lower() for cell in texts]
        for row, value in enumerate(values):
            if value not in _TRUE and value not in _FALSE:
                found = shorten(texts[row])
                raise InputError(self.location(row, column), "1 or 0, true or false", found)
        return np.array([value in _TRUE for value in values], dtype=bool)

    def groups(self, column: str) -> list[str]:
        """The names ``[n]`` of the graphs that nodes belong to."""
        names: list[str] = self.words(column, {}).tolist()
        if "" in names:
            location = self.location(names.index(""), column)
            raise InputError(location, "the name of a graph", "an empty cell", FILL_IN)
        return names

    def times(self, column: str) -> NDArray[np.int64]:
        """The times ``[n]`` of a column, see `infomax.arrays.times`; `UNKNOWN` where none is."""
        values = cells.plain(self.data[column])
        times, is_unreadable = read_instants(values)
        if is_unreadable.any():
            row = int(np.argmax(is_unreadable))
            raise InputError(self.location(row, column), WRITTEN, cells.shown(values, row))
        return times

    def node_names(self, column: str) -> NDArray[Any]:
        """The names ``[n]`` of nodes, "" where there is none."""
        names = self.words(column, {})
        if names.ndim > 1:
            location = format_location(self.path, column=column)
            raise InputError(location, "one name per node", "lists")
        return names


def written(cell: Any) -> str:
    """A cell for a message, as it is in its file."""
    if cell is None:
        return "null"
    if not isinstance(cell, str):
        return str(cell)
    return shorten(cell) if cell.strip() else "an empty cell"


def _numeric(arrow_type: Any) -> bool:
    from pyarrow import types

    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(arrow_type) for test in tests)


def _is_text(arrow_type: Any) -> bool:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_string_view)
    return any(test(arrow_type) for test in tests)


def typed(ids: Any) -> Any:
    """Ids as integers, if every one is written as Python writes an int64; else the text as it is.

    Not so written are "007", "+1" and "1.0". Ids are a pyarrow array of text.
    """
    try:
        ids[:1].cast("int64")  # where the first fails, the others need not fail one by one
        integers = ids.cast("int64")
    except ValueError:
        return ids
    return integers if integers.cast("large_string").equals(ids) else ids


def are_integers(ids: Any, *, is_text: bool) -> bool:
    """Whether all ids of a block are integers; in text, whether they are written as integers."""
    return typed(ids) is not ids if is_text else str(ids.type) == "int64"


def numpy_of(array: Any, dtype: Any) -> NDArray[Any]:
    """A pyarrow array ``[n]`` of numbers without gaps, as a NumPy array.

    The method of pyarrow would load pandas, where that is installed.
    """
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def number_groups(names_of_nodes: list[str]) -> NDArray[np.int64]:
    """A number for each name ``[N]`` of a graph.

    Where all names are integers, they are the numbers; else graphs are numbered in the order in
    which they appear first.
    """
    import pyarrow as pa

    names = list(dict.fromkeys(names_of_nodes))
    numbers = typed(pa.array(names, pa.large_string())).to_pylist()
    if numbers == names:  # they are text
        numbers = list(range(len(names)))
    number_of_name = dict(zip(names, numbers, strict=True))
    return np.array([number_of_name[name] for name in names_of_nodes], dtype=np.int64)
