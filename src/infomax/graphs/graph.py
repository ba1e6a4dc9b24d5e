"""Graph: nodes with features, joined by edges.

It is checked when it is made, so that all other code can rely on it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays.relations import Step, find_paths, named_path, steps
from infomax.arrays.structural_features import structural_features_named
from infomax.errors import InputError, check_whole_number, format_count, suggest
from infomax.io import building, holding_out, past, pyg, subgraphs
from infomax.io.choices import Choices, UserChoices
from infomax.io.edge_table import read_edge_features
from infomax.io.frames import read_frames, write_frames
from infomax.io.graph_folder import open_folder
from infomax.io.networkx import from_networkx
from infomax.io.record import Record
from infomax.io.writing import write_graph
from infomax.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Graph(Record):
    """A graph whose nodes have features; its fields are those of `Record`.

    Make one with `from_arrays`, `from_scipy`, `from_frames`, `from_networkx`, `from_pyg`, `open` or
    `infomax.read_graph`.

    Training and embedding ask ``edges`` and ``table``, which may be mapped from disk. `adjacency`
    and `features` are the same in memory.
    """

    @classmethod
    def of(cls, record: Record) -> Self:
        """The graph of a record."""
        names = [field.name for field in dataclasses.fields(record)]
        return cls(**{name: getattr(record, name) for name in names})

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """The graph of a folder that ``infomax prepare`` wrote. Its arrays stay on disk, mapped.

        Training and embedding in batches read the rows that they need; `loaded` reads all of it
        into memory.
        """
        return cls.of(open_folder(Path(folder)))

    @classmethod
    def from_arrays(
        cls,
        edges: ArrayLike,
        features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
        *,
        weight: ArrayLike | None = None,
        num_nodes: int | None = None,
        directed: bool = False,
        edge_features: ArrayLike | None = None,
        **columns: Any,
    ) -> Self:
        """A graph from arrays.

        Args:
            edges: ``[2, E]`` rows of the source and target nodes. Without weights a duplicate
                counts once; with weights duplicates add up. Undirected: an edge listed in both
                directions is one edge, its weight the larger of the two.
            features: ``[N, F]``, dense or any scipy sparse format. A dense array of float32 is not
                copied: do not change it afterwards. ``"positions"`` in the graph or ``"degrees"``
                are made of the edges; None gives positions, or degrees where there are groups,
                since positions in two graphs have nothing in common.
            weight: ``[E]`` non-negative; an edge of weight zero is left out.
            num_nodes: N, needed only where neither features nor ids give it.
            directed: keep the directions; messages then run from source to target.
            edge_features: ``[E, F]``, see `with_edge_features`.
            columns: ids, feature_names, labels, splits, groups, held_out, node_names as in `Graph`.
        """
        record = building.from_arrays(
            edges,
            features,
            weight=weight,
            num_nodes=num_nodes,
            directed=directed,
            edge_features=edge_features,
            **columns,
        )
        return cls.of(record)

    @classmethod
    def from_scipy(
        cls,
        adjacency: sparse.sparray | sparse.spmatrix,
        features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
        *,
        directed: bool = False,
        binary: bool = False,
        groups: ArrayLike | None = None,
        held_out: ArrayLike | None = None,
        **columns: Any,
    ) -> Self:
        """A graph from a scipy matrix.

        Args:
            adjacency: ``[N, N]``, ``A[i, j]`` is the weight of the edge i -> j.
            features: as in `from_arrays`.
            directed: as in `from_arrays`.
            binary: let every entry count as 1, however often it is listed.
            groups: ``[N]`` integers, the graph of each node where there are several.
            held_out: ``[2, H]`` rows, edges that are set aside.
            columns: of the nodes: ``ids [N]``, integers or text, unique, by default the numbers
                from 0; ``feature_names``, by default x0, x1, ...; ``labels``, name -> ``[N]`` or
                ``[N, C]``; ``splits``, name -> ``[N]`` bool; ``node_names [N]``, text that is shown
                beside the ids; ``encoding``, how the features were made of columns.
        """
        record = building.from_scipy(
            adjacency,
            features,
            directed=directed,
            binary=binary,
            groups=groups,
            held_out=held_out,
            **columns,
        )
        return cls.of(record)

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
    ) -> Self:
        """A graph from an edge frame and a node frame.

        Frames are those of pandas, polars, pyarrow or whatever hands out Arrow data.

        >>> Graph.from_frames(edges, nodes, labels="section", ignore="name")

        The columns are those of tables, see `infomax.read_graph`. Where no column is called "id"
        and none is named, the ids are the index of pandas, if it has a name or holds text, or if
        the first column cannot hold ids.

        Several types of nodes, and tables with keys:

        >>> Graph.from_frames({("author", "writes", "paper"): edges}, {"paper": papers})
        >>> races = {"races": races, "results": results}
        >>> Graph.from_frames(nodes=races, keys={"results.race": "races"})

        Args:
            edges: the edge frame, or one for each relation.
            nodes: the node frame, or one for each type. Without edges these are tables with keys,
                which are read as by `infomax.read_database`.
            keys: of such tables, the keys that are not found, as in `infomax.read_database`.
            directed: keep the directions. None: as in ``like``, else not.
            features: names of columns; or an array or a sparse matrix ``[N, F]`` in the order of
                the node frame.
            attach_to: the graph to which the frames' nodes, which are new, are added, as in
                `infomax.read_graph`.
            like: an earlier graph, by which columns become features.
            columns: what the columns are, see `Choices`.
        """
        record = read_frames(
            edges,
            nodes,
            directed=directed,
            features=features,
            keys=keys,
            attach_to=attach_to,
            like=like,
            **columns,
        )
        return cls.of(record)

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
    ) -> Self:
        """A graph from NetworkX; attributes of nodes become features as columns of a table do.

        Attributes that are called ``label:NAME`` are labels and ``split:NAME`` splits, without
        being named, and ``graph:name`` tells the graph of a node, of several. The attribute
        ``weight`` of an edge is its weight.

        Args:
            graph: the graph of NetworkX.
            labels: names of attributes that are labels.
            ignore: names of attributes that are not read.
            name: the attribute that holds names, which are shown beside ids.
            directed: keep the directions; an undirected edge then runs both ways. None: as in the
                graph itself.
            columns: what attributes are, by their names, as in `infomax.read_graph`.
        """
        user_choices = UserChoices.of(labels, None, ignore, columns=columns, name=name)
        return cls.of(from_networkx(graph, user_choices, directed))

    @classmethod
    def from_pyg(cls, data: Any, *, directed: bool = False, split: int | None = None) -> Self:
        """A graph from a PyG ``Data``: x, edge_index, edge_weight, y and the three masks.

        A ``Batch`` gives groups. A ``HeteroData`` gives a graph of several types; a relation
        ``rev_NAME`` is left out where it is NAME backwards. Features are stored sparse where less
        than a tenth of them is not zero.

        Args:
            data: the ``Data``, ``Batch`` or ``HeteroData``.
            directed: keep the directions.
            split: where masks have the shape ``[N, k]``, the column to take.
        """
        return cls.of(pyg.from_pyg(data, directed, split))

    def to_pyg(self) -> Any:
        """The graph as a PyG ``Data``, or of several types of nodes as a ``HeteroData``.

        It has dense x, edge_index in both directions, edge_weight, the first label as y, and masks.
        Text labels are numbered in alphabetical order, unknown ones are -1; groups become
        ``batch``. Edges between two types are there once.
        """
        return pyg.to_pyg(self)

    def to_frames(self, library: str = "pandas") -> tuple[Any, Any]:
        """The edges and the nodes as two frames, which `from_frames` reads back.

        Of several types of nodes, a frame for each relation and one for each type.

        Args:
            library: "pandas", "polars" or "arrow".
        """
        return write_frames(self, library)

    def save(self, path: str | Path, progress: Progress = silent) -> None:
        """Write the graph under a name that `infomax.read_graph` reads.

        The extension says the format: edges.csv,nodes.csv, a folder of tables, or a graph folder.

        >>> graph.save("big.graph")

        Args:
            path: the file, the two tables or the folder.
            progress: is told how much is done.
        """
        write_graph(self, path, progress)

    def as_of(self, when: Any) -> Self:
        """The graph as it was at a time: rows with a later one are dropped, with their edges.

        Args:
            when: a day or a time, as text (``"2010-01-01"``), a date or microseconds; rows of that
                very time stay. What is left of a graph folder is read into memory.
        """
        return past.as_of(self, when)

    def part(self, mask: NDArray[np.bool_]) -> Self:
        """The subgraph of the nodes of a mask ``[N]``: these nodes and the edges among them."""
        return subgraphs.part_of(self, mask)

    def seen(self) -> Self:
        """The part of the graph that training may use: the split "seen" of each type.

        Of a type without such a split, training may use all nodes.
        """
        return subgraphs.seen_part(self)

    def hold_out_edges(self, share: float, seed: int = 0) -> Self:
        """The graph without a random share of its edges, which become ``held_out``.

        The edges are those of all relations together. Rows that join others, such as orders with a
        customer and a product, lose all their references together. Positions and degree features
        are made anew. Nodes may become isolated. A graph folder is read into memory.

        Args:
            share: the share to take out, such as 0.1.
            seed: decides which edges are drawn.
        """
        return holding_out.hold_out_edges(self, share, seed)

    def with_edge_features(
        self, edges: ArrayLike, values: ArrayLike, names: Sequence[str] | None = None
    ) -> Self:
        """The same graph with features of its edges, for encoders that use them.

        The graph has one type of nodes. An edge that is listed several times has the mean of its
        rows; one that is not listed has zeros.

        Args:
            edges: ``[2, E]`` rows of the source and target nodes.
            values: ``[E, F]`` finite numbers.
            names: F names; None: e0, e1, ...
        """
        return building.with_edge_features(self, edges, values, names)

    def with_edge_table(
        self,
        table: Any,
        columns: Sequence[str],
        *,
        source: str | None = None,
        target: str | None = None,
    ) -> Self:
        """The same graph with features of its edges from columns of an edge table.

        >>> graph = read_graph("roads.csv,towns.csv")
        >>> graph.with_edge_table("roads.csv", ["length", "lanes"])

        Args:
            table: a file that `infomax.read_graph` reads as an edge table, or a frame.
            columns: the columns of numbers that become features.
            source: the column of the nodes where edges begin; None: as in `infomax.read_graph`.
            target: the column of the nodes where edges end; None: as in `infomax.read_graph`.
        """
        edges, values = read_edge_features(self, table, columns, source, target)
        return self.with_edge_features(edges, values, columns)

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges at each node, ``[N]``; outgoing and incoming edges both count."""
        degrees = np.zeros(self.num_nodes, np.int64)
        for step in steps(self.relations, self.node_type):
            if step.relation.within_one_type:
                degrees += step.relation.edges.degrees()
            else:
                degrees += np.diff(step.senders.indptr)
        return degrees

    def paths(self, paths: Iterable[str] | None = None, hops: int = 2) -> dict[str, int]:
        """The paths from the nodes of its type, each with the number F of features at its end.

        Args:
            paths: names such as paper-author-paper. None finds those that end at a type with
                features that are not structural, and those that end at a type which none of these
                pass; if there are none, all.
            hops: the number of steps up to which to look for paths.
        """
        if paths is None:
            found_paths = self._find_paths(check_whole_number("hops", hops, 1))
        else:
            found_paths = {name: named_path(self.relations, name) for name in paths}
        paths_from_others = [
            name for name, path in found_paths.items() if path[0].node_type != self.node_type
        ]
        if paths_from_others:
            expected = f"paths from {self.node_type}"
            raise InputError("paths", expected, ", ".join(paths_from_others))
        if not found_paths:
            other_types = [node_type for node_type in self.types if node_type != self.node_type]
            suggestion = suggest(self.node_type, other_types)
            remedy = f"{suggestion} To train other types: --type {min(other_types, default='')}."
            location = f"nodes of type {self.node_type}"
            expected = "a relation that they have edges of"
            raise InputError(location, expected, "none", remedy.strip())
        return {
            name: self.nodes[path[-1].sender].num_features for name, path in found_paths.items()
        }

    def _find_paths(self, hops: int) -> dict[str, list[Step]]:
        """The paths that `paths` finds where none are named."""
        types_with_features = {
            node_type
            for node_type, nodes in self.nodes.items()
            if structural_features_named(nodes.feature_names) is None
        }
        paths = find_paths(self.relations, self.node_type, hops, types_with_features)
        if not paths:
            return find_paths(self.relations, self.node_type, hops, self.types)
        passed_types = {step.sender for path in paths.values() for step in path}
        other_types = {*self.types} - passed_types - {self.node_type}
        return paths | find_paths(self.relations, self.node_type, hops, other_types)

    def __repr__(self) -> str:
        edge_count = format_count(self.num_edges, "directed edge" if self.directed else "edge")
        if not self.has_named_types:
            node_count = format_count(self.num_nodes, "node")
            feature_count = format_count(self.num_features, "feature")
            return f"Graph({node_count}, {edge_count}, {feature_count})"
        # The type that the graph targets comes first.
        other_types = [node_type for node_type in self.nodes if node_type != self.node_type]
        descriptions = []
        for node_type in (self.node_type, *other_types):
            nodes = self.nodes[node_type]
            feature_count = format_count(nodes.num_features, "feature")
            features = structural_features_named(nodes.feature_names) or feature_count
            descriptions.append(f"{nodes.num_nodes:,} of type {node_type} with {features}")
        return f"Graph(nodes: {', '.join(descriptions)}; {edge_count})"

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        """Refuse to become an array, which searches of scikit-learn would cut into rows."""
        expected = "an array with one row per node"
        found = "a Graph, which cannot be cut into rows"
        remedy = (
            "Compare settings by their vectors: "
            "DGI(dim).fit_transform(graph).vectors has one row per node."
        )
        raise InputError("graph", expected, found, remedy)
