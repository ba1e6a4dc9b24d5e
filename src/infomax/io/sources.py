"""Tables of any size, text or parquet or a frame: a stream of checked rows, for memory and for a database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.times import parse_time
from infomax.errors import InputError, format_count, format_location, readable, shorten, warn
from infomax.io import parquet, text
from infomax.io.blocks import FILE, FILL_IN, Block, NotNumbersError, are_integers
from infomax.io.column_names import EdgeColumns, NodeColumns, is_called_code, is_called_number
from infomax.io.columns import Columns
from infomax.io.encoding import cells
from infomax.io.encoding.cells import UnreadableError, is_list
from infomax.io.encoding.moments import too_fine
from infomax.io.encoding.survey import Survey
from infomax.io.kept_batches import KeptBatches
from infomax.io.learning import CLASSES, learnt, warn_of_classes, warn_of_labels
from infomax.io.text_format import TextFormat

EXTENSIONS = (*text.DELIMITERS, ".parquet")
ROWS = 1 << 17
"""Rows that are read at once; fewer of wide tables."""
CELLS = 1 << 20
LEARNING = 0.5
"""Share of the work with a node table that learning its encoding is."""


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Some rows of a node table, in order.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        ids: ``[n]``; see `Block.ids`
        features: ``[n, F]``, CSR where they are encoded; None where there is no feature column
        labels: ``[n]`` str objects or ``[n, C]`` 0/1 each
        splits: ``[n]`` bool each
        groups: ``[n]`` names
        names: ``[n]`` str objects
        times: ``[n]`` int64
        there: ``[n]`` bool, whether a row is not later than `Columns.as_of`; features are of those alone, [m, F]
    """

    source: Source
    numbers: NDArray[np.int64]
    ids: Any
    features: Any
    labels: Mapping[str, NDArray[Any]]
    splits: Mapping[str, NDArray[np.bool_]]
    groups: Any
    names: NDArray[Any] | None
    times: NDArray[np.int64] | None
    there: NDArray[np.bool_]

    def cut(self) -> NodeTable:
        """The rows that are there, with all numbers."""
        there = self.there
        if there.all():
            return self
        return replace(
            self,
            labels={name: labels[there] for name, labels in self.labels.items()},
            splits={name: split[there] for name, split in self.splits.items()},
            groups=None if self.groups is None else list(compress(self.groups, there)),
            names=None if self.names is None else self.names[there],
            times=None if self.times is None else self.times[there],
        )


