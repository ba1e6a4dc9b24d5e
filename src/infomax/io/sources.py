"""Tables of any size, text or parquet or a frame: a stream of checked rows, for memory and for a database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from glob import glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.cells import UnreadableError
from infomax.arrays.parquet_columns import readable
from infomax.arrays.survey import Survey
from infomax.errors import InputError, place, shorten
from infomax.io import parquet, text
from infomax.io.blocks import FILL_IN, Block, NotNumbersError, are_integers
from infomax.io.columns import Columns, NodeColumns
from infomax.io.learning import learnt

EXTENSIONS = (*text.DELIMITERS, ".parquet")
ROWS = 1 << 17
"""Rows that are read at once; fewer of wide tables."""
CELLS = 1 << 20
_INSTALL = (
    "Name the column as a label or ignore it; or install pyarrow, and it is encoded: pip install 'infomax[parquet]'."
)
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
class Nodes:
    """Some rows of a node table.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        ids: ``[n]``; see `Block.ids`
        features: ``[n, F]``, CSR where they are encoded; None where there is no feature column
        labels: ``[n]`` str objects or ``[n, C]`` 0/1 each
        splits: ``[n]`` bool each
        groups: n names
        names: ``[n]`` str objects
    """

    numbers: NDArray[np.int64]
    ids: Any
    features: Any
    labels: dict[str, NDArray[Any]]
    splits: dict[str, NDArray[np.bool_]]
    groups: list[str] | None
    names: NDArray[Any] | None


def find_files(name: str) -> list[Path]:
    """The tables that a name means: a file, all tables in a folder, or those that a pattern such as ``*.csv`` fits."""
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if text.extension(file) in EXTENSIONS)
        found = "none in the folder"
    elif not path.exists() and has_magic(name):
        files, found = sorted(map(Path, glob(name, recursive=True))), "no file of such a name"  # noqa: PTH207  of any root
    else:
        files, found = [path] if path.is_file() else [], "nothing of that name"
    if not files:
        raise InputError(name, f"tables ({', '.join(EXTENSIONS)})" if path.is_dir() else "a file", found)
    for file in files:
        if text.extension(file) not in EXTENSIONS:
            expected = f"one of {', '.join(EXTENSIONS)}"
            raise InputError(str(file), expected, f"the extension {shorten(file.suffix)}")
    return files


@dataclass
class Source:
    """The files of one table, or a frame, and what is known about it once it has been read."""

    files: list[Path]
    columns: Columns
    frame: Any = None
    """A pyarrow table, in place of a file."""
    remedy: str = ""
    """What to do about features that are no numbers."""
    names: list[str] = field(default_factory=list)
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
    only: tuple[str, str] | None = None
    """A column and the word in it of the rows that are read; None: all are."""

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
        return place(f"{path}, {'line' if self.lines else 'row'} {at}", column=column or None)

    def readable(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Raise an InputError for what pyarrow cannot do with the data of a file, by default the first."""
        kind = "parquet file" if self.frame is None else "frame"
        return nullcontext() if self.lines else readable(path or self.path, f"a {kind} that can be read")

    def header(self) -> list[str]:
        """The names of the columns."""
        with self._opened(self.path) as file:
            return file.names

    def edges(self) -> Iterator[Edges]:
        """The rows of an edge table; at its end a warning names columns that are not used."""
        for first, block in self._blocks(lambda: ([name for name in self._edge_columns() if name is not None], [])):
            source, target, weight, relation = self._edge_columns()
            with self.readable(block.path):
                ends = self._ends(block, source, target)
                self._same_kinds(block.path, ends[0], source)
                weights = None if weight is None else block.weight(weight)
                relations = None if relation is None else block.words(relation, {})
                edges = Edges(first + block.numbers, ends, weights, relations)
            yield edges
        self.columns.warn_unused(self.path, self.names)

    def _ends(self, block: Block, source: str, target: str) -> list[Any]:
        if self.lines:
            return block.ends([source, target])
        ends = [block.ids(source), block.ids(target)] if self.apart else block.ends([source, target])
        self.integers = [are_integers(end) for end in ends]
        return ends if len(set(self.integers)) == 1 else [end.cast("large_string") for end in ends]

    def nodes(self) -> Iterator[Nodes]:
        """The rows of a node table."""
        for first, block in self._blocks(self._node_columns):
            with self.readable(block.path):
                nodes = self._nodes(first, block)
            yield nodes

    def _nodes(self, first: int, block: Block) -> Nodes:
        chosen, names = self.chosen, self.names
        features = self._features(block) if chosen.features else None
        ids = block.ids(names[chosen.identifier])
        self._same_kinds(block.path, ids, names[chosen.identifier])
        return Nodes(
            numbers=first + block.numbers,
            ids=ids,
            features=features,
            labels={name: block.words(names[at], self.widths) for name, at in chosen.labels.items()},
            splits={name: block.split(names[at]) for name, at in chosen.splits.items()},
            groups=None if chosen.groups is None else block.groups(names[chosen.groups]),
            names=None if chosen.name is None else block.node_names(names[chosen.name]),
        )

    def _features(self, block: Block) -> Any:
        """The features ``[n, F]`` of a block: numbers as they are, else what an encoding makes of the columns."""
        columns = self.columns
        if columns.encoding is None:
            remedy = self.remedy or (_INSTALL if columns.features is None else FILL_IN)
            if columns.kinds and columns.learns:
                raise NotNumbersError(str(self.path), "numbers", "columns of other kinds", _INSTALL)
            return block.features(self.widths, remedy)
        try:
            return columns.encoding.transform(block.arrow())
        except UnreadableError as error:
            raise InputError(block.place(error.row, error.column), error.expected, error.found) from None

    def learn(self) -> bool:
        """Learn from all rows what the features are; False where it is known, or nothing else than numbers may be."""
        columns = self.columns
        if not columns.learns or columns.encoding is not None or find_spec("pyarrow") is None:
            return False
        self.columns = learnt(columns, self._survey(), self.path, self.names)
        return True

    def _survey(self) -> Survey:
        """What the columns of features hold, of all rows, or of those that training sees."""
        survey = Survey([], {})
        for _, block in self._blocks(self._node_columns):
            chosen, rows = self.chosen, np.arange(len(block.numbers))
            if not survey.found:
                names = [self.names[at] for at in chosen.features]
                survey = Survey(names, self.columns.kinds, list(chosen.labels))
            with self.readable(block.path):
                if "seen" in chosen.splits:
                    rows = np.flatnonzero(block.split(self.names[chosen.splits["seen"]]))
                place = partial(_place_of, block, rows)
                survey.add(block.arrow().take(rows) if "seen" in chosen.splits else block.arrow(), place)
        return survey

    @property
    def ends(self) -> tuple[str, str]:
        """The names of the columns that hold the ends of edges."""
        source, target, *_ = self._edge_columns()
        return source, target

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; complete when all rows have been read."""
        if self.columns.encoding is not None:
            return self.columns.encoding.feature_names
        return parquet.feature_names([self.names[column] for column in self.chosen.features], self.widths)

    def _edge_columns(self) -> list[Any]:
        """The names of the columns of an edge table; None where it has no such column."""
        chosen = self.columns.of_edges(self.path, self.names)
        return [None if column is None else self.names[column] for column in chosen]

    def _node_columns(self) -> tuple[list[str], list[str]]:
        """The names of the columns of a node table that are no features, and of those that are."""
        columns = self.columns
        if self.schema is not None:
            columns = replace(columns, features=parquet.feature_columns(self.schema, columns.features))
        chosen = self.chosen = columns.of_nodes(self.path, self.names)
        names, features = (
            [self.names[at] for at in some] for some in ((chosen.identifier, *chosen.annotations), chosen.features)
        )
        self.lists = [name for name in features if self.schema and parquet.is_list(self.schema.field(name).type)]
        return names, features

    def _blocks(self, choose: Callable[[], tuple[list[str], list[str]]]) -> Iterator[tuple[int, Block]]:
        """The rows of all files, some at a time, each with the number of its file times `FILE`."""
        for number, path in enumerate(self.files):
            with self._opened(path) as file:
                self.names, self.schema = self.names or file.names, file.schema or self.schema
                if file.names != self.names:
                    found, remedy = ", ".join(map(shorten, file.names)), "Give all files the same columns."
                    raise InputError(str(path), f"the columns of {self.path}", found, remedy)
                for block in file.blocks(*choose(), ROWS, CELLS, self.only):
                    yield number * FILE, block

    def types(self, column: str) -> dict[str, list[str]]:
        """The words of a column, each with the columns that have something in a row of it."""
        found: dict[str, set[str]] = {}
        for _, block in self._blocks(lambda: (self.names, [])):
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
        kinds = dict.fromkeys(self.lists, "lists") | {identifier: "integer ids" if are_integers(ids) else "text ids"}
        first, before = self.kinds = self.kinds or (path, kinds)
        for column in kinds | before:
            here, there = (one.get(column, "single numbers") for one in (kinds, before))
            if here != there:
                expected, remedy = f"{there}, as in {first}", "Give the columns of all files one type."
                raise InputError(place(path, column=column), expected, here, remedy)


def _place_of(block: Block, rows: NDArray[np.int64], row: int, column: str) -> str:
    return block.place(int(rows[row]), column)


def no_edges(edges: Source) -> InputError:
    """The error for a table without edges, and without a node table."""
    remedy = "A graph without edges needs a node table."
    return InputError(str(edges.path), "at least one edge below the header", "none", remedy)


def no_nodes(nodes: Source) -> InputError:
    """The error for a table without nodes."""
    return InputError(str(nodes.path), "at least one node below the header", "none")


def id_twice(nodes: Source, column: str, identifier: Any, first: int, number: int) -> InputError:
    """The error for an id that two rows have, which have these numbers."""
    other = nodes.place(first).removeprefix(f"{nodes.files[number // FILE]}, ")
    found = f"{shorten(identifier)}, already in {other}"
    return InputError(nodes.place(number, column), "each id once", found, "Remove one of the rows.")


def id_unknown(edges: Source, column: str, identifier: Any, number: int, listed: str) -> InputError:
    """The error for an end of an edge, the row of this number, that is no node; ``listed`` says where nodes are."""
    remedy = "Add a row for it there, or remove the edge."
    return InputError(edges.place(number, column), f"an id {listed}", shorten(identifier), remedy)


def listed_in(nodes: Source, *, integers: bool) -> str:
    """Where an id should be listed."""
    return f"listed in {nodes.path} ({_kind(integers)})"


def _kind(integers: bool) -> str:
    return f"{'integer' if integers else 'text'} ids"


def refuse_other_type(edges: Source, nodes: Source, *, of_edges: bool, of_nodes: bool) -> None:
    """Refuse ids of edges of another type than those of nodes, by whether they are integers; text has no types."""
    if not edges.lines and not nodes.lines and of_edges != of_nodes:
        remedy = "Give the id columns of both files one type."
        raise InputError(str(edges.path), f"{_kind(of_nodes)}, as in {nodes.path}", _kind(of_edges), remedy)


_SIDES = re.compile(
    "[a-z]|source|target|src|dst|dest|destination|origin|from|to|head|tail|start|end|begin|first|second|one|two|left|right"
    "|parent|child|in|out|sender|receiver|recipient|follower|followee|followed|citing|cited|caller|callee|subject|object"
    "|other|friend|neighbou?r"
)
"""What a column may be called that is one end of an edge within one type of nodes."""
_NO_KIND = {"", "id", "ids", "node", "nodes", "vertex", "key", "name", "no", "nr", "number", "code", "index", "idx"}


def refuse_two_kinds(edges: Source, names: Sequence[str], overlap: Callable[[], bool]) -> None:
    """Refuse ends of edges that may be two types of nodes, as their columns are called, and have ids in common.

    Nothing is refused where the columns were named, or have usual names, or differ in words such as from and to.
    """
    columns = edges.columns
    split = (re.split("[^a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()) for name in names)
    words = [set(found) - _NO_KIND for found in split]
    named = columns.source is not None and columns.target is not None
    usual = named or columns.names_ends(names) or all(map(_SIDES.fullmatch, words[0] ^ words[1]))
    if not usual and overlap():
        kinds = ",".join(re.sub("_?id$", "", name, flags=re.IGNORECASE) for name in names)
        found = f"ids in common of {shorten(names[0])} and {shorten(names[1])}, which may be two types"
        remedy = (
            f"Two types of nodes, each with ids of its own: --types {kinds}. One type: --source {names[0]} --target "
            f'{names[1]}. (In Python: types="{kinds}", or source= and target=.)'
        )
        raise InputError(str(edges.path), "edges whose ends are nodes of known types", found, remedy)


def refuse_missing_header(edges: Source, ends: Sequence[str], is_node: Callable[[str], bool]) -> None:
    """Refuse names of the columns of both ends that are two nodes: they are an edge, and it would be lost."""
    if edges.lines and not edges.columns.names_ends(ends) and all(map(is_node, ends)):
        raise InputError(
            place(edges.path, 1),
            "a header line",
            f"two node ids, {shorten(ends[0])} and {shorten(ends[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, change them to that.',
        )
