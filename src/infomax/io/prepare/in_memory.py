"""The graph of tables, in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.errors import InputError, within
from infomax.io.building import WeightedEdges, from_edges
from infomax.io.features import check_rows, matrix_names, read_features
from infomax.io.prepare.database import Database
from infomax.io.prepare.stages import PreparedRelation, Stages
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.sources import number_groups, numpy_of
from infomax.io.tables import NodeRows, NodeTable, Tables


def read_tables(tables: Tables, *, directed: bool, matrix: Any = None) -> Record:
    """The graph of tables.

    Args:
        tables: the tables.
        directed: keep the arrows.
        matrix: features ``[N, F]`` of the only node table, in place of its columns.
    """
    with closing(Database()) as database:
        return InMemory(tables, database, directed=directed).graph(matrix)


def read_node_table(table: NodeTable) -> dict[str, Any]:
    """What `Nodes.of` takes of a node table by itself, with each id once."""
    with closing(Database()) as database:
        tables = Tables({"": table}, {}, table.choices)
        return InMemory(tables, database, directed=False).nodes_alone()


class NodeColumns:
    """The columns and the features of nodes in memory, collected block by block."""

    def __init__(self) -> None:
        self.blocks: list[NodeRows] = []

    def add(self, rows: NodeRows) -> list[Any]:
        """Keep some rows; the database keeps nothing but their ids, see `Stages._keeper`."""
        features = None if rows.features is None else pack(rows.features)
        self.blocks.append(replace(rows.early(), ids=None, features=features))
        return []

    def fields(self, matrix: Any) -> dict[str, Any]:
        """What `Nodes.of` takes of the nodes, besides their ids.

        Args:
            matrix: features ``[N, F]`` in place of columns; None: there is no matrix.
        """
        first_block = self.blocks[0]
        features, feature_names = self._features(matrix)

        # All blocks have the columns that the first one has.
        labels: dict[str, NDArray[Any]] = {}
        for name in first_block.labels:
            labels[name] = np.concatenate([block.labels[name] for block in self.blocks])
        splits: dict[str, NDArray[np.bool_]] = {}
        for name in first_block.splits:
            splits[name] = np.concatenate([block.splits[name] for block in self.blocks])
        groups = None
        if first_block.groups is not None:
            groups = number_groups([name for block in self.blocks for name in block.groups])
        node_names = None
        if first_block.names is not None:
            node_names = np.concatenate([block.names for block in self.blocks])
        times = None
        if first_block.times is not None:
            times = np.concatenate([block.times for block in self.blocks])
        return {
            "features": features,
            "feature_names": feature_names,
            "labels": labels,
            "splits": splits,
            "groups": groups,
            "node_names": node_names,
            "times": times,
            "encoding": None if features is None else first_block.table.encoding,
        }

    def _features(self, matrix: Any) -> tuple[Any, list[str] | None]:
        """The features of the nodes and their names; None and None where nodes have none."""
        first_block = self.blocks[0]
        table = first_block.table
        is_early = np.concatenate([block.is_early for block in self.blocks])
        if matrix is not None:
            check_rows(Path("features"), matrix, len(is_early))
            names = matrix_names(matrix.shape[1])
            return matrix if is_early.all() else matrix[is_early], names
        if table.feature_file is not None and table.structural_features is None:
            names, features = read_features(
                table.feature_file, len(is_early), table.wanted_features
            )
            return features if is_early.all() else features[is_early], names
        if first_block.features is not None:
            return stack([block.features for block in self.blocks]), table.feature_names
        return None, None


class InMemory(Stages):
    """The stages that end in arrays.

    Attributes:
        columns_of_type: the columns of each node table.
        joined_edges: the edges of each relation, as the numbers of nodes.
    """

    def __init__(self, tables: Tables, database: Database, *, directed: bool) -> None:
        super().__init__(tables, database, directed=directed)
        self.columns_of_type: dict[str, NodeColumns] = {}
        self.joined_edges: dict[Ends, WeightedEdges] = {}

    def graph(self, matrix: Any) -> Record:
        """The graph; ``matrix [N, F]`` are the features of the only node table, if any."""
        self._run()
        fields_of_type = {
            node_type: self._fields(node_type, matrix) for node_type in self.node_types
        }
        directed: Collection[Ends] = self.tables.directed
        if self.directed:
            directed = list(self.joined_edges)
        edge_table = self.edge_tables[0]
        with nullcontext() if self.has_several_types else within(edge_table.path):
            graph = from_edges(
                fields_of_type,
                self.joined_edges,
                directed=directed,
                structural_features=self.choices.structural_features,
            )
        # Columns of ends that were found by their places are remembered for later edge tables.
        edge_columns = None
        if not self.has_several_types and not edge_table.are_ends_named:
            edge_columns = edge_table.ends
        return replace(graph, edge_columns=edge_columns, schema=self.schema())

    def nodes_alone(self) -> dict[str, Any]:
        """What `Nodes.of` takes of the nodes of the only type, without edges."""
        self._read_nodes("")
        self._number_checked_nodes("")
        return self._fields("", None)

    def _keeper(self, node_type: str) -> nullcontext[Callable[[NodeRows], list[Any]]]:
        self.columns_of_type[node_type] = NodeColumns()
        return nullcontext(self.columns_of_type[node_type].add)

    def _keep_edges(self, relation: PreparedRelation) -> None:
        has_weights = self._has_weights(relation)
        self.joined_edges[relation.ends] = self._pairs(has_weights=has_weights)

    def _pairs(self, *, has_weights: bool) -> WeightedEdges:
        """The edges of table pairs ``[2, E]``, and their weights ``[E]`` or None."""
        query = "SELECT source, target FROM pairs"
        if has_weights:
            # Sums of weights are rounded in the order of the edges.
            query = "SELECT source, target, weight FROM pairs ORDER BY number"
        batches = list(self.database.stream(query))
        ends = np.empty((2, 0), np.int64)
        if batches:
            sources = np.concatenate([numpy_of(batch["source"], np.int64) for batch in batches])
            targets = np.concatenate([numpy_of(batch["target"], np.int64) for batch in batches])
            ends = np.stack([sources, targets])
        if not has_weights:
            return ends, None
        weights = [numpy_of(batch["weight"], np.float32) for batch in batches]
        return ends, np.concatenate([np.empty(0, np.float32), *weights])

    def _fields(self, node_type: str, matrix: Any) -> dict[str, Any]:
        """What `infomax.io.building.from_edges` takes of a type."""
        ids = read_ids(
            self.database,
            f"{self._nodes_name(node_type)} WHERE node >= 0",
            are_integers=self.read_nodes[node_type].ids_are_integers,
        )
        if node_type not in self.columns_of_type:
            return {"ids": ids}
        fields = self.columns_of_type[node_type].fields(matrix)
        if self.has_several_types and fields["groups"] is not None:
            location = str(self.node_tables[node_type].path)
            expected = "one graph, where there are several types"
            raise InputError(location, expected, "a column of graphs")
        return {"ids": ids, **fields}


def read_ids(database: Database, table: str, *, are_integers: bool) -> NDArray[Any]:
    """The ids ``[N]`` of a table of nodes, in order; a condition may follow its name."""
    query = f"SELECT id FROM {table} ORDER BY node"
    columns = [batch["id"] for batch in database.stream(query)]
    if are_integers:
        return np.concatenate([numpy_of(column.cast("int64"), np.int64) for column in columns])
    texts: list[str] = []
    for column in columns:
        texts += column.cast("large_string").to_pylist()
    return np.array(texts, dtype=object)