@dataclass
class Source:
    """The files of one table, or a frame, and what is known about it once it has been read."""

    files: list[Path]
    columns: Columns
    frame: Any = None
    """A pyarrow table, in place of a file."""
    remedy: str = FILL_IN
    """What to do about features that are no numbers."""
    schema: Any = None
    """The types of the columns, of a parquet file."""
    widths: dict[str, int] = field(default_factory=dict)
    kinds: tuple[Path, dict[str, str]] | None = None
    """The first parquet file with rows, and the kinds of its columns, which are those of all files."""
    chosen: NodeColumns = field(init=False)
    """The columns of a node table."""
    lists: list[str] = field(default_factory=list)
    """Those of its features that are lists of numbers."""
    text_format: TextFormat = field(init=False)
    """How it is written, where it is text."""
    apart: bool = False
    """Whether the ends of edges are of two types: their ids may be of two kinds."""
    integers: list[bool] = field(default_factory=list)
    """Whether the ids at each end of the edges that were read are integers, or written as such in text."""
    range: NDArray[np.float64] = field(default_factory=lambda: np.empty((2, 0)))
    """The least and the largest value ``[2, F]`` of each feature that is a number as it is."""
    classes: dict[str, set[str]] = field(default_factory=dict)
    """Different labels, or some of them, by column."""
    unlike: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By column, the number of cells that are not what it held when it was learnt, and the first of them."""
    only: tuple[str, str] | None = None
    """A column and the word in it of the rows that are read; None: all are."""
    first_id: int = 1
    """The id of the first row, where ids are the numbers of rows."""
    kept_batches: KeptBatches = field(default_factory=KeptBatches)
    """What the pass that learns has parsed, for the pass that follows it."""
    columns_before_learning: Columns | None = None
    """The columns as they were chosen, before it was learnt what those of features are."""
    tell: Callable[[float], None] = lambda share: None
    """Told how much of the work with this table is done, from 0 to 1."""

    def __post_init__(self) -> None:
        self.text_format = self.columns.text_format if self.frame is None else TextFormat()
        for path in self.files:
            if text.is_text(path, self.text_format) != self.lines:
                expected, remedy = f"a table as {self.path} is", "Give all files one kind."
                raise InputError(str(path), expected, "one of another kind", remedy)

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages about all of it."""
        return self.files[0]

    @property
    def asked_columns(self) -> Columns:
        """The columns as they were chosen."""
        return self.columns_before_learning or self.columns

    @property
    def lines(self) -> bool:
        """Whether it is text: rows have lines, and ids have no type."""
        return text.is_text(self.path, self.text_format)

    def location(self, number: int, column: str = "") -> str:
        """``edges.csv, line 3, column "weight"``, of a row by its number."""
        return text.row_place(self.files[number // FILE], number % FILE, column, self.text_format)

    def readable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Raise an InputError for what pyarrow cannot do with the data of a file, by default the first."""
        return readable(path or self.path, "a table that can be read")

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        with self._opened(self.path) as file:
            return file.names

    def edges(self, feature_columns: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows ``[n]`` of an edge table: number, source, target and, where they have them, weight and relation.

        With ``feature_columns`` also features ``[n, F]``, the numbers in these columns.
        """
        self.integers = [True, True]
        for block in self._blocks(
            lambda: (list(filter(None, self.edge_columns)), list(feature_columns))
        ):
            source, target, weight, relation = self.edge_columns
            with self.readable(block.path):
                ends = (
                    [block.ids(source), block.ids(target)]
                    if self.apart
                    else block.ends([source, target])
                )
                self._same_kinds(block.path, ends[0], source)
                integers = [are_integers(end, lines=self.lines) for end in ends]
                if not self.lines and integers[0] != integers[1]:
                    ends = [end.cast("large_string") for end in ends]
                self.integers = [
                    before and now for before, now in zip(self.integers, integers, strict=True)
                ]
                rows = {"number": block.numbers, "source": ends[0], "target": ends[1]}
                if self.weighted:
                    rows["weight"] = (
                        np.ones(len(ends[0]), np.float32)
                        if weight is None
                        else block.weight(weight)
                    )
                if relation is not None:
                    rows["relation"] = block.words(relation, {})
                if feature_columns:
                    rows["features"] = block.features(self.widths, self.remedy)
            yield rows
            self.tell(block.share)

    def nodes(self) -> Iterator[NodeTable]:
        """The rows of a node table."""
        begun = 0 if self.columns.encoding is None else LEARNING
        self.range = np.empty((2, 0))
        self.classes, self.unlike = {}, {}
        if self._first_row_has_other_cells():
            raise NotNumbersError(str(self.path), "numbers", "columns of other kinds", FILL_IN)
        for block in self._blocks(self._node_columns):
            with self.readable(block.path):
                nodes = self._nodes(block)
            for name, labels in nodes.labels.items():
                found = self.classes.setdefault(self.chosen.labels[name], set())
                if labels.ndim == 1 and len(found) < CLASSES:
                    found.update(labels.tolist())
            yield nodes
            self.tell(begun + (1 - begun) * block.share)
        if self.columns.learns and too_fine(*self.range):
            raise NotNumbersError(
                str(self.path), "numbers that float32 tells apart", "others", FILL_IN
            )

    def _first_row_has_other_cells(self) -> bool:
        """Whether the first row of text tells already that features are to be learnt.

        It is looked at by itself, since parsing a piece of a wide table takes long. A row that may be
        left out tells nothing.
        """
        columns = self.columns
        may_learn = columns.learns and columns.encoding is None
        reads_all_rows = self.only is None and columns.as_of is None
        if not (self.lines and may_learn and reads_all_rows):
            return False
        row = text.first_row(self.path, self.text_format)
        if len(row) != len(self.names):
            return False
        cell_of_column = dict(zip(self.names, row, strict=True))
        _, features = self._node_columns()
        texts = cells.text_array([cell_of_column[name] for name in features])
        numbers, _ = cells.numbers(cells.plain(texts))
        return bool(np.isnan(numbers).any())

    def _nodes(self, block: Block) -> NodeTable:
        chosen = self.chosen
        there = self._there(block)
        early = block if there.all() else block.part(there)
        features = self._features(early) if chosen.features else None
        ids = block.ids(chosen.identifier)
        self._same_kinds(block.path, ids, chosen.identifier)
        return NodeTable(
            self,
            numbers=block.numbers,
            ids=ids,
            features=features,
            labels={
                name: block.words(column, self.widths) for name, column in chosen.labels.items()
            },
            splits={name: block.split(column) for name, column in chosen.splits.items()},
            groups=None if chosen.groups is None else block.groups(chosen.groups),
            names=None if chosen.name is None else block.node_names(chosen.name),
            times=None if chosen.time is None else block.times(chosen.time),
            there=there,
        )

    def _there(self, block: Block) -> NDArray[np.bool_]:
        """Which rows ``[n]`` of a block are not later than the day as of which the table is read."""
        day = self.columns.as_of
        if day is None or self.chosen.time is None:
            return np.ones(len(block.numbers), bool)
        there: NDArray[np.bool_] = block.times(self.chosen.time) <= parse_time(day, "as_of")
        return there

    def _features(self, block: Block) -> Any:
        """The features ``[n, F]`` of a block: numbers as they are, else what an encoding makes of the columns."""
        columns = self.columns
        if columns.encoding is None:
            may_be_codes = columns.features is None and any(
                is_called_code(name) or is_called_number(name) for name in self.chosen.features
            )
            is_said_or_key = columns.kinds or columns.keys(self.chosen.features)
            if columns.learns and (is_said_or_key or may_be_codes):
                raise NotNumbersError(str(self.path), "numbers", "columns of other kinds", FILL_IN)
            gaps = columns.gaps
            values = block.features(self.widths, self.remedy, gaps, self._note_unlike)
            return self._numbers(values)
        table = block.arrow()
        while True:
            try:
                return columns.encoding.transform(table)
            except UnreadableError as error:
                refused = InputError(
                    block.location(error.row, error.column), error.expected, error.found
                )
                if error.bad is None:
                    raise refused from None
                self._note_unlike(error.column, int(np.count_nonzero(error.bad)), str(refused))
                table = _without(table, error.column, error.bad)

    def _note_unlike(self, column: str, count: int, first_refusal: str) -> None:
        """Note cells that are not what their column held when it was learnt; what is wrong with the first."""
        count_before, refusal = self.unlike.get(column, (0, first_refusal))
        self.unlike[column] = (count_before + count, refusal)

    def _numbers(self, block: NDArray[np.float64]) -> NDArray[np.float32]:
        """Numbers ``[n, F]`` as they are, in float32; the range of each feature is noted."""
        if self.range.shape[1] != block.shape[1]:
            self.range = np.array([[math.inf], [-math.inf]]) * np.ones(block.shape[1])
        np.minimum(self.range[0], block.min(axis=0, initial=math.inf), out=self.range[0])
        np.maximum(self.range[1], block.max(axis=0, initial=-math.inf), out=self.range[1])
        return block.astype(np.float32, copy=False)

    def learn(self) -> bool:
        """Learn from all rows what the features are; False where it is known, or nothing else than numbers may be."""
        columns = self.columns
        if not columns.learns or columns.encoding is not None:
            return False
        self.columns_before_learning = columns
        self.columns = learnt(columns, self._survey(), self.path, self.names)
        return True

    def _survey(self) -> Survey:
        """What the columns of features hold, of the rows that are there and that training sees."""
        survey = Survey([], {})
        for block in self._blocks(self._node_columns, keep=True):
            chosen = self.chosen
            seen = self._there(block)
            if not survey.columns:
                keys = self.columns.keys(chosen.features)
                survey = Survey(chosen.features, self.columns.kinds, list(chosen.labels), keys)
            with self.readable(block.path):
                if "seen" in chosen.splits:
                    seen &= block.split(chosen.splits["seen"])
                block = block if seen.all() else block.part(seen)
                if len(block.numbers):
                    survey.add(block.arrow(), block.location)
            self.tell(LEARNING * block.share)
        return survey

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the columns that hold the ends of edges."""
        return self.edge_columns[:2]

    @property
    def weighted(self) -> bool:
        """Whether edges have weights: in a column, or as rows are counted."""
        return self.edge_columns.weight is not None or self.columns.counts(self.names)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; complete when all rows have been read."""
        if self.columns.encoding is not None:
            return self.columns.encoding.feature_names
        return parquet.feature_names(self.chosen.features, self.widths)

    def warn_of_nodes(self) -> None:
        """Name odd labels, cells that were left out, and features that may tell a label."""
        for count, told in self.unlike.values():
            warn(
                f"{told} {format_count(count, 'cell')} of the column, unlike those that it was learnt from, became gaps."
            )
        for column, found in self.classes.items():
            warn_of_classes(format_location(self.path, column=column), found)
        if self.chosen.features and self.columns.learns and self.columns.features is None:
            warn_of_labels(self.path, self.feature_names, list(self.chosen.labels))

    @property
    def edge_columns(self) -> EdgeColumns:
        """The names of the columns of an edge table."""
        return self.columns.of_edges(self.path, self.names)

    def _node_columns(self) -> tuple[list[str], list[str]]:
        """The names of the columns of a node table that are no features, and of those that are."""
        columns = self.columns
        if self.schema is not None:
            columns = replace(
                columns, features=parquet.feature_columns(self.schema, columns.features)
            )
        chosen = self.chosen = columns.of_nodes(self.path, self.names)
        self.lists = [
            name
            for name in chosen.features
            if self.schema and is_list(self.schema.field(name).type)
        ]
        return [chosen.identifier, *chosen.annotations], chosen.features

    def _blocks(
        self, choose: Callable[[], tuple[list[str], list[str]]], *, keep: bool = False
    ) -> Iterator[Block]:
        """The rows that are read of all files, in blocks of a bounded size.

        Args:
            choose: names the columns that are no features, and those that are.
            keep: whether text is kept as it was parsed, for the next pass.
        """
        for number, path in enumerate(self.files):
            with self._opened(path) as file:
                self.names = (
                    self.names if number else file.names
                )  # the first file is not opened twice for them
                self.schema = file.schema or self.schema
                if file.names != self.names:
                    found, remedy = (
                        ", ".join(map(shorten, file.names)),
                        "Give all files the same columns.",
                    )
                    raise InputError(str(path), f"the columns of {self.path}", found, remedy)
                columns, features = choose()
                wanted = list(dict.fromkeys([*columns, *features, *(self.only or ())[:1]]))
                size = min(ROWS, max(1, CELLS // file.width(wanted)))
                done = number * FILE + 1
                for batch, file_share in self._batches(number, file, wanted, size, keep=keep):
                    share = (number + file_share) / len(self.files)
                    block = Block(
                        path, batch, features, done + np.arange(len(batch)), share, self.text_format
                    )
                    done += len(batch)
                    if self.only is not None:
                        block = block.part(block.words(self.only[0], {}) == self.only[1])
                    for first in range(0, len(block.numbers), size):
                        some = slice(first, first + size)
                        yield replace(
                            block, data=block.data.slice(first, size), numbers=block.numbers[some]
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
        if keep and self.lines:
            yield from self.kept_batches.keep(file_number, batches, lambda: file.share)
            return
        for batch in batches:
            yield batch, file.share

    def types(self, column: str) -> dict[str, list[str]]:
        """The words of a column, each with the columns that have something in a row of it."""
        found: dict[str, set[str]] = {}
        for block in self._blocks(lambda: (self.names, [])):
            words = block.words(column, {})
            for word in dict.fromkeys(words.tolist()):
                rows = np.flatnonzero(words == word)
                if not word:
                    raise InputError(
                        block.location(int(rows[0]), column),
                        "a type of nodes",
                        "an empty cell",
                        FILL_IN,
                    )
                filled = found.setdefault(word, set())
                filled |= {
                    name
                    for name in self.names
                    if name not in filled and block.filled_in(name)[rows].any()
                }
        return {
            word: [name for name in self.names if name in found[word]] for word in sorted(found)
        }

    @contextmanager
    def _opened(self, path: Path) -> Iterator[text.TextFile | parquet.ArrowFile]:
        if self.lines:
            yield text.TextFile(path, self.text_format)
        elif self.frame is not None:
            yield parquet.ArrowFile(path, self.frame)
        else:
            with parquet.opened(path) as file:
                yield parquet.ArrowFile(path, file)

    def _same_kinds(self, path: Path, ids: Any, identifier: str) -> None:
        """Refuse columns of another kind than in the files before: 1 and "1" are two ids."""
        if self.lines:
            return
        kind = "integer ids" if are_integers(ids, lines=False) else "text ids"
        kinds = dict.fromkeys(self.lists, "lists") | {identifier: kind}
        first, before = self.kinds = self.kinds or (path, kinds)
        for column in kinds | before:
            here, there = (one.get(column, "single numbers") for one in (kinds, before))
            if here != there:
                expected, remedy = (
                    f"{there}, as in {first}",
                    "Give the columns of all files one type.",
                )
                raise InputError(format_location(path, column=column), expected, here, remedy)


def _without(table: Any, column: str, bad: NDArray[np.bool_]) -> Any:
    """The rows of a pyarrow table, with nothing in some cells of a column."""
    import pyarrow as pa
    from pyarrow import compute

    left = compute.if_else(pa.array(bad), None, table[column])
    return table.set_column(table.column_names.index(column), column, left)
