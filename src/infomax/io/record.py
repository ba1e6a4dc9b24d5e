"""Record: the arrays of a graph, as files and frames hold them and as a `Graph` is made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import require_room
from infomax.arrays.encoding import Encoding
from infomax.arrays.held_out import check_held_out
from infomax.arrays.made import MADE, made, make, usual
from infomax.arrays.relations import Relation
from infomax.arrays.scaling import Scale, Scaler
from infomax.arrays.table import Features, Table
from infomax.errors import InputError, number_of, shorten


@dataclass(frozen=True, eq=False)
class Record:
    """The arrays of a graph, checked when they are made into one.

    A graph of several types of nodes is the nodes of one of them, those of the `others`, and `relations` between them;
    `target` turns to another type. Its ``edges`` are none.

    Attributes:
        edges: N nodes. No self-loops (an encoder adds its own), no zero weights, no duplicates.
        table: ``[N, F]`` float32, dense or sparse.
        ids: ``[N]``, int64 or str objects, unique, in input order.
        feature_names: F names.
        labels: name -> ``[N]`` str objects ("" = unknown; None and NaN become that) or integers (-1 = unknown; NaN
            among whole numbers becomes that), or ``[N, C]`` 0/1 of uint8.
        splits: name ("train", "validation", "test") -> ``[N]`` bool. Where there is one named "seen", training sees
            those nodes and the edges among them, and nothing else.
        groups: ``[N]`` integers, the graph of each node where there are several; no edge joins two. None: one graph.
        held_out: ``[2, H]`` rows, the edges that `hold_out_edges` took out. None: there are none.
        node_names: ``[N]`` str objects to show beside the ids ("" = none). None: nodes have only ids.
    """

    edges: Adjacency
    table: Table
    ids: NDArray[Any]
    feature_names: tuple[str, ...]
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    splits: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None
    held_out: NDArray[np.int64] | None = None
    node_names: NDArray[Any] | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many edges were left out as ``self_loops``, ``duplicates`` or ``zero_weights`` (rows of the edge table)."""
    edge_columns: tuple[str, str] | None = None
    """The columns used as source and target, where the edge table has no columns of these names."""
    table_columns: Mapping[str, str] = field(default_factory=dict)
    """The columns that were named when its tables were read, by "id", "source" and so on; see `Columns.named`."""
    encoding: Encoding | None = None
    """How its features were made of the columns of a table; None: they were numbers, and are as they were."""
    kind: str = ""
    """The type of its nodes, where there are several types."""
    others: Mapping[str, Record] = field(default_factory=dict)
    """The nodes of the other types, by type."""
    relations: tuple[Relation, ...] = ()
    """The edges between nodes of several types."""
    folder: Path | None = None
    """The graph folder whose arrays it maps, where it was opened from one; see `open`."""

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
        return self.edges.n

    @property
    def num_edges(self) -> int:
        """The number of edges; an undirected edge counts once."""
        if self.relations:
            return sum(relation.count for relation in self.relations)
        return self.edges.nnz if self.directed else self.edges.nnz // 2

    @property
    def num_features(self) -> int:
        """F."""
        return self.table.shape[1]

    @property
    def directed(self) -> bool:
        """Whether edges, of several types those within a type, have directions; messages then run to the target."""
        return self.edges.directed or any(one.source == one.target and not one.symmetric for one in self.relations)

    @property
    def weighted(self) -> bool:
        """Whether any edge has a weight other than 1."""
        return self.edges.weighted

    def called(self, rows: Any) -> NDArray[Any]:
        """What to call some nodes, as text ``[n]``: their names, and the id where there is none."""
        ids = np.array(list(map(str, self.ids[rows].tolist())), dtype=object)
        return ids if self.node_names is None else np.where(self.node_names[rows] == "", ids, self.node_names[rows])

    @property
    def types(self) -> tuple[str, ...]:
        """The types of nodes, in alphabetical order; empty where there is only one."""
        return tuple(sorted({self.kind, *self.others})) if self.kind else ()

    def target(self, kind: str) -> Self:
        """The same graph, seen from the nodes of another type."""
        if kind == self.kind:
            return self
        if kind not in self.others:
            raise InputError("type of nodes", f"one of {', '.join(self.types) or 'no types'}", shorten(kind))
        here = dataclasses.replace(self, kind="", others={}, relations=(), folder=None)
        others = {name: record for name, record in self.others.items() if name != kind} | {self.kind: here}
        fields = {name: getattr(self.others[kind], name) for name in _OF_NODES}
        return dataclasses.replace(
            here, **fields, kind=kind, others=others, relations=self.relations, folder=self.folder
        )

    def by_type(self) -> dict[str, Self]:
        """The same graph, seen from each of its types."""
        return {kind: self.target(kind) for kind in self.types}

    def scaled(self, scaler: Scaler) -> Self:
        """The same graph with scaled features, those of the other types as well."""
        others = {kind: record.scaled(scaler.others[kind]) for kind, record in self.others.items()}
        return dataclasses.replace(self, table=self.table.scaled(scaler), others=others)

    def replace(
        self, *, adjacency: Any = None, directed: bool | None = None, features: Features | None = None, **fields: Any
    ) -> Self:
        """The same graph with some things replaced; what is None stays.

        Args:
            adjacency: ``[N, N]`` CSR, without self-loops, zeros and duplicates; symmetric unless directed.
            directed: whether edges have directions.
            features: ``[N, F]``, dense or CSR.
            fields: other fields by name, such as ``labels`` and ``splits``.
        """
        if adjacency is not None or directed is not None:
            matrix = self.adjacency if adjacency is None else adjacency
            fields["edges"] = Adjacency(matrix, self.directed if directed is None else directed)
        if features is not None:
            fields |= {"table": Table(features), "encoding": None}
        return dataclasses.replace(self, **fields)

    def part(self, mask: NDArray[np.bool_]) -> Self:
        """The subgraph of the nodes of a mask ``[N]``: these nodes and the edges among them."""
        rows = np.flatnonzero(checks.check_column("mask", mask, self.num_nodes, "b", "booleans"))
        relations = tuple(relation.part(self.kind, rows) for relation in self.relations)
        use = f"read {len(rows):,} of its nodes"
        remedy = "Make a graph folder of these nodes alone: infomax prepare."
        require_room(self.table.to_read(len(rows)) + self.edges.to_read(rows), use, remedy)
        held_out = self.held_out
        if held_out is not None:
            held_out = np.searchsorted(rows, held_out[:, mask[held_out].all(axis=0)])
        return dataclasses.replace(
            self,
            edges=self.edges.part(rows),
            table=Table(self.table[rows]),
            ids=self.ids[rows],
            labels={name: column[rows] for name, column in self.labels.items()},
            splits={name: column[rows] for name, column in self.splits.items()},
            groups=None if self.groups is None else self.groups[rows],
            held_out=held_out,
            relations=relations,
            node_names=None if self.node_names is None else self.node_names[rows],
            folder=None,
        )

    def seen(self) -> Self:
        """The part of the graph that training may use: the split "seen" of each type, or all where there is none."""
        graph = self
        for kind in self.types or ("",):
            graph = graph.target(kind)
            graph = graph.part(graph.splits["seen"]) if "seen" in graph.splits else graph
        return graph.target(self.kind)

    def scaler(self, kind: Scale = "auto") -> Scaler:
        """The scaler of the features, fitted to the nodes that training may see; ``auto`` leaves positions and encoded
        columns alone.
        """
        others = {name: record.scaler(kind) for name, record in self.others.items()}
        encoded = self.encoding is not None and not self.encoding.raw
        if kind == "auto" and (encoded or made(self.feature_names) == "positions"):
            kind = "none"
        return dataclasses.replace(self.table.fit_scaler(kind, self.splits.get("seen")), others=others)

    def by_rows(self) -> Self:
        """The same graph with features that are read row by row, those of the other types as well."""
        others = {kind: record.by_rows() for kind, record in self.others.items()}
        return dataclasses.replace(self, table=self.table.by_rows(), others=others)

    def loaded(self) -> Self:
        """The same graph with all of its arrays in memory."""
        require_room(self.table.to_read() + self.edges.to_read(), "read all of it")
        return dataclasses.replace(
            self,
            edges=self.edges.loaded(),
            table=self.table.loaded(),
            ids=self.ids[:],
            labels=dict(self.labels),
            splits=dict(self.splits),
            others={kind: record.loaded() for kind, record in self.others.items()},
            relations=tuple(relation.loaded() for relation in self.relations),
            node_names=None if self.node_names is None else self.node_names[:],
            folder=None,
        )

    @classmethod
    def from_arrays(
        cls,
        edges: ArrayLike,
        features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
        *,
        weight: ArrayLike | None = None,
        num_nodes: int | None = None,
        directed: bool = False,
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
            columns: ids, feature_names, labels, splits, groups, held_out, node_names as in `Graph`.
        """
        ends = checks.check_ends(edges)
        n = checks.count_nodes(num_nodes, features, columns.get("ids"), ends)
        matrix = checks.check_links(ends, weight, (n, n))
        return cls.from_scipy(matrix, features, directed=directed, binary=weight is None, **columns)

    @classmethod
    def from_scipy(
        cls,
        adjacency: sparse.sparray | sparse.spmatrix,
        features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
        *,
        directed: bool = False,
        binary: bool = False,
        ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        splits: Mapping[str, ArrayLike] | None = None,
        groups: ArrayLike | None = None,
        held_out: ArrayLike | None = None,
        node_names: ArrayLike | None = None,
        encoding: Encoding | None = None,
    ) -> Self:
        """A graph from a scipy matrix.

        Args:
            adjacency: ``[N, N]``, ``A[i, j]`` is the weight of the edge i -> j.
            features: as in `from_arrays`.
            directed: as in `from_arrays`.
            binary: let every entry count as 1, however often it is listed.
            ids: ``[N]`` integers or text, unique; None: the numbers from 0.
            feature_names: F names; None: x0, x1, ...
            labels: name -> ``[N]`` or ``[N, C]``, as in `Graph`.
            splits: name -> ``[N]`` bool, as in `Graph`.
            groups: ``[N]`` integers, the graph of each node where there are several.
            held_out: ``[2, H]`` rows, edges that are set aside.
            node_names: ``[N]`` text, shown beside the ids.
            encoding: how the features were made of columns, as in `Graph`.
        """
        shape: tuple[int, ...] = getattr(adjacency, "shape", ())
        if len(shape) != 2 or shape[0] != shape[1]:
            found = f"shape {list(shape)}" if shape else type(adjacency).__name__
            raise InputError("adjacency", "a square matrix", found)
        n = int(shape[0])
        matrix, dropped = checks.clean(adjacency, directed, binary)
        edges = Adjacency(matrix, directed)
        checked = np.arange(n) if ids is None else checks.check_ids(ids, n)
        checks.check_sums(matrix, checked.__getitem__)
        parts = checks.check_columns("splits", splits, n, checks.check_mask)
        if features is None or isinstance(features, str):
            if feature_names is not None:
                raise InputError("feature_names", "features that have these names", "none")
            kind = features or usual(groups is not None)
            if kind not in MADE:
                raise InputError("features", f"an array, or {' or '.join(MADE)}", shorten(kind))
            features, feature_names = make(kind, edges, checked, parts.get("seen")), MADE[kind]
        values = checks.check_features(features, n)
        if feature_names is None:
            feature_names = [f"x{column}" for column in range(values.shape[1])]
        if len(feature_names) != values.shape[1]:
            raise InputError("feature_names", number_of(values.shape[1], "name"), str(len(feature_names)))
        if encoding is not None and encoding.feature_names != list(feature_names):
            raise InputError("encoding", "the features of the graph", f"{len(encoding.feature_names)} others")
        return cls(
            edges=edges,
            table=Table(values),
            ids=checked,
            feature_names=tuple(map(str, feature_names)),
            labels=checks.check_columns("labels", labels, n, checks.check_labels),
            splits=parts,
            groups=None if groups is None else checks.check_groups(groups, matrix),
            held_out=None if held_out is None else check_held_out(held_out, matrix),
            node_names=None if node_names is None else checks.check_names(node_names, n),
            dropped=dropped,
            encoding=encoding,
        )


_OF_NODES = tuple(
    field.name for field in dataclasses.fields(Record) if field.name not in ("kind", "others", "relations", "folder")
)
"""The fields that belong to the nodes of one type."""
