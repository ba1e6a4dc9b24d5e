"""Tables in text files: csv with commas, tsv and txt with tabs; UTF-8, a header line, csv quotes."""

from __future__ import annotations

import csv
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import InputError, number_of, place, shorten
from infomax.io.blocks import Block, NotNumbersError, check_column_names, in_list
from infomax.io.encoding.cells import LARGEST
from infomax.io.pieces import opened_packed, pieces

Row: TypeAlias = tuple[int, list[str]]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
DELIMITERS |= {f"{suffix}.gz": delimiter for suffix, delimiter in DELIMITERS.items()}
_PIECE = 256
_QUOTED = re.compile('"[^"]*("|$)')


def by_pandas(path: Path, **how: Any) -> str:
    """The line of pandas that turns a file of another kind into one that is read."""
    name = path.name.removesuffix(".gz")
    said = "".join(f", {word}={value!r}" for word, value in how.items()) + ("" if "decimal" in how else ", dtype=str")
    target = Path(name).with_suffix(".csv").name
    new = target if target != name else f"new-{name}"
    return f'Python: pandas.read_csv("{path.name}"{said}).to_csv("{new}", index=False)'


def extension(path: Path) -> str:
    """The extension of a file in lower case, ``.csv.gz`` where it is packed by gzip."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


class TextFile:
    """A text file below its header line."""

    schema = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names, self._rows = read_rows(path)
        self.share = 0.0
        """How much of the file has been read, if that is known."""

    def blocks(
        self, columns: Sequence[str], features: Sequence[str], rows: int, cells: int, only: tuple[str, str] | None
    ) -> Iterator[Block]:
        """All rows of some columns, in blocks of at most so many rows and about so many cells; see `Source.only`."""
        size, done = min(rows, max(1, cells // len(self.names))), 0
        wanted = list(dict.fromkeys([*columns, *features, *(only or ())[:1]]))
        for table, share in pieces(self.path, self.names, wanted, DELIMITERS[extension(self.path)]):
            self.share = max(self.share, share)
            if table is None:
                yield from self._read(columns, features, size, only, done)
                return
            numbers, done = done + 2 + np.arange(len(table)), done + len(table)
            if only is not None:
                kept = np.array(table[only[0]].to_pylist(), dtype=object) == only[1]
                table, numbers = table.filter(kept), numbers[kept]
            for first in range(0, len(table), size):
                part = table.slice(first, size)
                block = TextBlock(self.path, {name: part[name].combine_chunks() for name in columns}, features)
                block.numbers, block.table = numbers[first : first + size], part.select(features)
                yield block

    def _read(
        self, columns: Sequence[str], features: Sequence[str], size: int, only: tuple[str, str] | None, done: int
    ) -> Iterator[Block]:
        """The rows after the first ``done``, in blocks, read by Python's csv reader."""
        place = {name: at for at, name in enumerate(self.names)}
        places = [place[name] for name in features]
        together = slice(min(places, default=0), max(places, default=0) + 1)
        one_slice = places == list(range(together.start, together.stop))  # takes a third of the time
        kept: Iterator[Row] = islice(self._rows, done, None)
        if only is not None:
            kept = (row for row in kept if row[1][place[only[0]]] == only[1])
        while True:
            block, lines = TextBlock(self.path, {name: [] for name in columns}, features), list[int]()
            # A few rows at a time: Python's garbage collector would look through many, again and again.
            while chunk := list(islice(kept, min(_PIECE, size - len(lines)))):
                lines += [line for line, _ in chunk]
                for name, column in block.columns.items():
                    at = place[name]
                    column += [row[at] for _, row in chunk]
                if one_slice:
                    block.cells.extend(chain.from_iterable(row[together] for _, row in chunk))
                elif places:
                    block.cells.extend(chain.from_iterable([row[at] for at in places] for _, row in chunk))
            if not lines:
                return
            block.numbers = np.array(lines, dtype=np.int64)
            yield block


class TextBlock(Block):
    """Some rows of a text file: columns of cells, and the cells of features row by row.

    Of rows that pyarrow has parsed, the columns are its arrays, and the features a table.
    """

    unit = "line"

    def __init__(self, path: Path, columns: dict[str, Any], features: Sequence[str]) -> None:
        self.path, self.columns, self.names = path, columns, features
        self.cells = list[str]()
        self.table: Any = None

    def ids(self, column: str) -> Any:
        """The ids ``[n]`` of a column."""
        return self.ends([column])[0]

    def ends(self, columns: Sequence[str]) -> list[Any]:
        """The ids ``[n]`` of some columns."""
        empty = [(int(np.argmin(filled)), name) for name in columns if not (filled := self.filled_in(name)).all()]
        if empty:
            row, column = min(empty, key=itemgetter(0))
            raise InputError(self.place(row, column), "an id", "an empty cell")
        return [self.columns[column] for column in columns]

    def filled_in(self, column: str) -> NDArray[np.bool_]:
        """See `Block.filled_in`."""
        cells = self.columns[column]
        if isinstance(cells, list):
            return np.array([bool(cell) for cell in cells])
        from pyarrow import compute

        return np.asarray(compute.not_equal(cells, ""))

    def numbers_of(self, column: str) -> tuple[NDArray[np.float32], Callable[[int], str]]:
        """See `Block.numbers_of`."""
        cells = self._cells(column)
        with np.errstate(over="ignore"):
            return numbers(cells).astype(np.float32), lambda row: written(cells[row])

    def words(self, column: str, widths: dict[str, int]) -> NDArray[Any]:
        """A column as text; see `Block.words`."""
        return np.array(self._cells(column), dtype=object)

    def _cells(self, column: str) -> list[str]:
        return in_list(self.columns[column])

    def arrow(self) -> Any:
        """The columns of features, as text."""
        import pyarrow as pa

        width = len(self.names)
        return self.table or pa.table({name: self.cells[at::width] for at, name in enumerate(self.names)})

    def features(self, widths: dict[str, int], remedy: str) -> NDArray[Any]:
        """Features ``[n, F]``; see `Block.features`."""
        # The first row alone often shows that they are no numbers, and a block of words takes long to look through.
        for rows in (1, len(self.numbers)):
            values = self._numbers(rows).reshape(-1, len(self.names))
            good = np.abs(values) <= LARGEST
            if not good.all():
                row, at = divmod(int(np.argmin(good)), len(self.names))
                cell = self.cells[row * len(self.names) + at] if self.table is None else self.table[at][row].as_py()
                where, expected = self.place(row, self.names[at]), "a finite number (32-bit float)"
                raise NotNumbersError(where, expected, written(cell), remedy)
        return values

    def _numbers(self, rows: int) -> NDArray[Any]:
        """The numbers in the features of the first rows, row by row; NaN where a cell holds none."""
        if self.table is None:
            return numbers(self.cells[: rows * len(self.names)])
        columns = self.table.slice(0, rows).columns
        try:
            return np.column_stack([column.cast("double") for column in columns])
        except ValueError:  # pyarrow does not read all that Python does, such as " +1"
            return numbers(list(chain.from_iterable(zip(*(column.to_pylist() for column in columns), strict=True))))


