"""From tables to a graph in stages: read, number and join, each of them once.

A graph of one type of nodes is one of several types that has one type and one relation, both without a name.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from infomax.errors import InputError
from infomax.io.blocks import NotNumbersError
from infomax.io.encoding.cells import MISSING
from infomax.io.learning import ColumnsError, read_all
from infomax.io.prepare.checks import is_node, refuse_twice, refuse_unknown
from infomax.io.prepare.database import Database
from infomax.io.prepare.reading import NodeKeeper, read_edges, read_nodes
from infomax.io.prepare.relations import divided
from infomax.io.refusals import listed_in, refuse_missing_header, refuse_other_type, refuse_two_kinds, warn_nameless
from infomax.io.sources import FILE, Source
from infomax.io.typed import Tables, refuse_between
from infomax.io.unite import Ends
from infomax.progress import Progress

LARGEST = 1 << 31
"""There are fewer nodes than this."""


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
        self.notes: dict[str, Any] = {}
        self.kinds = [*self.nodes]
        self.links: list[Link] = []

    @abstractmethod
    def _keeper(self, kind: str) -> NodeKeeper:
        """What keeps the columns and the features of the nodes of a type while they are read."""

    @abstractmethod
    def _keep_edges(self, link: Link) -> Any:
        """Keep the edges of a relation, table pairs; returns a note."""

    def _run(self, progress: Progress) -> None:
        """Do all stages that are not done yet."""
        self.progress = progress
        for at in range(len(self.edges)):
            read = partial(read_edges, self.database, f"edges{at}", self.edges[at], alone=not self.nodes)
            self._do("edges", at, "reading edges", read)
        read_all({kind: partial(self._do_nodes, kind) for kind in self.nodes})
        links = self._do("relations", "", "finding relations", self._find_relations)
        self.links = [Link(tuple(ends), *rest) for ends, *rest in links]
        found = {kind for link in self.links for kind in link.ends[::2]}
        self.kinds = [*self.nodes, *sorted(found - self.nodes.keys())]
        for kind in self.kinds:
            if kind not in self.nodes:
                self._do("first", kind, "finding ids", partial(self._find_ids, kind))
            self._do("numbers", kind, "checking ids", partial(self._number_nodes, kind))
        for at, link in enumerate(self.links):
            self._do("sources", at, "joining sources", partial(self._join, link, 0, "edges", "half"))
            self._do("targets", at, "joining targets", partial(self._join, link, 1, "half", "pairs"))
            self._do("rows", at, "sorting edges", partial(self._end_edges, link))

    def _do(self, stage: str, of: object, title: str, work: Callable[[], Any]) -> Any:
        """Do a stage, of a type, a table or a relation, unless it is done; returns its note."""
        total = len(self.edges) + len(self.nodes) + 3 * max(1, len(self.links)) + 2 * max(1, len(self.kinds)) + 3
        self.progress(len(self.notes), title, max(total, len(self.notes) + 1))
        name = f"{stage} {of}"
        self.notes[name] = json.loads(self.database.stage(name, lambda: json.dumps(work())))
        return self.notes[name]

    def _table(self, kind: str) -> str:
        """The table of the nodes of a type: node, number, id, and labels, splits, names and times as l0, l1, ..."""
        return f"nodes{self.kinds.index(kind)}"

    def _of_nodes(self, kind: str) -> dict[str, Any]:
        """What is noted of the node table of a type, or of the ids of its edges."""
        note = self.notes[f"{'nodes' if kind in self.nodes else 'first'} {kind}"]
        return {"labels": [], "splits": [], "names": [], "times": [], "features": [], "encoding": None, **note}

    def _do_nodes(self, kind: str) -> None:
        try:
            self._do("nodes", kind, "reading nodes", partial(self._read_nodes, kind))
        except ColumnsError:
            self.database.roll_back()  # so that the next table can be read, for its faults
            raise

    def _read_nodes(self, kind: str) -> dict[str, Any]:
        """The table of a type, see `_table`; where features are no numbers, what they become is learnt first."""
        database, table, source = self.database, self._table(kind), self.nodes[kind]
        try:
            return read_nodes(database, table, source, self._keeper(kind))
        except NotNumbersError:
            if not source.learn():
                raise
        database.roll_back()
        database.begin()
        return read_nodes(database, table, source, self._keeper(kind))

    def _find_relations(self) -> list[Link]:
        """The edges of each relation; those of a table of several are told apart."""
        found = []
        for at, (ends, source) in enumerate(self.tables.edges.items()):
            note = self.notes[f"edges {at}"]
            if not self.tables.listed and not (ends and ends[0]) and not self.columns.types:
                refuse_two_kinds(source, note["ends"], partial(self._overlap, at))
            if ends is None:
                parts = divided(self.database, self.tables, f"edges{at}", source, note)
            else:
                parts = {ends: f"FROM edges{at}"}
            for of_part, query in parts.items():
                if source.columns.edges_as:
                    both = self.tables.around_rows(of_part, alone=len(parts) == 1)
                    found += [Link(both[0], at, f"SELECT number, source, number AS target {query}", 1)]
                    found += [Link(both[1], at, f"SELECT number, number AS source, target {query}", 0)]
                else:
                    found.append(Link(of_part, at, f"SELECT * {query}"))
        if self.directed:
            refuse_between(link.ends for link in found)
        return found

    def _overlap(self, at: int) -> bool:
        """Whether an id is at both ends of edges of a table."""
        query = f"SELECT 1 FROM edges{at} AS one SEMI JOIN edges{at} AS two ON one.source = two.target LIMIT 1"  # noqa: S608
        return self.database.row(query) is not None

    def _find_ids(self, kind: str) -> dict[str, Any]:
        """Of a type without a node table: table first, where each id of its edges appears first."""
        ends = [(link, end) for link in self.links for end in (0, 1) if link.ends[2 * end] == kind]
        # The files of all tables are numbered one after the other.
        before = np.cumsum([0, *(len(source.files) for source in self.edges)]).tolist()
        parts = " UNION ALL ".join(
            f"SELECT {('source', 'target')[end]} AS id, 2 * number + {2 * FILE * before[link.table] + end} AS place "  # noqa: S608  our own names
            f"FROM ({link.query})"
            for link, end in ends
        )
        self.database.execute(f"CREATE TABLE first AS SELECT id, min(place) AS place FROM ({parts}) GROUP BY id")  # noqa: S608
        # As Python writes it: 007 and +1 are text.
        exact = "SELECT bool_and(coalesce(try_cast(id AS BIGINT)::VARCHAR = id::VARCHAR, false)) FROM first"
        integers = all(self.edges[link.table].lines or self._integers(link, end) for link, end in ends)
        integers = integers and bool(self.database.row(exact)[0])
        if not integers:
            nothing = "SELECT id::VARCHAR FROM first WHERE list_contains(?, id::VARCHAR)"
            found = self.database.rows(nothing, [list(MISSING)])
            warn_nameless(self.edges[ends[0][0].table], [word for (word,) in found])
        return {"integers": integers}

    def _integers(self, link: Link, end: int) -> bool:
        """Whether the ids at an end of a relation are integers."""
        return link.row == end or bool(self.notes[f"edges {link.table}"]["integers"][end])

    def _number_nodes(self, kind: str) -> int:
        """The table of a type complete, each id once; the number of its nodes."""
        table, source = self._table(kind), self.nodes.get(kind)
        if source is None:
            self.database.create(table, self._in_order())
            self.database.execute("DROP TABLE first")
        else:
            refuse_twice(self.database, table, source, self._of_nodes(kind)["id"])
        count = int(self.database.row(f"SELECT count(*) FROM {table}")[0])  # noqa: S608  our own names
        if count >= LARGEST:
            raise InputError(str((source or self.edges[0]).path), f"fewer than {LARGEST:,} nodes", f"{count:,}")
        return count

    def _listed(self, kind: str) -> str:
        """Where the ids of a type are listed, in a message."""
        if kind not in self.nodes:
            return ""
        first = self.database.row(f"SELECT id FROM {self._table(kind)} ORDER BY number LIMIT 1")[0]  # noqa: S608
        return listed_in(self.nodes[kind], integers=self._of_nodes(kind)["integers"], first=first)

    def _candidates(self, kind: str) -> Iterable[Any]:
        """The ids that nodes of a type have, as text."""
        known = self.database.execute(f"SELECT id::VARCHAR FROM {self._table(kind)} ORDER BY node")  # noqa: S608
        return (found for some in iter(lambda: known.fetchmany(10_000), []) for (found,) in some)

    def _in_order(self) -> Iterator[dict[str, Any]]:
        """The ids of the edges in the order in which they appear first."""
        count = 0
        for batch in self.database.stream("SELECT id FROM first ORDER BY place"):
            at = np.arange(count, count := count + len(batch))
            yield {"node": at, "number": at, "id": batch["id"]}

    def _join(self, link: Link, end: int, before: str, after: str) -> None:
        """A table of edges with the numbers of nodes at one end in place of their ids."""
        database, edges = self.database, self.edges[link.table]
        column, kind = ("source", "target")[end], link.ends[2 * end]
        names = self.notes[f"edges {link.table}"]["ends"]
        if end == 0:
            self._check_ids(link, edges, names)
        # Ids are compared as integers where all of both tables are; else by their text.
        key, integers = "number" if link.row == end else "id", self._of_nodes(kind)["integers"]
        integers = integers and self._integers(link, end) and not self.by_text
        as_type = "BIGINT" if link.row == end or integers else "VARCHAR"
        ends = "node AS source, target" if end == 0 else "source, node AS target"
        query = link.query if end == 0 else f"SELECT * FROM {before}"  # noqa: S608
        database.execute(
            f"CREATE TABLE {after} AS SELECT one.number, {ends}{', weight' if self._weighted(link) else ''} "  # noqa: S608
            f"FROM ({query}) AS one LEFT JOIN (SELECT node, {key}::{as_type} AS id FROM {self._table(kind)}) AS listed "
            f"ON listed.id = one.{column}::{as_type}"
        )
        if end == 0:
            # The unknown sources are told with the targets, whichever comes first: the ids are kept till then.
            database.execute(
                f"CREATE TABLE strangers AS SELECT number, source::VARCHAR AS id FROM ({link.query}) "  # noqa: S608
                "SEMI JOIN (SELECT number FROM half WHERE source IS NULL) AS lost USING (number)"
            )
            if link is [one for one in self.links if one.table == link.table][-1]:
                database.execute(f"DROP TABLE edges{link.table}")
        else:
            kinds = link.ends[::2]
            listed, known = (lambda end: self._listed(kinds[end])), (lambda end: self._candidates(kinds[end]))
            refuse_unknown(database, edges, names, listed, known)
            for table in ("half", "strangers"):
                database.execute(f"DROP TABLE {table}")

    def _check_ids(self, link: Link, edges: Source, names: list[str]) -> None:
        """Refuse ids of edges of another type than those of nodes, and two of them in place of a header."""
        for end, kind in enumerate(link.ends[::2]):
            if kind in self.nodes and self.notes[f"edges {link.table}"]["count"]:
                of_edges, of_nodes = self._integers(link, end), self._of_nodes(kind)["integers"]
                if link.row != end:
                    refuse_other_type(edges, self.nodes[kind], of_edges=of_edges, of_nodes=of_nodes)
        tables = [self._table(kind) for kind in link.ends[::2]]
        refuse_missing_header(edges, names, lambda end, name: is_node(self.database, tables[end], name))

    def _weighted(self, link: Link) -> bool:
        return link.row is None and bool(self.notes[f"edges {link.table}"]["weighted"])

    def _end_edges(self, link: Link) -> Any:
        note = self._keep_edges(link)
        self.database.execute("DROP TABLE pairs")
        return note
