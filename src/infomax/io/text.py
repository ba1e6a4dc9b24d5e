"""Tables in text files, parsed by pyarrow: csv with commas, tsv and txt with tabs; UTF-8, a header line, csv quotes."""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, number_of, place, shorten
from infomax.io.blocks import Block, NotNumbersError, check_column_names, numpy_of
from infomax.io.other_tables import by_pandas

Row: TypeAlias = tuple[int, list[str]]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
DELIMITERS |= {f"{suffix}.gz": delimiter for suffix, delimiter in DELIMITERS.items()}
PIECE = 1 << 23
"""Bytes that are parsed at once."""
_QUOTED = re.compile('"[^"]*("|$)')


def extension(path: Path) -> str:
    """The extension of a file in lower case, ``.csv.gz`` where it is packed by gzip."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


class TextFile:
    """A text file below its header line."""

    schema = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names = read_names(path)
        self.share = 0.0
        """How much of the file has been read."""

    def blocks(
        self, columns: Sequence[str], features: Sequence[str], rows: int, cells: int, only: tuple[str, str] | None
    ) -> Iterator[Block]:
        """All rows of some columns, in blocks of at most so many rows and about so many cells; see `Source.only`."""
        size, done = min(rows, max(1, cells // len(self.names))), 0
        wanted = list(dict.fromkeys([*columns, *features, *(only or ())[:1]]))
        for table in self._tables(wanted):
            numbers = done + 1 + np.arange(len(table))
            done += len(table)
            if only is not None:
                kept = np.array(table[only[0]].to_pylist(), dtype=object) == only[1]
                table, numbers = table.filter(kept), numbers[kept]
            for first in range(0, len(table), size):
                part = table.slice(first, size)
                yield TextBlock(self.path, part, features, numbers[first : first + size])

    def _tables(self, wanted: Sequence[str]) -> Iterator[Any]:
        """The rows as pyarrow tables of text, some at a time."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        blank, header, mark = _header(self.path)
        spaced = f"{mark} " in _QUOTED.sub("", header)  # then the space after a delimiter belongs to no cell
        try:
            with _Counted(self.path) as file:
                batches = arrow_csv.open_csv(
                    pa.PythonFile(file, mode="r"),
                    arrow_csv.ReadOptions(
                        column_names=self.names, block_size=PIECE, skip_rows=blank, skip_rows_after_names=1
                    ),
                    arrow_csv.ParseOptions(delimiter=mark, newlines_in_values=True),
                    arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(wanted, pa.large_string()),
                        strings_can_be_null=False,
                        include_columns=wanted,
                    ),
                )
                for batch in batches:
                    table = pa.Table.from_batches([batch])  # pa.table would load pandas, where it is installed
                    if spaced:
                        from pyarrow import compute

                        table = pa.table([compute.utf8_ltrim(one, " ") for one in table.columns], names=wanted)
                        if any(compute.any(compute.starts_with(one, '"')).as_py() for one in table.columns):
                            raise InputError(str(self.path), "no space before double quotes", "some", "Remove them.")
                    self.share = max(self.share, file.share)
                    if len(table):
                        yield table
            if file.quotes % 2:  # the last one may have swallowed all rows that follow it
                refuse_rows(self.path, "")
        except (pa.ArrowException, EOFError, zlib.error) as error:
            refuse_rows(self.path, str(error))
            raise InputError(str(self.path), "a table of text", str(error)) from error


