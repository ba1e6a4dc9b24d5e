"""Tables in text files, parsed by pyarrow.

A csv has commas, a tsv or txt has tabs. Files are UTF-8, have a header line, and quote cells as csv
does, unless a person says otherwise (`TextFormat`).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from infomax.errors import InputError, format_count, format_location, shorten
from infomax.io import parquet
from infomax.io.column_names import check_column_names

DELIMITER_NAMES = {
    "comma": ",",
    "tab": "\t",
    "\\t": "\t",
    "semicolon": ";",
    "bar": "|",
    "space": " ",
}
"""Delimiters by names that can be typed in a shell."""


@dataclass(frozen=True)
class TextFormat:
    """How text tables are written.

    Attributes:
        delimiter: what separates cells, one character. "": as the extension says.
        has_header: whether the first line names the columns; else they are column1, column2, ...
        encoding: the encoding. "": UTF-8.
    """

    delimiter: str = ""
    has_header: bool = True
    encoding: str = ""

    @classmethod
    def of(
        cls, delimiter: str | None = None, header: bool | None = None, encoding: str | None = None
    ) -> TextFormat:
        """The format that a person chose; refused where there is no such delimiter or encoding."""
        character = DELIMITER_NAMES.get(delimiter or "", delimiter or "")
        if len(character) > 1 or character in ('"', "\n", "\r"):
            expected = "one character, or comma, tab, semicolon, bar, space"
            remedy = "Replace a longer one first: sed 's/::/|/g' ratings.dat > ratings.csv."
            raise InputError("delimiter", expected, shorten(character), remedy)
        try:
            python_encoding = codecs.lookup(encoding).name if encoding else ""
        except LookupError:
            expected = "an encoding that Python knows, such as latin-1 or utf-16"
            raise InputError("encoding", expected, shorten(encoding or "")) from None
        if python_encoding == "utf-8":
            python_encoding = ""
        return cls(character, header is not False, python_encoding)

    @property
    def takes_any_extension(self) -> bool:
        """Whether files of any extension are text tables, as a person said how they are written."""
        return self != AS_THE_EXTENSION_SAYS


AS_THE_EXTENSION_SAYS = TextFormat()

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
DELIMITERS |= {f"{suffix}.gz": delimiter for suffix, delimiter in DELIMITERS.items()}
PIECE = 1 << 23
"""Bytes that are parsed at once."""
_QUOTED = re.compile('"[^"]*("|$)')
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_DELIMITER_WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "spaces"}
_SHEETS = dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), "excel(NAME, dtype=str)")
_READERS = {
    **_SHEETS,
    ".json": "json(NAME)",
    ".jsonl": "json(NAME, lines=True)",
    ".feather": "feather(NAME)",
}
"""Functions of pandas by the extension of what they read."""
_WESTERN = "cp1252"
"""What Excel writes on most machines where it does not write UTF-8."""


def extension(path: Path) -> str:
    """The extension of a file in lower case, ``.csv.gz`` where it is packed by gzip."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


