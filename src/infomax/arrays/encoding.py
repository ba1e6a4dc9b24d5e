"""Encoding: what the columns of a table become as features, by what was learnt from the table that it was fitted to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays import cells
from infomax.errors import InputError, shorten

WIDTH = 256
"""Columns that the words of a text are hashed into. The inner product of two texts is then off by about 1/16 of their
lengths (the square root of 1/256), and in a graph folder, whose features are dense, a text takes 1 kB per node."""
FINE = 4096
"""Buckets in which the documents of a word are counted: more than columns, so that a rare word seldom shares one with
a frequent word; few enough to be read in a JSON file."""
FEATURES = ("number", "boolean", "category", "date", "text", "tokens", "numbers")
"""The kinds of columns that become features."""
CHOICES = ("number", "boolean", "category", "date", "text", "tokens", "name", "label", "id", "ignore")
"""What a person can say that a column is."""
_CIRCLES = {"season": ("day_of_year", 365.25), "weekday": ("day_of_week", 7), "hour": ("", 1)}
"""The parts of a date that come round again: the field of pyarrow, and how many there are."""


def _circle(part: str, when: Any) -> list[NDArray[np.float64]]:
    """The cosine and the sine ``[n]`` of a part of timestamps; of days each different one once."""
    from pyarrow import compute

    field, period = _CIRCLES[part]
    at = getattr(compute, field)(when).to_numpy() if field else slice(None)
    turns = np.arange(367) / period if field else cells.days(when) % 1
    angle = 2 * np.pi * turns
    return [np.cos(angle)[at], np.sin(angle)[at]]


@dataclass(frozen=True)
class Column:
    """A column, and the features that it becomes.

    The squares of its features add up to 1 in a row, on average over the rows that it was fitted to. So a category of
    200 values counts as much as a number.
    """

    name: str
    kind: str
    rows: int
    missing: int
    distinct: int | None
    """The number of different values; None: too many to count, or lists."""
    learnt: dict[str, Any] = field(default_factory=dict)
    """Plain JSON: what the features need. Nothing where the column is no feature."""
    note: str = ""
    """What looks wrong about it."""

    @cached_property
    def features(self) -> list[str]:
        """The names of its features."""
        if not self.learnt:
            return []
        name, names = self.name, [self.name]
        if self.kind == "numbers":
            names = [f"{name}[{at}]" for at in range(len(self.learnt["centre"]))]
        elif self.kind == "category":
            names = [f"{name}={value}" for value in self.learnt["values"]] + self.learnt["rest"] * [f"{name}: rest"]
        elif self.kind == "date":
            circles = [part for part in self.learnt["parts"] if part != "time"]
            names = [f"{name}: time"] * ("time" in self.learnt["parts"])
            names += [f"{name}: {part}, {side}" for part in circles for side in ("cosine", "sine")]
        elif self.kind in ("text", "tokens"):
            names = [f"{name}[{at}]" for at in range(WIDTH)]
        return names + [f"{name}: missing"] * (self.missing > 0)

    def encode(self, values: Any) -> list[Any]:
        """The features of a column of pyarrow, as blocks ``[n, .]`` that are dense or CSR.

        `cells.UnreadableError` where a cell is of another kind.
        """
        values = cells.plain(values)
        unknown = ~values.is_valid().to_numpy(zero_copy_only=False)
        return [getattr(self, f"_{self.kind}")(values), *[unknown[:, None]] * (self.missing > 0)]

    def _number(self, values: Any) -> NDArray[np.float32]:
        return self._scaled(*(cells.truths if self.kind == "boolean" else cells.numbers)(values), values)

    _boolean = _number

    def _scaled(self, found: NDArray[np.float32], bad: NDArray[np.bool_], values: Any) -> NDArray[np.float32]:
        if bad.any():
            row = int(np.argmax(bad))
            raise cells.UnreadableError(row, EXPECTED[self.kind], cells.shown(values, row))
        centre, deviation = (np.array(self.learnt[name], np.float64) for name in ("centre", "deviation"))
        z = (found.reshape(len(found), -1) - centre) / deviation / np.sqrt(len(centre))
        scaled: NDArray[np.float32] = np.nan_to_num(z).astype(np.float32)
        return scaled

    def _numbers(self, values: Any) -> NDArray[np.float32]:
        return self._scaled(*lists(values, len(self.learnt["centre"])), values)

    def _category(self, values: Any) -> sparse.csr_array:
        import pyarrow as pa
        from pyarrow import compute

        known, words = pa.array(self.learnt["values"], pa.large_string()), values.dictionary_encode()
        at = compute.fill_null(compute.index_in(cells.texts(words.dictionary), known), len(known))
        at = compute.fill_null(at.take(words.indices), len(known) + 1).to_numpy(zero_copy_only=False)
        there = at < len(known) + bool(self.learnt["rest"])
        parts = np.ones(int(there.sum()), np.float32), at[there], cells.sums(there)
        return sparse.csr_array(parts, shape=(len(values), len(known) + bool(self.learnt["rest"])))

    def _date(self, values: Any) -> NDArray[np.float32]:
        when, bad = cells.times(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise cells.UnreadableError(row, EXPECTED["date"], cells.shown(values, row))
        parts, there = self.learnt["parts"], when.is_valid().to_numpy(zero_copy_only=False)
        when, found = when.drop_null(), []
        if "time" in parts:
            found.append((cells.days(when).astype(np.float32) - self.learnt["centre"]) / self.learnt["deviation"])
        for part in parts:
            found += _circle(part, when) if part != "time" else []
        block = np.zeros((len(values), len(found)), np.float32)
        block[slice(None) if there.all() else there] = np.column_stack(found or [np.empty((len(when), 0))]) / np.sqrt(
            max(1, len(parts))
        )
        return block

    def _text(self, values: Any) -> sparse.csr_array:
        words = cells.Words(values)
        weight = np.log((1 + self.learnt["documents"]) / (1 + np.array(self.learnt["frequency"], np.float64))) + 1
        entries = weight[words.hashes % FINE] * np.where(words.hashes >> 31, 1, -1)
        block = words.added(entries, words.hashes % WIDTH, WIDTH)
        block.sort_indices()
        sizes = np.diff(block.indptr)
        length = np.sqrt(np.bincount(np.repeat(np.arange(len(values)), sizes), block.data**2, len(values)))
        block.data = (block.data / np.repeat(np.where(length > 0, length, 1), sizes)).astype(np.float32)
        return block

    _tokens = _text


EXPECTED = {
    "type": "text, numbers, booleans, dates, times or lists",
    "number": "a finite number (32-bit float)",
    "boolean": "true or false, yes or no, 1 or 0",
    "date": "a date or a time such as 2013-05-27 or 2013-05-27 08:30",
    "numbers": "lists of numbers, all of one length",
}


def lists(values: Any, width: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Lists of numbers ``[n, W]``, NaN where there is none; and a mask ``[n]`` of lists of another length."""
    from pyarrow import compute, types

    known = values.is_valid().to_numpy(zero_copy_only=False)
    found = np.full((len(values), width), np.nan, np.float32)
    if not types.is_large_list(values.type) or types.is_large_string(values.type.value_type):
        return found, known
    lengths = compute.fill_null(compute.list_value_length(values), -1).to_numpy(zero_copy_only=False)
    right = lengths == width
    with np.errstate(over="ignore"):
        entries = values.filter(right).flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    found[right] = entries.reshape(-1, width)
    right[right] = np.isfinite(found[right]).all(axis=1)
    found[~right] = np.nan
    return found, known & ~right


