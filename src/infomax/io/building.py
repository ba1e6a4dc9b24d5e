"""Make the record of a graph: of arrays, of a matrix, or of columns and edges by type.

All values are checked here, so that all other code can rely on them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.adjacency import Adjacency
from infomax.arrays.edge_features import EdgeFeatures
from infomax.arrays.held_out import check_held_out
from infomax.arrays.relations import RELATION, Relation
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import (
    STRUCTURAL_FEATURE_NAMES,
    StructuralFeatures,
    default_structural_features,
    structural_features_named,
)
from infomax.arrays.table import FeatureTable
from infomax.errors import InputError, shorten, within
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.schema.schema import Ends
from infomax.io.union import adjacency_of_all_types, structural_features_of_types

WeightedEdges: TypeAlias = tuple[NDArray[Any], NDArray[np.float32] | None]
"""Edges ``[2, E]``, rows of the sources and of the targets, and their weights ``[E]``."""
AnyRecord = TypeVar("AnyRecord", bound=Record)


def from_arrays(
    edges: ArrayLike,
    features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
    *,
    weight: ArrayLike | None = None,
    num_nodes: int | None = None,
    directed: bool = False,
    edge_features: ArrayLike | None = None,
    **columns: Any,
) -> Record:
    """The graph of arrays; `Graph.from_arrays` explains the arguments."""
    ends = checks.check_ends(edges)
    n = checks.count_nodes(num_nodes, features, columns.get("ids"), ends)
    matrix = checks.matrix_of_edges(ends, weight, (n, n))
    graph = from_scipy(matrix, features, directed=directed, binary=weight is None, **columns)
    if edge_features is None:
        return graph
    return with_edge_features(graph, ends, edge_features)


def from_scipy(
    adjacency: sparse.sparray | sparse.spmatrix,
    features: ArrayLike | sparse.sparray | sparse.spmatrix | str | None = None,
    *,
    directed: bool = False,
    binary: bool = False,
    groups: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    **columns: Any,
) -> Record:
    """The graph of a matrix; `Graph.from_scipy` explains the arguments."""
    shape: tuple[int, ...] = getattr(adjacency, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1]:
        found = f"shape {list(shape)}" if shape else type(adjacency).__name__
        raise InputError("adjacency", "a square matrix", found)
    matrix, dropped = checks.clean_matrix(adjacency, directed, binary)
    relation = Relation("", RELATION, "", Adjacency(matrix, directed))

    structural_features: Any = None
    if isinstance(features, str):
        structural_features = features
        features = None
        if structural_features not in STRUCTURAL_FEATURE_NAMES:
            expected = f"an array, or {' or '.join(STRUCTURAL_FEATURE_NAMES)}"
            raise InputError("features", expected, shorten(structural_features))
    columns |= {"n": int(shape[0]), "features": features, "groups": groups}
    return from_relations(
        {"": columns},
        [relation],
        structural_features=structural_features,
        held_out=held_out,
        dropped=dropped,
    )


def from_edges(
    nodes: Mapping[str, Mapping[str, Any]],
    edges: Mapping[Ends, WeightedEdges],
    *,
    directed: Collection[Ends] = (),
    structural_features: StructuralFeatures | None = None,
    held_out: ArrayLike | None = None,
) -> Record:
    """The graph of nodes by type and of edges by relation; the only type may have no name.

    Args:
        nodes: the arguments of `Nodes.of` by type, with ids; they are counted here.
        edges: rows and weights.
        directed: the relations within one type whose edges have directions.
        structural_features: as in `from_relations`.
        held_out: as in `from_relations`.
    """
    dropped: Counter[str] = Counter()
    relations = []
    for ends in sorted(edges):
        source, _, target = ends
        if source:
            check_relation_names(f"relation {'.'.join(ends)}", ends)
        sizes = (len(nodes[source]["ids"]), len(nodes[target]["ids"]))
        matrix, left_out = relation_matrix(ends, edges[ends], sizes, ends in directed)
        relations.append(Relation.of(*ends, matrix, ends in directed))
        dropped.update(left_out)
    for node_type in nodes:
        if node_type:
            names = (node_type, RELATION, node_type)
            check_relation_names(f"type {shorten(node_type)}", names)
    counted_nodes = {
        node_type: {"n": len(columns["ids"]), **columns} for node_type, columns in nodes.items()
    }
    return from_relations(
        counted_nodes,
        relations,
        structural_features=structural_features,
        held_out=held_out,
        dropped=dict(dropped),
    )


def from_relations(
    nodes: Mapping[str, Mapping[str, Any]],
    relations: Sequence[Relation],
    *,
    structural_features: StructuralFeatures | None = None,
    held_out: ArrayLike | None = None,
    **about: Any,
) -> Record:
    """The graph of columns of nodes by type, which are checked here, and of clean relations.

    Args:
        nodes: the arguments of `Nodes.of` by type; features that are None are made of all edges.
        relations: the edges; of nodes without a type only one.
        structural_features: what to make of the edges. None: positions, or degrees where there are
            groups.
        held_out: ``[2, H]`` rows, see `Record`.
        about: other fields of the record.
    """
    checked_nodes = {}
    for node_type in sorted(nodes):
        with within(f"nodes of type {node_type}") if node_type else nullcontext():
            checked_nodes[node_type] = Nodes.of(**nodes[node_type])
    has_named_types = "" not in checked_nodes
    graph = Record(
        checked_nodes,
        tuple(relations),
        min(checked_nodes),
        node_type_is_first=has_named_types,
        **about,
    )

    # Groups and held-out edges are checked against all edges.
    checked_held_out = None
    if graph.groups is not None or held_out is not None:
        adjacency = adjacency_of_all_types(checked_nodes, relations)
        if graph.groups is not None:
            checks.check_groups(graph.groups, adjacency)
        if held_out is not None:
            checked_held_out = check_held_out(held_out, adjacency)

    if structural_features is None:
        structural_features = default_structural_features(graph.groups is not None)
    # Nodes without features get some that are made of the edges.
    requests = {
        node_type: structural_features
        for node_type, type_nodes in checked_nodes.items()
        if not type_nodes.num_features
    }
    graph = with_structural_features(graph, requests)
    return dataclasses.replace(graph, held_out=checked_held_out)


def relation_matrix(
    ends: Ends, edges: WeightedEdges, sizes: tuple[int, int], directed: bool
) -> tuple[sparse.csr_array, dict[str, int]]:
    """The clean matrix ``[S, T]`` of a relation, and how many of its edges were left out.

    Args:
        ends: the relation.
        edges: its edges.
        sizes: S and T.
        directed: whether the edges of a relation within one type have directions.
    """
    source, _, target = ends
    between_types = source != target
    rows, weights = edges
    with within(f"relation {'.'.join(ends)}") if source else nullcontext():
        matrix = checks.matrix_of_edges(rows, weights, sizes)
        return checks.clean_matrix(
            matrix, directed or between_types, weights is None, between_types=between_types
        )


def check_relation_names(where: str, ends: Ends) -> None:
    """Refuse names that cannot be told apart in ``paper-[writes]-author`` or ``paper:123``."""
    for part, name in zip(("type", "relation", "type"), ends, strict=True):
        reserved = ".:[]/"
        if part == "type":
            # Hyphens join the types of a path.
            reserved = "-" + reserved
        has_reserved = any(character in name for character in reserved + "\\\0")
        if not name or name.strip() != name or has_reserved:
            expected = f"a name of a {part} without {' '.join(reserved)}"
            found = shorten(name) if name else "an empty one"
            raise InputError(where, expected, found, "Rename it.")


def with_edge_features(
    graph: AnyRecord, edges: ArrayLike, values: ArrayLike, names: Sequence[str] | None = None
) -> AnyRecord:
    """The graph with features of its edges; `Graph.with_edge_features` explains the arguments."""
    if graph.has_named_types:
        remedy = "Give the edges a weight, or make the rows of the edge table nodes."
        found = f"types {', '.join(graph.types)}"
        raise InputError("features of edges", "a graph of one type of nodes", found, remedy)
    edge_features = EdgeFeatures.of(
        edges, values, names, num_nodes=graph.num_nodes, directed=graph.directed
    )
    relation = dataclasses.replace(graph.relations[0], edge_features=edge_features)
    return dataclasses.replace(graph, relations=(relation,), folder=None)


def with_structural_features(
    graph: AnyRecord, requests: Mapping[str, StructuralFeatures] | None = None
) -> AnyRecord:
    """The graph with features that are made of its edges.

    Args:
        graph: the graph.
        requests: what to make, by type of nodes. None: structural features that the graph has are
            made again, of the edges that it has now.
    """
    if requests is None:
        requests = {}
        for node_type, nodes in graph.nodes.items():
            structural_features = structural_features_named(nodes.feature_names)
            if structural_features is not None:
                requests[node_type] = structural_features
    if not requests:
        return graph
    nodes_by_type = dict(graph.nodes)
    made = structural_features_of_types(nodes_by_type, graph.relations, requests)
    for node_type, values in made.items():
        nodes_by_type[node_type] = dataclasses.replace(
            nodes_by_type[node_type],
            table=FeatureTable(values),
            feature_names=STRUCTURAL_FEATURE_NAMES[requests[node_type]],
        )
    return dataclasses.replace(graph, nodes=nodes_by_type)


def without_structural_features(graph: AnyRecord) -> AnyRecord:
    """The graph as tables hold it: without features that are made again when it is read."""
    default = default_structural_features(graph.groups is not None)
    requests = {
        node_type: default
        for node_type, nodes in graph.nodes.items()
        if structural_features_named(nodes.feature_names) == default
    }
    made_again = structural_features_of_types(graph.nodes, graph.relations, requests)

    def without(node_type: str, nodes: Nodes) -> Nodes:
        # Features may have been made of other edges, before some were held out.
        if node_type in made_again:
            values = dense(made_again[node_type])
            if np.allclose(dense(nodes.table.values), values, atol=1e-5):
                return without_features(nodes)
        return nodes

    return graph.with_nodes(without)


def without_features(nodes: Nodes) -> Nodes:
    """The nodes with no feature at all, as a table of nodes may be written."""
    no_features = np.empty((nodes.num_nodes, 0), np.float32)
    return dataclasses.replace(nodes, table=FeatureTable(no_features), feature_names=())
