"""From tables to a graph in stages: read, number and join, each of them once.

A graph of one type of nodes is one of several types that has one type and one relation, both
without a name.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from infomax.arrays import folder_layout as layout
from infomax.errors import InputError, format_location, shorten
from infomax.io.encoding.cells import MISSING
from infomax.io.past import no_rows_until, no_times
from infomax.io.prepare.database import Database
from infomax.io.prepare.relations import around_rows, id_unknown, relation_queries
from infomax.io.schema.schema import ColumnSchema, Ends, Schema, TableSchema
from infomax.io.sources import FILE, NotNumbersError, are_integers
from infomax.io.tables import EdgeTable, NodeRows, Tables, warn_missing
from infomax.progress import Progress, silent

LARGEST = 1 << 31
"""There are fewer nodes than this."""
NEVER = int(np.iinfo(np.int64).max)
LATER = -1
"""The node that a row is which is not there yet, as of the day that was asked for."""


_WORD_OF_SIDE = re.compile(
    "[a-z]|source|target|src|dst|dest|destination|origin|from|to|head|tail|start|end|begin|first|second|one|two|left|right"
    "|parent|child|in|out|sender|receiver|recipient|follower|followee|followed|citing|cited|caller|callee|subject|object"
    "|other|friend|neighbou?r"
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


class Link(NamedTuple):
    """A relation that is prepared."""

    ends: Ends
    table: int
    """The number of its edge table."""
    query: str
    """Its edges: number, source, target and, where they have weights, weight."""
    row: int | None = None
    """The end that is the row of the table itself, where rows are nodes."""


class Stages(ABC):
    """What the tables of a graph go through, up to the numbers of the nodes that edges join.

    A subclass keeps what comes out, in memory or on disk.
    """

    by_text = False
    """Whether ids are compared by their text, even if all are integers."""

    def __init__(self, tables: Tables, database: Database, *, directed: bool) -> None:
        self.tables = tables
        self.choices = tables.choices
        self.nodes = tables.nodes
        self.edges = [*tables.edges.values()]
        self.directed = directed
        self.database = database
        self.has_several_types = None in tables.edges or any(
            ends and ends[0] for ends in tables.edges
        )
        self.progress: Progress = silent
        self.notes: dict[str, Any] = {}
        self.node_types = [*self.nodes]
        self.links: list[Link] = []

    @abstractmethod
    def _keeper(self, node_type: str) -> AbstractContextManager[Callable[[NodeRows], list[Any]]]:
        """What is called with all rows of a node table; it returns the columns ``[n]`` that the
        database is to keep."""

    @abstractmethod
    def _keep_edges(self, link: Link) -> Any:
        """Keep the edges of a relation, table pairs; returns a note."""

    def _run(self) -> None:
        """Do all stages but those that a subclass adds."""
        for at in range(len(self.edges)):
            self._do("edges", at, "reading edges", partial(self._read_edges, at))
        for node_type in self.nodes:
            self._read_nodes(node_type)
        links = self._do("relations", "", "finding relations", self._find_relations)
        self.links = [Link(tuple(ends), *rest) for ends, *rest in links]
        found = {node_type for link in self.links for node_type in link.ends[::2]}
        self.node_types = [*self.nodes, *sorted(found - self.nodes.keys())]
        for node_type in self.node_types:
            if node_type not in self.nodes:
                self._do("first", node_type, "finding ids", partial(self._find_ids, node_type))
            self._do("numbers", node_type, "checking ids", partial(self._number_nodes, node_type))
        for at, link in enumerate(self.links):
            self._do(
                "sources", at, "joining sources", partial(self._join, link, 0, "edges", "half")
            )
            self._do(
                "targets", at, "joining targets", partial(self._join, link, 1, "half", "pairs")
            )
            self._do("rows", at, "sorting edges", partial(self._end_edges, link))

    def _do(self, stage: str, of: object, title: str, work: Callable[[], Any]) -> Any:
        """Do a stage, of a type, a table or a relation; returns its note."""
        total = (
            len(self.edges)
            + len(self.nodes)
            + 3 * max(1, len(self.links))
            + 2 * max(1, len(self.node_types))
            + 3
        )
        self.progress(len(self.notes), title, max(total, len(self.notes) + 1))
        note = self.notes[f"{stage} {of}"] = self.database.stage(work)
        return note

    def _table(self, node_type: str) -> str:
        """The table of the nodes of a type: node, number, id, and labels, splits, names and times
        as l0, l1, ..."""
        return f"nodes{self.node_types.index(node_type)}"

    def _of_nodes(self, node_type: str) -> dict[str, Any]:
        """What is noted of the node table of a type, or of the ids of its edges."""
        note = self.notes[f"{'nodes' if node_type in self.nodes else 'first'} {node_type}"]
        return {
            "labels": [],
            "splits": [],
            "names": [],
            "times": [],
            "features": [],
            "encoding": None,
            **note,
        }

    def _read_edges(self, table_number: int) -> dict[str, Any]:
        """Table edges0, edges1, ...: number, source, target and, where edges have them, weight and
        relation."""
        table = f"edges{table_number}"
        edges = self.edges[table_number]
        count = self.database.create(table, edges.rows(), str(edges.path))
        if not count:
            if not self.nodes:
                remedy = "A graph without edges needs a node table."
                expected = "at least one edge below the header"
                raise InputError(str(edges.path), expected, "none", remedy)
            self.database.execute(
                f"CREATE OR REPLACE TABLE {table} (number BIGINT, source BIGINT, target BIGINT)"
            )
        return {
            "count": count,
            "weighted": count > 0 and edges.is_weighted,
            "integers": edges.are_integers,
            "ends": edges.ends,
            "named": count > 0 and edges.schema.relation.column is not None,
        }

    def _read_nodes(self, node_type: str) -> None:
        """The table of a type, see `_table`; where features are no numbers, what they become is
        learnt first."""
        work = partial(self._copy_nodes, node_type)
        try:
            self._do("nodes", node_type, "reading nodes", work)
        except NotNumbersError:
            if not self.nodes[node_type].learn():
                raise
            self._do("nodes", node_type, "reading nodes", work)

    def _copy_nodes(self, node_type: str) -> dict[str, Any]:
        nodes = self.nodes[node_type]
        integers = True
        first_time = NEVER
        with self._keeper(node_type) as keep:

            def batches() -> Iterator[dict[str, Any]]:
                nonlocal integers, first_time
                next_id = self._first_number(node_type) if nodes.is_numbered else 0
                count = 0
                for rows in nodes.rows():
                    columns = {f"l{number}": cells for number, cells in enumerate(keep(rows))}
                    if rows.times is not None:
                        first_time = int(rows.times.min(initial=first_time))
                    # Nodes are numbered without the rows that are not there yet.
                    is_early = rows.is_early
                    node = np.where(is_early, count + np.cumsum(is_early) - 1, LATER)
                    count += int(np.count_nonzero(is_early))
                    ids = rows.ids
                    if nodes.is_numbered:
                        ids = np.arange(next_id, next_id + len(node))
                        next_id += len(node)
                    else:
                        integers = integers and are_integers(ids, is_text=nodes.source.is_text)
                    yield {"node": node, "number": rows.numbers, "id": ids, **columns}

            if not self.database.create(self._table(node_type), batches(), str(nodes.path)):
                expected = "at least one node below the header"
                raise InputError(str(nodes.path), expected, "none")
        if not self._count(node_type):
            is_database = self.tables.database_schema is not None
            raise no_rows_until(
                node_type,
                self.choices.as_of,
                first_time,
                may_leave_out=is_database and not self.choices.learnt_types,
            )
        nodes.warn()
        return {
            "integers": integers,
            "features": nodes.feature_names if nodes.feature_columns else [],
            "labels": list(nodes.labels),
            "splits": list(nodes.splits),
            "names": [] if nodes.schema.name.column is None else [layout.NAME],
            "times": [] if nodes.schema.time is None else [layout.TIME],
            "encoding": None if nodes.encoding is None else nodes.encoding.to_json(),
        }

    def _first_number(self, node_type: str) -> int:
        """The id of the first row of a table whose ids are the numbers of its rows."""
        return 1

    def schema(self) -> Schema:
        """What the tables are, once they have been read."""
        nodes = {node_type: table.described() for node_type, table in self.nodes.items()}
        return schema_of_tables(self.tables, nodes)

    def _find_relations(self) -> list[Link]:
        """The edges of each relation; those of a table of several are told apart."""
        if self.choices.as_of is not None and not any(
            self._of_nodes(node_type)["times"] for node_type in self.nodes
        ):
            raise no_times()
        links: list[Link] = []
        for table_number, (ends, edges) in enumerate(self.tables.edges.items()):
            note = self.notes[f"edges {table_number}"]
            if edges.row_type and self.choices.as_of is not None:
                later = f"SELECT number FROM {self._table(edges.row_type)} WHERE node = {LATER}"
                self.database.execute(f"DELETE FROM edges{table_number} WHERE number IN ({later})")
            has_one_type = not (ends and ends[0]) and not self.tables.type_columns.ends
            if has_one_type and not self.tables.types_with_tables:
                self._refuse_two_types(table_number)
            table = f"edges{table_number}"
            if ends is None:
                queries = relation_queries(self.database, self.tables, table, edges, note)
            else:
                queries = {ends: f"FROM {table}"}
            for relation, query in queries.items():
                if not edges.row_type:
                    links.append(Link(relation, table_number, f"SELECT * {query}"))
                    continue
                # A row that is a node has an edge from the node where it begins, and one to that
                # where it ends.
                to_rows, from_rows = around_rows(self.tables, relation, alone=len(queries) == 1)
                to_query = f"SELECT number, source, number AS target {query}"
                from_query = f"SELECT number, number AS source, target {query}"
                links.append(Link(to_rows, table_number, to_query, 1))
                links.append(Link(from_rows, table_number, from_query, 0))
        if self.directed and all(link.ends[0] != link.ends[2] for link in links):
            expected = "a relation within one type of nodes"
            found = "relations between two types, whose edges run both ways"
            raise InputError("directed", expected, found, "Leave out --directed.")
        return links

    def _overlap(self, table_number: int) -> bool:
        """Whether an id is at both ends of edges of a table."""
        table = f"edges{table_number}"
        query = f"SELECT 1 FROM {table} AS one SEMI JOIN {table} AS two ON one.source = two.target LIMIT 1"
        return self.database.row(query) is not None

    def _find_ids(self, node_type: str) -> dict[str, Any]:
        """Of a type without a node table: table first, where each id of its edges appears first."""
        ends = [
            (link, end) for link in self.links for end in (0, 1) if link.ends[2 * end] == node_type
        ]
        # The files of all tables are numbered one after the other.
        before = np.cumsum([0, *(len(edges.source.files) for edges in self.edges)]).tolist()
        parts = " UNION ALL ".join(
            f"SELECT {('source', 'target')[end]} AS id, 2 * number + {2 * FILE * before[link.table] + end} AS place "
            f"FROM ({link.query})"
            for link, end in ends
        )
        self.database.execute(
            f"CREATE TABLE first AS SELECT id, min(place) AS place FROM ({parts}) GROUP BY id"
        )
        # As Python writes it: 007 and +1 are text.
        exact = "SELECT bool_and(coalesce(try_cast(id AS BIGINT)::VARCHAR = id::VARCHAR, false)) FROM first"
        integers = all(
            self.edges[link.table].source.is_text or self._integers(link, end) for link, end in ends
        )
        integers = integers and bool(self.database.row(exact)[0])
        if not integers:
            nothing = "SELECT id::VARCHAR FROM first WHERE list_contains(?, id::VARCHAR)"
            found = self.database.rows(nothing, [list(MISSING)])
            path = self.edges[ends[0][0].table].path
            warn_missing(
                str(path), [word for (word,) in found], "a node called", "remove its edges"
            )
        return {"integers": integers}

    def _integers(self, link: Link, end: int) -> bool:
        """Whether the ids at an end of a relation are integers."""
        return link.row == end or bool(self.notes[f"edges {link.table}"]["integers"][end])

    def _number_nodes(self, node_type: str) -> int:
        """The table of a type complete, each id once; the number of its nodes."""
        table, source = self._table(node_type), self.nodes.get(node_type)
        if source is None:
            self.database.create(table, self._in_order())
            self.database.execute("DROP TABLE first")
        else:
            self._refuse_twice(node_type)
        count = self._count(node_type)
        if count >= LARGEST:
            raise InputError(
                str((source or self.edges[0]).path), f"fewer than {LARGEST:,} nodes", f"{count:,}"
            )
        return count

    def _count(self, node_type: str) -> int:
        """The number of nodes of a type in its table."""
        return int(
            self.database.row(f"SELECT count(*) FROM {self._table(node_type)} WHERE node >= 0")[0]
        )

    def _refuse_twice(self, node_type: str) -> None:
        """Refuse an id that two rows of the node table of a type have."""
        table = self._table(node_type)
        twice = f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1"
        self.database.execute(f"CREATE TEMP TABLE twice AS {twice}")
        rows = self.database.rows(
            f"SELECT id, number FROM {table} SEMI JOIN twice USING (id) ORDER BY number"
        )
        self.database.execute("DROP TABLE twice")
        if not rows:
            return

        # The first row whose id is in a row before it.
        nodes = self.nodes[node_type]
        number_of_id: dict[Any, int] = {}
        for identifier, number in rows:
            if identifier not in number_of_id:
                number_of_id[identifier] = number
                continue
            file = nodes.source.files[number // FILE]
            first = nodes.source.location(number_of_id[identifier]).removeprefix(f"{file}, ")
            remedy = "Remove one of the rows."
            if not nodes.is_id_named:
                remedy += (
                    " Are ids in another column? --id COLUMN (in Python: id=)."
                    " Is it the edge table? Edges come first."
                )
            location = nodes.source.location(number, nodes.schema.id.column or "")
            found = f"{shorten(identifier)}, already in {first}"
            raise InputError(location, "each id once", found, remedy)

    def _listed(self, node_type: str) -> str:
        """Where the ids of a type are listed, in a message."""
        return (
            f"listed in {self.nodes[node_type].path}" if node_type in self.nodes else "of an edge"
        )

    def _in_order(self) -> Iterator[dict[str, Any]]:
        """The ids of the edges in the order in which they appear first."""
        count = 0
        for batch in self.database.stream("SELECT id FROM first ORDER BY place"):
            at = np.arange(count, count := count + len(batch))
            yield {"node": at, "number": at, "id": batch["id"]}

    def _join(self, link: Link, end: int, before: str, after: str) -> None:
        """A table of edges with the numbers of nodes at one end in place of their ids."""
        database, edges = self.database, self.edges[link.table]
        column, node_type = ("source", "target")[end], link.ends[2 * end]
        names = self.notes[f"edges {link.table}"]["ends"]
        if end == 0:
            self._check_ids(link, edges, names)
        # Ids are compared as integers where all of both tables are; else by their text.
        key, integers = "number" if link.row == end else "id", self._of_nodes(node_type)["integers"]
        integers = integers and self._integers(link, end) and not self.by_text
        as_type = "BIGINT" if link.row == end or integers else "VARCHAR"
        ends = "node AS source, target" if end == 0 else "source, node AS target"
        query = link.query if end == 0 else f"SELECT * FROM {before}"
        database.execute(
            f"CREATE TABLE {after} AS SELECT one.number, {ends}{', weight' if self._weighted(link) else ''} "
            f"FROM ({query}) AS one LEFT JOIN "
            f"(SELECT node, {key}::{as_type} AS id FROM {self._table(node_type)}) AS listed "
            f"ON listed.id = one.{column}::{as_type}"
        )
        lost = database.row(
            f"SELECT number, {column}::VARCHAR FROM ({query}) SEMI JOIN "
            f"(SELECT number FROM {after} WHERE {column} IS NULL) AS lost USING (number) ORDER BY number LIMIT 1"
        )
        if lost is not None:
            raise id_unknown(edges, names[end], lost[1], lost[0], self._listed(node_type))
        if self.choices.as_of is not None:
            database.execute(f"DELETE FROM {after} WHERE {column} = {LATER}")
        if end == 1:
            database.execute("DROP TABLE half")
        elif link is [one for one in self.links if one.table == link.table][-1]:
            database.execute(f"DROP TABLE edges{link.table}")

    def _check_ids(self, link: Link, edges: EdgeTable, names: list[str]) -> None:
        """Refuse ids of edges of another type than those of nodes, and two of them in place of a
        header."""
        has_rows = self.notes[f"edges {link.table}"]["count"]
        for end, node_type in enumerate(link.ends[::2]):
            if node_type in self.nodes and link.row != end and has_rows:
                self._refuse_other_id_type(edges, node_type, are_integers=self._integers(link, end))

        # Names of columns that are nodes are an edge that would be lost.
        if not edges.source.is_text or edges.are_ends_named:
            return
        for end, name in enumerate(names):
            query = f"SELECT 1 FROM {self._table(link.ends[2 * end])} WHERE id::VARCHAR = ? LIMIT 1"
            if self.database.row(query, [name]) is None:
                return
        raise InputError(
            format_location(edges.path, 1),
            "a header line",
            f"two node ids, {shorten(names[0])} and {shorten(names[1])}",
            'Add a first line "source,target"; if these two are the names of the columns, '
            "change them to that.",
        )

    def _refuse_other_id_type(
        self, edges: EdgeTable, node_type: str, *, are_integers: bool
    ) -> None:
        """Refuse ids of edges of another type than those of nodes; in text they have no types."""
        nodes = self.nodes[node_type]
        of_nodes = self._of_nodes(node_type)["integers"]
        if edges.source.is_text or nodes.source.is_text or are_integers == of_nodes:
            return
        id_types = {True: "integer ids", False: "text ids"}
        column = shorten(nodes.schema.id.column or "id")
        expected = f"{id_types[of_nodes]}, as in column {column} of {nodes.path}"
        remedy = (
            "Give the id columns of both one type (pandas: column.astype(str)). "
            "Are ids in another column? --id COLUMN (in Python: id=)."
        )
        raise InputError(str(edges.path), expected, id_types[are_integers], remedy)

    def _refuse_two_types(self, table_number: int) -> None:
        """Refuse ends of edges that may be two types of nodes, as their columns are called, and
        have ids in common.

        Nothing is refused where the columns were named, or have usual names, or differ in words
        such as from and to.
        """
        edges = self.edges[table_number]
        names = edges.ends
        if edges.are_ends_named:
            return
        words: list[set[str]] = []
        for name in names:
            spaced = re.sub("(?<=[a-z])(?=[A-Z])", " ", name).lower()
            words.append(set(re.split("[^a-z]+", spaced)) - _WORDS_OF_NO_TYPE)
        differing_words = words[0] ^ words[1]
        if all(_WORD_OF_SIDE.fullmatch(word) for word in differing_words):
            return
        if not self._overlap(table_number):
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
        raise InputError(str(edges.path), expected, found, remedy)

    def _weighted(self, link: Link) -> bool:
        return link.row is None and bool(self.notes[f"edges {link.table}"]["weighted"])

    def _end_edges(self, link: Link) -> Any:
        note = self._keep_edges(link)
        self.database.execute("DROP TABLE pairs")
        return note


def schema_of_tables(tables: Tables, nodes: Mapping[str, TableSchema]) -> Schema:
    """What all tables are, by what those of nodes were found to be; tables that were known go on
    being known."""
    if tables.database_schema is not None:
        return _with_columns(tables.database_schema, nodes)
    known = tables.choices.schema or Schema()
    described = {name: table for name, table in known.tables.items() if table.role != "edges"}
    for node_type, table in nodes.items():
        described[node_type or "nodes"] = table
    for ends, edges in tables.edges.items():
        name = "edges"
        if ends is not None and ends[0]:
            name = ".".join(ends)
        while name in described:
            name += "_"
        described[name] = edges.schema
    for name, table in known.tables.items():
        described.setdefault(name, table)
    return Schema(described, tables.type_columns)


def _with_columns(schema: Schema, nodes: Mapping[str, TableSchema]) -> Schema:
    """The schema of a database, with what the columns of nodes were taken for."""
    tables = dict(schema.tables)
    for name, table in tables.items():
        if not table.has_nodes or table.node_type not in nodes:
            continue
        # Names and times that are put together of several columns have names of their own.
        columns = {
            column: described
            for column, described in nodes[table.node_type].columns.items()
            if not column.startswith("node:")
        }
        for key in table.keys:
            column = key.table if key.table in columns else "+".join(key.columns)
            if column not in columns or columns[column].role == "label":
                continue
            if schema.tables[key.table].role == "lookup":
                reason = f"the values of the lookup {key.table}"
                column_type = columns[column].column_type
                columns[column] = ColumnSchema("feature", column_type, reason=reason)
        labels = {column: about for column, about in columns.items() if about.role == "label"}
        tables[name] = replace(table, columns={**columns, **table.columns, **labels})
    return replace(schema, tables=tables)
