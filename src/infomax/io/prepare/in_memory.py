"""The graph of tables, in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.sparsity import pack, stack
from infomax.errors import InputError, within
from infomax.io.blocks import number_groups, numpy_of
from infomax.io.building import Ends, WeightedEdges, from_edges
from infomax.io.features import check_rows, matrix_names, read_features
from infomax.io.prepare.database import Database
from infomax.io.prepare.stages import Link, Stages
from infomax.io.record import Record
from infomax.io.sources import NodeTable, Source
from infomax.io.typed import Tables


def read_tables(tables: Tables, *, directed: bool, matrix: Any = None) -> Record:
    """The graph of tables; ``matrix [N, F]`` are the features of the only node table, in place of its columns."""
    with closing(Database()) as database:
        return InMemory(tables, database, directed=directed).graph(matrix)


def read_node_table(source: Source) -> dict[str, Any]:
    """What `Nodes.of` takes of a node table by itself, each id once."""
    with closing(Database()) as database:
        return InMemory(
            Tables({"": source}, {}, source.columns), database, directed=False
        ).nodes_alone()


class NodeLists:
    """Keeps the columns and the features of nodes in memory."""

    def __init__(self) -> None:
        self.blocks: list[NodeTable] = []

    def add(self, rows: NodeTable) -> list[Any]:
        """See `Stages._keeper`."""
        features = None if rows.features is None else pack(rows.features)
        self.blocks.append(replace(rows.cut(), ids=None, features=features))
        return []

    def fields(self, matrix: Any) -> dict[str, Any]:
        """What `Nodes.of` takes of the nodes; they have the features ``matrix [N, F]``, if any."""
        first = self.blocks[0]
        there = np.concatenate([one.there for one in self.blocks])
        source = first.source
        count = len(there)
        names, features = list[str](), None
        if matrix is not None:
            check_rows(Path("features"), matrix, count)
            names = matrix_names(matrix.shape[1])
            features = matrix if there.all() else matrix[there]
        elif source.columns.matrix is not None and source.columns.structural_features is None:
            names, features = read_features(source.columns.matrix, count, source.columns.features)
            features = features if there.all() else features[there]
        elif first.features is not None:
            names, features = source.feature_names, stack([one.features for one in self.blocks])
        groups = (
            [] if first.groups is None else [name for one in self.blocks for name in one.groups]
        )
        return {
            "features": features,
            "feature_names": None if features is None else names,
            "labels": {
                name: np.concatenate([one.labels[name] for one in self.blocks])
                for name in first.labels
            },
            "splits": {
                name: np.concatenate([one.splits[name] for one in self.blocks])
                for name in first.splits
            },
            "groups": None if first.groups is None else number_groups(groups),
            "node_names": None
            if first.names is None
            else np.concatenate([one.names for one in self.blocks]),
            "times": None
            if first.times is None
            else np.concatenate([one.times for one in self.blocks]),
            "encoding": None if features is None else source.columns.encoding,
        }


class InMemory(Stages):
    """The stages that end in arrays."""

    def __init__(self, tables: Tables, database: Database, *, directed: bool) -> None:
        super().__init__(tables, database, directed=directed)
        self.lists: dict[str, NodeLists] = {}
        self.joined: dict[Ends, WeightedEdges] = {}

    def graph(self, matrix: Any) -> Record:
        """The graph."""
        self._run()
        fields = {node_type: self._fields(node_type, matrix) for node_type in self.kinds}
        directed = list(self.joined) if self.directed else self.tables.directed
        edges = self.edges[0]
        with nullcontext() if self.several else within(edges.path):
            graph = from_edges(
                fields,
                self.joined,
                directed=directed,
                structural_features=self.columns.structural_features,
            )
        ends = None
        if not self.several and not edges.columns.names_ends(edges.ends):
            ends = edges.ends
        return replace(graph, edge_columns=ends, schema=self.schema())

    def nodes_alone(self) -> dict[str, Any]:
        """What `graph` takes of the nodes of the only type."""
        self._read_nodes("")
        self._do("numbers", "", "checking ids", partial(self._number_nodes, ""))
        return self._fields("", None)

    def _keeper(self, node_type: str) -> nullcontext[Callable[[NodeTable], list[Any]]]:
        self.lists[node_type] = NodeLists()
        return nullcontext(self.lists[node_type].add)

    def _keep_edges(self, link: Link) -> None:
        self.joined[link.ends] = self._pairs(weighted=self._weighted(link))

    def _pairs(self, *, weighted: bool) -> WeightedEdges:
        """The edges of table pairs; those with weights in order, by which their sums are rounded."""
        cells = (
            "source, target, weight FROM pairs ORDER BY number"
            if weighted
            else "source, target FROM pairs"
        )
        batches = list(self.database.stream(f"SELECT {cells}"))
        ends = [[numpy_of(one[end], np.int64) for one in batches] for end in ("source", "target")]
        rows = (
            np.stack([np.concatenate(end) for end in ends])
            if batches
            else np.empty((2, 0), np.int64)
        )
        weights = [numpy_of(one["weight"], np.float32) for one in batches] if weighted else []
        return rows, np.concatenate([np.empty(0, np.float32), *weights]) if weighted else None

    def _fields(self, node_type: str, matrix: Any) -> dict[str, Any]:
        """What `infomax.io.building.from_edges` takes of a type."""
        ids = read_ids(
            self.database,
            f"{self._table(node_type)} WHERE node >= 0",
            integers=self._of_nodes(node_type)["integers"],
        )
        rows = self.lists.get(node_type)
        found = {} if rows is None else rows.fields(matrix)
        if self.several and found.get("groups") is not None:
            where = str(self.nodes[node_type].path)
            raise InputError(
                where, "one graph, where there are several types", "a column of graphs"
            )
        return {"ids": ids, **found}


def read_ids(database: Database, table: str, *, integers: bool) -> NDArray[Any]:
    """The ids ``[N]`` of a table of nodes, in order; a condition may follow its name."""
    batches = [one["id"] for one in database.stream(f"SELECT id FROM {table} ORDER BY node")]
    if integers:
        return np.concatenate([numpy_of(one.cast("int64"), np.int64) for one in batches])
    return np.array(
        [word for one in batches for word in one.cast("large_string").to_pylist()], dtype=object
    )
