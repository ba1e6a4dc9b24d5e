"""Encoding: what the columns of a table become as features, by what was learnt from the table that it was fitted to."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.errors import InputError, shorten
from infomax.io.encoding import cells
from infomax.io.encoding.kinds import EXPECTED, FEATURES
from infomax.io.encoding.words import Words, hashed

WIDTH = 256
"""Columns that the words of a text are hashed into. The inner product of two texts is then off by about 1/16 of their
lengths (the square root of 1/256), and a text takes 1 kB per node where rows are dense, as in a batch."""
FINE = 4096
"""Buckets in which the documents of a word are counted: more than columns, so that a rare word seldom shares one with
a frequent word; few enough to be read in a JSON file."""
_SOME = 1 << 11
"""Rows that tell whether a date is repeated."""
_CIRCLES = {"season": ("day_of_year", 365.25), "weekday": ("day_of_week", 7), "hour": ("", 1)}
"""The parts of a date that come round again: the field of pyarrow, and how many there are."""


def _circle(part: str, when: Any) -> list[NDArray[np.float64]]:
    """The cosine and the sine ``[n]`` of a part of timestamps; of days each different one once."""
    from pyarrow import compute

    field, period = _CIRCLES[part]
    if not field:
        angle = 2 * np.pi * cells.hours(when)
        return [np.cos(angle), np.sin(angle)]
    at, angle = getattr(compute, field)(when).to_numpy(), 2 * np.pi * (np.arange(367) / period)
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
            names = [f"{name}={value}" for value in self.learnt["values"]] + self.learnt["rest"] * [
                f"{name}: rest"
            ]
        elif self.kind == "date":
            time, *circles = self.learnt["parts"]
            names = [
                f"{name}: {time}",
                *(f"{name}: {part}, {side}" for part in circles for side in ("cosine", "sine")),
            ]
        elif self.kind in ("text", "tokens"):
            names = [f"{name}[{at}]" for at in range(WIDTH)]
        return names + [f"{name}: missing"] * (self.missing > 0)

    def told(self, at: int, more: bool) -> str:
        """What more, or less, of the feature at a position is in words: ``notes: graph`` of a hashed column."""
        words = self.learnt.get("words") or [""] * WIDTH if self.kind in ("text", "tokens") else []
        if at >= len(words) or not words[at]:
            return self.features[at] if more else f"less of {self.features[at]}"
        # The sign of a word is told by its hash.
        more = more == bool(hashed([words[at].encode()])[0] >> 31)
        return f"{self.name}: {words[at]}" if more else f"less of {self.name}: {words[at]}"

    def encode(self, values: Any) -> list[sparse.csr_array]:
        """The features ``[n, .]`` of a column of pyarrow; `cells.UnreadableError` where a cell is of another kind."""
        block: NDArray[np.float32] | sparse.csr_array
        if self.kind in ("number", "boolean", "category", "date"):
            values = cells.single(values, EXPECTED[self.kind])
        if self.kind == "category":
            distinct, rows = cells.distinct(values)
            block = self._category(distinct, rows)
        elif self.kind == "date":
            # Each different cell once, where some of them tell that it pays.
            some = cells.plain(values[:_SOME])
            distinct, rows = cells.distinct(values, 2 * len(some.unique()) < len(some))
            block = self._date(distinct, rows)
        elif self.kind in ("text", "tokens"):
            rows = cells.plain(values)
            block = self._text(Words(rows))
        else:
            rows = cells.plain(values)
            readers = {"number": cells.numbers, "boolean": cells.truths}
            read = readers.get(self.kind) or partial(lists, width=len(self.learnt["centre"]))
            block = self._scaled(*read(rows), rows)
        unknown = [_all(rows.is_null().to_numpy(zero_copy_only=False)[:, None])] * (
            self.missing > 0
        )
        return [_all(block) if isinstance(block, np.ndarray) else block, *unknown]

    def _scaled(
        self, found: NDArray[np.float64], bad: NDArray[np.bool_], values: Any
    ) -> NDArray[np.float32]:
        if bad.any():
            row = int(np.argmax(bad))
            raise cells.UnreadableError(row, EXPECTED[self.kind], cells.shown(values, row), bad)
        centre = np.array(self.learnt["centre"], np.float64)
        z = found.reshape(len(found), len(centre)) - centre
        z[np.isnan(z).any(axis=1)] = np.array(self.learnt.get("gap", centre), np.float64) - centre
        z /= np.array(self.learnt["deviation"], np.float64)
        if len(centre) > 1:
            z /= np.sqrt(len(centre))
        return z.astype(np.float32)

    def _category(self, words: Any, rows: Any) -> sparse.csr_array:
        import pyarrow as pa
        from pyarrow import compute

        known, rest = pa.array(self.learnt["values"], pa.large_string()), bool(self.learnt["rest"])
        at = compute.fill_null(compute.index_in(cells.texts(words), known), len(known)).to_numpy()
        columns = np.append(at, np.int32(len(known) + 1))[rows.fill_null(len(at)).to_numpy()][
            :, None
        ]
        return _few(columns < len(known) + rest, columns, len(known) + rest)

    def _date(self, values: Any, rows: Any) -> NDArray[np.float32]:
        when, bad = cells.times(values)
        if bad.any():
            at = rows.fill_null(len(bad)).to_numpy()
            bad = np.append(bad, False)[at]
            row = int(np.argmax(bad))
            raise cells.UnreadableError(row, EXPECTED["date"], cells.shown(values, at[row]), bad)
        parts = self.learnt["parts"]
        found = [(cells.days(when) - self.learnt["centre"]) / self.learnt["deviation"]]
        for part in parts[1:]:
            found += _circle(part, when)
        block = np.zeros((len(when) + 1, len(found)), np.float32)  # the last: nothing
        for at, part in enumerate(found):
            block[:-1, at] = part / np.sqrt(len(parts))
        found_rows: NDArray[np.float32] = block[rows.fill_null(len(when)).to_numpy()]
        return found_rows

    def _text(self, words: Words) -> sparse.csr_array:
        weight = (
            np.log(
                (1 + self.learnt["documents"])
                / (1 + np.array(self.learnt["frequency"], np.float64))
            )
            + 1
        )
        entries = weight[words.hashes % FINE] * np.where(words.hashes >> 31, 1, -1)
        block = words.added(entries, words.hashes % WIDTH, WIDTH)
        block.sort_indices()
        sizes = np.diff(block.indptr)
        squares = sparse.csr_array((block.data**2, block.indices, block.indptr), shape=block.shape)
        length = np.sqrt(squares @ np.ones(WIDTH))
        block.data /= np.repeat(np.where(length > 0, length, 1), sizes)
        block.data = block.data.astype(np.float32)
        return block


def lists(values: Any, width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Lists of numbers ``[n, W]``, NaN where there is none; and a mask ``[n]`` of lists of another length."""
    from pyarrow import compute, types

    known = values.is_valid().to_numpy(zero_copy_only=False)
    found = np.full((len(values), width), np.nan)
    if not types.is_large_list(values.type) or types.is_large_string(values.type.value_type):
        return found, known
    lengths = compute.fill_null(compute.list_value_length(values), -1).to_numpy(
        zero_copy_only=False
    )
    right = lengths == width
    found[right] = values.filter(right).flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    right[right] = (np.abs(found[right]) <= cells.LARGEST).all(axis=1)
    found[~right] = np.nan
    return found, known & ~right


