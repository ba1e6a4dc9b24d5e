"""Edge tables and node tables, whatever file they were read from, and the graph they make together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.table import Features
from infomax.errors import InputError, place, shorten
from infomax.io.columns import Columns, NodeColumns
from infomax.io.interchange import number_groups
from infomax.io.record import Record

Ids: TypeAlias = list[int] | list[str]

FILL_IN = "Fill it in, or remove the row."


@dataclass(frozen=True, eq=False)
class Table:
    """A file of rows; ``lines`` has the line number of each, or None for files without lines, as parquet."""

    path: Path
    lines: Sequence[int] | None

    def name(self, row: int) -> str:
        """``line 3``, or ``row 2`` in a file without lines."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def place(self, row: int, column: str) -> str:
        """``edges.csv, line 3, column "weight"``."""
        return place(f"{self.path}, {self.name(row)}", column=column)


@dataclass(frozen=True, eq=False)
class EdgeTable(Table):
    """Edges between ids.

    Shapes:
        ids: each id once, in order of first appearance, read row by row.
        ends: ``[2, E]`` int64, positions in ids.
        weight: ``[E]`` float32.
    """

    names: tuple[str, str]
    ids: Ids
    ends: NDArray[np.int64]
    weight: NDArray[np.float32] | None
    named: bool
    """Whether the columns of both ends were found by their names."""


@dataclass(frozen=True, eq=False)
class NodeTable(Table):
    """Nodes, in order.

    Shapes:
        ids: ``[N]``
        features: ``[N, F]``; None without feature columns
        labels: ``[N]`` str objects each
        splits: ``[N]`` bool each
        groups: ``[N]`` int64
    """

    ids: Ids
    feature_names: list[str]
    features: Features | None
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    splits: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None


def build(edges: EdgeTable, nodes: NodeTable | None, directed: bool, columns: Columns) -> Record:
    """The graph of an edge table and, where there is one, a node table."""
    if nodes is None and not edges.ids:
        remedy = "A graph without edges needs a node table."
        raise InputError(str(edges.path), "at least one edge below the header", "none", remedy)
    ids = edges.ids if nodes is None else nodes.ids
    # Text files have no types, so an integer id and its text are the same id.
    position: dict[str, int] = {str(identifier): row for row, identifier in enumerate(ids)}
    refuse_missing_header(edges, position)
    ends = (
        edges.ends if nodes is None else find_rows(edges, nodes, position, f"listed in {nodes.path} ({_kind(ids)} ids)")
    )
    try:
        graph = Record.from_arrays(
            ends,
            None if nodes is None else nodes.features,
            weight=edges.weight,
            num_nodes=len(ids),
            directed=directed,
            ids=ids,
            feature_names=None if nodes is None or nodes.features is None else nodes.feature_names,
            labels=None if nodes is None else nodes.labels,
            splits=None if nodes is None else nodes.splits,
            groups=None if nodes is None else nodes.groups,
        )
    except InputError as error:
        raise InputError(f"{edges.path}, {error.where}", error.expected, error.found, error.remedy) from error
    return replace(graph, edge_columns=None if edges.named else edges.names, table_columns=columns.named())


def find_rows(edges: EdgeTable, nodes: NodeTable, position: Mapping[str, int], listed: str) -> NDArray[np.int64]:
    """The rows of the graph ``[2, E]`` that the edges join; ``listed`` says in messages where its ids are listed."""
    kind = _kind(nodes.ids)
    if edges.lines is None and nodes.lines is None and edges.ids and _kind(edges.ids) != kind:
        remedy = "Give the id columns of both files one type."
        raise InputError(str(edges.path), f"{kind} ids, as in {nodes.path}", f"{_kind(edges.ids)} ids", remedy)
    rows = np.array([position.get(str(identifier), -1) for identifier in edges.ids], dtype=np.int64)
    ends: NDArray[np.int64] = rows[edges.ends]
    if (ends < 0).any():
        edge, end = divmod(int(np.argmax(ends.T.ravel() < 0)), 2)
        raise InputError(
            edges.place(edge, edges.names[end]),
            f"an id {listed}",
            shorten(edges.ids[edges.ends[end, edge]]),
            "Add a row for it there, or remove the edge.",
        )
    return ends


