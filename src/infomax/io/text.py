"""Tables in text files: csv with commas, tsv and txt with tabs; UTF-8, a header line, csv quotes."""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.errors import InputError, place, shorten
from infomax.io import tables
from infomax.io.columns import Columns
from infomax.io.tables import EdgeTable, NodeTable, Table

Row: TypeAlias = tuple[int, list[str]]

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
DELIMITERS |= {f"{suffix}.gz": delimiter for suffix, delimiter in DELIMITERS.items()}
_BLOCK_CELLS = 1 << 20
_QUOTED = re.compile('"[^"]*("|$)')


def extension(path: Path) -> str:
    """The extension of a file in lower case, ``.csv.gz`` where it is packed by gzip."""
    suffix = path.suffix.lower()
    return Path(path.stem).suffix.lower() + suffix if suffix == ".gz" else suffix


def read_edges(path: Path, columns: Columns) -> EdgeTable:
    """The edge table of a text file."""
    names, rows = read_rows(path)
    source, target, weight = columns.of_edges(path, names)
    columns.warn_unused(path, names)
    position: dict[str, int] = {}
    ends, lines, cells = array("q"), array("q"), []
    for line, row in rows:
        lines.append(line)
        ends.append(position.setdefault(row[source], len(position)))
        ends.append(position.setdefault(row[target], len(position)))
        if weight is not None:
            cells.append(row[weight])
    table = Table(path, lines)
    if "" in position:
        edge, end = divmod(ends.index(position[""]), 2)
        raise InputError(table.place(edge, names[(source, target)[end]]), "an id", "an empty cell")
    return EdgeTable(
        path=path,
        lines=lines,
        names=(names[source], names[target]),
        ids=tables.typed(list(position)),
        ends=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        weight=None
        if weight is None
        else tables.check_weight(table, names[weight], numbers(cells), lambda row: written(cells[row])),
        named=columns.names_ends((names[source], names[target])),
    )


def read_nodes(path: Path, columns: Columns, remedy: str = "") -> NodeTable:
    """The node table of a text file; remedy as in `bad_feature`."""
    remedy = remedy or ("" if columns.features is None else tables.FILL_IN)
    names, rows = read_rows(path)
    chosen = columns.of_nodes(path, names)
    ids: list[str] = []
    lines = array("q")
    marks: dict[int, list[str]] = {column: [] for column in chosen.marks}
    blocks = []
    while chunk := list(islice(rows, max(1, _BLOCK_CELLS // len(names)))):
        first = len(lines)
        lines.extend(line for line, _ in chunk)
        ids.extend(row[chosen.identifier] for _, row in chunk)
        for column, cells in marks.items():
            cells.extend(row[column] for _, row in chunk)
        if chosen.features:
            blocks.append(pack(feature_block(Table(path, lines[first:]), names, chosen.features, chunk, remedy)))
    table = Table(path, lines)
    if "" in ids:
        raise InputError(table.place(ids.index(""), names[chosen.identifier]), "an id", "an empty cell")
    tables.check_nodes(table, ids, names[chosen.identifier])
    return NodeTable(
        path=path,
        lines=lines,
        ids=tables.typed(ids),
        feature_names=[names[column] for column in chosen.features],
        features=stack(blocks) if chosen.features else None,
        **tables.marks(table, names, chosen, {at: np.array(cells, dtype=object) for at, cells in marks.items()}),
    )


def feature_block(
    table: Table, names: Sequence[str], features: Sequence[int], chunk: Sequence[Row], remedy: str
) -> NDArray[np.float32]:
    """Features ``[rows, F]`` of some rows; cells that are no finite number are refused."""
    first, last = features[0], features[-1] + 1
    if list(features) == list(range(first, last)):  # a slice takes a third of the time
        cells = list(chain.from_iterable(row[first:last] for _, row in chunk))
    else:
        cells = list(chain.from_iterable([row[column] for column in features] for _, row in chunk))
    values = numbers(cells)
    good = np.isfinite(values)
    if not good.all():
        at = int(np.argmin(good))
        row, feature = divmod(at, len(features))
        name, expected = names[features[feature]], "a finite number (32-bit float)"
        raise tables.bad_feature(table.place(row, name), name, expected, written(cells[at]), remedy)
    return values.reshape(len(chunk), len(features))


def numbers(cells: Sequence[str]) -> NDArray[np.float32]:
    """The number in every cell as float32; NaN where a cell holds none."""
    text = ",".join(cells)
    digits = _digits(text, len(cells))
    if digits is not None:
        return digits
    with np.errstate(over="ignore"):
        try:
            # float() reads "2024_01" as a number, which no table means.
            if "_" not in text:
                return np.fromiter(map(float, cells), dtype=np.float32, count=len(cells))
        except ValueError:
            pass
        return np.fromiter(map(_number, cells), dtype=np.float32, count=len(cells))


def _digits(text: str, count: int) -> NDArray[np.float32] | None:
    """The numbers of cells, joined by commas, if each is a single digit, as in tables of words; else None."""
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
        remedy = f'Add a first line such as "source{delimiter}target", or "id{delimiter}x{delimiter}y" for nodes.'
        raise InputError(place(path, 1), "a header line with the names of the columns", "only numbers", remedy)
    tables.check_column_names(place(path, 1), names)
    return names, rows


def _refuse_other_delimiter(path: Path, header: str, delimiter: str) -> None:
    advice = {
        ",": ("commas", "Rename the file to .csv."),
        "\t": ("tabs", "Rename the file to .tsv."),
        ";": ("semicolons", "Save it with commas as .csv, or with tabs as .tsv."),
        "|": ("bars", "Save it with commas as .csv, or with tabs as .tsv."),
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
            raise InputError(place(path, 1), "UTF-8", "NUL characters, as UTF-16 has them", "Save the file as UTF-8.")
        spaced = f"{delimiter} " in _QUOTED.sub("", header)
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, skipinitialspace=spaced, strict=True)
        try:
            for row in reader:
                if row:
                    width = width or len(row)
                    if len(row) != width:
                        remedy = "A cell that holds the delimiter or a line break needs double quotes."
                        raise InputError(place(path, line), f"{width} columns, as in the header", str(len(row)), remedy)
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            remedy = 'Check that every double quote is closed, and doubled ("") inside a quoted cell.'
            raise InputError(place(path, line), "a row of csv", str(error), remedy) from error


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """Open a text file in UTF-8, with or without a byte order mark; line ends stay as they are."""
    try:
        unpack: Any = gzip.open if path.suffix.lower() == ".gz" else open
        with unpack(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    except (EOFError, zlib.error) as error:
        raise InputError(str(path), "a whole gzip file", str(error), "Was it cut short?") from error
    except OSError as error:
        raise InputError(str(path), "a file that can be read", error.strerror or str(error)) from error
    except UnicodeDecodeError:
        raise InputError(place(path, _undecodable(path)), "UTF-8", "other bytes", "Save the file as UTF-8.") from None


def _undecodable(path: Path) -> int:
    """The number of the first line that is not UTF-8."""
    # The decoder works in blocks and does not know its line, so read again. No character spans a line end.
    unpack: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with unpack(path, "rb") as file:
        lines = chain.from_iterable(piece.splitlines() for piece in file)  # a piece ends in LF; lines may end in CR
        return next(line for line, raw in enumerate(lines, 1) if raw.decode(errors="ignore").encode() != raw)