def _few(values: NDArray[Any], columns: NDArray[Any], width: int) -> sparse.csr_array:
    """Features ``[n, width]`` by k entries of each row, some of them zero: values ``[n, k]`` and columns ``[n, k]``."""
    n, k = values.shape
    starts = np.arange(0, n * k + 1, k, dtype=np.int32 if n * k < 2**31 else np.int64)
    entries = (
        values.astype(np.float32).ravel(),
        columns.astype(np.int32).ravel(),
    )  # copies, which are changed
    found = sparse.csr_array((*entries, starts), shape=(n, width))
    found.eliminate_zeros()
    return found


def _all(values: NDArray[Any]) -> sparse.csr_array:
    """Features ``[n, k]``."""
    width = values.shape[1]
    return _few(values, np.broadcast_to(np.arange(width, dtype=np.int32), values.shape), width)


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

    def differing(self, other: Encoding) -> list[str]:
        """The columns that become features in another way than the columns of these names do in another encoding."""
        there = {column.name: (column.kind, column.learnt) for column in other.used}
        return [
            column.name
            for column in self.used
            if there.get(column.name) != (column.kind, column.learnt)
        ]

    def told(self, at: int, more: bool) -> str:
        """What more, or less, of the feature at a position is, in words."""
        for column in self.used:
            if at < len(column.features):
                return column.told(at, more)
            at -= len(column.features)
        raise IndexError(at)

    def transform(self, table: Any) -> sparse.csr_array:
        """The features ``[n, F]`` of rows of a pyarrow table; each row depends on that row alone."""
        known = set(table.column_names if hasattr(table, "column_names") else table)
        if missing := [column.name for column in self.used if column.name not in known]:
            remedy = "Add them, or train without them: --column NAME=ignore."
            raise InputError(
                "table",
                f"the columns {', '.join(map(shorten, missing))}",
                "none of that name",
                remedy,
            )
        blocks = []
        for column in self.used:
            try:
                blocks += column.encode(table[column.name])
            except cells.UnreadableError as error:
                error.column = column.name
                raise
        return blocks[0] if len(blocks) == 1 else sparse.hstack(blocks, format="csr")

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them back exactly."""
        return {
            "raw": self.raw,
            "called": self.called,
            "columns": [asdict(column) for column in self.columns],
        }

    @classmethod
    def from_json(cls, values: Any, where: str = "encoding") -> Encoding:
        """Read what `to_json` wrote; refused where nothing can be encoded by it."""
        try:
            columns = tuple(Column(**column) for column in values["columns"])
            found = cls(columns, bool(values["raw"]), values.get("called"))
            if unknown := [column.kind for column in found.used if column.kind not in FEATURES]:
                raise ValueError(f"kind {unknown[0]}")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                where, "what was learnt of the columns of a table", str(error)
            ) from None
        return found
