"""Tables of any size, text or parquet or a frame: a stream of checked rows, for memory and for a database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.parquet_columns import readable
from infomax.arrays.times import parse_time
from infomax.errors import InputError, place, shorten
from infomax.io import parquet, text
from infomax.io.blocks import FILL_IN, Block, NotNumbersError, are_integers
from infomax.io.column_names import EdgeColumns, NodeColumns
from infomax.io.columns import Columns
from infomax.io.encoding.cells import UnreadableError, is_list
from infomax.io.encoding.kinds import CHOICES, FEATURES
from infomax.io.encoding.moments import too_fine
from infomax.io.encoding.survey import Survey
from infomax.io.encoding.words import KeptCells
from infomax.io.features import warn_if_ids
from infomax.io.learning import CLASSES, learnt, warn_of_classes, warn_of_labels

EXTENSIONS = (*text.DELIMITERS, ".parquet")
ROWS = 1 << 17
"""Rows that are read at once; fewer of wide tables."""
CELLS = 1 << 20
LEARNING = 0.5
"""Share of the work with a node table that learning its encoding is."""
FILE = 1 << 40
"""Each row has a number: that of its file times this, and its line or row. Rows in order have ascending numbers."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Some rows of an edge table.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        ends: ``[n]`` each; see `Block.ids`
        weight: ``[n]``
        relations: ``[n]`` names
    """

    numbers: NDArray[np.int64]
    ends: list[Any]
    weight: NDArray[np.float32] | None
    relations: NDArray[Any] | None


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Some rows of a node table, or all of them, in order.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        ids: ``[n]``; of some rows see `Block.ids`, of all a list of integers or of text
        features: ``[n, F]``, CSR where they are encoded; None where there is no feature column
        labels: ``[n]`` str objects or ``[n, C]`` 0/1 each
        splits: ``[n]`` bool each
        groups: ``[n]``, of some rows their names, of all int64
        names: ``[n]`` str objects
        times: ``[n]`` int64
    """

    source: Source
    numbers: NDArray[np.int64]
    ids: Any
    feature_names: list[str] = field(default_factory=list)
    features: Any = None
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    splits: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    groups: Any = None
    names: NDArray[Any] | None = None
    times: NDArray[np.int64] | None = None


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
    apart: bool = False
    """Whether the ends of edges are of two types: their ids may be of two kinds."""
    integers: list[bool] = field(default_factory=list)
    """Whether the ids at each end of edges are integers, of a table that is no text."""
    kept: dict[str, list[KeptCells]] = field(default_factory=dict)
    """Different cells and words that were found when an encoding was learnt, for the features of the same rows."""
    range: NDArray[np.float64] | None = None
    """The least and the largest value ``[2, F]`` of each feature that is a number as it is."""
    classes: dict[str, set[str]] = field(default_factory=dict)
    """Different labels, or some of them, by column."""
    only: tuple[str, str] | None = None
    """A column and the word in it of the rows that are read; None: all are."""
    first_id: int = 1
    """The id of the first row, where ids are the numbers of rows."""
    tell: Callable[[float], None] = lambda share: None
    """Told how much of the work with this table is done, from 0 to 1."""

    def __post_init__(self) -> None:
        for path in self.files:
            if (text.extension(path) in text.DELIMITERS) != self.lines:
                expected, remedy = f"a table as {self.path} is", "Give all files one kind."
                raise InputError(str(path), expected, "one of another kind", remedy)

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages about all of it."""
        return self.files[0]

    @property
    def lines(self) -> bool:
        """Whether it is text: rows have lines, and ids have no type."""
        return text.extension(self.path) in text.DELIMITERS

    def place(self, number: int, column: str = "") -> str:
        """``edges.csv, line 3, column "weight"``, of a row by its number."""
        path, at = self.files[number // FILE], number % FILE
        return place(path, text.line_of(path, at), column) if self.lines else place(f"{path}, row {at}", column=column)

    def readable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Raise an InputError for what pyarrow cannot do with the data of a file, by default the first."""
        kind = "parquet file" if self.frame is None else "frame"
        return nullcontext() if self.lines else readable(path or self.path, f"a {kind} that can be read")

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        with self._opened(self.path) as file:
            return file.names

    def edges(self) -> Iterator[Edges]:
        """The rows of an edge table."""
        for first, block, share in self._blocks(lambda: (list(filter(None, self._edge_columns)), [])):
            source, target, weight, relation = self._edge_columns
            with self.readable(block.path):
                ends = self._ends(block, source, target)
                self._same_kinds(block.path, ends[0], source)
                weights = None if weight is None else block.weight(weight)
                if self.columns.counts(self.names):
                    weights = np.ones(len(block.numbers), np.float32)
                relations = None if relation is None else block.words(relation, {})
                edges = Edges(first + block.numbers, ends, weights, relations)
            yield edges
            self.tell(share)

    def _ends(self, block: Block, source: str, target: str) -> list[Any]:
        if self.lines:
            return block.ends([source, target])
        ends = [block.ids(source), block.ids(target)] if self.apart else block.ends([source, target])
        self.integers = [are_integers(end, lines=False) for end in ends]
        return ends if len(set(self.integers)) == 1 else [end.cast("large_string") for end in ends]

    def nodes(self) -> Iterator[NodeTable]:
        """The rows of a node table."""
        begun = 0 if self.columns.encoding is None else LEARNING
        self.range, self.classes = None, {}
        for first, block, share in self._blocks(self._node_columns):
            with self.readable(block.path):
                nodes = self._nodes(first, block)
            for name, labels in nodes.labels.items():
                found = self.classes.setdefault(self.chosen.labels[name], set())
                if labels.ndim == 1 and len(found) < CLASSES:
                    found.update(labels.tolist())
            yield nodes
            self.tell(begun + (1 - begun) * share)
        self.kept = {}
        if self.columns.learns and self._too_fine():
            raise NotNumbersError(str(self.path), "numbers that float32 tells apart", "others", FILL_IN)

    def _nodes(self, first: int, block: Block) -> NodeTable:
        chosen = self.chosen
        features = self._features(block) if chosen.features else None
        ids = block.ids(chosen.identifier)
        self._same_kinds(block.path, ids, chosen.identifier)
        return NodeTable(
            self,
            numbers=first + block.numbers,
            ids=ids,
            features=features,
            labels={name: block.words(column, self.widths) for name, column in chosen.labels.items()},
            splits={name: block.split(column) for name, column in chosen.splits.items()},
            groups=None if chosen.groups is None else block.groups(chosen.groups),
            names=None if chosen.name is None else block.node_names(chosen.name),
            times=None if chosen.time is None else block.times(chosen.time),
        )

    def _features(self, block: Block) -> Any:
        """The features ``[n, F]`` of a block: numbers as they are, else what an encoding makes of the columns."""
        columns = self.columns
        if columns.encoding is None:
            if columns.learns and (columns.kinds or columns.keys(self.chosen.features)):
                raise NotNumbersError(str(self.path), "numbers", "columns of other kinds", FILL_IN)
            return self._numbers(block.features(self.widths, self.remedy, columns.gaps))
        try:
            return columns.encoding.transform(block.arrow(), self.kept)
        except UnreadableError as error:
            raise InputError(block.place(error.row, error.column), error.expected, error.found) from None

    def _numbers(self, block: NDArray[np.float64]) -> NDArray[np.float32]:
        """Numbers ``[n, F]`` as they are, in float32; the range of each feature is noted."""
        if self.range is None or self.range.shape[1] != block.shape[1]:
            self.range = np.array([[math.inf], [-math.inf]]) * np.ones(block.shape[1])
        np.minimum(self.range[0], block.min(axis=0, initial=math.inf), out=self.range[0])
        np.maximum(self.range[1], block.max(axis=0, initial=-math.inf), out=self.range[1])
        return block.astype(np.float32, copy=False)

    def _too_fine(self) -> bool:
        return self.range is not None and bool(too_fine(*self.range).any())

    def learn(self) -> bool:
        """Learn from all rows what the features are; False where it is known, or nothing else than numbers may be."""
        columns = self.columns
        if not columns.learns or columns.encoding is not None:
            return False
        survey = self._survey()
        if columns.as_of is not None and self.chosen.time is not None:
            # It is learnt from rows up to the day; where these hold numbers and later ones do not, all tell the kind.
            until = parse_time(columns.as_of, "as_of")
            early, every = (
                {one.name: one.kind for one in found.finish()[0].columns} for found in (self._survey(until), survey)
            )
            other = {name: every.get(name, "id") for name, kind in early.items() if kind in FEATURES}
            other = {name: kind for name, kind in other.items() if kind != early[name]}
            kinds = {name: kind for name, kind in other.items() if kind in CHOICES and kind in FEATURES}
            ignored = (*columns.ignore, *(name for name in other if name not in kinds))
            self.columns = columns = replace(columns, kinds=kinds | dict(columns.kinds), ignore=ignored)
            survey = self._survey(until)
        self.columns = learnt(columns, survey, self.path, self.names)
        self.kept = survey.kept
        return True

    def _survey(self, until: int | None = None) -> Survey:
        """What the columns of features hold, of all rows, of those that training sees, or of those up to a time."""
        survey = Survey([], {})
        for _, block, share in self._blocks(self._node_columns):
            chosen, rows = self.chosen, np.arange(len(block.numbers))
            if not survey.found:
                keys = self.columns.keys(chosen.features)
                mixed = self.columns.mixed
                survey = Survey(chosen.features, self.columns.kinds, list(chosen.labels), keys, mixed=mixed)
            with self.readable(block.path):
                if "seen" in chosen.splits:
                    rows = np.flatnonzero(block.split(chosen.splits["seen"]))
                if until is not None and chosen.time is not None:
                    rows = rows[block.times(chosen.time)[rows] <= until]
                place = partial(_place_of, block, rows)
                survey.add(block.arrow().take(rows) if len(rows) < len(block.numbers) else block.arrow(), place)
            self.tell(LEARNING * share)
        return survey

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the columns that hold the ends of edges."""
        return self._edge_columns[:2]

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; complete when all rows have been read."""
        if self.columns.encoding is not None:
            return self.columns.encoding.feature_names
        return parquet.feature_names(self.chosen.features, self.widths)

    def warn_of_nodes(self, features: Any) -> None:
        """Name odd labels, and columns that were hardly meant as features, by some rows ``[n, F]`` of these, if any."""
        for column, found in self.classes.items():
            warn_of_classes(place(self.path, column=column), found)
        if features is not None and self.columns.learns and self.columns.features is None:
            warn_if_ids(self.path, self.feature_names, features)
            warn_of_labels(self.path, self.feature_names, list(self.chosen.labels))

    @property
    def _edge_columns(self) -> EdgeColumns:
        return self.columns.of_edges(self.path, self.names)

    def _node_columns(self) -> tuple[list[str], list[str]]:
        """The names of the columns of a node table that are no features, and of those that are."""
        columns = self.columns
        if self.schema is not None:
            columns = replace(columns, features=parquet.feature_columns(self.schema, columns.features))
        chosen = self.chosen = columns.of_nodes(self.path, self.names)
        self.lists = [name for name in chosen.features if self.schema and is_list(self.schema.field(name).type)]
        return [chosen.identifier, *chosen.annotations], chosen.features

    def _blocks(self, choose: Callable[[], tuple[list[str], list[str]]]) -> Iterator[tuple[int, Block, float]]:
        """Some rows at a time; the number of their file times `FILE`, and how much of all files has been read."""
        for number, path in enumerate(self.files):
            with self._opened(path) as file:
                self.names = self.names if number else file.names  # the first file is not opened twice for them
                self.schema = file.schema or self.schema
                if file.names != self.names:
                    found, remedy = ", ".join(map(shorten, file.names)), "Give all files the same columns."
                    raise InputError(str(path), f"the columns of {self.path}", found, remedy)
                for block in file.blocks(*choose(), ROWS, CELLS, self.only):
                    yield number * FILE, block, (number + file.share) / len(self.files)

    def types(self, column: str) -> dict[str, list[str]]:
        """The words of a column, each with the columns that have something in a row of it."""
        found: dict[str, set[str]] = {}
        for _, block, _ in self._blocks(lambda: (self.names, [])):
            words = block.words(column, {})
            for word in dict.fromkeys(words.tolist()):
                rows = np.flatnonzero(words == word)
                if not word:
                    raise InputError(block.place(int(rows[0]), column), "a type of nodes", "an empty cell", FILL_IN)
                filled = found.setdefault(word, set())
                filled |= {name for name in self.names if name not in filled and block.filled_in(name)[rows].any()}
        return {word: [name for name in self.names if name in found[word]] for word in sorted(found)}

    @contextmanager
    def _opened(self, path: Path) -> Iterator[text.TextFile | parquet.ArrowFile]:
        if self.lines:
            yield text.TextFile(path)
        elif self.frame is not None:
            with self.readable():
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
                expected, remedy = f"{there}, as in {first}", "Give the columns of all files one type."
                raise InputError(place(path, column=column), expected, here, remedy)


def _place_of(block: Block, rows: NDArray[np.int64], row: int, column: str) -> str:
    return block.place(int(rows[row]), column)