def _sparse(block: NDArray[Any]) -> sparse.csr_array:
    """A dense block ``[n, k]`` as CSR; scipy takes several times as long."""
    entries = block.astype(np.float32, copy=False).ravel()
    there = entries != 0
    columns = np.tile(np.arange(block.shape[1], dtype=np.int32), len(block))
    starts = cells.sums(np.count_nonzero(there.reshape(block.shape), axis=1))
    return sparse.csr_array((entries[there], columns[there], starts), shape=block.shape)


@dataclass(frozen=True)
class Encoding:
    """The columns of a table, and what they become."""

    columns: tuple[Column, ...]
    raw: bool = False
    """Whether the features are numbers as they are, which are scaled later, as those of a table of numbers."""
    called: str | None = None
    """The column that names the nodes."""

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if column.features)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features."""
        return [name for column in self.used for name in column.features]

    def transform(self, table: Any) -> sparse.csr_array:
        """The features ``[n, F]`` of rows of a pyarrow table; each row depends on that row alone."""
        known = set(table.column_names if hasattr(table, "column_names") else table)
        if missing := [column.name for column in self.used if column.name not in known]:
            remedy = "Add them, or train without them: --column NAME=ignore."
            raise InputError("table", f"the columns {', '.join(map(shorten, missing))}", "none of that name", remedy)
        blocks = []
        for column in self.used:
            try:
                blocks += column.encode(table[column.name])
            except cells.UnreadableError as error:
                error.column = column.name
                raise
        parts = (
            [_sparse(np.column_stack(list(some)))] if dense else list(some)
            for dense, some in groupby(blocks, lambda block: isinstance(block, np.ndarray))
        )
        return sparse.hstack(list(chain.from_iterable(parts)), format="csr")

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them back exactly."""
        return {"raw": self.raw, "called": self.called, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, values: Any, where: str = "encoding") -> Encoding:
        """Read what `to_json` wrote; refused where nothing can be encoded by it."""
        try:
            columns = tuple(Column(**column) for column in values["columns"])
            found = cls(columns, bool(values["raw"]), values.get("called"))
            for column in found.used:
                if column.kind not in FEATURES:
                    raise ValueError(f"kind {column.kind}")
                numbers = [column.learnt.get(name, 0) for name in ("centre", "deviation", "frequency", "documents")]
                if not all(np.isfinite(np.array(number, np.float64)).all() for number in numbers):
                    raise ValueError("what is not a number")
                if not all(isinstance(value, str) for value in column.learnt.get("values", ())):
                    raise TypeError("values that are no text")
                if len(column.learnt.get("frequency", range(FINE))) != FINE or not {*_CIRCLES, "time"} >= {
                    *column.learnt.get("parts", ())
                }:
                    raise ValueError("counts or parts of another kind")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(where, "what was learnt of the columns of a table", str(error)) from None
        return found
