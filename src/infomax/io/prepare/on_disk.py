"""A graph folder of tables that need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from infomax.arrays import folder_layout as layout
from infomax.arrays.adjacency import MappedAdjacency
from infomax.errors import InputError, format_location
from infomax.io.array_files import FeatureWriter
from infomax.io.graph_folder import finish, finish_types
from infomax.io.prepare.database import Database
from infomax.io.prepare.stages import PreparedRelation, Stages
from infomax.io.prepare.writing import (
    StructuralFeaturesOnDisk,
    WrittenRelation,
    copy_features,
    open_senders,
    write_entries,
    write_nodes,
    write_relation,
)
from infomax.io.schema.schema_file import to_json as schema_to_json
from infomax.io.tables import NodeRows, Tables
from infomax.progress import Progress

GRAPH = "graph"
"""The folder among the work files that becomes the graph folder."""


class Preparation(Stages):
    """The stages that end in a graph folder.

    Attributes:
        folder: the graph folder, among the work files.
        half: whether features are stored in half precision.
        written_relations: what was written of each relation, in the order of `relations`.
        feature_names: the names of the features of each type, once they are written.
    """

    def __init__(self, work: Path, tables: Tables, directed: bool, half: bool, memory: int) -> None:
        self.folder = work / GRAPH
        self.folder.mkdir()
        self.half = half
        self.written_relations: list[WrittenRelation] = []
        self.feature_names: dict[str, list[str]] = {}
        super().__init__(tables, Database(work, memory), directed=directed)

    def run(self, progress: Progress) -> None:
        """Do all stages."""
        self.progress = progress
        try:
            self._run()
            for node_type in self.node_types:
                self._do("writing ids and labels", partial(self._write_nodes, node_type))
            self.feature_names = self._do("writing features", self._write_features)
            progress(self.stages_done, "hashing", self.stages_done + 1)
        finally:
            self.database.close()
        for node_type in self.node_types:
            finish(self._type_folder(node_type), self._graph_json(node_type))
        if self.has_several_types:
            relation_ends = [relation.ends for relation in self.relations]
            finish_types(self.folder, self.node_types, relation_ends)

    def _type_folder(self, node_type: str) -> Path:
        """The folder of a type, which is made if there is none."""
        type_folder = self.folder / "nodes" / node_type if self.has_several_types else self.folder
        type_folder.mkdir(parents=True, exist_ok=True)
        return type_folder

    @contextmanager
    def _keeper(self, node_type: str) -> Iterator[Callable[[NodeRows], list[Any]]]:
        """Write features to their file; the database keeps labels, splits, names and times."""
        path = str(self.node_tables[node_type].path)
        with FeatureWriter(self._type_folder(node_type), path, halved=self.half) as writer:

            def keep(rows: NodeRows) -> list[Any]:
                _refuse_unstorable(rows)
                if rows.features is not None:
                    writer.append(rows.features)
                # `write_nodes` relies on this order.
                columns = [*rows.labels.values(), *rows.splits.values()]
                if rows.names is not None:
                    columns.append(rows.names)
                if rows.times is not None:
                    columns.append(rows.times)
                return columns

            yield keep

    def _keep_edges(self, relation: PreparedRelation) -> None:
        """Write the files of a relation: its rows are the nodes that send to a node."""
        first_type, last_type = relation.types
        is_directed = self.directed or relation.ends in self.tables.directed
        written = write_relation(
            self.database,
            self.folder,
            relation.ends,
            (self.node_counts[first_type], self.node_counts[last_type]),
            has_weights=self._has_weights(relation),
            both_ways=relation.within_one_type and not is_directed,
        )
        self.written_relations.append(written)

    def _graph_json(self, node_type: str) -> dict[str, Any]:
        """What graph.json says of the nodes of a type, and of the edges where there is one."""
        read_nodes = self.read_nodes[node_type]
        edge_table = self.edge_tables[0]
        edge_count = 0
        is_weighted = False
        edge_columns = None
        if not self.has_several_types:
            only_relation = self.written_relations[0]
            edge_count = only_relation.entry_count
            if not self.directed:
                edge_count //= 2  # each edge is an entry in both directions
            is_weighted = only_relation.is_weighted
            if not edge_table.are_ends_named:
                edge_columns = edge_table.ends
        plain = {
            "nodes": self.node_counts[node_type],
            "edges": edge_count,
            "directed": self.directed and not self.has_several_types,
            "weighted": is_weighted,
            "feature_names": self.feature_names[node_type],
            "labels": read_nodes.label_names,
            "splits": read_nodes.split_names,
            "dropped": {
                "self_loops": sum(written.self_loops for written in self.written_relations),
                "duplicates": sum(written.duplicates for written in self.written_relations),
                "zero_weights": sum(written.zero_weights for written in self.written_relations),
            },
            "edge_columns": edge_columns,
            "schema": schema_to_json(self.schema()),
        }
        if read_nodes.encoding:
            plain["encoding"] = read_nodes.encoding
        return plain

    def _write_nodes(self, node_type: str) -> None:
        """Write nodes.parquet of a type and, of several, that it has no edges by itself."""
        type_folder = self._type_folder(node_type)
        if self.has_several_types:
            write_entries(type_folder, self.node_counts[node_type], ())
        write_nodes(
            self.database,
            self._nodes_name(node_type),
            type_folder / layout.NODES,
            self.read_nodes[node_type],
        )

    def _write_features(self) -> dict[str, list[str]]:
        """Write features.npy of each type of which no stage has written it yet.

        Returns the names of the features of each type.
        """
        feature_names: dict[str, list[str]] = {}
        for node_type in sorted(self.node_types):
            feature_names[node_type] = list(self.read_nodes[node_type].feature_names)
            table = self.node_tables.get(node_type)
            if feature_names[node_type] or table is None or table.feature_file is None:
                continue
            if not self.choices.structural_features:
                feature_names[node_type] = self._copy_feature_file(node_type, table.feature_file)

        types_without_features = [
            node_type for node_type, names in feature_names.items() if not names
        ]
        if not types_without_features:
            return feature_names

        # Nodes without features get structural features, made of all edges.
        folders = {node_type: self._type_folder(node_type) for node_type in feature_names}
        split_names = {
            node_type: self.read_nodes[node_type].split_names for node_type in feature_names
        }
        maker = StructuralFeaturesOnDisk(folders, split_names, self.folder.parent)
        if self.has_several_types:
            edges = maker.union(self.folder, [relation.ends for relation in self.relations])
        else:
            edges = MappedAdjacency(open_senders(self.folder), self.directed)
        structural_names = maker.write(
            edges,
            self.choices.structural_features or "positions",
            types_without_features,
            halved=self.half,
        )
        return feature_names | structural_names

    def _copy_feature_file(self, node_type: str, path: Path) -> list[str]:
        """Copy the file of the features of a type; returns their names."""
        query = f"SELECT node >= 0 FROM {self._nodes_name(node_type)} ORDER BY number"
        is_early = np.array(self.database.rows(query), bool)[:, 0]
        return copy_features(path, self._type_folder(node_type), is_early, halved=self.half)


def _refuse_unstorable(rows: NodeRows) -> None:
    """Refuse what a graph folder cannot hold: several graphs, and labels that are lists."""
    table = rows.table
    group_column = table.schema.group.column
    if group_column is not None:
        expected = "no groups, as a graph folder holds one graph"
        raise InputError(str(table.path), expected, f"a column {group_column}")
    for name, column in rows.labels.items():
        if column.ndim > 1:
            location = format_location(table.path, column=table.labels[name])
            expected = "one label per node, in a graph folder"
            raise InputError(location, expected, "lists", "Give each label its column.")
