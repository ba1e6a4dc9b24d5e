"""Tables of nodes and of edges, read as their schemas say.

What each column is was decided before (`infomax.io.schema.resolving`), from what a person says and
the names of the columns. Only the types of columns that become features are found from their
values, where nobody knows them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.structural_features import StructuralFeatures, requested_structural_features
from infomax.arrays.times import parse_time
from infomax.errors import InputError, format_count, format_location, shorten, warn
from infomax.io import text
from infomax.io.choices import LearntFeatures, UserChoices
from infomax.io.column_names import (
    SPLIT,
    format_list,
    is_called_code,
    is_called_number,
)
from infomax.io.encoding import cells
from infomax.io.encoding.cells import MISSING, UnreadableError, is_list
from infomax.io.encoding.column_statistics import LEAST_ROWS_TO_TELL
from infomax.io.encoding.column_types import EXPECTED_CELLS
from infomax.io.encoding.encoding import Encoding
from infomax.io.encoding.guessing import (
    Fault,
    find_odd_cell_note,
    find_outlier_note,
    holds_code_numbers,
    tells_label,
)
from infomax.io.encoding.moments import too_fine
from infomax.io.encoding.survey import Survey
from infomax.io.schema.schema import (
    COUNT,
    ONE_TYPE,
    REASON_OF_TYPE,
    ColumnSchema,
    Ends,
    Origin,
    Schema,
    TableSchema,
    TypeColumns,
    Use,
)
from infomax.io.schema.schema_file import location_in
from infomax.io.sources import FILL_IN, Block, NotNumbersError, Source, are_integers

LEARNING = 0.5
"""Share of the work with a node table that learning its encoding is."""
CLASSES = 10_000
"""Different labels that are compared; where there are more, case and spaces matter least."""


@dataclass(frozen=True)
class Tables:
    """All tables of a graph: of nodes by type, and of edges by relation.

    One table of all edges has no relation: its cells tell that of each edge, or the choices, or the
    node tables.

    Attributes:
        nodes: the node tables; also those of edges whose rows are nodes.
        edges: the edge tables.
        choices: what a person says of all tables.
        type_columns: what tells types of nodes apart in one edge table and one node table.
        directed: the relations within one type whose edges have directions, whatever a person says
            of all edges.
        database_schema: of a database, all its tables: which of them become these, and by which
            keys.
    """

    nodes: dict[str, NodeTable]
    edges: dict[Ends | None, EdgeTable]
    choices: UserChoices
    type_columns: TypeColumns = ONE_TYPE
    directed: frozenset[Ends] = frozenset()
    database_schema: Schema | None = None

    @property
    def sources(self) -> list[Source]:
        """All tables in the order in which they are read."""
        of_edges = [table.source for table in self.edges.values()]
        return of_edges + [table.source for table in self.nodes.values()]

    @property
    def types_with_tables(self) -> list[str]:
        """The types that have node tables of their own."""
        rows_as = self.type_columns.edges_as
        return [node_type for node_type in self.nodes if not rows_as or node_type != rows_as]


@dataclass
class EdgeTable:
    """A table of edges.

    Attributes:
        source: its rows.
        schema: what its columns are.
        earlier_table: the table in the schema that it is read by, if any: the schema of an earlier
            graph, or one that a person gave.
        are_ends_named: whether the columns of both ends were found by their names, rather than by
            their places.
        has_two_types: whether the ends are of two types: their ids may be integers and text.
        row_type: the type of nodes that its rows become; empty where they are only edges.
    """

    source: Source
    schema: TableSchema
    earlier_table: TableSchema | None = None
    are_ends_named: bool = True
    has_two_types: bool = False
    row_type: str = ""
    are_integers: tuple[bool, bool] = field(default=(True, True), init=False)
    """Whether all ids read so far at each end are integers, or written as such in text."""

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages."""
        return self.source.path

    @property
    def ends(self) -> tuple[str, str]:
        """The columns that hold the ends of edges."""
        return str(self.schema.source.column), str(self.schema.target.column)

    @property
    def counts_rows(self) -> bool:
        """Whether an edge weighs as much as it has rows."""
        return self.schema.weight.column == COUNT and COUNT not in self.source.names

    @property
    def is_weighted(self) -> bool:
        """Whether edges have weights: in a column, or as rows are counted."""
        return self.schema.weight.column is not None

    def rows(self, feature_columns: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows ``[n]``: number, source, target and, where they have them, weight and relation.

        With ``feature_columns`` also features ``[n, F]``, the numbers in these columns.
        """
        self.are_integers = (True, True)
        source_column, target_column = self.ends
        weight_column = None if self.counts_rows else self.schema.weight.column
        relation_column = self.schema.relation.column
        columns = [source_column, target_column]
        columns += [name for name in (weight_column, relation_column) if name is not None]
        same_types = _SameTypes(self.source)
        widths: dict[str, int] = {}
        for block in self.source.blocks(columns, list(feature_columns)):
            with self.source.readable(block.path):
                if self.has_two_types:
                    ends = [block.ids(source_column), block.ids(target_column)]
                else:
                    ends = block.ends([source_column, target_column])
                same_types.check(block, ends[0], source_column)
                first, last = (are_integers(end, is_text=self.source.is_text) for end in ends)
                if not self.source.is_text and first != last:
                    ends = [end.cast("large_string") for end in ends]
                self.are_integers = (self.are_integers[0] and first, self.are_integers[1] and last)

                rows = {"number": block.numbers, "source": ends[0], "target": ends[1]}
                if weight_column is not None:
                    rows["weight"] = block.weight(weight_column)
                elif self.counts_rows:
                    rows["weight"] = np.ones(len(ends[0]), np.float32)
                if relation_column is not None:
                    rows["relation"] = block.words(relation_column, {})
                if feature_columns:
                    rows["features"] = block.features(widths, FILL_IN)
            yield rows
            self.source.tell(block.share)


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Some rows of a node table, in order.

    Shapes:
        numbers: ``[n]`` int64; see `FILE`
        ids: ``[n]``; see `Block.ids`. None where ids are the numbers of rows
        features: ``[n, F]``, CSR where they are encoded; None where there is no feature column
        labels: ``[n]`` str objects or ``[n, C]`` 0/1 each
        splits: ``[n]`` bool each
        groups: ``[n]`` names
        names: ``[n]`` str objects
        times: ``[n]`` int64
        is_early: ``[n]`` bool, whether a row is not later than ``as_of``; features are of those
            alone, ``[m, F]``
    """

    table: NodeTable
    numbers: NDArray[np.int64]
    ids: Any
    features: Any
    labels: Mapping[str, NDArray[Any]]
    splits: Mapping[str, NDArray[np.bool_]]
    groups: Any
    names: NDArray[Any] | None
    times: NDArray[np.int64] | None
    is_early: NDArray[np.bool_]

    def early(self) -> NodeRows:
        """Only the rows that are not later than ``as_of``, but all numbers and ids."""
        kept = self.is_early
        if kept.all():
            return self
        return replace(
            self,
            labels={name: labels[kept] for name, labels in self.labels.items()},
            splits={name: split[kept] for name, split in self.splits.items()},
            groups=None if self.groups is None else list(compress(self.groups, kept)),
            names=None if self.names is None else self.names[kept],
            times=None if self.times is None else self.times[kept],
        )


@dataclass
class NodeTable:
    """A table of nodes.

    Attributes:
        source: its rows.
        schema: what its columns are. A feature has no column type before its values have been
            looked at.
        choices: what a person says of this table.
        earlier_table: the table in the schema that it is read by, if any: the schema of an earlier
            graph, or one that a person gave.
        labels: the columns of labels by the names of the labels; those that a person named are
            first.
        features: how the features of an earlier graph were made of the columns; None: that is to be
            learnt.
        feature_file: a file that holds the features, in place of columns.
        key_columns: columns that by their names hold ids of other nodes.
        may_learn: whether features may be other than numbers.
        remedy: what to do about features that are no numbers.
    """

    source: Source
    schema: TableSchema
    choices: UserChoices
    earlier_table: TableSchema | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    features: LearntFeatures | None = None
    feature_file: Path | None = None
    key_columns: Sequence[str] = ()
    may_learn: bool = True
    remedy: str = FILL_IN
    encoding: Encoding | None = field(default=None, init=False)
    """What makes features of the columns, once it is learnt; None: numbers stay as they are."""
    widths: dict[str, int] = field(default_factory=dict, init=False)
    """How many numbers the lists of a column have."""

    def __post_init__(self) -> None:
        self._range = np.empty((2, 0))  # the least and largest value [2, F] of numbers as they are
        self._classes: dict[str, set[str]] = {}  # different labels, or some of them, by column
        self._unlike: dict[str, tuple[int, str]] = {}  # cells unlike those that were learnt from
        if self.features is not None:
            self.encoding = self.features.encoding

    @property
    def path(self) -> Path:
        """The first file, which stands for the table in messages."""
        return self.source.path

    @property
    def is_numbered(self) -> bool:
        """Whether the ids of nodes are the numbers of their rows."""
        return self.schema.id.column is None

    @property
    def is_id_named(self) -> bool:
        """Whether the column of ids was found by its name, rather than by its place."""
        column = self.schema.id.column or "id"
        earlier_column = None if self.earlier_table is None else self.earlier_table.id.column
        return column.lower() == "id" or column in (self.choices.id, earlier_column)

    @property
    def splits(self) -> dict[str, str]:
        """The columns of splits by the names of the splits."""
        return {name.removeprefix(SPLIT): name for name in self.schema.with_role("split")}

    @property
    def feature_columns(self) -> list[str]:
        """The columns that become features, in the order of their features."""
        if self.feature_file is not None:
            return []
        if self.features is None:
            return self.schema.with_role("feature")
        # A feature of an earlier graph may be an entry of lists, and may by now be a label as well.
        return self.source.columns_of_features(self.features.columns)

    @property
    def wanted_features(self) -> Sequence[str] | None:
        """The features that a person named, now or for an earlier graph; None: all."""
        return self.choices.features if self.features is None else self.features.columns

    @property
    def structural_features(self) -> StructuralFeatures | None:
        """The features to make of the edges, where these were asked for in place of columns."""
        names = self.wanted_features
        return None if names is None else requested_structural_features(names)

    @property
    def feature_names(self) -> list[str]:
        """The names of the features; complete when all rows have been read."""
        if self.encoding is not None:
            return self.encoding.feature_names
        names: list[str] = []
        for column in self.feature_columns:
            if column in self.widths:
                names += [f"{column}[{entry}]" for entry in range(self.widths[column])]
            else:
                names.append(column)
        return names

    def rows(self) -> Iterator[NodeRows]:
        """The rows in blocks.

        Features that are no numbers raise a `NotNumbersError`, unless an encoding was learnt.
        """
        share_before = 0 if self.encoding is None else LEARNING
        self._range = np.empty((2, 0))
        self._classes = {}
        self._unlike = {}
        if self._first_row_has_other_cells():
            expected = "columns of other kinds"
            raise NotNumbersError(str(self.path), "numbers", expected, FILL_IN)
        same_types = _SameTypes(self.source)
        for block in self.source.blocks(self._columns, self.feature_columns):
            with self.source.readable(block.path):
                rows = self._rows(block, same_types)
            self._note_classes(rows)
            yield rows
            self.source.tell(share_before + (1 - share_before) * block.share)
        if self._finds_types and too_fine(*self._range):
            expected = "numbers that float32 tells apart"
            raise NotNumbersError(str(self.path), expected, "others", FILL_IN)

    def _first_row_has_other_cells(self) -> bool:
        """Whether the first row of text tells already that features are to be learnt.

        It is looked at by itself, since parsing a piece of a wide table takes long. A row that may
        be left out tells nothing.
        """
        source = self.source
        reads_all_rows = source.rows_with is None and self.choices.as_of is None
        if not (source.is_text and self._finds_types and reads_all_rows):
            return False
        row = text.first_row(source.path, source.text_format)
        if len(row) != len(source.names):
            return False
        cell_of_column = dict(zip(source.names, row, strict=True))
        texts = cells.text_array([cell_of_column[name] for name in self.feature_columns])
        numbers, _ = cells.numbers(cells.plain(texts))
        return bool(np.isnan(numbers).any())

    @property
    def _columns(self) -> list[str]:
        """The columns that are read besides those of features."""
        schema = self.schema
        columns = [schema.id.column, *self.labels.values(), *self.splits.values()]
        columns += [schema.group.column, schema.name.column]
        columns += [None if schema.time is None else schema.time.column]
        return [name for name in columns if name is not None]

    @property
    def _finds_types(self) -> bool:
        """Whether the types of columns may be found, and have not been yet."""
        return self.may_learn and self.features is None and self.encoding is None

    def _rows(self, block: Block, same_types: _SameTypes) -> NodeRows:
        schema = self.schema
        is_early = self._is_early(block)
        early_block = block if is_early.all() else block.part(is_early)
        features = self._features(early_block) if block.names else None
        ids = None
        if schema.id.column is not None:
            ids = block.ids(schema.id.column)
            same_types.check(block, ids, schema.id.column)
        return NodeRows(
            self,
            numbers=block.numbers,
            ids=ids,
            features=features,
            labels={name: block.words(column, self.widths) for name, column in self.labels.items()},
            splits={name: block.split(column) for name, column in self.splits.items()},
            groups=None if schema.group.column is None else block.groups(schema.group.column),
            names=None if schema.name.column is None else block.node_names(schema.name.column),
            times=None if schema.time is None else block.times(schema.time.column),
            is_early=is_early,
        )

    def _is_early(self, block: Block) -> NDArray[np.bool_]:
        """Whether each row ``[n]`` of a block is not later than ``as_of``."""
        day = self.choices.as_of
        if day is None or self.schema.time is None:
            return np.ones(len(block.numbers), bool)
        is_early: NDArray[np.bool_] = block.times(self.schema.time.column) <= parse_time(
            day, "as_of"
        )
        return is_early

    def _features(self, block: Block) -> Any:
        """The features ``[n, F]`` of a block: its numbers, or what the encoding makes of it."""
        if self.encoding is None:
            if self._finds_types and (self._decided_types or self._may_hold_codes):
                expected = "columns of other kinds"
                raise NotNumbersError(str(self.path), "numbers", expected, FILL_IN)
            gaps = () if self.features is None else self.features.gaps
            return self._numbers(block.features(self.widths, self.remedy, gaps, self._note_unlike))
        table = block.arrow()
        while True:
            try:
                return self.encoding.transform(table)
            except UnreadableError as error:
                location = block.location(error.row, error.column)
                refused = InputError(location, error.expected, error.found)
                if error.bad is None:
                    raise refused from None
                # The cells become gaps, and the other ones are read again.
                self._note_unlike(error.column, int(np.count_nonzero(error.bad)), str(refused))
                table = _without_cells(table, error.column, error.bad)

    @property
    def _may_hold_codes(self) -> bool:
        """Whether a column is called like an id or a code, so that its numbers are surveyed."""
        if self.key_columns:
            return True
        if self.choices.features is not None:
            return False
        return any(is_called_code(name) or is_called_number(name) for name in self.feature_columns)

    def _note_unlike(self, column: str, count: int, first_refusal: str) -> None:
        """Note how many cells are unlike those a column was learnt from, and why the first is."""
        count_before, refusal = self._unlike.get(column, (0, first_refusal))
        self._unlike[column] = (count_before + count, refusal)

    def _note_classes(self, rows: NodeRows) -> None:
        """Note which labels there are."""
        for name, labels in rows.labels.items():
            classes = self._classes.setdefault(self.labels[name], set())
            if labels.ndim == 1 and len(classes) < CLASSES:
                classes.update(labels.tolist())

    def _numbers(self, numbers: NDArray[np.float64]) -> NDArray[np.float32]:
        """Numbers ``[n, F]`` as they are, in float32; the range of each feature is noted."""
        if self._range.shape[1] != numbers.shape[1]:
            self._range = np.array([[math.inf], [-math.inf]]) * np.ones(numbers.shape[1])
        least, largest = self._range
        np.minimum(least, numbers.min(axis=0, initial=math.inf), out=least)
        np.maximum(largest, numbers.max(axis=0, initial=-math.inf), out=largest)
        return numbers.astype(np.float32, copy=False)

    @property
    def _decided_types(self) -> dict[str, str]:
        """The types of the columns of features whose type was decided, whatever they hold."""
        columns = self.schema.columns.items()
        return {
            name: column.column_type
            for name, column in columns
            if column.role == "feature" and column.column_type
        }

    def learn(self) -> bool:
        """Find from all rows what the features are.

        Returns False where features are decided already, or can only be numbers.
        """
        if not self._finds_types:
            return False
        survey = self._survey()
        encoding, faults = survey.finish()
        if faults:
            self._refuse(faults)
        for column in encoding.columns:
            odd_cell_note = find_odd_cell_note(survey.columns[column.name], column.column_type)
            if odd_cell_note:
                warn(f"{odd_cell_note}.")
            outlier_note = find_outlier_note(survey.columns[column.name], column.column_type)
            if outlier_note:
                warn(f"{format_location(self.path, column=column.name)}: {outlier_note}.")

        schema = self.schema
        if schema.name.column is None and not self.choices.obeys_schema and survey.name_column:
            reason = "texts that tell rows apart"
            if survey.name_column.lower() == "name":
                reason = f"called {survey.name_column}"
            schema = replace(schema, name=Use((survey.name_column,), reason=reason))
        name_column = schema.name.column
        encoding = self._with_type_in_notes(encoding)
        other_uses = {name_column, *survey.keys, *self._decided_types}
        code_numbers = [
            name
            for name, statistics in survey.columns.items()
            if name not in other_uses and holds_code_numbers(statistics)
        ]
        _warn_of_code_numbers(self.path, code_numbers)
        _warn_of_unshared(self.path, encoding, {*other_uses, *code_numbers})
        used = [column.name for column in encoding.feature_columns]
        _warn_of_labels(self.path, used, survey.labels)
        if not used:
            self._refuse_named_features(encoding)
            _warn_of_no_features(self.path, encoding, name_column)
        self.schema = with_learnt_types(schema, encoding)
        self.features = LearntFeatures(tuple(encoding.feature_names), encoding)
        self.encoding = replace(encoding, name_column=name_column) if used else None
        return True

    def _survey(self) -> Survey:
        """What the columns of features hold in the rows that are early and that training sees."""
        features = self.feature_columns
        survey = Survey(features, self._decided_types, list(self.labels), self.key_columns)
        for block in self.source.blocks(self._columns, features, keep=True):
            is_seen = self._is_early(block)
            with self.source.readable(block.path):
                if "seen" in self.splits:
                    is_seen &= block.split(self.splits["seen"])
                seen_block = block if is_seen.all() else block.part(is_seen)
                if len(seen_block.numbers):
                    survey.add(seen_block.arrow(), seen_block.location)
            self.source.tell(LEARNING * block.share)
        return survey

    def _refuse_named_features(self, encoding: Encoding) -> None:
        """Refuse the features that a person named where none of these columns becomes a feature."""
        if not self.choices.features or self.choices.obeys_schema:
            return
        names_and_types = [
            f"{shorten(column.name)} ({column.column_type})" for column in encoding.columns
        ]
        expected = f"columns of {self.path} that become features"
        first_name = encoding.columns[0].name
        remedy = f"Say what it is: --column {first_name}=number, category or text."
        raise InputError("features", expected, ", ".join(names_and_types), remedy)

    def _with_type_in_notes(self, encoding: Encoding) -> Encoding:
        """The encoding whose notes name an option with its type, where there are several types."""
        node_type = "" if self.earlier_table is None else self.earlier_table.node_type
        if not node_type:
            return encoding
        noted = tuple(
            replace(column, note=column.note.replace("--column ", f"--column {node_type}."))
            for column in encoding.columns
        )
        return replace(encoding, columns=noted)

    def _refuse(self, faults: Sequence[Fault]) -> None:
        """Refuse columns that cannot become features, all in one message."""
        remedy = (
            "Correct it, or leave the cell empty where nothing is known; or say what the column "
            "is: --column NAME=USE (in Python: columns={NAME: USE}). "
            "Numbers are written as 1200.50, dates as 2025-12-31; for codes, USE is category."
        )
        if all(expected == EXPECTED_CELLS["type"] for _, expected, _ in faults):
            remedy = (
                "Turn it into one of these, or leave it out: "
                "--column NAME=ignore (in Python: ignore=NAME)."
            )
        if self.choices.obeys_schema and self.earlier_table is not None:
            # A fault names its column in its place, in quotes.
            wrong = [
                name for name in self.earlier_table.columns if f'column "{name}"' in faults[0][0]
            ]
            location = schema_location(self.choices, self.earlier_table, "columns", *wrong[:1])
            remedy = f"Correct it, or change what the schema says of it: {location}."
        if len(faults) == 1:
            raise InputError(*faults[0], remedy)
        told = "; ".join(f"{where}: {found}, not {expected}" for where, expected, found in faults)
        found = told.replace(f"{self.path}, ", "")
        raise InputError(str(self.path), "columns that become features", found, remedy)

    def warn(self) -> None:
        """Warn of odd labels, of cells that became gaps, and of features that may tell a label.

        All rows must have been read.
        """
        for count, told in self._unlike.values():
            cell_count = format_count(count, "cell")
            warn(
                f"{told} {cell_count} of the column, unlike those that it was learnt from, became "
                "gaps."
            )
        for column, classes in self._classes.items():
            _warn_of_classes(format_location(self.path, column=column), classes)
        if self.feature_columns and self._finds_types and self.choices.features is None:
            _warn_of_labels(self.path, self.feature_names, list(self.labels))

    def described(self) -> TableSchema:
        """The schema with the types of all columns, once all rows were read.

        Features are numbers where nothing had to be learnt. Origins and reasons of an earlier
        schema stay, unless a person says something else.
        """
        columns = dict(self.schema.columns)
        for name, column in columns.items():
            if column.role == "feature" and not column.column_type:
                column_type = "numbers" if name in self.source.list_columns else "number"
                reason = REASON_OF_TYPE[column_type]
                columns[name] = replace(column, column_type=column_type, reason=reason)
        for name, column in columns.items():
            if self.earlier_table is not None and name in self.earlier_table.columns:
                columns[name] = _with_earlier_origin(column, self.earlier_table.columns[name])
            elif self.choices.obeys_schema and column.role == "ignored":
                columns[name] = ColumnSchema("ignored", reason="the schema does not name it")
        return replace(self.schema, columns=columns)


class _SameTypes:
    """Refuses columns of another type than in the files before: 1 and "1" are two ids."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.first_path: Path | None = None
        self.first_types: dict[str, str] = {}

    def check(self, block: Block, ids: Any, id_column: str) -> None:
        """Refuse ids or features of another type than in the first file with rows."""
        if self.source.is_text:
            return
        schema = block.data.schema
        types = {name: "lists" for name in block.names if is_list(schema.field(name).type)}
        types[id_column] = "integer ids" if are_integers(ids, is_text=False) else "text ids"
        if self.first_path is None:
            self.first_path = block.path
            self.first_types = types
        for column in types | self.first_types:
            found = types.get(column, "single numbers")
            first = self.first_types.get(column, "single numbers")
            if found != first:
                remedy = "Give the columns of all files one type."
                location = format_location(block.path, column=column)
                raise InputError(location, f"{first}, as in {self.first_path}", found, remedy)


def _without_cells(table: Any, column: str, is_bad: NDArray[np.bool_]) -> Any:
    """The rows of a pyarrow table, with nothing in some cells of a column."""
    import pyarrow as pa
    from pyarrow import compute

    kept = compute.if_else(pa.array(is_bad), None, table[column])
    return table.set_column(table.column_names.index(column), column, kept)


def with_learnt_types(schema: TableSchema, encoding: Encoding) -> TableSchema:
    """The schema of a table with the types that were learnt of its columns, and the reasons."""
    columns = dict(schema.columns)
    for column in encoding.columns:
        described = columns.get(column.name)
        if described is None or described.role in ("label", "split"):
            continue
        is_decided = bool(described.column_type)
        if column.feature_names and is_decided:
            described = ColumnSchema("feature", column.column_type, "said")
        elif column.feature_names:
            reason = REASON_OF_TYPE.get(column.column_type, "")
            if column.column_type == "category":
                reason = f"{column.distinct:,} different values" if column.distinct else "codes"
            described = ColumnSchema("feature", column.column_type, reason=reason)
        else:
            reason = column.note or REASON_OF_TYPE.get(column.column_type, "")
            if column.column_type == "id":
                reason = "values that differ from row to row, or that are ids of other nodes"
            if column.distinct == 1:
                reason = "one value only"
            origin: Origin = "said" if is_decided else "found"
            described = ColumnSchema("ignored", origin=origin, reason=reason)
        columns[column.name] = described
    return replace(schema, columns=columns)


def _with_earlier_origin(column: ColumnSchema, earlier_column: ColumnSchema) -> ColumnSchema:
    """A column with the origin and the reason that it had in an earlier schema.

    A column of which a person says something else stays as it is.
    """
    is_same_type = earlier_column.column_type in ("", column.column_type)
    is_same = column.role == earlier_column.role and is_same_type
    if column.origin == "said" and not is_same:
        return column
    return replace(earlier_column, column_type=earlier_column.column_type or column.column_type)


def schema_location(choices: UserChoices, earlier_table: TableSchema | None, *keys: str) -> str:
    """Where the schema that a person gave describes a table: the file, the line and the keys."""
    schema = choices.given_schema or Schema()
    name = None
    if earlier_table is not None and earlier_table.has_nodes:
        name = schema.table_name(earlier_table.node_type)
    elif earlier_table is not None:
        name = next(name for name, table in schema.tables.items() if table is earlier_table)
    table_keys = () if name is None else (name,)
    return location_in(choices.schema_path, ("tables", *table_keys, *keys))


def _warn_of_no_features(path: Path, encoding: Encoding, name_column: str | None) -> None:
    """Say that no column becomes features, and what the columns are."""
    lost = [column for column in encoding.columns if column.name != name_column]
    if not lost:
        return
    reasons = []
    for column in lost:
        reason = "one value" if column.distinct == 1 else column.column_type
        reasons.append(f"{shorten(column.name)} ({reason})")
    remedy = "To say what a column is: --column NAME=USE."
    warn(f"{path}: no column becomes features: {', '.join(reasons)}. {remedy}")


def _warn_of_unshared(path: Path, encoding: Encoding, used_names: Container[str | None]) -> None:
    """Name the columns that become no features since no two rows share what they hold, but for some
    other uses.

    In a few rows all cells may differ by chance.
    """
    unshared = [
        column
        for column in encoding.columns
        if column.column_type in ("id", "name") and column.note and column.name not in used_names
        if column.rows >= LEAST_ROWS_TO_TELL
    ]
    if unshared:
        names = format_list([column.name for column in unshared])
        first = unshared[0].name
        warn(
            f"{path}: no features, as hardly two rows share what they hold: {names}. To make "
            f"features of one: --column {first}=text, or {first}=category."
        )


def _warn_of_code_numbers(path: Path, names: Sequence[str]) -> None:
    """Warn of numbers that become no features since they are codes, such as an ISBN."""
    if names:
        warn(
            f"{path}: no features, as they are called codes, and nearly all their numbers differ: "
            f"{format_list(names)}. To make a feature of one: --column {names[0]}=number."
        )


def _warn_of_labels(path: Path, names: Sequence[str], labels: Sequence[str]) -> None:
    """Warn of features that are called like a label: what is to be predicted is no feature."""
    telling = [name for name in names if tells_label(name, labels)]
    if telling:
        remedy = "If so: --column NAME=label, or NAME=ignore (in Python: columns={NAME: 'label'})."
        names_list = format_list(telling)
        warn(f"{path}: features that by their names may tell a label: {names_list}. {remedy}")


def warn_missing(location: str, words: Container[str], what: str, remedy: str) -> None:
    """Name the ids or labels that are words for nothing: NA, NULL and the like."""
    missing = [word for word in MISSING[1:] if word in words]
    if missing:
        warn(f"{location}: {what} {format_list(missing)}. If it means nothing: {remedy}.")


def _warn_of_classes(location: str, labels: Collection[str]) -> None:
    """Warn of labels that may mean nothing, have outer spaces, or differ only in case.

    Each is a class as it is written.
    """
    warn_missing(location, labels, "a label", "leave the cell empty")
    classes = set(labels).difference(MISSING)
    spaced = sorted(label for label in classes if label != label.strip())
    if spaced:
        remedy = "Remove the spaces where they mean nothing."
        spaced_list = format_list(spaced)
        warn(
            f"{location}: labels with outer spaces, each a class of its own: {spaced_list}. "
            f"{remedy}"
        )
    unspaced = classes.difference(spaced)
    spellings = Counter(label.casefold() for label in unspaced)
    differing = sorted(label for label in unspaced if spellings[label.casefold()] > 1)
    if differing:
        cased = format_list(differing)
        warn(f"{location}: labels that differ only in case, each a class of its own: {cased}.")
