"""From tables to a graph in stages: read, number and join, each of them once.

A graph of one type of nodes is one of several types that has one type and one relation, both
without a name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from infomax.errors import InputError, format_location, shorten
from infomax.io.encoding.cells import MISSING
from infomax.io.past import no_rows_until, no_times
from infomax.io.prepare.database import Database
from infomax.io.prepare.relations import around_rows, id_unknown, relation_queries
from infomax.io.schema.schema import ColumnSchema, Ends, Schema, TableSchema
from infomax.io.sources import FILE, NotNumbersError, are_integers
from infomax.io.tables import EdgeTable, NodeRows, Tables, warn_missing
from infomax.progress import Progress, silent

Result = TypeVar("Result")

MOST_NODES = 1 << 31
"""A type has fewer nodes than this, since edges hold the numbers of nodes as int32."""
NEVER = int(np.iinfo(np.int64).max)
"""A time after all others."""
LATER = -1
"""The number of a node whose row is later than ``as_of``."""

_WORD_OF_SIDE = re.compile(
    "[a-z]|source|target|src|dst|dest|destination|origin|from|to|head|tail|start|end|begin|first"
    "|second|one|two|left|right|parent|child|in|out|sender|receiver|recipient|follower|followee"
    "|followed|citing|cited|caller|callee|subject|object|other|friend|neighbou?r"
)
"""What a column may be called that is one end of an edge within one type of nodes."""
_WORDS_OF_NO_TYPE = {
    "",
    "id",
    "ids",
    "node",
    "nodes",
    "vertex",
    "key",
    "name",
    "no",
    "nr",
    "number",
    "code",
    "index",
    "idx",
}
"""What a column of ids may be called, whatever the type of the nodes."""


@dataclass(frozen=True)
class ReadEdges:
    """What is known of an edge table, once it is read.

    Attributes:
        row_count: the number of its rows.
        are_integers: whether all ids at each end are integers, or written as such in text.
        has_weights: whether edges have weights.
        has_relation_names: whether a cell of each row names its relation.
    """

    row_count: int
    are_integers: tuple[bool, bool]
    has_weights: bool
    has_relation_names: bool


@dataclass(frozen=True)
class PreparedRelation:
    """A relation whose edges are in the database.

    Attributes:
        ends: its types and its name.
        table_number: the number of its edge table.
        query: its edges: number, source, target and, where they have weights, weight.
        row_end: the end that is the row of the table itself, where rows are nodes: 0 for the
            source, 1 for the target.
    """

    ends: Ends
    table_number: int
    query: str
    row_end: int | None = None

    @property
    def types(self) -> tuple[str, str]:
        """The types of the nodes at both ends."""
        return self.ends[0], self.ends[2]

    @property
    def within_one_type(self) -> bool:
        """Whether both ends are nodes of one type."""
        return self.ends[0] == self.ends[2]


@dataclass(frozen=True)
class ReadNodes:
    """What is known of the nodes of a type, once their table, or the ids of their edges, are read.

    Attributes:
        ids_are_integers: whether all ids are integers, or written as such in text.
        feature_names: the names of the features; empty where there are no columns of features.
        label_names: the names of the labels.
        split_names: the names of the splits.
        has_names: whether nodes have display names.
        has_times: whether nodes have times.
        encoding: how features are made of the columns, as JSON; None where they stay as they are.
    """

    ids_are_integers: bool
    feature_names: Sequence[str] = ()
    label_names: Sequence[str] = ()
    split_names: Sequence[str] = ()
    has_names: bool = False
    has_times: bool = False
    encoding: Any = None


class Stages(ABC):
    """What the tables of a graph go through, up to the numbers of the nodes that edges join.

    A subclass keeps the columns of nodes and the joined edges, in memory or on disk.

    Attributes:
        node_tables: the node tables by node type.
        edge_tables: the edge tables; the database has one table for each, edges0, edges1, ...
        read_edges: what reading each edge table told.
        relations: the relations of all edge tables, once they are told apart.
        node_types: the types with node tables, then, in order of their names, the other types that
            are at ends of relations.
        read_nodes: what reading told of each type.
        node_counts: the number of nodes of each type, once they are numbered.
    """

    by_text = False
    """Whether ids are compared by their text, even if all are integers."""

    def __init__(self, tables: Tables, database: Database, *, directed: bool) -> None:
        self.tables = tables
        self.choices = tables.choices
        self.node_tables = tables.nodes
        self.edge_tables = [*tables.edges.values()]
        self.directed = directed
        self.database = database
        self.has_several_types = None in tables.edges or any(
            ends and ends[0] for ends in tables.edges
        )
        self.read_edges: list[ReadEdges] = []
        self.relations: list[PreparedRelation] = []
        self.node_types = [*self.node_tables]
        self.read_nodes: dict[str, ReadNodes] = {}
        self.node_counts: dict[str, int] = {}
        self.progress: Progress = silent
        self.stages_done = 0

    @abstractmethod
    def _keeper(self, node_type: str) -> AbstractContextManager[Callable[[NodeRows], list[Any]]]:
        """A function that is called with all rows of a node table, block by block.

        It returns the columns ``[n]`` that the database is to keep.
        """

    @abstractmethod
    def _keep_edges(self, relation: PreparedRelation) -> None:
        """Keep the edges of a relation, which are in table pairs."""

    def _run(self) -> None:
        """Do all stages but those that a subclass adds."""
        for table_number in range(len(self.edge_tables)):
            work = partial(self._copy_edges, table_number)
            self.read_edges.append(self._do("reading edges", work))
        for node_type in self.node_tables:
            self._read_nodes(node_type)

        # Only cells, and ids of nodes, may tell which relations a table has; types without a node
        # table are those that these relations name.
        self.relations = self._do("finding relations", self._find_relations)
        types_of_ends = {node_type for relation in self.relations for node_type in relation.types}
        self.node_types = [*self.node_tables, *sorted(types_of_ends - self.node_tables.keys())]

        for node_type in self.node_types:
            if node_type not in self.node_tables:
                work_of_ids = partial(self._find_ids, node_type)
                self.read_nodes[node_type] = self._do("finding ids", work_of_ids)
            self._number_checked_nodes(node_type)

        for relation in self.relations:
            # One join at a time: each must hold all nodes of a type, see `Database`.
            join_sources = partial(self._join, relation, 0, "edges", "half")
            self._do("joining sources", join_sources)
            join_targets = partial(self._join, relation, 1, "half", "pairs")
            self._do("joining targets", join_targets)
            self._do("sorting edges", partial(self._end_edges, relation))

    def _do(self, title: str, work: Callable[[], Result]) -> Result:
        """Do a stage and return what the work returns."""
        stage_count = (
            len(self.edge_tables)
            + len(self.node_tables)
            + 3 * max(1, len(self.relations))
            + 2 * max(1, len(self.node_types))
            + 3
        )
        self.progress(self.stages_done, title, max(stage_count, self.stages_done + 1))
        result = self.database.stage(work)
        self.stages_done += 1
        return result

    # Reading

    def _copy_edges(self, table_number: int) -> ReadEdges:
        """Copy an edge table to table edges0, edges1, ...

        Its columns are number, source, target and, where edges have them, weight and relation.
        """
        database_table = f"edges{table_number}"
        table = self.edge_tables[table_number]
        row_count = self.database.create(database_table, table.rows(), str(table.path))
        if not row_count:
            if not self.node_tables:
                remedy = "A graph without edges needs a node table."
                expected = "at least one edge below the header"
                raise InputError(str(table.path), expected, "none", remedy)
            self.database.execute(
                f"CREATE OR REPLACE TABLE {database_table} "
                "(number BIGINT, source BIGINT, target BIGINT)"
            )
        return ReadEdges(
            row_count=row_count,
            are_integers=table.are_integers,
            has_weights=row_count > 0 and table.is_weighted,
            has_relation_names=row_count > 0 and table.schema.relation.column is not None,
        )

    def _nodes_name(self, node_type: str) -> str:
        """The name of the database's table of the nodes of a type.

        Its columns are node, number, id, and labels, splits, names and times as l0, l1, ...
        """
        return f"nodes{self.node_types.index(node_type)}"

    def _read_nodes(self, node_type: str) -> None:
        """Copy a node table to the database, see `_nodes_name`."""
        work = partial(self._copy_nodes, node_type)
        try:
            read_nodes = self._do("reading nodes", work)
        except NotNumbersError:
            # Most tables are numbers, so features are learnt only once a cell is none.
            if not self.node_tables[node_type].learn():
                raise
            read_nodes = self._do("reading nodes", work)
        self.read_nodes[node_type] = read_nodes

    def _copy_nodes(self, node_type: str) -> ReadNodes:
        table = self.node_tables[node_type]
        ids_are_integers = True
        first_time = NEVER
        with self._keeper(node_type) as keep:

            def batches() -> Iterator[dict[str, Any]]:
                nonlocal ids_are_integers, first_time
                next_id = self._first_number(node_type) if table.is_numbered else 0
                early_count = 0
                for rows in table.rows():
                    columns = {f"l{number}": cells for number, cells in enumerate(keep(rows))}
                    if rows.times is not None:
                        first_time = int(rows.times.min(initial=first_time))

                    # Nodes are numbered without the rows that are later than ``as_of``.
                    is_early = rows.is_early
                    node = np.where(is_early, early_count + np.cumsum(is_early) - 1, LATER)
                    early_count += int(np.count_nonzero(is_early))

                    ids = rows.ids
                    if table.is_numbered:
                        ids = np.arange(next_id, next_id + len(node))
                        next_id += len(node)
                    elif ids_are_integers:
                        ids_are_integers = are_integers(ids, is_text=table.source.is_text)
                    yield {"node": node, "number": rows.numbers, "id": ids, **columns}

            if not self.database.create(self._nodes_name(node_type), batches(), str(table.path)):
                expected = "at least one node below the header"
                raise InputError(str(table.path), expected, "none")

        if not self._count(node_type):
            is_database = self.tables.database_schema is not None
            raise no_rows_until(
                node_type,
                self.choices.as_of,
                first_time,
                may_leave_out=is_database and not self.choices.learnt_types,
            )
        table.warn()
        return ReadNodes(
            ids_are_integers=ids_are_integers,
            feature_names=table.feature_names if table.feature_columns else [],
            label_names=list(table.labels),
            split_names=list(table.splits),
            has_names=table.schema.name.column is not None,
            has_times=table.schema.time is not None,
            encoding=None if table.encoding is None else table.encoding.to_json(),
        )

    def _first_number(self, node_type: str) -> int:
        """The id of the first row of a table whose ids are the numbers of its rows."""
        return 1

    def schema(self) -> Schema:
        """What the tables are, once they have been read."""
        described = {node_type: table.described() for node_type, table in self.node_tables.items()}
        return schema_of_tables(self.tables, described)

    # Relations

    def _find_relations(self) -> list[PreparedRelation]:
        """The relations of all edge tables; a table of several is told apart by its cells."""
        has_times = any(self.read_nodes[node_type].has_times for node_type in self.node_tables)
        if self.choices.as_of is not None and not has_times:
            raise no_times()

        relations: list[PreparedRelation] = []
        for table_number, (ends, table) in enumerate(self.tables.edges.items()):
            database_table = f"edges{table_number}"
            if table.row_type and self.choices.as_of is not None:
                nodes_name = self._nodes_name(table.row_type)
                later_rows = f"SELECT number FROM {nodes_name} WHERE node = {LATER}"
                self.database.execute(
                    f"DELETE FROM {database_table} WHERE number IN ({later_rows})"
                )

            has_one_type = not (ends and ends[0]) and not self.tables.type_columns.ends
            if has_one_type and not self.tables.types_with_tables:
                self._refuse_two_types(table_number)

            if ends is None:
                queries = relation_queries(
                    self.database,
                    self.tables,
                    database_table,
                    table,
                    are_named=self.read_edges[table_number].has_relation_names,
                )
            else:
                queries = {ends: f"FROM {database_table}"}
            for relation_ends, query in queries.items():
                if not table.row_type:
                    relation = PreparedRelation(relation_ends, table_number, f"SELECT * {query}")
                    relations.append(relation)
                    continue
                # A row that is a node has an edge from the node where it begins, and one to that
                # where it ends.
                is_alone = len(queries) == 1
                to_rows, from_rows = around_rows(self.tables, relation_ends, alone=is_alone)
                to_query = f"SELECT number, source, number AS target {query}"
                from_query = f"SELECT number, number AS source, target {query}"
                relations.append(PreparedRelation(to_rows, table_number, to_query, 1))
                relations.append(PreparedRelation(from_rows, table_number, from_query, 0))

        if self.directed and not any(relation.within_one_type for relation in relations):
            expected = "a relation within one type of nodes"
            found = "relations between two types, whose edges run both ways"
            raise InputError("directed", expected, found, "Leave out --directed.")
        return relations

    def _refuse_two_types(self, table_number: int) -> None:
        """Refuse ends of edges that may be two types of nodes, as their columns are called, and
        have ids in common.

        Nothing is refused where the columns were named, or have usual names, or differ in words
        such as from and to.
        """
        table = self.edge_tables[table_number]
        if table.are_ends_named:
            return
        names = table.ends
        words_of_ends: list[set[str]] = []
        for name in names:
            spaced = re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()
            words_of_ends.append(set(re.split("[^a-z]+", spaced)) - _WORDS_OF_NO_TYPE)
        differing_words = words_of_ends[0] ^ words_of_ends[1]
        if all(_WORD_OF_SIDE.fullmatch(word) for word in differing_words):
            return
        if not self._has_ids_at_both_ends(table_number):
            return

        types = ",".join(re.sub("_?id$", "", name, flags=re.IGNORECASE) for name in names)
        found = (
            f"ids in common of {shorten(names[0])} and {shorten(names[1])}, which may be two types"
        )
        remedy = (
            f"Two types of nodes, each with ids of its own: --types {types}. "
            f"One type: --source {names[0]} --target {names[1]}. "
            f'(In Python: types="{types}", or source= and target=.)'
        )
        expected = "edges whose ends are nodes of known types"
        raise InputError(str(table.path), expected, found, remedy)

    def _has_ids_at_both_ends(self, table_number: int) -> bool:
        """Whether an id is the source of an edge of a table and the target of another."""
        table = f"edges{table_number}"
        query = (
            f"SELECT 1 FROM {table} AS sources SEMI JOIN {table} AS targets "
            "ON sources.source = targets.target LIMIT 1"
        )
        return self.database.row(query) is not None

    # Ids and numbers of nodes

    def _find_ids(self, node_type: str) -> ReadNodes:
        """The ids of a type without a node table, in table first: id and position.

        The position of an id is where it appears first in the edge tables.
        """
        relation_ends = self._ends_of_type(node_type)
        # The files of all edge tables are numbered one after the other.
        file_counts = [len(table.source.files) for table in self.edge_tables]
        files_before = np.cumsum([0, *file_counts]).tolist()
        queries: list[str] = []
        for relation, end in relation_ends:
            # A source comes before the target of the same edge.
            first_position = 2 * FILE * files_before[relation.table_number] + end
            queries.append(
                f"SELECT {_END_COLUMNS[end]} AS id, 2 * number + {first_position} AS position "
                f"FROM ({relation.query})"
            )
        self.database.execute(
            "CREATE TABLE first AS SELECT id, min(position) AS position "
            f"FROM ({' UNION ALL '.join(queries)}) GROUP BY id"
        )

        ids_are_integers = all(
            self.edge_tables[relation.table_number].source.is_text
            or self._end_ids_are_integers(relation, end)
            for relation, end in relation_ends
        )
        if ids_are_integers:
            # As Python writes an integer: 007 and +1 are text.
            is_exact = "coalesce(try_cast(id AS BIGINT)::VARCHAR = id::VARCHAR, false)"
            ids_are_integers = bool(self.database.row(f"SELECT bool_and({is_exact}) FROM first")[0])
        if not ids_are_integers:
            query = "SELECT id::VARCHAR FROM first WHERE list_contains(?, id::VARCHAR)"
            missing_words = [word for (word,) in self.database.rows(query, [list(MISSING)])]
            path = self.edge_tables[relation_ends[0][0].table_number].path
            warn_missing(str(path), missing_words, "a node called", "remove its edges")
        return ReadNodes(ids_are_integers)

    def _ends_of_type(self, node_type: str) -> list[tuple[PreparedRelation, int]]:
        """The ends of relations where nodes of a type are: 0 for the source, 1 for the target."""
        return [
            (relation, end)
            for relation in self.relations
            for end in (0, 1)
            if relation.types[end] == node_type
        ]

    def _end_ids_are_integers(self, relation: PreparedRelation, end: int) -> bool:
        """Whether the ids at an end of a relation are integers."""
        if relation.row_end == end:
            return True
        return self.read_edges[relation.table_number].are_integers[end]

    def _number_checked_nodes(self, node_type: str) -> None:
        """Number the nodes of a type, and keep their number."""
        work = partial(self._number_nodes, node_type)
        self.node_counts[node_type] = self._do("checking ids", work)

    def _number_nodes(self, node_type: str) -> int:
        """Complete the table of a type, with each id once; returns the number of its nodes."""
        if node_type in self.node_tables:
            path = self.node_tables[node_type].path
            self._refuse_twice(node_type)
        else:
            path = self.edge_tables[0].path
            self.database.create(self._nodes_name(node_type), self._numbered_ids())
            self.database.execute("DROP TABLE first")
        count = self._count(node_type)
        if count >= MOST_NODES:
            raise InputError(str(path), f"fewer than {MOST_NODES:,} nodes", f"{count:,}")
        return count

    def _count(self, node_type: str) -> int:
        """The number of nodes of a type in its table."""
        query = f"SELECT count(*) FROM {self._nodes_name(node_type)} WHERE node >= 0"
        return int(self.database.row(query)[0])

    def _numbered_ids(self) -> Iterator[dict[str, Any]]:
        """The ids of the edges, numbered in the order in which they appear first."""
        count = 0
        for batch in self.database.stream("SELECT id FROM first ORDER BY position"):
            numbers = np.arange(count, count + len(batch))
            count += len(batch)
            yield {"node": numbers, "number": numbers, "id": batch["id"]}

    def _refuse_twice(self, node_type: str) -> None:
        """Refuse an id that two rows of the node table of a type have."""
        nodes_name = self._nodes_name(node_type)
        twice = f"SELECT id FROM {nodes_name} GROUP BY id HAVING count(*) > 1"
        self.database.execute(f"CREATE TEMP TABLE twice AS {twice}")
        rows = self.database.rows(
            f"SELECT id, number FROM {nodes_name} SEMI JOIN twice USING (id) ORDER BY number"
        )
        self.database.execute("DROP TABLE twice")
        if not rows:
            return

        # The first row whose id is in a row before it.
        table = self.node_tables[node_type]
        number_of_id: dict[Any, int] = {}
        for identifier, number in rows:
            if identifier not in number_of_id:
                number_of_id[identifier] = number
                continue
            file = table.source.files[number // FILE]
            first = table.source.location(number_of_id[identifier]).removeprefix(f"{file}, ")
            remedy = "Remove one of the rows."
            if not table.is_id_named:
                remedy += (
                    " Are ids in another column? --id COLUMN (in Python: id=)."
                    " Is it the edge table? Edges come first."
                )
            location = table.source.location(number, table.schema.id.column or "")
            found = f"{shorten(identifier)}, already in {first}"
            raise InputError(location, "each id once", found, remedy)

    # Joining ids of edges with numbers of nodes

    def _join(self, relation: PreparedRelation, end: int, before: str, after: str) -> None:
        """Put the numbers of nodes in place of the ids at one end of a relation.

        Args:
            relation: the relation.
            end: 0 for the sources, which come first, 1 for the targets.
            before: the table with the edges of the targets' join, which ends.
            after: the table that is made: number, source, target and perhaps weight.
        """
        table = self.edge_tables[relation.table_number]
        node_type = relation.types[end]
        column = _END_COLUMNS[end]
        if end == 0:
            self._check_ids(relation, table)
            query = relation.query
            ends = "node AS source, target"
        else:
            query = f"SELECT * FROM {before}"
            ends = "source, node AS target"

        # Ids are compared as integers where all of both tables are; else by their text.
        key = "number" if relation.row_end == end else "id"
        are_integers = (
            self.read_nodes[node_type].ids_are_integers
            and self._end_ids_are_integers(relation, end)
            and not self.by_text
        )
        sql_type = "BIGINT" if relation.row_end == end or are_integers else "VARCHAR"
        weight = ", weight" if self._has_weights(relation) else ""
        self.database.execute(
            f"CREATE TABLE {after} AS SELECT edges.number, {ends}{weight} "
            f"FROM ({query}) AS edges LEFT JOIN "
            f"(SELECT node, {key}::{sql_type} AS id FROM {self._nodes_name(node_type)}) AS nodes "
            f"ON nodes.id = edges.{column}::{sql_type}"
        )
        first_lost = self.database.row(
            f"SELECT number, {column}::VARCHAR FROM ({query}) SEMI JOIN "
            f"(SELECT number FROM {after} WHERE {column} IS NULL) AS lost USING (number) "
            "ORDER BY number LIMIT 1"
        )
        if first_lost is not None:
            number, identifier = first_lost
            location = self._location_of_nodes(node_type)
            raise id_unknown(table, table.ends[end], identifier, number, location)
        if self.choices.as_of is not None:
            self.database.execute(f"DELETE FROM {after} WHERE {column} = {LATER}")

        # Tables that no later stage reads give their room back.
        if end == 1:
            self.database.execute("DROP TABLE half")
            return
        relations_of_table = [
            other for other in self.relations if other.table_number == relation.table_number
        ]
        if relation is relations_of_table[-1]:
            self.database.execute(f"DROP TABLE edges{relation.table_number}")

    def _location_of_nodes(self, node_type: str) -> str:
        """Where the nodes of a type are listed, in a message."""
        if node_type in self.node_tables:
            return f"listed in {self.node_tables[node_type].path}"
        return "of an edge"

    def _check_ids(self, relation: PreparedRelation, table: EdgeTable) -> None:
        """Refuse ids of another type than those of nodes, and two ids in place of a header."""
        has_rows = self.read_edges[relation.table_number].row_count > 0
        for end, node_type in enumerate(relation.types):
            if node_type in self.node_tables and relation.row_end != end and has_rows:
                are_integers = self._end_ids_are_integers(relation, end)
                self._refuse_other_id_type(table, node_type, are_integers=are_integers)

        # Names of columns that are ids of nodes are an edge that would be lost.
        if not table.source.is_text or table.are_ends_named:
            return
        for node_type, name in zip(relation.types, table.ends, strict=True):
            query = f"SELECT 1 FROM {self._nodes_name(node_type)} WHERE id::VARCHAR = ? LIMIT 1"
            if self.database.row(query, [name]) is None:
                return
        raise InputError(
            format_location(table.path, 1),
            "a header line",
            f"two node ids, {shorten(table.ends[0])} and {shorten(table.ends[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, '
            "change them to that.",
        )

    def _refuse_other_id_type(
        self, edge_table: EdgeTable, node_type: str, *, are_integers: bool
    ) -> None:
        """Refuse ids of edges of another type than those of nodes; in text they have no types."""
        node_table = self.node_tables[node_type]
        ids_are_integers = self.read_nodes[node_type].ids_are_integers
        is_text = edge_table.source.is_text or node_table.source.is_text
        if is_text or are_integers == ids_are_integers:
            return
        id_types = {True: "integer ids", False: "text ids"}
        column = shorten(node_table.schema.id.column or "id")
        expected = f"{id_types[ids_are_integers]}, as in column {column} of {node_table.path}"
        remedy = (
            "Give the id columns of both one type (pandas: column.astype(str)). "
            "Are ids in another column? --id COLUMN (in Python: id=)."
        )
        raise InputError(str(edge_table.path), expected, id_types[are_integers], remedy)

    def _has_weights(self, relation: PreparedRelation) -> bool:
        # Edges to and from a row that is a node are one each, whatever its weight is.
        if relation.row_end is not None:
            return False
        return self.read_edges[relation.table_number].has_weights

    def _end_edges(self, relation: PreparedRelation) -> None:
        self._keep_edges(relation)
        self.database.execute("DROP TABLE pairs")


_END_COLUMNS = ("source", "target")
"""The columns of both ends of edges, in the database."""


def schema_of_tables(tables: Tables, node_schemas: Mapping[str, TableSchema]) -> Schema:
    """What all tables are, by what those of nodes were found to be.

    Tables of an earlier schema that were not read this time stay in the schema.
    """
    if tables.database_schema is not None:
        return _with_columns(tables.database_schema, node_schemas)
    earlier_schema = tables.choices.schema or Schema()
    described = {
        name: table for name, table in earlier_schema.tables.items() if table.role != "edges"
    }
    for node_type, table in node_schemas.items():
        described[node_type or "nodes"] = table
    for ends, edges in tables.edges.items():
        name = "edges"
        if ends is not None and ends[0]:
            name = ".".join(ends)
        while name in described:
            name += "_"
        described[name] = edges.schema
    for name, table in earlier_schema.tables.items():
        described.setdefault(name, table)
    return Schema(described, tables.type_columns)


def _with_columns(schema: Schema, node_schemas: Mapping[str, TableSchema]) -> Schema:
    """The schema of a database, with what the columns of nodes were taken for."""
    tables = dict(schema.tables)
    for name, table in tables.items():
        if not table.has_nodes or table.node_type not in node_schemas:
            continue
        # Names and times that are put together of several columns have names of their own.
        columns: dict[str, ColumnSchema] = {}
        for column, described in node_schemas[table.node_type].columns.items():
            if not column.startswith("node:"):
                columns[column] = described
        for key in table.keys:
            column = key.table if key.table in columns else "+".join(key.columns)
            if column not in columns or columns[column].role == "label":
                continue
            if schema.tables[key.table].role == "lookup":
                reason = f"the values of the lookup {key.table}"
                column_type = columns[column].column_type
                columns[column] = ColumnSchema("feature", column_type, reason=reason)

        # What the database decided of a column holds, unless the column was read as a label.
        labels = {column: about for column, about in columns.items() if about.role == "label"}
        tables[name] = replace(table, columns={**columns, **table.columns, **labels})
    return replace(schema, tables=tables)
