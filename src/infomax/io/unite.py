"""The graph of columns of nodes by type, and of edges by relation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.arrays import checks
from infomax.arrays.relations import Relation
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import (
    default_structural_features,
    structural_features_named,
)
from infomax.arrays.table import FeatureTable
from infomax.errors import InputError, shorten, within
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.union import structural_features_of_types

Ends: TypeAlias = tuple[str, str, str]
"""A relation: the type of its sources, its name, the type of its targets."""
Links: TypeAlias = tuple[NDArray[Any], NDArray[np.float32] | None]
"""Edges ``[2, E]``, rows of the sources and of the targets, and their weights ``[E]``."""


def check_names(where: str, ends: Ends) -> None:
    """Refuse names of types and relations that cannot be told apart in ``paper-[writes]-author`` or ``paper:123``."""
    for what, name, kept in zip(("type", "relation", "type"), ends, ("-", "", "-"), strict=True):
        if not name or name.strip() != name or any(sign in name for sign in kept + ".:[]/\\\0"):
            expected = f"a name of a {what} without {' '.join(kept + '.:[]/')}"
            raise InputError(
                where, expected, shorten(name) if name else "an empty one", "Rename it."
            )


def unite(
    nodes: Mapping[str, Mapping[str, Any]],
    edges: Mapping[Ends, Links],
    *,
    directed: Collection[Ends] = (),
    structural_features: str | None = None,
    held_out: ArrayLike | None = None,
) -> Record:
    """The graph of nodes by type and of edges by relation; the only type may have no name.

    Args:
        nodes: columns as in `Record.of_columns`, with ids.
        edges: rows and weights.
        directed: the relations within one type whose edges have directions.
        structural_features: as in `Record.of_columns`.
        held_out: as in `Record.of_columns`.
    """
    dropped: Counter[str] = Counter()
    relations = []
    for ends in sorted(edges):
        if ends[0]:
            check_names(f"relation {'.'.join(ends)}", ends)
        sizes = [len(nodes[node_type]["ids"]) for node_type in ends[::2]]
        matrix, left_out = relation_matrix(ends, edges[ends], sizes, ends in directed)
        relations.append(Relation.of(*ends, matrix, ends in directed))
        dropped.update(left_out)
    for node_type in filter(None, nodes):
        check_names(f"type {shorten(node_type)}", (node_type, "to", node_type))
    sized = {
        node_type: {"n": len(columns["ids"]), **columns} for node_type, columns in nodes.items()
    }
    return Record.of_columns(
        sized,
        relations,
        structural_features=structural_features,
        held_out=held_out,
        dropped=dict(dropped),
    )


def relation_matrix(
    ends: Ends, links: Links, sizes: list[int], directed: bool
) -> tuple[sparse.csr_array, dict[str, int]]:
    """The clean matrix ``[S, T]`` of a relation, and how many of its edges were left out."""
    one_type = ends[0] == ends[2]
    with within(f"relation {'.'.join(ends)}") if ends[0] else nullcontext():
        matrix = checks.matrix_of_edges(*links, (sizes[0], sizes[1]))
        return checks.clean_matrix(
            matrix, directed or not one_type, links[1] is None, between_types=not one_type
        )


def without_structural_features(graph: Record) -> Record:
    """The graph as tables hold it: without those features that are made again when it is read."""
    default = default_structural_features(graph.groups is not None)
    bare = {
        node_type: default
        for node_type, one in graph.nodes.items()
        if structural_features_named(one.feature_names) == default
    }
    anew = structural_features_of_types(graph.nodes, graph.relations, bare)

    def without(node_type: str, one: Nodes) -> Nodes:
        same = node_type in anew and np.allclose(
            dense(one.table.values), dense(anew[node_type]), atol=1e-5
        )
        return without_features(one) if same else one

    return graph.with_nodes(without)


def without_features(nodes: Nodes) -> Nodes:
    """The nodes with no feature at all, as a table of nodes may be written."""
    return replace(
        nodes, table=FeatureTable(np.empty((nodes.num_nodes, 0), np.float32)), feature_names=()
    )