class _Counted:
    """A file of text that counts its quotes, and knows how much of it has been read."""

    closed = False

    def __init__(self, path: Path) -> None:
        self.length = max(1, path.stat().st_size)
        self.file = opened_packed(path, "rb")
        self.packed = getattr(self.file, "fileobj", self.file)
        self.quotes = 0

    def __enter__(self) -> _Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def read(self, size: int = -1) -> bytes:
        """Some bytes."""
        data: bytes = self.file.read(size)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        """Nothing: the context closes the file."""

    @property
    def share(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return 1.0 if self.packed.closed else float(self.packed.tell() / self.length)


class TextBlock(Block):
    """Some rows of a text file, as columns of text."""

    def __init__(self, path: Path, data: Any, features: Sequence[str], numbers: NDArray[np.int64]) -> None:
        self.path, self.data, self.names, self.numbers = path, data, features, numbers

    def place(self, row: int, column: str) -> str:
        """See `Block.place`."""
        return place(self.path, line_of(self.path, int(self.numbers[row])), column)

    def ids(self, column: str) -> Any:
        """The ids ``[n]`` of a column."""
        return self.ends([column])[0]

    def ends(self, columns: Sequence[str]) -> list[Any]:
        """The ids ``[n]`` of some columns."""
        empty = [(int(np.argmin(filled)), name) for name in columns if not (filled := self.filled_in(name)).all()]
        if empty:
            row, column = min(empty, key=itemgetter(0))
            raise InputError(self.place(row, column), "an id", "an empty cell")
        return [self.data[column].combine_chunks() for column in columns]

    def filled_in(self, column: str) -> NDArray[np.bool_]:
        """See `Block.filled_in`."""
        cells = self.data[column].combine_chunks()  # large_string: where each cell begins and ends
        starts = np.frombuffer(cells.buffers()[1], np.int64)[cells.offset : cells.offset + len(cells) + 1]
        return np.diff(starts) > 0

    def numbers_of(self, column: str) -> tuple[NDArray[np.float32], Callable[[int], str]]:
        """See `Block.numbers_of`."""
        cells = self.data[column].to_pylist()
        with np.errstate(over="ignore"):
            return numbers(cells).astype(np.float32), lambda row: written(cells[row])

    def words(self, column: str, widths: dict[str, int]) -> NDArray[Any]:
        """A column as text; see `Block.words`."""
        return np.array(self.data[column].to_pylist(), dtype=object)

    def arrow(self) -> Any:
        """The columns of features, as text."""
        return self.data.select(self.names)

    def features(self, widths: dict[str, int], remedy: str, gaps: Sequence[float] = ()) -> NDArray[Any]:
        """Features ``[n, F]``; see `Block.features`."""
        # The first row alone often shows that they are no numbers, and a block of words takes long to look through.
        for rows in (1, len(self.numbers)):
            values = self._numbers(rows).reshape(-1, len(self.names))
            good = self.fill(values, gaps)
            if not good.all():
                row, at = divmod(int(np.argmin(good)), len(self.names))
                where, expected = self.place(row, self.names[at]), "a finite number (32-bit float)"
                raise NotNumbersError(where, expected, written(self.data[self.names[at]][row].as_py()), remedy)
        return values

    def _numbers(self, rows: int) -> NDArray[Any]:
        """The numbers in the features of the first rows, row by row; NaN where a cell holds none."""
        columns = self.arrow().slice(0, rows).columns
        try:
            return np.column_stack([numpy_of(column.cast("double").combine_chunks(), np.float64) for column in columns])
        except ValueError:  # pyarrow does not read all that Python does, such as " +1"
            return numbers(list(chain.from_iterable(zip(*(column.to_pylist() for column in columns), strict=True))))


def numbers(cells: Sequence[str]) -> NDArray[Any]:
    """The number in every cell as a float; NaN where a cell holds none."""
    return np.fromiter(map(_number, cells), dtype=np.float64, count=len(cells))


def _number(cell: str) -> float:
    try:
        return math.nan if "_" in cell else float(cell)  # float() reads "2024_01" as a number, which no table means
    except ValueError:
        return math.nan


def written(cell: str) -> str:
    """The cell as it is in the file, for a message."""
    return shorten(cell) if cell.strip() else "an empty cell"


def _header(path: Path) -> tuple[int, str, str]:
    """How many empty lines are before the header, the header, and the delimiter of the file."""
    with opened(path) as file:
        header, blank = file.readline(), 0
        while header and not header.strip("\r\n"):
            header, blank = file.readline(), blank + 1
        while header.count('"') % 2 and (more := file.readline()):
            header += more
    return blank, header, DELIMITERS[extension(path)]


def read_names(path: Path) -> list[str]:
    """The names of the columns."""
    _, header, delimiter = _header(path)
    if not header:
        raise InputError(str(path), "a header line", "an empty file")
    if "\0" in header:
        remedy = f"Save the file as UTF-8. {by_pandas(path, 'utf-16')}"
        raise InputError(place(path, 1), "UTF-8", "NUL characters, as UTF-16 has them", remedy)
    spaced = f"{delimiter} " in _QUOTED.sub("", header)
    cells = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter, skipinitialspace=spaced))
    names = [name.strip() for name in cells]
    if len(names) == 1:
        _refuse_other_delimiter(path, names[0], delimiter)
    if np.isfinite(numbers(names)).all():
        remedy = f'Add a first line such as "source{delimiter}target", or "id{delimiter}x{delimiter}y" for nodes. '
        remedy += by_pandas(path)
        raise InputError(place(path, 1), "a header line with the names of the columns", "only numbers", remedy)
    check_column_names(place(path, 1), names)
    return names


