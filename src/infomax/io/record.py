"""Record: the arrays of a graph, as files and frames hold them and as a `Graph` is made of them.

`infomax.io.building` makes records of columns and edges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.relations import RELATION, Relation
from infomax.arrays.scaling import Scale, Scaler
from infomax.arrays.table import Features, FeatureTable
from infomax.errors import InputError, format_count, shorten
from infomax.io.encoding.encoding import Encoding
from infomax.io.nodes import Nodes
from infomax.io.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class Record:
    """The arrays of a graph: nodes of one or several types, and relations with their edges.

    The paper's graph has one type, whose name is empty, and one relation. A graph is seen from the
    nodes of one of its types, its ``node_type``: ``table``, ``ids``, ``labels`` and all else that
    belongs to nodes is that of this type, and `target` turns to another type.

    Attributes:
        nodes: by type.
        relations: no self-loops (an encoder adds its own), no zero weights, no duplicates.
        node_type: the type that it is seen from.
        held_out: ``[2, H]`` rows, the edges that `hold_out_edges` took out. None: there are none.
            Of several types, the rows are counted over all of them, see `first_rows`.
    """

    nodes: Mapping[str, Nodes]
    relations: tuple[Relation, ...]
    node_type: str = ""
    held_out: NDArray[np.int64] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many edges were left out as ``self_loops``, ``duplicates`` or ``zero_weights``."""
    edge_columns: tuple[str, str] | None = None
    """The columns used as source and target, where the edge table has none of these names."""
    schema: Schema | None = None
    """What its tables and their columns are, with what was learnt of the columns.

    None: the graph was not made of tables."""
    node_type_is_first: bool = False
    """Whether its type is but the first in the alphabet, since `target` has chosen none."""
    folder: Path | None = None
    """The graph folder whose arrays it maps, where it was opened from one; see `open`."""

    def __post_init__(self) -> None:
        """Give the schema what was learnt of the columns, which is stored with the nodes."""
        if self.schema is not None:
            encodings = {node_type: nodes.encoding for node_type, nodes in self.nodes.items()}
            object.__setattr__(self, "schema", self.schema.with_encodings(encodings))

    @classmethod
    def of_one_type(cls, nodes: Nodes, edges: Adjacency, **about: Any) -> Self:
        """The graph of one type of nodes and one relation.

        Args:
            nodes: the nodes.
            edges: the edges among them.
            about: other fields, such as ``held_out``.
        """
        return cls({"": nodes}, (Relation("", RELATION, "", edges),), **about)

    # The nodes of the type that it is seen from.

    @property
    def nodes_in_view(self) -> Nodes:
        """The nodes of the type that it is seen from."""
        return self.nodes[self.node_type]

    @property
    def table(self) -> FeatureTable:
        """The features ``[N, F]``, in memory or mapped."""
        return self.nodes_in_view.table

    @property
    def features(self) -> Features:
        """X ``[N, F]``, an array of float32 or CSR.

        Of a graph folder it is read into memory at each call.
        """
        return self.table.loaded().values

    @property
    def ids(self) -> NDArray[Any]:
        """The ids ``[N]``."""
        return self.nodes_in_view.ids

    @property
    def feature_names(self) -> tuple[str, ...]:
        """F names."""
        return self.nodes_in_view.feature_names

    @property
    def labels(self) -> Mapping[str, NDArray[Any]]:
        """By name, ``[N]`` or ``[N, C]``; see `Nodes`."""
        return self.nodes_in_view.labels

    @property
    def splits(self) -> Mapping[str, NDArray[np.bool_]]:
        """By name, ``[N]``; see `Nodes`."""
        return self.nodes_in_view.splits

    @property
    def groups(self) -> NDArray[np.int64] | None:
        """The graph ``[N]`` of each node, where there are several."""
        return self.nodes_in_view.groups

    @property
    def node_names(self) -> NDArray[Any] | None:
        """Names ``[N]`` to show beside the ids."""
        return self.nodes_in_view.node_names

    @property
    def encoding(self) -> Encoding | None:
        """How the features were made of the columns of a table."""
        return self.nodes_in_view.encoding

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.nodes_in_view.num_nodes

    @property
    def num_features(self) -> int:
        """F."""
        return self.nodes_in_view.num_features

    def display_names(self, rows: Any) -> NDArray[Any]:
        """The names of some nodes, as text ``[n]``; the id of a node that has none."""
        ids = np.array(list(map(str, self.ids[rows].tolist())), dtype=object)
        if self.node_names is None:
            return ids
        names = self.node_names[rows]
        return np.where(names == "", ids, names)

    # The whole graph.

    @property
    def types(self) -> tuple[str, ...]:
        """The types of nodes, in alphabetical order; empty where the only one has no name."""
        return tuple(sorted(self.nodes)) if self.has_named_types else ()

    @property
    def has_named_types(self) -> bool:
        """Whether its types have names; the only type of a plain graph has none."""
        return self.node_type != ""

    @property
    def first_rows(self) -> dict[str, int]:
        """The row of the first node of each type, where those of all types are counted.

        Types come in alphabetical order.
        """
        node_types = sorted(self.nodes)
        sizes = [self.nodes[node_type].num_nodes for node_type in node_types]
        starts = np.cumsum([0, *sizes]).tolist()
        return dict(zip(node_types, starts, strict=False))

    @property
    def edges(self) -> Adjacency:
        """The edges of a graph that has one type of nodes and one relation."""
        if len(self.relations) != 1 or not self.relations[0].within_one_type:
            found = f"{len(self.types)} types and {format_count(len(self.relations), 'relation')}"
            raise InputError("edges", "a graph of one type of nodes and one relation", found)
        return self.relations[0].edges

    @property
    def adjacency(self) -> Any:
        """A ``[N, N]``, CSR of float32: ``A[i, j]`` is the weight of the edge i -> j.

        It is symmetric unless ``directed``. Of a graph folder it is read into memory at each call.
        """
        return self.edges.matrix()

    @property
    def num_edges(self) -> int:
        """The number of edges of all relations; an undirected edge counts once."""
        return sum(relation.edges.num_edges for relation in self.relations)

    @property
    def directed(self) -> bool:
        """Whether edges within a type have directions; messages then run from source to target."""
        return any(relation.directed for relation in self.relations)

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return any(relation.edges.weighted for relation in self.relations)

    # The same graph, otherwise seen or with something changed.

    def target(self, node_type: str) -> Self:
        """The same graph, seen from the nodes of another type."""
        if node_type not in self.nodes:
            expected = f"one of {', '.join(self.types) or 'no types'}"
            raise InputError("type of nodes", expected, shorten(node_type))
        if node_type == self.node_type and not self.node_type_is_first:
            return self
        return dataclasses.replace(self, node_type=node_type, node_type_is_first=False)

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
            adjacency: ``[N, N]`` CSR, without self-loops, zeros and duplicates; symmetric unless
                directed.
            directed: whether edges have directions.
            features: ``[N, F]``, dense or CSR.
            fields: other fields by name; those of nodes, such as ``labels`` and ``splits``, for the
                type in view.
        """
        if adjacency is not None or directed is not None:
            matrix = self.adjacency if adjacency is None else adjacency
            fields["edges"] = Adjacency(matrix, self.directed if directed is None else directed)
        # `edges` is short for the edges of the only relation.
        if "edges" in fields:
            relation = dataclasses.replace(self.relations[0], edges=fields.pop("edges"))
            fields["relations"] = (relation,)
        if features is not None:
            # Other features were not made of the columns of a table.
            fields |= {"table": FeatureTable(features), "encoding": None}
        node_fields = {name: fields.pop(name) for name in _NODE_FIELDS & fields.keys()}
        if node_fields:
            nodes = dataclasses.replace(self.nodes_in_view, **node_fields)
            fields["nodes"] = {**self.nodes, self.node_type: nodes}
        return dataclasses.replace(self, **fields)

    def scaler(self, scale: Scale = "auto") -> Scaler:
        """The scaler of the features, fitted to the nodes that training may see.

        ``auto`` leaves positions and encoded columns alone.
        """
        other_types = {
            node_type: nodes.scaler(scale)
            for node_type, nodes in self.nodes.items()
            if node_type != self.node_type
        }
        return dataclasses.replace(self.nodes_in_view.scaler(scale), other_types=other_types)

    def scaled(self, scaler: Scaler) -> Self:
        """The same graph with scaled features, those of the other types as well."""

        def scale(node_type: str, nodes: Nodes) -> Nodes:
            is_own_type = node_type == self.node_type
            type_scaler = scaler if is_own_type else scaler.other_types[node_type]
            return dataclasses.replace(nodes, table=nodes.table.scaled(type_scaler))

        return self.with_nodes(scale)

    def loaded(self) -> Self:
        """The same graph with all of its arrays in memory."""
        bytes_of_features = sum(nodes.table.bytes_to_load() for nodes in self.nodes.values())
        bytes_of_edges = sum(relation.edges.bytes_to_load() for relation in self.relations)
        require_room(bytes_of_features + bytes_of_edges, "read all of it")
        relations = tuple(relation.loaded() for relation in self.relations)
        return self.with_nodes(lambda _, nodes: nodes.loaded(), relations=relations, folder=None)


_NODE_FIELDS = {node_field.name for node_field in dataclasses.fields(Nodes)}
"""The fields that belong to the nodes of one type."""
