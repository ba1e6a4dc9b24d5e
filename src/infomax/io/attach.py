"""A graph with new nodes from tables.

The tables go through the stages of `prepare`; nodes of the known graph stand beside the new ones.
"""

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
from infomax.io.prepare.stages import PreparedRelation
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.tables import Tables


def attach(tables: Tables, known_graph: Record, *, matrix: Any = None) -> Record:
    """The known graph with the nodes of tables appended; the split "new" of each type marks them.

    A type without a node table has as new nodes the unknown ids of its edges. There are no labels
    and no other splits.

    Args:
        tables: the tables of new nodes, and of edges between them and known nodes.
        known_graph: the graph that grows.
        matrix: features ``[M, F]`` of the only node table, in place of its columns.
    """
    if known_graph.groups is not None:
        expected = "one graph, to attach nodes to"
        remedy = "Embed new graphs whole, without attaching them."
        raise InputError("the known graph", expected, "several (it has groups)", remedy)
    with closing(Database()) as database:
        return _Attachment(tables, database, known_graph).grown(matrix)


class _Attachment(InMemory):
    """The stages of tables of new nodes.

    Ids are compared as text: those of the known graph may be of another type. A node keeps the
    number that it has in the known graph, and new nodes are numbered on from there.
    """

    by_text = True

    def __init__(self, tables: Tables, database: Database, known_graph: Record) -> None:
        super().__init__(tables, database, directed=False)
        self.known_graph = known_graph
        self.known_relations = {relation.ends: relation for relation in known_graph.relations}
        for node_type, table in self.node_tables.items():
            known_types = known_graph.types or ("",)
            _refuse_unknown(str(table.path), "type", node_type, known_types)
            if table.is_numbered and known_graph.nodes[node_type].ids.dtype == object:
                expected = 'a column "id", as the known rows have ids that are no numbers'
                raise InputError(str(table.path), expected, "none")

    def grown(self, matrix: Any) -> Record:
        """The known graph with the new nodes, in memory where it is."""
        self._run()
        new_nodes = {
            node_type: self._new_nodes(node_type, matrix)
            for node_type in self.node_types
            if self.node_counts[node_type] > self._known_count(node_type)
        }
        if not new_nodes:
            path = self.edge_tables[0].path
            location = str(path.parent if self.has_several_types else path)
            raise InputError(location, "at least one new node", "none")

        # Types that no table mentions have as many nodes as they had.
        node_counts = {
            node_type: nodes.num_nodes for node_type, nodes in self.known_graph.nodes.items()
        }
        node_counts |= self.node_counts
        new_edges: dict[Ends, NewEdges] = {}
        dropped: Counter[str] = Counter()
        for prepared in self.relations:
            relation = self._known_relation(prepared)
            first_type, last_type = prepared.types
            edges = self.joined_edges[prepared.ends]
            matrix_of_edges, dropped_edges = relation_matrix(
                relation.ends,
                edges,
                (node_counts[first_type], node_counts[last_type]),
                relation.directed,
            )
            has_no_weights = edges[1] is None
            new_edges[relation.ends] = NewEdges(matrix_of_edges.tocoo(), binary=has_no_weights)
            dropped.update(dropped_edges)

        grown_graph = grow(self.known_graph, new_nodes, new_edges)
        if not self.known_graph.table.mapped:
            grown_graph = grown_graph.loaded()

        def with_new_marked(node_type: str, nodes: Nodes) -> Nodes:
            is_new = np.arange(nodes.num_nodes) >= self._known_count(node_type)
            return dataclasses.replace(nodes, splits={"new": is_new})

        all_dropped = dict(Counter(grown_graph.dropped) + dropped)
        return grown_graph.with_nodes(with_new_marked, dropped=all_dropped)

    def _known_count(self, node_type: str) -> int:
        """The number of nodes of a type in the known graph."""
        return self.known_graph.nodes[node_type].num_nodes

    def _known_relation(self, relation: PreparedRelation) -> Relation:
        """The relation of the known graph that a relation of the tables adds edges to."""
        if self.has_several_types:
            return self.known_relations[relation.ends]
        return self.known_graph.relations[0]

    def _new_nodes(self, node_type: str, matrix: Any) -> NewNodes:
        """The new nodes of a type."""
        known_nodes = self.known_graph.nodes[node_type]
        ids = read_ids(
            self.database,
            f"{self._nodes_name(node_type)} WHERE node >= {known_nodes.num_nodes}",
            are_integers=self.read_nodes[node_type].ids_are_integers,
        )
        fields: dict[str, Any] = {}
        if node_type in self.columns_of_type:
            fields = self.columns_of_type[node_type].fields(matrix)
        features = fields.get("features")
        # Structural features are made again of all edges, so new nodes need none.
        if features is not None or not structural_features_named(known_nodes.feature_names):
            feature_names = tuple(fields.get("feature_names") or ())
            location = str(self.node_tables[node_type].path)
            check_feature_names(location, feature_names, known_nodes.feature_names)
        return NewNodes(ids.tolist(), features, fields.get("node_names"), fields.get("times"))

    # Stages that differ from those of a graph by itself

    def _first_number(self, node_type: str) -> int:
        return int(self.known_graph.nodes[node_type].ids[:].max()) + 1

    def _find_relations(self) -> list[PreparedRelation]:
        relations = super()._find_relations()
        for prepared in relations:
            table = self.edge_tables[prepared.table_number]
            if self.has_several_types:
                known_names = [".".join(ends) for ends in self.known_relations]
                name = ".".join(prepared.ends)
                _refuse_unknown(str(table.path), "relation", name, known_names)
            is_weighted = self._known_relation(prepared).edges.weighted
            if is_weighted and not self._has_weights(prepared):
                column = "weight"
                if table.earlier_table is not None:
                    column = table.earlier_table.weight.column or column
                expected = f"a column {shorten(column)}, as edges of the known graph have weights"
                raise InputError(str(table.path), expected, "none")
        return relations

    def _has_ids_at_both_ends(self, table_number: int) -> bool:
        return False  # the known graph tells the types of nodes

    def _location_of_nodes(self, node_type: str) -> str:
        location = f"a table nodes/{node_type}.* with features"
        if node_type in self.node_tables:
            location = str(self.node_tables[node_type].path)
        return f"of the known graph, or listed in {location}"

    def _number_nodes(self, node_type: str) -> int:
        """Complete the table of a type: the known nodes that are mentioned, and the new ones.

        Returns the number of nodes of the type, known and new.
        """
        database = self.database
        nodes_name = self._nodes_name(node_type)
        known_nodes = self.known_graph.nodes[node_type]
        self._find_known(node_type)
        if node_type in self.node_tables:
            self._refuse_known(node_type)
            self._refuse_twice(node_type)
            new_nodes = f"SELECT node, number, id::VARCHAR AS id FROM {nodes_name}"
        else:
            new_nodes = (
                "SELECT row_number() OVER (ORDER BY position) - 1 AS node, "
                "position AS number, first.id::VARCHAR AS id "
                "FROM first ANTI JOIN known ON known.id = first.id::VARCHAR"
            )
            if not structural_features_named(known_nodes.feature_names):
                has_new_nodes = database.row(f"SELECT 1 FROM ({new_nodes}) LIMIT 1") is not None
                if has_new_nodes and not self.has_several_types:
                    expected = "a node table beside it, with the features of the new nodes"
                    path = str(self.edge_tables[0].path)
                    raise InputError(path, expected, "only the edge table")
                new_nodes += " WHERE false"  # an unknown end is refused when it is joined
        database.execute(
            "CREATE TABLE joint AS SELECT node, -1 AS number, id FROM known UNION ALL "
            f"SELECT node + {known_nodes.num_nodes}, number, id FROM ({new_nodes})"
        )
        for name in (nodes_name, "first", "known"):
            database.execute(f"DROP TABLE IF EXISTS {name}")
        database.execute(f"ALTER TABLE joint RENAME TO {nodes_name}")
        (new_count,) = database.row(
            f"SELECT count(*) FROM {nodes_name} WHERE node >= {known_nodes.num_nodes}"
        )
        return known_nodes.num_nodes + int(new_count)

    def _find_known(self, node_type: str) -> None:
        """Make table known: node and id of the known nodes that the tables mention.

        Names of columns count as mentioned, since they may be ids in place of a header.
        """
        queries: list[str] = []
        column_names: list[str] = []
        for relation, end in self._ends_of_type(node_type):
            if relation.row_end == end:
                continue
            column = ("source", "target")[end]
            queries.append(f"SELECT {column}::VARCHAR AS id FROM ({relation.query})")
            column_names += self.edge_tables[relation.table_number].ends
        if node_type in self.node_tables:
            queries.append(f"SELECT id::VARCHAR AS id FROM {self._nodes_name(node_type)}")
        self.database.execute(
            f"CREATE TABLE mentioned AS SELECT DISTINCT id FROM ({' UNION ALL '.join(queries)})"
        )
        self.database.execute("INSERT INTO mentioned SELECT unnest(?::VARCHAR[])", [column_names])
        self.database.create(
            "known",
            _numbered_texts(self.known_graph.nodes[node_type].ids),
            condition="SEMI JOIN mentioned USING (id)",
        )
        self.database.execute("DROP TABLE mentioned")

    def _refuse_known(self, node_type: str) -> None:
        """Refuse a row of a node table whose id is that of a known node."""
        row = self.database.row(
            f"SELECT new.number, known.node, known.id FROM {self._nodes_name(node_type)} AS new "
            "JOIN known ON known.id = new.id::VARCHAR ORDER BY new.number LIMIT 1"
        )
        if row is None:
            return
        number, known_row, identifier = row
        location = self.node_tables[node_type].source.location(number)
        found = f"{shorten(identifier)}, already row {known_row + 1} of the known graph"
        remedy = (
            "Remove the row. A graph that has changed as a whole is read by itself: infomax update."
        )
        raise InputError(location, "the id of a new node", found, remedy)


def _refuse_unknown(location: str, noun: str, name: str, known_names: Sequence[str]) -> None:
    """Refuse a type or a relation that the known graph does not have."""
    if name not in known_names:
        expected = f"a {noun} of the known graph ({', '.join(known_names)})"
        raise InputError(location, expected, "another")


def _numbered_texts(ids: Any) -> Iterator[dict[str, Any]]:
    """Ids ``[N]``, in memory or stored, as text, with their rows; in blocks."""
    import pyarrow as pa

    def blocks() -> Iterator[Any]:
        if isinstance(ids, StoredRows):
            yield from ids.batches(IDS_PER_BLOCK)
            return
        for start in range(0, len(ids), IDS_PER_BLOCK):
            yield pa.array(ids[start : start + IDS_PER_BLOCK])

    start = 0
    for block in blocks():
        rows = np.arange(start, start + len(block))
        start += len(block)
        yield {"node": rows, "id": block.cast(pa.large_string())}