def _kind(ids: Ids) -> str:
    return "text" if isinstance(ids[0], str) else "integer"


def refuse_missing_header(edges: EdgeTable, position: Mapping[str, int]) -> None:
    """Refuse column names that are two node ids: they are an edge, and it would be lost."""
    if edges.lines is not None and not edges.named and all(name in position for name in edges.names):
        raise InputError(
            place(edges.path, 1),
            "a header line",
            f"two node ids, {shorten(edges.names[0])} and {shorten(edges.names[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, change them to that.',
        )


def check_column_names(where: str, names: Sequence[str]) -> None:
    """Refuse a column without a name, and two of the same name."""
    if "" in names:
        remedy = "Name it or delete it; pandas leaves its row numbers out with index=False."
        raise InputError(where, "a name for every column", f"none for column {names.index('') + 1}", remedy)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(where, "each column name once", f"{shorten(name)} {count} times", "Rename them.")


def check_nodes(table: Table, ids: Ids, column: str) -> None:
    """Refuse a table without nodes, or with an id that occurs twice."""
    if not ids:
        raise InputError(str(table.path), "at least one node below the header", "none")
    seen: dict[Hashable, int] = {}
    for row, identifier in enumerate(ids):
        first = seen.setdefault(identifier, row)
        if first != row:
            found = f"{shorten(identifier)}, already in {table.name(first)}"
            raise InputError(table.place(row, column), "each id once", found, "Remove one of the rows.")


def check_weight(
    table: Table, column: str, weight: NDArray[np.float32], written: Callable[[int], str]
) -> NDArray[np.float32]:
    """The weights ``[E]``, refused unless finite and not negative; ``written`` gives a row's weight as in the file."""
    good = np.isfinite(weight) & (weight >= 0)
    if not good.all():
        row = int(np.argmin(good))
        where, remedy = table.place(row, column), "Correct it or remove the edge."
        raise InputError(where, "a finite weight of zero or more", written(row), remedy)
    return weight


def marks(table: Table, names: Sequence[str], chosen: NodeColumns, cells: Mapping[int, NDArray[Any]]) -> dict[str, Any]:
    """Labels, splits and groups, as `NodeTable` has them, of columns ``[N]`` of str objects by their positions."""
    splits = {name: split_column(table, names[at], cells[at]) for name, at in chosen.splits.items()}
    return {
        "labels": {name: cells[at] for name, at in chosen.labels.items()},
        "splits": splits,
        "groups": None if chosen.groups is None else _group_column(table, names[chosen.groups], cells[chosen.groups]),
    }


def split_column(table: Table, name: str, cells: NDArray[Any]) -> NDArray[np.bool_]:
    """The split ``[N]`` of a column of str objects: 1 or true, and 0, false or nothing."""
    words = [cell.strip().lower() for cell in cells]
    for row, word in enumerate(words):
        if word not in _TRUE and word not in _FALSE:
            raise InputError(table.place(row, name), "1 or 0, true or false", shorten(cells[row]))
    return np.array([word in _TRUE for word in words], dtype=bool)


def _group_column(table: Table, name: str, cells: NDArray[Any]) -> NDArray[np.int64]:
    """The groups ``[N]`` of a column of str objects: their integers, or numbers of text by first appearance."""
    words = cells.tolist()
    if "" in words:
        raise InputError(table.place(words.index(""), name), "the name of a graph", "an empty cell", FILL_IN)
    return number_groups(words)


_TRUE, _FALSE = ("1", "true"), ("0", "false", "")
"""What a split may hold, in any case."""


def bad_feature(where: str, column: str, expected: str, found: str, remedy: str = "") -> InputError:
    """The error for a feature column that holds something else than numbers; by default it suggests ``labels``."""
    option = f'name it: --labels {column} or --ignore {column} (in Python: labels="{column}" or ignore="{column}").'
    return InputError(where, expected, found, remedy or f"Correct it; or, if the column is not a feature, {option}")


def typed(ids: list[str]) -> Ids:
    """Integers if every id is written as Python writes an int64 (not "007", "+1" or "1.0"), else the text as it is."""
    try:
        numbers = list(map(int, ids))
    except ValueError:
        return ids
    exact = list(map(str, numbers)) == ids and all(-(2**63) <= number < 2**63 for number in numbers)
    return numbers if exact else ids