class TextFile:
    """A text file below its header line.

    Attributes:
        delimiter: what separates cells.
        blank_lines: how many empty lines are before the header.
        has_spaces: whether a space follows a delimiter in the header; such a space belongs to no
            cell.
        names: the names of the columns.
        share: how much of the file has been read, from 0 to 1.
    """

    schema = None

    def __init__(self, path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> None:
        self.path = path
        self.text_format = text_format
        self.delimiter = delimiter_of(path, text_format)
        self.share = 0.0
        self.blank_lines = 0
        with opened(path, text_format.encoding) as file:
            header = file.readline()
            while header and not header.strip("\r\n"):
                header = file.readline()
                self.blank_lines += 1
            # A name in quotes may have line breaks.
            while header.count('"') % 2:
                next_line = file.readline()
                if not next_line:
                    break
                header += next_line
        if not header:
            raise InputError(str(path), "a header line", "an empty file")
        if "\0" in header:
            raise _undecodable(path, text_format.encoding)
        self.has_spaces = f"{self.delimiter} " in _QUOTED.sub("", header)
        row = csv.reader(
            io.StringIO(header, newline=""),
            delimiter=self.delimiter,
            skipinitialspace=self.has_spaces,
        )
        self.names = [name.strip() for name in next(row)]
        if text_format.has_header:
            self._check_header()
        else:
            self.names = [f"column{number}" for number in range(1, len(self.names) + 1)]

    def _check_header(self) -> None:
        """Refuse a header with another delimiter, of numbers only, or with faulty names."""
        location = format_location(self.path, 1)
        if len(self.names) == 1:
            self._refuse_other_delimiter(location, self.names[0])
        if all(map(_NUMBER.fullmatch, self.names)):
            edge_header = self.delimiter.join(["source", "target"])
            node_header = self.delimiter.join(["id", "x", "y"])
            expected = "a header line with the names of the columns"
            remedy = f'Add a first line such as "{edge_header}", or "{node_header}" for nodes.'
            raise InputError(location, expected, "only numbers", remedy)
        check_column_names(location, self.names)

    def _refuse_other_delimiter(self, location: str, name: str) -> None:
        """Refuse the name of an only column in which there is another delimiter."""
        other_delimiter = next((mark for mark in _DELIMITER_WORDS if mark in name), None)
        if other_delimiter is None:
            return
        expected_word = _DELIMITER_WORDS.get(self.delimiter, shorten(self.delimiter))
        if self.delimiter == DELIMITERS.get(extension(self.path), ""):
            expected = f"columns separated by {expected_word}, as in every {self.path.suffix}"
            suffix = {",": ".csv", "\t": ".tsv"}.get(other_delimiter)
            remedy = f"Rename the file to {suffix}." if suffix else by_pandas(self.path)
        else:
            expected = f"columns separated by {expected_word}, as --delimiter says"
            remedy = "Leave it out, or name what separates them."
        found = f"one column with {_DELIMITER_WORDS[other_delimiter]} in it, {shorten(name)}"
        raise InputError(location, expected, found, remedy)

    def width(self, columns: Sequence[str]) -> int:
        """How many cells a row has, of which all are parsed."""
        return len(self.names)

    def batches(self, wanted: Sequence[str], size: int) -> Iterator[Any]:
        """The rows of some columns as batches of text.

        Batches have any number of rows, whatever ``size`` is, since a piece of the file is parsed
        at once.
        """
        import pyarrow as pa
        from pyarrow import compute
        from pyarrow import csv as arrow_csv

        try:
            with closing(_Counted(self.path)) as file:
                batches = arrow_csv.open_csv(
                    pa.PythonFile(file, mode="r"),
                    arrow_csv.ReadOptions(
                        column_names=self.names,
                        block_size=PIECE,
                        skip_rows=self.blank_lines,
                        skip_rows_after_names=int(self.text_format.has_header),
                        encoding=self.text_format.encoding or "utf8",
                    ),
                    arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                    arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(wanted, pa.large_string()),
                        strings_can_be_null=False,
                        include_columns=wanted,
                    ),
                )
                for batch in batches:
                    if self.has_spaces:
                        columns = [compute.utf8_ltrim(cells, " ") for cells in batch.columns]
                        batch = pa.RecordBatch.from_arrays(columns, wanted)
                        # pyarrow takes quotes after a space for a part of the cell.
                        for cells in columns:
                            if compute.any(compute.starts_with(cells, '"')).as_py():
                                expected = "no space before double quotes"
                                raise InputError(str(self.path), expected, "some", "Remove them.")
                    self.share = max(self.share, file.share)
                    yield batch
        except (pa.ArrowException, EOFError, zlib.error) as error:
            raise _explained(self.path, str(error), self.text_format) from error
        if file.quotes % 2:  # the last one may have swallowed all rows that follow it
            raise _explained(self.path, "a double quote that is not closed", self.text_format)


