"""A graph with new nodes from tables, read by the stages of `prepare` with the known ids as further
nodes."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from infomax.arrays.checks import check_feature_names
from infomax.arrays.parquet_columns import IDS_PER_BLOCK, StoredRows
from infomax.arrays.relations import Relation
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import InputError, shorten
from infomax.io.building import relation_matrix
from infomax.io.growth import NewEdges, NewNodes, grow
from infomax.io.nodes import Nodes
from infomax.io.prepare.database import Database
from infomax.io.prepare.in_memory import InMemory, read_ids
from infomax.io.prepare.stages import Link
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.tables import Tables


def attach(tables: Tables, known: Record, *, matrix: Any = None) -> Record:
    """The known graph with the nodes of tables appended; the split "new" of each type marks them.

    A type without a node table has as new nodes the unknown ids of its edges. There are no labels
    and no other splits. ``matrix [M, F]`` are the features of the only node table, in place of its
    columns.
    """
    if known.groups is not None:
        remedy = "Embed new graphs whole, without attaching them."
        raise InputError(
            "the known graph", "one graph, to attach nodes to", "several (it has groups)", remedy
        )
    with closing(Database()) as database:
        return _Attachment(tables, database, known).grown(matrix)


class _Attachment(InMemory):
    """The stages of tables of new nodes. Ids are compared as text: those of the known graph may be
    of another type."""

    by_text = True

    def __init__(self, tables: Tables, database: Database, known: Record) -> None:
        super().__init__(tables, database, directed=False)
        self.known = known
        self.relations = {one.ends: one for one in known.relations}
        self.sizes = {node_type: nodes.num_nodes for node_type, nodes in known.nodes.items()}
        for node_type, table in self.nodes.items():
            _refuse_unknown(str(table.path), "type", node_type, known.types or ("",))
            if table.is_numbered and known.nodes[node_type].ids.dtype == object:
                expected = 'a column "id", as the known rows have ids that are no numbers'
                raise InputError(str(table.path), expected, "none")

    def grown(self, matrix: Any) -> Record:
        """The known graph with the new nodes, in memory where it is; the split "new" of each type
        marks them."""
        self._run()
        new = {
            node_type: self._new(node_type, matrix)
            for node_type in self.node_types
            if self.sizes[node_type] > self._known(node_type)
        }
        if not new:
            path = self.edges[0].path
            raise InputError(
                str(path.parent if self.has_several_types else path),
                "at least one new node",
                "none",
            )
        links, dropped = dict[Ends, NewEdges](), Counter[str]()
        for link in self.links:
            relation, edges = self._relation(link), self.joined[link.ends]
            sizes = (self.sizes[link.ends[0]], self.sizes[link.ends[2]])
            rows, left_out = relation_matrix(relation.ends, edges, sizes, relation.directed)
            links[relation.ends] = NewEdges(rows.tocoo(), binary=edges[1] is None)
            dropped.update(left_out)
        grown = grow(self.known, new, links)
        grown = grown if self.known.table.mapped else grown.loaded()

        def marked(node_type: str, nodes: Nodes) -> Nodes:
            return dataclasses.replace(
                nodes, splits={"new": np.arange(nodes.num_nodes) >= self._known(node_type)}
            )

        return grown.with_nodes(marked, dropped=dict(Counter(grown.dropped) + dropped))

    def _first_number(self, node_type: str) -> int:
        return int(self.known.nodes[node_type].ids[:].max()) + 1

    def _known(self, node_type: str) -> int:
        """How many nodes of a type are known."""
        return self.known.nodes[node_type].num_nodes

    def _relation(self, link: Link) -> Relation:
        """The known relation of some edges."""
        return self.relations[link.ends] if self.has_several_types else self.known.relations[0]

    def _find_relations(self) -> list[Link]:
        links = super()._find_relations()
        for link in links:
            edges = self.edges[link.table]
            if self.has_several_types:
                _refuse_unknown(
                    str(edges.path),
                    "relation",
                    ".".join(link.ends),
                    [*map(".".join, self.relations)],
                )
            if self._relation(link).edges.weighted and not self._weighted(link):
                known_column = None if edges.known is None else edges.known.weight.column
                column = shorten(known_column or "weight")
                expected = f"a column {column}, as edges of the known graph have weights"
                raise InputError(str(edges.path), expected, "none")
        return links

    def _overlap(self, at: int) -> bool:
        return False  # the known graph tells the types of nodes

    def _number_nodes(self, node_type: str) -> int:
        """The table of a type complete: the known nodes that are mentioned, and the new ones,
        numbered on from them."""
        database, table, own = self.database, self._table(node_type), self.known.nodes[node_type]
        self._find_known(node_type, table)
        if node_type in self.nodes:
            self._refuse_known(node_type, table)
            self._refuse_twice(node_type)
            new = f"SELECT node, number, id::VARCHAR AS id FROM {table}"
        else:
            new = "SELECT row_number() OVER (ORDER BY place) - 1 AS node, place AS number, first.id::VARCHAR AS id "
            new += "FROM first ANTI JOIN known ON known.id = first.id::VARCHAR"
            if not structural_features_named(own.feature_names):
                if not self.has_several_types and database.row(f"SELECT 1 FROM ({new}) LIMIT 1"):
                    expected = "a node table beside it, with the features of the new nodes"
                    raise InputError(str(self.edges[0].path), expected, "only the edge table")
                new += " WHERE false"  # an end that is not known is refused when it is joined
        database.execute(
            "CREATE TABLE joint AS SELECT node, -1 AS number, id FROM known "
            f"UNION ALL SELECT node + {own.num_nodes}, number, id FROM ({new})"
        )
        for name in (table, "first", "known"):
            database.execute(f"DROP TABLE IF EXISTS {name}")
        database.execute(f"ALTER TABLE joint RENAME TO {table}")
        (late,) = database.row(f"SELECT count(*) FROM {table} WHERE node >= {own.num_nodes}")
        self.sizes[node_type] += int(late)
        return self.sizes[node_type]

    def _find_known(self, node_type: str, table: str) -> None:
        """Table known: node and id of those known nodes that the tables mention, or the names of
        their columns."""
        ends = [
            (link, end)
            for link in self.links
            for end in (0, 1)
            if link.ends[2 * end] == node_type and link.row != end
        ]
        parts = [
            f"SELECT {('source', 'target')[end]}::VARCHAR AS id FROM ({link.query})"
            for link, end in ends
        ]
        parts += [f"SELECT id::VARCHAR AS id FROM {table}"] if node_type in self.nodes else []
        database = self.database
        database.execute(
            f"CREATE TABLE mentioned AS SELECT DISTINCT id FROM ({' UNION ALL '.join(parts)})"
        )
        names = [name for link, _ in ends for name in self.notes[f"edges {link.table}"]["ends"]]
        database.execute("INSERT INTO mentioned SELECT unnest(?::VARCHAR[])", [names])
        database.create(
            "known",
            _as_text(self.known.nodes[node_type].ids),
            condition="SEMI JOIN mentioned USING (id)",
        )
        database.execute("DROP TABLE mentioned")

    def _refuse_known(self, node_type: str, table: str) -> None:
        """Refuse a new node that is known."""
        query = f"SELECT one.number, known.node, known.id FROM {table} AS one JOIN known ON known.id = one.id::VARCHAR"
        if row := self.database.row(f"{query} ORDER BY one.number LIMIT 1"):
            found = f"{shorten(row[2])}, already row {row[1] + 1} of the known graph"
            remedy = "Remove the row. A graph that has changed as a whole is read by itself: infomax update."
            raise InputError(
                self.nodes[node_type].source.location(row[0]), "the id of a new node", found, remedy
            )

    def _listed(self, node_type: str) -> str:
        table = (
            self.nodes[node_type].path
            if node_type in self.nodes
            else f"a table nodes/{node_type}.* with features"
        )
        return f"of the known graph, or listed in {table}"

    def _new(self, node_type: str, matrix: Any) -> NewNodes:
        """The new nodes of a type."""
        table, own = self._table(node_type), self.known.nodes[node_type]
        integers = self._of_nodes(node_type)["integers"]
        ids = read_ids(self.database, f"{table} WHERE node >= {own.num_nodes}", integers=integers)
        found = self.columns[node_type].fields(matrix) if node_type in self.columns else {}
        features = found.get("features")
        if features is not None or not structural_features_named(own.feature_names):
            names = tuple(found.get("feature_names") or ())
            check_feature_names(str(self.nodes[node_type].path), names, own.feature_names)
        return NewNodes(ids.tolist(), features, found.get("node_names"), found.get("times"))


def _refuse_unknown(where: str, what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise InputError(where, f"a {what} of the known graph ({', '.join(known)})", "another")


def _as_text(ids: Any) -> Iterator[dict[str, Any]]:
    """Ids ``[N]``, in memory or stored, and their rows, some at a time."""
    import pyarrow as pa

    first = 0
    slices = (
        pa.array(ids[start : start + IDS_PER_BLOCK]) for start in range(0, len(ids), IDS_PER_BLOCK)
    )
    for part in ids.batches(IDS_PER_BLOCK) if isinstance(ids, StoredRows) else slices:
        rows = np.arange(first, first := first + len(part))
        yield {"node": rows, "id": part.cast(pa.large_string())}
