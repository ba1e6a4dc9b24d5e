"""From tables to a graph in stages: read, number and join, each of them once.

A graph of one type of nodes is one of several types that has one type and one relation, both without a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from infomax.arrays import folder as layout
from infomax.errors import InputError
from infomax.io.blocks import FILE, NotNumbersError, are_integers
from infomax.io.building import Ends
from infomax.io.encoding.cells import MISSING
from infomax.io.learning import warn_missing
from infomax.io.prepare.database import Database
from infomax.io.prepare.relations import divided
from infomax.io.refusals import (
    id_unknown,
    no_nodes,
    no_rows_until,
    no_times,
    refuse_missing_header,
    refuse_other_type,
    refuse_twice,
    refuse_two_kinds,
)
from infomax.io.schema.resolved import edge_table, node_table, resolved
from infomax.io.schema.schema import Schema
from infomax.io.schema.schema_file import table_from_json, table_to_json
from infomax.io.sources import NodeTable, Source
from infomax.io.typed import Tables, refuse_between
from infomax.progress import Progress, silent

LARGEST = 1 << 31
"""There are fewer nodes than this."""
NEVER = int(np.iinfo(np.int64).max)
LATER = -1
"""The node that a row is which is not there yet, as of the day that was asked for."""


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
        self.tables, self.columns, self.nodes = tables, tables.columns, tables.nodes
        self.edges = [*tables.edges.values()]
        self.directed, self.database = directed, database
        self.several = None in tables.edges or any(ends and ends[0] for ends in tables.edges)
        self.progress: Progress = silent
        self.notes: dict[str, Any] = {}
        self.kinds = [*self.nodes]
        self.links: list[Link] = []

    @abstractmethod
    def _keeper(self, node_type: str) -> AbstractContextManager[Callable[[NodeTable], list[Any]]]:
        """What is called with all rows of a node table; it returns the columns ``[n]`` that the database is to keep."""

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
        self.kinds = [*self.nodes, *sorted(found - self.nodes.keys())]
        for node_type in self.kinds:
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
            + 2 * max(1, len(self.kinds))
            + 3
        )
        self.progress(len(self.notes), title, max(total, len(self.notes) + 1))
        note = self.notes[f"{stage} {of}"] = self.database.stage(work)
        return note

    def _table(self, node_type: str) -> str:
        """The table of the nodes of a type: node, number, id, and labels, splits, names and times as l0, l1, ..."""
        return f"nodes{self.kinds.index(node_type)}"

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

    def _read_edges(self, at: int) -> dict[str, Any]:
        """Table edges0, edges1, ...: number, source, target and, where edges have them, weight and relation."""
        table = f"edges{at}"
        source = self.edges[at]
        count = self.database.create(table, source.edges(), str(source.path))
        source.columns.warn_unused(source.path, source.names)
        if not count:
            if not self.nodes:
                remedy = "A graph without edges needs a node table."
                raise InputError(
                    str(source.path), "at least one edge below the header", "none", remedy
                )
            self.database.execute(
                f"CREATE OR REPLACE TABLE {table} (number BIGINT, source BIGINT, target BIGINT)"
            )
        named = count > 0 and source.columns.edge_type is not None
        weighted = count > 0 and source.weighted
        integers = source.integers
        return {
            "count": count,
            "weighted": weighted,
            "integers": integers,
            "ends": source.ends,
            "named": named,
            "table": table_to_json(edge_table(source, [*self.tables.edges][at])),
        }

    def _read_nodes(self, node_type: str) -> None:
        """The table of a type, see `_table`; where features are no numbers, what they become is learnt first."""
        for again in (False, True):
            try:
                self._do("nodes", node_type, "reading nodes", partial(self._copy_nodes, node_type))
                return
            except NotNumbersError:
                if again or not self.nodes[node_type].learn():
                    raise

    def _copy_nodes(self, node_type: str) -> dict[str, Any]:
        source = self.nodes[node_type]
        integers = True
        first = NEVER
        with self._keeper(node_type) as keep:

            def batches() -> Iterator[dict[str, Any]]:
                nonlocal integers, first
                read = 0
                count = 0
                numbered = source.columns.numbered
                for rows in source.nodes():
                    cells = {f"l{column}": cells for column, cells in enumerate(keep(rows))}
                    if rows.times is not None:
                        first = int(rows.times.min(initial=first))
                    at = np.where(rows.there, count + np.cumsum(rows.there) - 1, LATER)
                    count += int(np.count_nonzero(rows.there))
                    ids = (
                        np.arange(read, read := read + len(at)) + source.first_id
                        if numbered
                        else rows.ids
                    )
                    integers = integers and (numbered or are_integers(rows.ids, lines=source.lines))
                    yield {"node": at, "number": rows.numbers, "id": ids, **cells}

            if not self.database.create(self._table(node_type), batches(), str(source.path)):
                raise no_nodes(source)
        if not self._count(node_type):
            may_leave_out = self.tables.schema is not None and not self.columns.of_types
            raise no_rows_until(node_type, self.columns.as_of, first, may_leave_out=may_leave_out)
        source.warn_of_nodes()
        chosen = source.chosen
        encoding = source.columns.encoding
        return {
            "id": chosen.identifier,
            "integers": integers,
            "features": source.feature_names if chosen.features else [],
            "labels": list(chosen.labels),
            "splits": list(chosen.splits),
            "names": [] if chosen.name is None else [layout.NAME],
            "times": [] if chosen.time is None else [layout.TIME],
            "table": table_to_json(node_table(source, node_type)),
            "encoding": encoding and encoding.to_json(),
        }

    def schema(self) -> Schema:
        """What the tables are, once they have been read."""
        nodes = {kind: table_from_json(self._of_nodes(kind)["table"]) for kind in self.nodes}
        edges = [
            table_from_json(self.notes[f"edges {number}"]["table"])
            for number in range(len(self.edges))
        ]
        return resolved(self.tables, nodes, edges)

    def _find_relations(self) -> list[Link]:
        """The edges of each relation; those of a table of several are told apart."""
        found = []
        if self.columns.as_of is not None and not any(
            self._of_nodes(node_type)["times"] for node_type in self.nodes
        ):
            raise no_times()
        for at, (ends, source) in enumerate(self.tables.edges.items()):
            note = self.notes[f"edges {at}"]
            if source.columns.edges_as and self.columns.as_of is not None:
                later = f"SELECT number FROM {self._table(source.columns.edges_as)} WHERE node = {LATER}"
                self.database.execute(f"DELETE FROM edges{at} WHERE number IN ({later})")
            if (
                not self.tables.types_with_tables
                and not (ends and ends[0])
                and not self.columns.types
            ):
                refuse_two_kinds(source, note["ends"], partial(self._overlap, at))
            if ends is None:
                parts = divided(self.database, self.tables, f"edges{at}", source, note)
            else:
                parts = {ends: f"FROM edges{at}"}
            for of_part, query in parts.items():
                if source.columns.edges_as:
                    both = self.tables.around_rows(of_part, alone=len(parts) == 1)
                    found += [
                        Link(both[0], at, f"SELECT number, source, number AS target {query}", 1)
                    ]
                    found += [
                        Link(both[1], at, f"SELECT number, number AS source, target {query}", 0)
                    ]
                else:
                    found.append(Link(of_part, at, f"SELECT * {query}"))
        if self.directed:
            refuse_between(link.ends for link in found)
        return found

    def _overlap(self, at: int) -> bool:
        """Whether an id is at both ends of edges of a table."""
        query = f"SELECT 1 FROM edges{at} AS one SEMI JOIN edges{at} AS two ON one.source = two.target LIMIT 1"
        return self.database.row(query) is not None

    def _find_ids(self, node_type: str) -> dict[str, Any]:
        """Of a type without a node table: table first, where each id of its edges appears first."""
        ends = [
            (link, end) for link in self.links for end in (0, 1) if link.ends[2 * end] == node_type
        ]
        # The files of all tables are numbered one after the other.
        before = np.cumsum([0, *(len(source.files) for source in self.edges)]).tolist()
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
            self.edges[link.table].lines or self._integers(link, end) for link, end in ends
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
        refuse_twice(self.nodes[node_type], self._of_nodes(node_type)["id"], rows)

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
        if self.columns.as_of is not None:
            database.execute(f"DELETE FROM {after} WHERE {column} = {LATER}")
        if end == 1:
            database.execute("DROP TABLE half")
        elif link is [one for one in self.links if one.table == link.table][-1]:
            database.execute(f"DROP TABLE edges{link.table}")

    def _check_ids(self, link: Link, edges: Source, names: list[str]) -> None:
        """Refuse ids of edges of another type than those of nodes, and two of them in place of a header."""
        for end, node_type in enumerate(link.ends[::2]):
            if (
                node_type in self.nodes
                and link.row != end
                and self.notes[f"edges {link.table}"]["count"]
            ):
                of_edges, of_nodes = (
                    self._integers(link, end),
                    self._of_nodes(node_type)["integers"],
                )
                refuse_other_type(
                    edges, self.nodes[node_type], of_edges=of_edges, of_nodes=of_nodes
                )

        def is_node(end: int, name: str) -> bool:
            query = f"SELECT 1 FROM {self._table(link.ends[2 * end])} WHERE id::VARCHAR = ? LIMIT 1"
            return self.database.row(query, [name]) is not None

        refuse_missing_header(edges, names, is_node)

    def _weighted(self, link: Link) -> bool:
        return link.row is None and bool(self.notes[f"edges {link.table}"]["weighted"])

    def _end_edges(self, link: Link) -> Any:
        note = self._keep_edges(link)
        self.database.execute("DROP TABLE pairs")
        return note