_QUOTES = (
    "A cell that holds the delimiter or a line break needs double quotes, closed, "
    'and doubled ("") inside.'
)
"""What to do about rows of another width."""


def _explained(
    path: Path, found: str, text_format: TextFormat = AS_THE_EXTENSION_SAYS
) -> InputError:
    """The error for a file that pyarrow cannot parse.

    It names the line of the first row that has another number of cells than the header.
    """
    if "UTF8" in found:
        return _undecodable(path, text_format.encoding)
    where = str(path)
    width = 0
    with suppress(csv.Error):
        for line, row in _rows(path, text_format):
            width = width or len(row)
            if len(row) != width:
                where = format_location(path, line)
                found = f"{len(row)}"
                break
    return InputError(where, f"{format_count(width, 'column')} in every row", found, _QUOTES)


def refuse_wide(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> None:
    """Refuse the first row that has more cells than the header, by its line."""
    width = 0
    with suppress(csv.Error, UnicodeDecodeError):
        for line, row in _rows(path, text_format):
            width = width or len(row)
            if len(row) > width:
                expected = f"at most {format_count(width, 'cell')}"
                raise InputError(format_location(path, line), expected, f"{len(row)}", _QUOTES)


def delimiter_of(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> str:
    """What separates the cells of a file.

    What a person said comes first, then the extension. Files of another extension have the
    delimiter that their first line has most of.
    """
    delimiter = text_format.delimiter or DELIMITERS.get(extension(path), "")
    if delimiter:
        return delimiter
    with opened(path, text_format.encoding) as file:
        first_line = file.readline()
    return max(_DELIMITER_WORDS, key=first_line.count)


def _undecodable(path: Path, encoding: str) -> InputError:
    """The error for text that is not in the encoding that a person said, or else not in UTF-8."""
    if not encoding:
        return _not_utf8(path)
    return InputError(str(path), f"text in {encoding}", "other bytes", "Say another --encoding.")


def _not_utf8(path: Path) -> InputError:
    """The error for text that is not in UTF-8; it names the first such line."""
    wrong_line = 1
    with opened_packed(path, "rb") as file:
        for line, raw in enumerate(file, 1):
            if raw.decode(errors="ignore").encode() != raw:
                wrong_line = line
                break
    remedy = f"Save the file as UTF-8. {by_pandas(path, _WESTERN)}"
    return InputError(format_location(path, wrong_line), "text in UTF-8", "other bytes", remedy)


def by_pandas(path: Path, encoding: str = "") -> str:
    """A line of Python that makes a table readable which is not.

    The first bytes of the file tell its delimiter and its encoding, where they are not UTF-8;
    ``encoding`` is used where they do not tell.
    """
    reader = _READERS.get(extension(path))
    if reader is None:
        start = b""
        with suppress(OSError, EOFError, zlib.error), opened_packed(path, "rb") as file:
            start = file.read(PIECE)
        encoding = _encoding(start) or encoding
        lines = start.decode(encoding or "utf-8", errors="ignore").lstrip("\ufeff\r\n")
        header = lines.partition("\n")[0]
        delimiter = max(_DELIMITER_WORDS, key=header.count)
        encoding_argument = f", encoding={encoding!r}" if encoding else ""
        reader = f"csv(NAME, sep={delimiter!r}{encoding_argument}, dtype=str)"
    return f"Python: pandas.read_{reader}.to_csv(NEW, index=False)"


def _encoding(start: bytes) -> str:
    """The likely encoding of a text that starts so; nothing for UTF-8."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start[:2]:
        return "utf-16-le" if start[0] else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return _WESTERN
    return ""


class _Counted:
    """A file of text that counts its quotes, and knows how much of it has been read."""

    closed = False

    def __init__(self, path: Path) -> None:
        self.length = max(1, path.stat().st_size)
        self.file = opened_packed(path, "rb")
        self.packed = getattr(self.file, "fileobj", self.file)
        self.quotes = 0

    def read(self, size: int = -1) -> bytes:
        """Some bytes."""
        data: bytes = self.file.read(size)
        self.quotes += data.count(b'"')
        return data

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    @property
    def share(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return 1.0 if self.packed.closed else float(self.packed.tell() / self.length)


def _rows(
    path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS
) -> Iterator[tuple[int, list[str]]]:
    """The line and the cells of every row, the header first, as Python's reader finds them.

    It is slow, and only names lines in messages.
    """
    with opened(path, text_format.encoding) as file:
        reader = csv.reader(file, delimiter=delimiter_of(path, text_format))
        line = 1
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1


def first_row(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> list[str]:
    """The cells of the first row below the header; empty where there is none that can be read."""
    header_rows = 1 if text_format.has_header else 0
    with suppress(InputError, csv.Error):
        for position, (_, row) in enumerate(_rows(path, text_format)):
            if position == header_rows:
                return row
    return []


def is_text(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> bool:
    """Whether a table is one of text, whose rows have lines, and whose cells have no types."""
    if text_format.takes_any_extension:
        return extension(path) != ".parquet"
    return extension(path) in DELIMITERS


def is_table_file(path: Path, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> bool:
    """Whether a file is a table, by its extension or by what a person said of text tables."""
    return extension(path) == ".parquet" or is_text(path, text_format)


def row_place(
    path: Path, number: int, column: str = "", text_format: TextFormat = AS_THE_EXTENSION_SAYS
) -> str:
    """Where a row is, such as ``edges.csv, line 3, column "weight"``; rows count from 1.

    Tables that are no text have rows, but no lines.
    """
    if is_text(path, text_format):
        return format_location(path, line_of(path, number, text_format), column)
    return format_location(f"{path}, row {number}", column=column)


def line_of(path: Path, number: int, text_format: TextFormat = AS_THE_EXTENSION_SAYS) -> int:
    """The line of a row by its number, from 1.

    A quoted cell may have several lines, and empty lines are no rows.
    """
    row_before = number if text_format.has_header else number - 1
    with suppress(InputError, csv.Error):
        for position, (line, _) in enumerate(_rows(path, text_format)):
            if position == row_before:
                return line
    return row_before + 1


def opened_packed(path: Path, mode: str, **options: Any) -> Any:
    """Open a file as ``open`` does; gzip packs it, or unpacks it, where its name ends in .gz."""
    open_file = gzip.open if path.suffix.lower() == ".gz" else open
    return open_file(path, mode, **options)


@contextmanager
def opened(path: Path, encoding: str = "") -> Iterator[TextIO]:
    """Open a text file, by default in UTF-8 with or without a byte order mark.

    Line ends stay as they are.
    """
    try:
        with opened_packed(path, "rt", encoding=encoding or "utf-8-sig", newline="") as file:
            yield file
    except UnicodeError:
        raise _undecodable(path, encoding) from None
    except (OSError, EOFError, zlib.error) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise InputError(str(path), "a file that can be read", found) from error


def write_tables(path: Path, suffix: str, tables: Iterable[Any]) -> None:
    """Write pyarrow tables, at least one, below each other.

    Args:
        path: the file.
        suffix: the extension that says the format; the path may be that of a temporary file.
        tables: tables of the same columns.
    """
    from pyarrow import csv as arrow_csv

    if suffix == ".parquet":
        parquet.write_tables(path, tables)
        return
    remaining_tables = iter(tables)
    first_table = next(remaining_tables)
    options = arrow_csv.WriteOptions(delimiter=DELIMITERS[suffix])
    with (
        opened_packed(path, "wb") as file,
        arrow_csv.CSVWriter(file, first_table.schema, write_options=options) as writer,
    ):
        for table in chain([first_table], remaining_tables):
            writer.write_table(table)
