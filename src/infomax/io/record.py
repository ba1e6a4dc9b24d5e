"""Record: the arrays of a graph, as files and frames hold them and as a `Graph` is made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.edge_features import EdgeFeatures
from infomax.arrays.held_out import check_held_out
from infomax.arrays.relations import RELATION, Relation
from infomax.arrays.scaling import Scale, Scaler
from infomax.arrays.structural_features import (
    STRUCTURAL_FEATURE_NAMES,
    default_structural_features,
    structural_features_named,
)
from infomax.arrays.table import Features, FeatureTable
from infomax.errors import InputError, format_count, shorten, within
from infomax.io.encoding.encoding import Encoding
from infomax.io.nodes import Nodes
from infomax.io.schema.schema import Schema
from infomax.io.union import structural_features_of_types, whole_adjacency


@dataclass(frozen=True, eq=False)
class Record:
    """The arrays of a graph: nodes of one or several types, and relations, which hold the edges between them.

    The paper's graph has one type, whose name is empty, and one relation. A graph is seen from one of its types, its
    ``kind``: ``table``, ``ids``, ``labels`` and all else that belongs to nodes is that of this type, and `target` turns
    to another one.

    Attributes:
        nodes: by type.
        relations: no self-loops (an encoder adds its own), no zero weights, no duplicates.
        kind: the type that it is seen from.
        held_out: ``[2, H]`` rows, the edges that `hold_out_edges` took out. None: there are none. Of several types, the
            rows are counted over all of them, see `first_rows`.
    """

    nodes: Mapping[str, Nodes]
    relations: tuple[Relation, ...]
    node_type: str = ""
    held_out: NDArray[np.int64] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many edges were left out as ``self_loops``, ``duplicates`` or ``zero_weights`` (rows of the edge table)."""
    edge_columns: tuple[str, str] | None = None
    """The columns used as source and target, where the edge table has no columns of these names."""
    schema: Schema | None = None
    """What its tables and their columns are. None: it was not made of tables."""
    node_type_is_first: bool = False
    """Whether the type that it is seen from is but the first in the alphabet, since `target` has chosen none."""
    folder: Path | None = None
    """The graph folder whose arrays it maps, where it was opened from one; see `open`."""

    @classmethod
    def of_one_type(cls, nodes: Nodes, edges: Adjacency, **about: Any) -> Self:
        """The graph of one type of nodes and one relation.

        Args:
            nodes: the nodes.
            edges: the edges among them.
            about: other fields, such as ``held_out``.
        """
        return cls({"": nodes}, (Relation("", RELATION, "", edges),), **about)

    @property
    def own(self) -> Nodes:
        """The nodes of the type that it is seen from."""
        return self.nodes[self.node_type]

    @property
    def table(self) -> FeatureTable:
        """The features ``[N, F]``, in memory or mapped."""
        return self.own.table

    @property
    def ids(self) -> NDArray[Any]:
        """The ids ``[N]``."""
        return self.own.ids

    @property
    def feature_names(self) -> tuple[str, ...]:
        """F names."""
        return self.own.feature_names

    @property
    def labels(self) -> Mapping[str, NDArray[Any]]:
        """By name, ``[N]`` or ``[N, C]``; see `Nodes`."""
        return self.own.labels

    @property
    def splits(self) -> Mapping[str, NDArray[np.bool_]]:
        """By name, ``[N]``; see `Nodes`."""
        return self.own.splits

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The graph ``[N]`` of each node, where there are several."""
        return self.own.groups

    @property
    def node_names(self) -> NDArray[Any] | None:
        """Names ``[N]`` to show beside the ids."""
        return self.own.node_names

    @property
    def encoding(self) -> Encoding | None:
        """How the features were made of the columns of a table."""
        return self.own.encoding

    @property
    def edges(self) -> Adjacency:
        """The edges of a graph that has one type of nodes and one relation."""
        if len(self.relations) != 1 or not self.relations[0].within_one_type:
            found = f"{len(self.types)} types and {format_count(len(self.relations), 'relation')}"
            raise InputError("edges", "a graph of one type of nodes and one relation", found)
        return self.relations[0].edges

    @property
    def adjacency(self) -> Any:
        """A ``[N, N]``, CSR of float32: ``A[i, j]`` is the weight of the edge i -> j; symmetric unless ``directed``.

        Of a graph folder it is read into memory at each call.
        """
        return self.edges.matrix()

    @property
    def features(self) -> Features:
        """X ``[N, F]``, an array of float32 or CSR. Of a graph folder it is read into memory at each call."""
        return self.table.loaded().values

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.own.num_nodes

    @property
    def num_edges(self) -> int:
        """The number of edges of all relations; an undirected edge counts once."""
        return sum(relation.edges.count for relation in self.relations)

    @property
    def num_features(self) -> int:
        """F."""
        return self.own.num_features

    @property
    def directed(self) -> bool:
        """Whether edges within a type have directions; messages then run from source to target."""
        return any(relation.directed for relation in self.relations)

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return any(relation.edges.weighted for relation in self.relations)

    def called(self, rows: Any) -> NDArray[Any]:
        """What to call some nodes, as text ``[n]``: their names, and the id where there is none."""
        ids = np.array(list(map(str, self.ids[rows].tolist())), dtype=object)
        return (
            ids
            if self.node_names is None
            else np.where(self.node_names[rows] == "", ids, self.node_names[rows])
        )

    @property
    def types(self) -> tuple[str, ...]:
        """The types of nodes, in alphabetical order; empty where the only one has no name."""
        return tuple(sorted(self.nodes)) if self.node_type else ()

    @property
    def first_rows(self) -> dict[str, int]:
        """The row of the first node of each type, where those of all types are counted, in alphabetical order."""
        starts = np.cumsum(
            [0, *(self.nodes[node_type].num_nodes for node_type in sorted(self.nodes))]
        ).tolist()
        return dict(zip(sorted(self.nodes), starts, strict=False))

    def target(self, node_type: str) -> Self:
        """The same graph, seen from the nodes of another type."""
        if node_type not in self.nodes:
            raise InputError(
                "type of nodes", f"one of {', '.join(self.types) or 'no types'}", shorten(node_type)
            )
        same = node_type == self.node_type and not self.node_type_is_first
        return (
            self
            if same
            else dataclasses.replace(self, node_type=node_type, node_type_is_first=False)
        )

    def by_type(self) -> dict[str, Self]:
        """The same graph, seen from each of its types."""
        return {node_type: self.target(node_type) for node_type in self.types}

    def with_nodes(self, change: Callable[[str, Nodes], Nodes], **fields: Any) -> Self:
        """The same graph with the nodes of each type changed.

        Args:
            change: a function of a type and its nodes that returns other nodes.
            fields: other fields to replace, by name.
        """
        nodes = {node_type: change(node_type, nodes) for node_type, nodes in self.nodes.items()}
        return dataclasses.replace(self, nodes=nodes, **fields)

    def scaled(self, scaler: Scaler) -> Self:
        """The same graph with scaled features, those of the other types as well."""

        def scale(node_type: str, nodes: Nodes) -> Nodes:
            own = scaler if node_type == self.node_type else scaler.other_types[node_type]
            return dataclasses.replace(nodes, table=nodes.table.scaled(own))

        return self.with_nodes(scale)

    def replace(
        self,
        *,
        adjacency: Any = None,
        directed: bool | None = None,
        features: Features | None = None,
        **fields: Any,
    ) -> Self:
        """The same graph with some things replaced; what is None stays.

        Args:
            adjacency: ``[N, N]`` CSR, without self-loops, zeros and duplicates; symmetric unless directed.
            directed: whether edges have directions.
            features: ``[N, F]``, dense or CSR.
            fields: other fields by name; those of nodes, such as ``labels`` and ``splits``, for the type in view.
        """
        if adjacency is not None or directed is not None:
            matrix = self.adjacency if adjacency is None else adjacency
            fields["edges"] = Adjacency(matrix, self.directed if directed is None else directed)
        if features is not None:
            fields |= {"table": FeatureTable(features), "encoding": None}
        if "edges" in fields:
            fields["relations"] = (
                dataclasses.replace(self.relations[0], edges=fields.pop("edges")),
            )
        of_nodes = {name: fields.pop(name) for name in _OF_NODES & fields.keys()}
        if of_nodes:
            fields["nodes"] = {
                **self.nodes,
                self.node_type: dataclasses.replace(self.own, **of_nodes),
            }
        return dataclasses.replace(self, **fields)

    def part(self, mask: NDArray[np.bool_]) -> Self:
        """The subgraph of the nodes of a mask ``[N]``: these nodes and the edges among them."""
        rows = np.flatnonzero(checks.check_column("mask", mask, self.num_nodes, "b", "booleans"))
        joined = [
            relation
            for relation in self.relations
            if relation.within_one_type and relation.source == self.node_type
        ]
        use = f"read {len(rows):,} of its nodes"
        remedy = "Make a graph folder of these nodes alone: infomax prepare."
        needed = sum(relation.edges.bytes_to_load(rows) for relation in joined)
        require_room(self.table.bytes_to_load(len(rows)) + needed, use, remedy)
        held_out = self.held_out
        if held_out is not None:
            masks = {
                node_type: np.ones(nodes.num_nodes, bool) for node_type, nodes in self.nodes.items()
            } | {self.node_type: mask}
            kept = np.concatenate([masks[node_type] for node_type in self.first_rows])
            held_out = np.searchsorted(
                np.flatnonzero(kept), held_out[:, kept[held_out].all(axis=0)]
            )
        return dataclasses.replace(
            self,
            nodes={**self.nodes, self.node_type: self.own.part(rows)},
            relations=tuple(relation.part(self.node_type, rows) for relation in self.relations),
            held_out=held_out,
            folder=None,
        )

    def seen(self) -> Self:
        """The part of the graph that training may use: the split "seen" of each type, or all where there is none."""
        graph = self
        for node_type, nodes in self.nodes.items():
            if "seen" in nodes.splits:
                graph = graph.target(node_type).part(nodes.splits["seen"])
        return graph.target(self.node_type)

    def scaler(self, scale: Scale = "auto") -> Scaler:
        """The scaler of the features, fitted to the nodes that training may see; ``auto`` leaves positions and encoded
        columns alone.
        """
        others = {
            node_type: nodes.scaler(scale)
            for node_type, nodes in self.nodes.items()
            if node_type != self.node_type
        }
        return dataclasses.replace(self.own.scaler(scale), other_types=others)

    def loaded(self) -> Self:
        """The same graph with all of its arrays in memory."""
        tables = sum(nodes.table.bytes_to_load() for nodes in self.nodes.values())
        require_room(
            tables + sum(relation.edges.bytes_to_load() for relation in self.relations),
            "read all of it",
        )
        relations = tuple(relation.loaded() for relation in self.relations)
        return self.with_nodes(lambda _, nodes: nodes.loaded(), relations=relations, folder=None)

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
            edges: ``[2, E]`` rows of the source and target nodes. Without weights a duplicate counts once; with
                weights duplicates add up. Undirected: an edge listed in both directions is one edge, its weight the
                larger of the two.
            features: ``[N, F]``, dense or any scipy sparse format. A dense array of float32 is not copied: do not
                change it afterwards. ``"positions"`` in the graph or ``"degrees"`` are made of the edges; None gives
                positions, or degrees where there are groups, since positions in two graphs have nothing in common.
            weight: ``[E]`` non-negative; an edge of weight zero is left out.
            num_nodes: N, needed only where neither features nor ids give it.
            directed: keep the directions; messages then run from source to target.
            edge_features: ``[E, F]``, see `with_edge_features`.
            columns: ids, feature_names, labels, splits, groups, held_out, node_names as in `Graph`.
        """
        ends = checks.check_ends(edges)
        n = checks.count_nodes(num_nodes, features, columns.get("ids"), ends)
        matrix = checks.matrix_of_edges(ends, weight, (n, n))
        graph = cls.from_scipy(
            matrix, features, directed=directed, binary=weight is None, **columns
        )
        if edge_features is None:
            return graph
        return graph.with_edge_features(ends, edge_features)

    def with_edge_features(
        self, edges: ArrayLike, values: ArrayLike, names: Sequence[str] | None = None
    ) -> Self:
        """The same graph with features of its edges, for encoders that use them; it has one type of nodes.

        An edge that is listed several times has the mean of its rows; one that is not listed has zeros.

        Args:
            edges: ``[2, E]`` rows of the source and target nodes.
            values: ``[E, F]`` finite numbers.
            names: F names; None: e0, e1, ...
        """
        if self.types:
            remedy = "Give the edges a weight, or make the rows of the edge table nodes."
            found = f"types {', '.join(self.types)}"
            raise InputError("features of edges", "a graph of one type of nodes", found, remedy)
        features = EdgeFeatures.of(
            edges, values, names, num_nodes=self.num_nodes, directed=self.directed
        )
        relation = dataclasses.replace(self.relations[0], edge_features=features)
        return dataclasses.replace(self, relations=(relation,), folder=None)

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
            columns: of the nodes: ``ids [N]``, integers or text, unique, by default the numbers from 0;
                ``feature_names``, by default x0, x1, ...; ``labels``, name -> ``[N]`` or ``[N, C]``; ``splits``, name
                -> ``[N]`` bool; ``node_names [N]``, text that is shown beside the ids; ``encoding``, how the features
                were made of columns.
        """
        shape: tuple[int, ...] = getattr(adjacency, "shape", ())
        if len(shape) != 2 or shape[0] != shape[1]:
            found = f"shape {list(shape)}" if shape else type(adjacency).__name__
            raise InputError("adjacency", "a square matrix", found)
        matrix, dropped = checks.clean_matrix(adjacency, directed, binary)
        relation = Relation("", RELATION, "", Adjacency(matrix, directed))
        word = features if isinstance(features, str) else None
        if word not in (None, *STRUCTURAL_FEATURE_NAMES):
            raise InputError(
                "features", f"an array, or {' or '.join(STRUCTURAL_FEATURE_NAMES)}", shorten(word)
            )
        columns |= {"n": int(shape[0]), "features": None if word else features, "groups": groups}
        return cls.of_columns(
            {"": columns}, [relation], structural_features=word, held_out=held_out, dropped=dropped
        )

    @classmethod
    def of_columns(
        cls,
        nodes: Mapping[str, Mapping[str, Any]],
        relations: Sequence[Relation],
        *,
        structural_features: str | None = None,
        held_out: ArrayLike | None = None,
        **about: Any,
    ) -> Self:
        """The graph of columns of nodes by type, which are checked here, and of clean relations.

        Args:
            nodes: what `Nodes.of` takes, by type; features that are None are made of all edges.
            relations: the edges; of nodes without a type only one.
            structural_features: what to make, as one word; None: positions, or degrees where there are groups.
            held_out: ``[2, H]`` rows, see `Record`.
            about: other fields.
        """
        checked = {}
        for node_type in sorted(nodes):
            with within(f"nodes of type {node_type}") if node_type else nullcontext():
                checked[node_type] = Nodes.of(**nodes[node_type])
        graph = cls(
            checked, tuple(relations), min(checked), node_type_is_first="" not in checked, **about
        )
        if graph.groups is not None or held_out is not None:
            whole = whole_adjacency(checked, relations)
            if graph.groups is not None:
                checks.check_groups(graph.groups, whole)
            held_out = None if held_out is None else check_held_out(held_out, whole)
        word = structural_features or default_structural_features(graph.groups is not None)
        bare = {node_type: word for node_type, one in checked.items() if not one.num_features}
        return dataclasses.replace(graph.with_structural_features(bare), held_out=held_out)

    def with_structural_features(self, words: Mapping[str, Any] | None = None) -> Self:
        """The graph with features of some types made of its edges, as one word each; None: those that were, again."""
        if words is None:
            words = {
                node_type: word
                for node_type, one in self.nodes.items()
                if (word := structural_features_named(one.feature_names))
            }
        nodes = dict(self.nodes)
        for node_type, values in structural_features_of_types(nodes, self.relations, words).items():
            names = STRUCTURAL_FEATURE_NAMES[words[node_type]]
            nodes[node_type] = dataclasses.replace(
                nodes[node_type], table=FeatureTable(values), feature_names=names
            )
        return dataclasses.replace(self, nodes=nodes)


_OF_NODES = {field.name for field in dataclasses.fields(Nodes)}
"""The fields that belong to the nodes of one type."""