def numbers(cells: Sequence[str]) -> NDArray[Any]:
    """The number in every cell as a float; NaN where a cell holds none."""
    text = ",".join(cells)
    digits = _digits(text, len(cells))
    if digits is not None:
        return digits
    try:
        # float() reads "2024_01" as a number, which no table means.
        if "_" not in text:
            return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
    except ValueError:
        pass
    return np.fromiter(map(_number, cells), dtype=np.float64, count=len(cells))


def _digits(text: str, count: int) -> NDArray[np.float32] | None:
    """The numbers in cells that are joined by commas, if each cell is one digit, as in bags of words; else None."""
    if len(text) != 2 * count - 1 or not text.isascii():
        return None
    codes = np.frombuffer(text.encode(), dtype=np.uint8)
    digits = codes[::2] - ord("0")  # below "0" they wrap around, to numbers above 9
    if (digits > 9).any() or (codes[1::2] != ord(",")).any():
        return None
    return digits.astype(np.float32)


def _number(cell: str) -> float:
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def written(cell: str) -> str:
    """The cell as it is in the file, for a message."""
    return shorten(cell) if cell.strip() else "an empty cell"


def read_rows(path: Path) -> tuple[list[str], Iterator[Row]]:
    """The column names, and the line number and cells of every row below them."""
    rows = _rows(path)
    try:
        _, header = next(rows)
    except StopIteration:
        raise InputError(str(path), "a header line", "an empty file") from None
    names = [name.strip() for name in header]
    delimiter = DELIMITERS[extension(path)]
    if len(names) == 1:
        _refuse_other_delimiter(path, names[0], delimiter)
    if np.isfinite(numbers(names)).all():
        remedy = f'Add a first line such as "source{delimiter}target", or "id{delimiter}x{delimiter}y" for nodes. '
        remedy += by_pandas(path, sep=delimiter, names=["source", "target"])
        raise InputError(place(path, 1), "a header line with the names of the columns", "only numbers", remedy)
    check_column_names(place(path, 1), names)
    return names, rows


def _refuse_other_delimiter(path: Path, header: str, delimiter: str) -> None:
    advice = {
        ",": ("commas", "Rename the file to .csv."),
        "\t": ("tabs", "Rename the file to .tsv."),
        ";": ("semicolons", by_pandas(path, sep=";", decimal=",")),
        "|": ("bars", by_pandas(path, sep="|")),
        " ": ("spaces", by_pandas(path, sep=r"\s+")),
    }
    for other, (name, remedy) in advice.items():
        if other in header:
            expected = f"columns separated by {advice[delimiter][0]}, as in every {path.suffix}"
            raise InputError(place(path, 1), expected, f"one column with {name} in it, {shorten(header)}", remedy)


def _rows(path: Path) -> Iterator[Row]:
    """Line number and cells of every row, the header first; rows of another width are refused, blank lines skipped."""
    delimiter = DELIMITERS[extension(path)]
    line, width = 1, 0
    with opened(path) as file:
        # A header such as "source, target" shows that the space after a delimiter does not belong to the cell.
        header = file.readline()
        if "\0" in header:
            remedy = f"Save the file as UTF-8. {by_pandas(path, sep=delimiter, encoding='utf-16')}"
            raise InputError(place(path, 1), "UTF-8", "NUL characters, as UTF-16 has them", remedy)
        spaced = f"{delimiter} " in _QUOTED.sub("", header)
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=spaced, strict=True)
        try:
            for row in reader:
                if row:
                    width = width or len(row)
                    if len(row) != width:
                        expected = f"{number_of(width, 'column')}, as in the header"
                        remedy = "A cell that holds the delimiter or a line break needs double quotes."
                        raise InputError(place(path, line), expected, str(len(row)), remedy)
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            remedy = 'Check that every double quote is closed, and doubled ("") inside a quoted cell.'
            if "limit" in str(error):
                remedy += " If so: parquet holds longer cells."
            raise InputError(place(path, line), "a row of csv", str(error), remedy) from error


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
        sep = DELIMITERS.get(extension(path), ",")
        with opened_packed(path, "rb") as file:
            encoding = "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "latin-1"
        remedy = f"Save the file as UTF-8. {by_pandas(path, sep=sep, encoding=encoding)}"
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