def _refuse_other_delimiter(path: Path, header: str, delimiter: str) -> None:
    advice = {
        ",": ("commas", "Rename the file to .csv."),
        "\t": ("tabs", "Rename the file to .tsv."),
        ";": ("semicolons", by_pandas(path)),
        "|": ("bars", by_pandas(path)),
        " ": ("spaces", by_pandas(path)),
    }
    for other, (name, remedy) in advice.items():
        if other in header:
            expected = f"columns separated by {advice[delimiter][0]}, as in every {path.suffix}"
            raise InputError(place(path, 1), expected, f"one column with {name} in it, {shorten(header)}", remedy)


def _rows(path: Path) -> Iterator[Row]:
    """The line and the cells of every row, the header first, as Python's reader finds them: to name a line."""
    line = 1
    with opened(path) as file:
        reader = csv.reader(file, delimiter=DELIMITERS[extension(path)], strict=True)
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            remedy = 'Check that every double quote is closed, and doubled ("") inside a quoted cell.'
            raise InputError(place(path, line), "a row of csv", str(error), remedy) from error


def line_of(path: Path, number: int) -> int:
    """The line of a row by its number, from 1; a quoted cell may have several lines, and empty ones are no rows."""
    try:
        return next(line for at, (line, _) in enumerate(_rows(path)) if at == number)
    except (InputError, StopIteration):
        return number + 1


def refuse_rows(path: Path, found: str) -> None:
    """Name the line of a file that pyarrow cannot parse: a row of another width, bytes that are no text, a quote."""
    width = 0
    if "straddl" in found:
        return
    for line, row in _rows(path):
        width = width or len(row)
        if len(row) != width:
            expected = f"{number_of(width, 'column')}, as in the header"
            remedy = "A cell that holds the delimiter or a line break needs double quotes."
            raise InputError(place(path, line), expected, str(len(row)), remedy)


def opened_packed(path: Path, mode: str, **how: Any) -> Any:
    """Open a file as ``open`` does; gzip packs it, or unpacks it, where its name ends in .gz."""
    return (gzip.open if path.suffix.lower() == ".gz" else open)(path, mode, **how)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file in UTF-8, with or without a byte order mark; line ends stay as they are."""
    try:
        with opened_packed(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except (EOFError, zlib.error) as error:
        raise InputError(str(path), "a whole gzip file", str(error), "Was it cut short?") from error
    except OSError as error:
        raise InputError(str(path), "a file that can be read", error.strerror or str(error)) from error
    except UnicodeDecodeError:
        remedy = f"Save the file as UTF-8. {by_pandas(path, 'latin-1')}"
        raise InputError(place(path, _undecodable(path)), "UTF-8", "other bytes", remedy) from None


def _undecodable(path: Path) -> int:
    """The number of the first line that is not UTF-8."""
    # The decoder works in blocks and does not know its line, so read again. No character spans a line end.
    with opened_packed(path, "rb") as file:
        lines = chain.from_iterable(piece.splitlines() for piece in file)  # a piece ends in LF; lines may end in CR
        return next(line for line, raw in enumerate(lines, 1) if raw.decode(errors="ignore").encode() != raw)


def write_rows(path: Path, kind: str, rows: Iterable[Sequence[str]]) -> None:
    """Write a table in the format of an extension; the first row is the header."""
    delimiter = DELIMITERS[kind]
    with opened_packed(path, "wt", encoding="utf-8", newline="") as file:
        for cells in rows:
            line = delimiter.join(cells)
            if line.count(delimiter) >= len(cells) or any(sign in line for sign in '"\n\r'):
                line = delimiter.join(quoted(cell, delimiter) for cell in cells)
            file.write(line + "\n")


def quoted(cell: str, delimiter: str) -> str:
    """A cell in double quotes, where it needs them."""
    # csv.writer does not quote a lone carriage return where lines end in "\n", and csv.reader ends the row there.
    escaped = '"' + cell.replace('"', '""') + '"'
    return escaped if set(cell) & {delimiter, '"', "\n", "\r"} else cell
