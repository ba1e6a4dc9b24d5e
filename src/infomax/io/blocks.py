"""Some rows of a table, whatever file they were read from: what a cell must be, and how a message names it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import WRITTEN
from infomax.errors import InputError, place, shorten
from infomax.io.encoding.cells import LARGEST, plain

Ids: TypeAlias = list[int] | list[str]

FILL_IN = "Fill it in, or remove the row."
_TRUE, _FALSE = ("1", "true"), ("0", "false", "")
"""What a split may hold, in any case."""


class Block(ABC):
    """Some rows of a file."""

    unit: ClassVar[str]
    path: Path
    data: Any
    """The columns, of pyarrow."""
    names: Sequence[str]
    """Those of features."""
    numbers: NDArray[np.int64]
    """The lines ``[n]`` or, in files without lines, the rows, from 1."""

    def place(self, row: int, column: str) -> str:
        """``edges.csv, line 3, column "weight"``."""
        return place(f"{self.path}, {self.unit} {self.numbers[row]}", column=column)

    @abstractmethod
    def ids(self, column: str) -> Any:
        """The ids ``[n]`` of a column: a list of str, or a pyarrow array of int64 or large_string."""

    @abstractmethod
    def ends(self, columns: Sequence[str]) -> list[Any]:
        """The ids ``[n]`` at both ends of edges."""

    @abstractmethod
    def features(self, widths: dict[str, int], remedy: str, gaps: Sequence[float] = ()) -> NDArray[Any]:
        """Features ``[n, F]``, every one finite; a column of lists of W numbers is W features.

        ``widths`` has the W of each column of lists, and learns those that it lacks; ``remedy`` is for messages. For
        ``gaps`` see `Columns.gaps`.
        """

    def fill(self, values: NDArray[Any], gaps: Sequence[float]) -> NDArray[np.bool_]:
        """Put what gaps become into features ``[n, F]``; returns which of them are finite numbers then."""
        good: NDArray[np.bool_] = np.abs(values) <= LARGEST
        if len(gaps) != len(self.names):  # of lists, or none
            return good
        for at in np.flatnonzero(~good.all(axis=0)).tolist():
            missing = np.asarray(plain(self.arrow()[self.names[at]].slice(0, len(values))).is_null())
            values[missing, at] = gaps[at]
            good[missing, at] = True
        return good

    @abstractmethod
    def arrow(self) -> Any:
        """The columns of features as a pyarrow table."""

    @abstractmethod
    def words(self, column: str, widths: dict[str, int]) -> NDArray[Any]:
        """A column ``[n]`` as str objects, "" where there is nothing; lists of C values 0 and 1 as ``[n, C]``."""

    @abstractmethod
    def filled_in(self, column: str) -> NDArray[np.bool_]:
        """Whether there is something in each cell of a column."""

    @abstractmethod
    def numbers_of(self, column: str) -> tuple[NDArray[np.float32], Callable[[int], str]]:
        """A column as numbers ``[n]``, NaN where there is none; and a function from a row to its cell as written."""

    def weight(self, column: str) -> NDArray[np.float32]:
        """The weights ``[n]`` of a column, each finite and not negative."""
        weight, written = self.numbers_of(column)
        good = np.isfinite(weight) & (weight >= 0)
        if not good.all():
            row = int(np.argmin(good))
            where, remedy = self.place(row, column), "Correct it or remove the edge."
            raise InputError(where, "a finite weight of zero or more", written(row), remedy)
        return weight

    def split(self, column: str) -> NDArray[np.bool_]:
        """The split ``[n]`` of a column: 1 or true, and 0, false or nothing."""
        cells = self.words(column, {})
        words = [cell.strip().lower() for cell in cells]
        for row, word in enumerate(words):
            if word not in _TRUE and word not in _FALSE:
                raise InputError(self.place(row, column), "1 or 0, true or false", shorten(cells[row]))
        return np.array([word in _TRUE for word in words], dtype=bool)

    def groups(self, column: str) -> list[str]:
        """The names ``[n]`` of the graphs that nodes belong to."""
        words: list[str] = self.words(column, {}).tolist()
        if "" in words:
            raise InputError(self.place(words.index(""), column), "the name of a graph", "an empty cell", FILL_IN)
        return words

    def times(self, column: str) -> NDArray[np.int64]:
        """The times ``[n]`` of a column, see `infomax.arrays.times`; `UNKNOWN` where there is none."""
        from infomax.io.encoding import cells

        values = cells.plain(self.data[column])
        found, bad = cells.moments(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(self.place(row, column), WRITTEN, cells.shown(values, row))
        return found

    def node_names(self, column: str) -> NDArray[Any]:
        """The names ``[n]`` of nodes, "" where there is none."""
        words = self.words(column, {})
        if words.ndim > 1:
            raise InputError(place(self.path, column=column), "one name per node", "lists")
        return words


def check_column_names(where: str, names: Sequence[str]) -> None:
    """Refuse a column without a name, and two of the same name."""
    if "" in names:
        remedy = "Name it or delete it; pandas leaves its row numbers out with index=False."
        raise InputError(where, "a name for every column", f"none for column {names.index('') + 1}", remedy)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(where, "each column name once", f"{shorten(name)} {count} times", "Rename them.")


class NotNumbersError(InputError):
    """Features that are no finite numbers: an encoding may make numbers of them."""


def typed(ids: Any) -> Any:
    """Integers if every id is written as Python writes an int64 (not "007", "+1" or "1.0"), else the text as it is.

    Ids are a list, or a pyarrow array of text.
    """
    try:
        if not isinstance(ids, list):
            ids[:1].cast("int64")  # of text, all fail one by one, which takes long
            integers = ids.cast("int64")
            return integers if integers.cast("large_string").equals(ids) else ids
        numbers = list(map(int, ids))
    except ValueError:
        return ids
    exact = list(map(str, numbers)) == ids and all(-(2**63) <= number < 2**63 for number in numbers)
    return numbers if exact else ids


def are_integers(ids: Any, *, lines: bool) -> bool:
    """Whether all ids of a block are integers or, in ``lines`` of text, which have no types, written as such."""
    return typed(ids) is not ids if lines else str(ids.type) == "int64"


def numpy_of(array: Any, dtype: Any) -> NDArray[Any]:
    """A pyarrow array ``[n]`` of numbers without gaps; its own method would load pandas, where it is installed."""
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def number_groups(words: list[str]) -> NDArray[np.int64]:
    """A number for each name ``[N]`` of a graph: the name itself if all are integers, else by first appearance."""
    names = list(dict.fromkeys(words))
    numbers = typed(names)
    number = dict(zip(names, range(len(names)) if numbers is names else numbers, strict=True))
    return np.array([number[word] for word in words], dtype=np.int64)
