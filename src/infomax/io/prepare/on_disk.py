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
from infomax.io.prepare.features import EdgeFeaturesOnDisk, copy_features
from infomax.io.prepare.stages import Link, Stages
from infomax.io.prepare.writing import open_senders, write_entries, write_nodes, write_sides
from infomax.io.schema.schema_file import to_json as schema_to_json
from infomax.io.tables import NodeRows, Tables
from infomax.progress import Progress

GRAPH = "graph"
"""The folder among the work files that becomes the graph folder."""


class Preparation(Stages):
    """The stages that end in a graph folder."""

    def __init__(self, work: Path, tables: Tables, directed: bool, half: bool, memory: int) -> None:
        self.folder, self.half = work / GRAPH, half
        self.folder.mkdir()
        super().__init__(tables, Database(work, memory), directed=directed)

    def run(self, progress: Progress) -> None:
        """Do all stages."""
        self.progress = progress
        try:
            self._run()
            for node_type in self.node_types:
                self._do(
                    "columns",
                    node_type,
                    "writing ids and labels",
                    partial(self._write_nodes, node_type),
                )
            self._do("features", "", "writing features", self._write_features)
            progress(len(self.notes), "hashing", len(self.notes) + 1)
        finally:
            self.database.close()
        for node_type in self.node_types:
            finish(self._place(node_type), self._about(node_type))
        if self.has_several_types:
            finish_types(self.folder, self.node_types, [link.ends for link in self.links])

    def _place(self, node_type: str) -> Path:
        """The folder of a type."""
        type_folder = self.folder / "nodes" / node_type if self.has_several_types else self.folder
        type_folder.mkdir(parents=True, exist_ok=True)
        return type_folder

    @contextmanager
    def _keeper(self, node_type: str) -> Iterator[Callable[[NodeRows], list[Any]]]:
        """Features are written to their file; the database keeps labels, splits, names and
        times."""
        with FeatureWriter(
            self._place(node_type), str(self.nodes[node_type].path), halved=self.half
        ) as writer:

            def keep(rows: NodeRows) -> list[Any]:
                _refuse_unstorable(rows)
                if rows.features is not None:
                    writer.append(rows.features)
                others = [column for column in (rows.names, rows.times) if column is not None]
                return [*rows.labels.values(), *rows.splits.values(), *others]

            yield keep

    def _keep_edges(self, link: Link) -> dict[str, Any]:
        """Write the files of a relation: its rows are the nodes that send to a node."""
        first, _, last = link.ends
        sizes = (self.notes[f"numbers {first}"], self.notes[f"numbers {last}"])
        directed = self.directed or link.ends in self.tables.directed
        weighted, both_ways = self._weighted(link), first == last and not directed
        return write_sides(
            self.database, self.folder, link.ends, sizes, weighted=weighted, both_ways=both_ways
        )

    def _about(self, node_type: str) -> dict[str, Any]:
        """What graph.json says of the nodes of a type, and of the edges where there is one."""
        rows, nodes = (
            [self.notes[f"rows {at}"] for at in range(len(self.links))],
            self._of_nodes(node_type),
        )
        edges = self.edges[0]
        edge_columns = None
        if not self.has_several_types and not edges.are_ends_named:
            edge_columns = edges.ends
        return {
            "nodes": self.notes[f"numbers {node_type}"],
            "edges": 0
            if self.has_several_types
            else rows[0]["entries"] // (1 if self.directed else 2),
            "directed": self.directed and not self.has_several_types,
            "weighted": not self.has_several_types and rows[0]["weighted"],
            "feature_names": self.notes["features "][node_type],
            "labels": nodes["labels"],
            "splits": nodes["splits"],
            "dropped": {
                name: sum(one[name] for one in rows)
                for name in ("self_loops", "duplicates", "zero_weights")
            },
            "edge_columns": edge_columns,
            "schema": schema_to_json(self.schema()),
            **({"encoding": nodes["encoding"]} if nodes["encoding"] else {}),
        }

    def _write_nodes(self, node_type: str) -> None:
        """Write nodes.parquet of a type and, of several, that it has no edges by itself."""
        if self.has_several_types:
            write_entries(self._place(node_type), self.notes[f"numbers {node_type}"], ())
        write_nodes(
            self.database,
            self._table(node_type),
            self._place(node_type) / layout.NODES,
            self._of_nodes(node_type),
        )

    def _write_features(self) -> dict[str, list[str]]:
        """Write features.npy of each type of which no stage has written it; the names of the
        features."""
        names: dict[str, list[str]] = {
            node_type: self._of_nodes(node_type)["features"]
            for node_type in sorted(self.node_types)
        }
        for node_type in names:
            matrix = None
            if node_type in self.nodes:
                matrix = self.nodes[node_type].feature_file
            if not names[node_type] and matrix is not None and not self.choices.structural_features:
                rows = self.database.rows(
                    f"SELECT node >= 0 FROM {self._table(node_type)} ORDER BY number"
                )
                there = np.array(rows, bool)[:, 0]
                names[node_type] = copy_features(
                    matrix, self._place(node_type), there, halved=self.half
                )
        bare = [node_type for node_type, own in names.items() if not own]
        if bare:
            places = {
                node_type: (self._place(node_type), self._of_nodes(node_type)["splits"])
                for node_type in names
            }
            maker = EdgeFeaturesOnDisk(places, self.folder.parent)
            edges = (
                maker.union(self.folder, [link.ends for link in self.links])
                if self.has_several_types
                else self._edges()
            )
            names |= maker.write(
                edges, self.choices.structural_features or "positions", bare, halved=self.half
            )
        return names

    def _edges(self) -> MappedAdjacency:
        """The edges of a graph of one type, once they are written."""
        return MappedAdjacency(open_senders(self.folder), self.directed)


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
