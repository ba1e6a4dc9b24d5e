"""The graph of tables, in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.errors import InputError, within
from infomax.io.building import WeightedEdges, from_edges
from infomax.io.features import check_rows, matrix_names, read_features
from infomax.io.prepare.database import Database
from infomax.io.prepare.stages import Link, Stages
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.sources import number_groups, numpy_of
from infomax.io.tables import NodeRows, NodeTable, Tables


def read_tables(tables: Tables, *, directed: bool, matrix: Any = None) -> Record:
    """The graph of tables; ``matrix [N, F]`` are the features of the only node table, in place of
    its columns."""
    with closing(Database()) as database:
        return InMemory(tables, database, directed=directed).graph(matrix)


def read_node_table(table: NodeTable) -> dict[str, Any]:
    """What `Nodes.of` takes of a node table by itself, each id once."""
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
        """What `Nodes.of` takes of the nodes; they have the features ``matrix [N, F]``, if any."""
        first = self.blocks[0]
        table = first.table
        is_early = np.concatenate([block.is_early for block in self.blocks])
        count = len(is_early)

        names: list[str] = []
        features: Any = None
        if matrix is not None:
            check_rows(Path("features"), matrix, count)
            names = matrix_names(matrix.shape[1])
            features = matrix if is_early.all() else matrix[is_early]
        elif table.feature_file is not None and table.structural_features is None:
            names, features = read_features(table.feature_file, count, table.wanted_features)
            features = features if is_early.all() else features[is_early]
        elif first.features is not None:
            names = table.feature_names
            features = stack([block.features for block in self.blocks])

        groups = None
        if first.groups is not None:
            groups = number_groups([name for block in self.blocks for name in block.groups])
        fields: dict[str, Any] = {
            "features": features,
            "feature_names": None if features is None else names,
            "labels": {
                name: np.concatenate([block.labels[name] for block in self.blocks])
                for name in first.labels
            },
            "splits": {
                name: np.concatenate([block.splits[name] for block in self.blocks])
                for name in first.splits
            },
            "groups": groups,
            "node_names": None,
            "times": None,
            "encoding": None if features is None else table.encoding,
        }
        if first.names is not None:
            fields["node_names"] = np.concatenate([block.names for block in self.blocks])
        if first.times is not None:
            fields["times"] = np.concatenate([block.times for block in self.blocks])
        return fields


class InMemory(Stages):
    """The stages that end in arrays."""

    def __init__(self, tables: Tables, database: Database, *, directed: bool) -> None:
        super().__init__(tables, database, directed=directed)
        self.columns: dict[str, NodeColumns] = {}
        self.joined: dict[Ends, WeightedEdges] = {}

    def graph(self, matrix: Any) -> Record:
        """The graph."""
        self._run()
        fields = {node_type: self._fields(node_type, matrix) for node_type in self.node_types}
        directed: Collection[Ends] = self.tables.directed
        if self.directed:
            directed = list(self.joined)
        edges = self.edges[0]
        with nullcontext() if self.has_several_types else within(edges.path):
            graph = from_edges(
                fields,
                self.joined,
                directed=directed,
                structural_features=self.choices.structural_features,
            )
        ends = None
        if not self.has_several_types and not edges.are_ends_named:
            ends = edges.ends
        return replace(graph, edge_columns=ends, schema=self.schema())

    def nodes_alone(self) -> dict[str, Any]:
        """What `graph` takes of the nodes of the only type."""
        self._read_nodes("")
        self._do("numbers", "", "checking ids", partial(self._number_nodes, ""))
        return self._fields("", None)

    def _keeper(self, node_type: str) -> nullcontext[Callable[[NodeRows], list[Any]]]:
        self.columns[node_type] = NodeColumns()
        return nullcontext(self.columns[node_type].add)

    def _keep_edges(self, link: Link) -> None:
        self.joined[link.ends] = self._pairs(weighted=self._weighted(link))

    def _pairs(self, *, weighted: bool) -> WeightedEdges:
        """The edges of table pairs; those with weights in order, by which their sums are
        rounded."""
        query = "SELECT source, target FROM pairs"
        if weighted:
            query = "SELECT source, target, weight FROM pairs ORDER BY number"
        batches = list(self.database.stream(query))
        rows = np.empty((2, 0), np.int64)
        if batches:
            ends = [
                np.concatenate([numpy_of(batch[end], np.int64) for batch in batches])
                for end in ("source", "target")
            ]
            rows = np.stack(ends)
        if not weighted:
            return rows, None
        weights = [numpy_of(batch["weight"], np.float32) for batch in batches]
        return rows, np.concatenate([np.empty(0, np.float32), *weights])

    def _fields(self, node_type: str, matrix: Any) -> dict[str, Any]:
        """What `infomax.io.building.from_edges` takes of a type."""
        ids = read_ids(
            self.database,
            f"{self._table(node_type)} WHERE node >= 0",
            integers=self._of_nodes(node_type)["integers"],
        )
        columns = self.columns.get(node_type)
        fields = {} if columns is None else columns.fields(matrix)
        if self.has_several_types and fields.get("groups") is not None:
            location = str(self.nodes[node_type].path)
            expected = "one graph, where there are several types"
            raise InputError(location, expected, "a column of graphs")
        return {"ids": ids, **fields}


def read_ids(database: Database, table: str, *, integers: bool) -> NDArray[Any]:
    """The ids ``[N]`` of a table of nodes, in order; a condition may follow its name."""
    batches = [one["id"] for one in database.stream(f"SELECT id FROM {table} ORDER BY node")]
    if integers:
        return np.concatenate([numpy_of(one.cast("int64"), np.int64) for one in batches])
    return np.array(
        [word for one in batches for word in one.cast("large_string").to_pylist()], dtype=object
    )
