"""Graph: nodes with features, joined by edges. It is checked when it is made, so all other code can rely on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import require_room
from infomax.arrays.held_out import draw_edges, without_edges
from infomax.arrays.links import Reference, find_references, joining_types
from infomax.arrays.relations import find_paths, named_path, steps
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import InputError, check_whole_number, format_count, suggest
from infomax.io import pyg
from infomax.io.attributes import from_attributes
from infomax.io.choices import Choices
from infomax.io.columns import Columns
from infomax.io.edge_table import read_edge_features
from infomax.io.folder import open_folder
from infomax.io.frames import read_frames, write_frames
from infomax.io.past import as_of
from infomax.io.record import Record
from infomax.io.union import whole_adjacency
from infomax.io.writing import write_graph
from infomax.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Graph(Record):
    """A graph whose nodes have features; its fields are those of `Record`.

    Make one with `from_arrays`, `from_scipy`, `from_frames`, `from_networkx`, `from_pyg`, `open` or
    `infomax.read_graph`.

    What trains and embeds asks ``edges`` and ``table``, which may be mapped from disk. `adjacency` and `features` are
    the same in memory.
    """

    @classmethod
    def of(cls, record: Record) -> Graph:
        """The graph of a record."""
        return cls(
            **{field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
        )

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node, ``[N]``; in a directed graph outgoing and incoming edges both count."""
        total = np.zeros(self.num_nodes, np.int64)
        for step in steps(self.relations, self.node_type):
            total += (
                step.relation.edges.degrees()
                if step.relation.within_one_type
                else np.diff(step.senders.indptr)
            )
        return total

    def __repr__(self) -> str:
        arrows = format_count(self.num_edges, "directed edge" if self.directed else "edge")
        if not self.node_type:
            return f"Graph({format_count(self.num_nodes, 'node')}, {arrows}, {format_count(self.num_features, 'feature')})"
        each = (
            f"{nodes.num_nodes:,} of type {node_type} with {format_count(nodes.num_features, 'feature')}"
            for node_type, nodes in sorted(
                self.nodes.items(), key=lambda pair: pair[0] != self.node_type
            )
        )
        return f"Graph(nodes: {', '.join(each)}; {arrows})"

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        """Refuse to become an array: what asks for one, as searches of scikit-learn do, would cut it into rows."""
        remedy = "Compare settings by their vectors: DGI(dim).fit_transform(graph).vectors has one row per node."
        raise InputError(
            "graph",
            "an array with one row per node",
            "a Graph, which cannot be cut into rows",
            remedy,
        )

    def paths(self, paths: Iterable[str] | None = None, hops: int = 2) -> dict[str, int]:
        """The paths from the nodes of its type, each with the number F of features at its end.

        Args:
            paths: names such as paper-author-paper. None finds those that end at a type with features that were not
                made, and those that end at a type which none of these pass; if there are none, all.
            hops: the number of steps up to which to look for paths.
        """
        if paths is None:
            given = {
                node_type
                for node_type, nodes in self.nodes.items()
                if structural_features_named(nodes.feature_names) is None
            }
            found = find_paths(
                self.relations, self.node_type, check_whole_number("hops", hops, 1), given
            )
            passed = {step.sender for path in found.values() for step in path} | {self.node_type}
            found |= find_paths(
                self.relations,
                self.node_type,
                hops,
                set(self.types) - passed if found else self.types,
            )
        else:
            found = {name: named_path(self.relations, name) for name in paths}
        if wrong := [name for name, path in found.items() if path[0].node_type != self.node_type]:
            raise InputError("paths", f"paths from {self.node_type}", ", ".join(wrong))
        if not found:
            others = [node_type for node_type in self.types if node_type != self.node_type]
            remedy = f"{suggest(self.node_type, others)} To train other types: --type {min(others, default='')}."
            raise InputError(
                f"nodes of type {self.node_type}",
                "a relation that they have edges of",
                "none",
                remedy.strip(),
            )
        return {name: self.nodes[path[-1].sender].num_features for name, path in found.items()}

    @classmethod
    def open(cls, folder: str | Path) -> Graph:
        """The graph of a folder that ``infomax prepare`` wrote. Its arrays stay on disk and are mapped.

        What trains and embeds in batches reads the rows that it needs; `loaded` reads all of it into memory.
        """
        return cls.of(open_folder(Path(folder)))

    def as_of(self, when: Any) -> Graph:
        """The graph as it was at a time: rows with a later one are dropped, with their edges.

        Args:
            when: a day or a time, as text (``"2010-01-01"``), a date or microseconds; rows of that very time stay.
                What is left of a graph folder is read into memory.
        """
        return as_of(self, when)

    def with_edge_table(
        self,
        table: Any,
        columns: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
    ) -> Graph:
        """The same graph with features of its edges, for encoders that use them, from columns of an edge table.

        >>> read_graph("roads.csv,towns.csv").with_edge_table("roads.csv", ["length", "lanes"])

        Args:
            table: a file that `infomax.read_graph` reads as an edge table, or a frame.
            columns: the columns of numbers.
            source: the column where edges begin; None: as in `infomax.read_graph`.
            target: the column where they end.
        """
        edges, values = read_edge_features(self, table, columns, source, target)
        return self.with_edge_features(edges, values, columns)

    def hold_out_edges(self, share: float, seed: int = 0) -> Graph:
        """The graph without a random share of its edges, of all relations together, which become ``held_out``.

        Rows that join others, such as orders with a customer and a product, lose all their references together.
        Positions and degree features are made anew. Nodes may become isolated. A graph folder is read into memory.

        Args:
            share: the share to take out, such as 0.1.
            seed: decides which edges are drawn.
        """
        if self.held_out is not None:
            raise InputError(
                "hold_out_edges",
                "a graph with all its edges",
                "one that has edges held out already",
            )
        remedy = "Take edges out of the table before infomax prepare, and score them with your own tools."
        use = "read all of it and hold out edges"
        edges = sum(relation.edges.bytes_to_load() for relation in self.relations)
        require_room(
            sum(nodes.table.bytes_to_load() for nodes in self.nodes.values()) + 6 * edges,
            use,
            remedy,
        )
        graph = self.loaded()
        first, n = graph.first_rows, sum(nodes.num_nodes for nodes in graph.nodes.values())
        joining = joining_types(graph.relations)
        references = [one for one in find_references(graph.relations) if one.source in joining]
        referring = [one.relation for one in references]
        others = [one for one in graph.relations if one not in referring]
        held_out = draw_edges(
            whole_adjacency(graph.nodes, others),
            share,
            seed,
            graph._references(references) if references else None,
        )
        left = []
        for one in graph.relations:
            matrix = without_edges(
                one.edges.matrix(), held_out, (first[one.source], first[one.target]), n
            )
            left.append(one.with_matrix(matrix))
        return dataclasses.replace(
            graph, relations=tuple(left), held_out=held_out
        ).with_structural_features()

    def _references(self, references: Sequence[Reference]) -> sparse.csr_array:
        """Some references as a matrix ``[N, N]``, whose rows and columns are counted over all types."""
        first, n = self.first_rows, sum(nodes.num_nodes for nodes in self.nodes.values())
        rows = [np.flatnonzero(one.rows >= 0) for one in references]
        pairs = list(zip(references, rows, strict=True))
        sources = np.concatenate([some + first[one.source] for one, some in pairs])
        targets = np.concatenate([one.rows[some] + first[one.target] for one, some in pairs])
        ones = np.ones(len(sources), np.float32)
        return sparse.csr_array((ones, (sources, targets)), shape=(n, n))

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        labels: str | Iterable[str] = (),
        ignore: str | Iterable[str] = (),
        name: str | None = None,
        directed: bool | None = None,
        columns: Mapping[str, str] | Sequence[str] = (),
    ) -> Graph:
        """A graph from NetworkX; attributes of nodes are features, encoded as the columns of a table are.

        Attributes that are called ``label:NAME`` are labels and ``split:NAME`` splits, without being named, and
        ``graph:name`` tells the graph of a node, of several. The attribute ``weight`` of an edge is its weight.

        Args:
            graph: the graph of NetworkX.
            labels: names of attributes that are labels.
            ignore: names of attributes that are not read.
            name: the attribute that holds names, which are shown beside ids.
            directed: keep the directions; an undirected edge then runs both ways. None: as in the graph itself.
            columns: what attributes are, by their names, as in `infomax.read_graph`.
        """
        chosen = Columns.of(labels, None, ignore, columns=columns, name=name)
        return cls.of(from_attributes(graph, chosen, directed))

    @classmethod
    def from_pyg(cls, data: Any, *, directed: bool = False, split: int | None = None) -> Graph:
        """A graph from a PyG ``Data``: x, edge_index, edge_weight, y and the three masks; a ``Batch`` gives groups.

        A ``HeteroData`` gives a graph of several types; a relation ``rev_NAME`` is left out where it is NAME backwards.
        Features are stored sparse where less than a tenth of them is not zero.

        Args:
            data: the ``Data``, ``Batch`` or ``HeteroData``.
            directed: keep the directions.
            split: where masks have the shape ``[N, k]``, the column to take.
        """
        return cls.of(pyg.from_pyg(data, directed, split))

    def to_pyg(self) -> Any:
        """A PyG ``Data`` with dense x, edge_index in both directions, edge_weight, the first label as y, and masks.

        Text labels are numbered in alphabetical order, unknown ones are -1; groups become ``batch``. Of several types
        of nodes it is a ``HeteroData``; edges between two types are there once.
        """
        return pyg.to_pyg(self)

    @classmethod
    def from_frames(
        cls,
        edges: Any = None,
        nodes: Any = None,
        *,
        keys: Mapping[str, str] | Sequence[str] | None = None,
        directed: bool | None = None,
        features: Any = None,
        attach_to: Graph | None = None,
        like: Graph | None = None,
        **columns: Unpack[Choices],
    ) -> Graph:
        """A graph from an edge frame and a node frame, of pandas, polars, pyarrow or whatever hands out Arrow data.

        >>> Graph.from_frames(edges, nodes, labels="section", ignore="name")

        The columns are those of tables, see `infomax.read_graph`. Where no column is called "id" and none is named, the
        ids are the index of pandas, if it has a name or holds text, or if the first column cannot hold ids.

        >>> Graph.from_frames({("author", "writes", "paper"): edges}, {"paper": papers})  # several types of nodes
        >>> Graph.from_frames(nodes={"races": races, "results": results}, keys={"results.race": "races"})  # with keys

        Args:
            edges: the edge frame, or one for each relation.
            nodes: the node frame, or one for each type. Without edges these are tables with keys, which are read as by
                `infomax.read_database`.
            keys: of such tables, the keys that are not found, as in `infomax.read_database`.
            directed: keep the directions. None: as in ``like``, else not.
            features: names of columns; or an array or a sparse matrix ``[N, F]`` in the order of the node frame.
            attach_to: the graph to which the frames' nodes, which are new, are added, as in `infomax.read_graph`.
            like: an earlier graph, by which columns become features.
            columns: what the columns are, see `Choices`.
        """
        known = {"attach_to": attach_to, "like": like}
        return cls.of(
            read_frames(
                edges, nodes, directed=directed, features=features, keys=keys, **known, **columns
            )
        )

    def to_frames(self, library: str = "pandas") -> tuple[Any, Any]:
        """The edges and the nodes as two frames of "pandas", "polars" or "arrow", which `from_frames` reads back.

        Of several types of nodes, a frame for each relation and one for each type.
        """
        return write_frames(self, library)

    def save(self, path: str | Path, progress: Progress = silent) -> None:
        """Write the graph under a name that `infomax.read_graph` reads: the extension tells the format.

        >>> graph.save("g.npz")  # or edges.csv,nodes.csv, a folder of tables, or a graph folder: big.graph

        Args:
            path: the file, the two tables or the folder.
            progress: is told how much is done.
        """
        write_graph(self, path, progress)
