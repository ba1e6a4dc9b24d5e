"""The paths along which an encoder pools, and the tables that it reads at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from infomax.arrays.relations import Step, named_path, steps
from infomax.arrays.table import FeatureTable
from infomax.errors import InputError
from infomax.io.record import Record
from infomax.views.propagation import Normalisation, Rule

Paths = Mapping[str, Sequence[Step]]
"""Paths by name."""


def no_path() -> InputError:
    """The error for several types and no path: nothing says over which neighbours to pool."""
    return InputError("encoder", "one that pools along paths", "one that pools over all neighbours")


def paths_of(graph: Record, rule: Rule) -> Paths:
    """The paths that an encoder asks for.

    The paper's graph has one, whose name is empty, of one step. Raise InputError if the encoder
    asks for none, or the graph does not have them.
    """
    if not graph.has_named_types:
        return {"": steps(graph.relations, "")}
    if not isinstance(rule, tuple):
        expected = "PathMean, for a graph of several types of nodes"
        raise InputError("encoder", expected, "one for a single type")
    return {name: named_path(graph.relations, name) for name in rule}


def tables_of(graph: Record, paths: Paths) -> dict[str, FeatureTable]:
    """The features of the types at which paths end, and of the type of the graph."""
    node_types = {path[-1].sender for path in paths.values()} | {graph.node_type}
    return {node_type: graph.nodes[node_type].table for node_type in sorted(node_types)}


def walks(graph: Record, rule: Rule, passes: int) -> tuple[list[Sequence[Step]], bool]:
    """All that vectors depend on: paths, and whether messages are weighted by the sender's degree.

    In a graph of one type a pass is a step from a node, and its own vector stays part of it.
    """
    paths = list(paths_of(graph, rule).values())
    if graph.has_named_types:
        return paths, False
    ((step,),) = paths
    weighs_senders = cast(Normalisation, rule).right != 0
    return [[step] * length for length in range(1, passes + 1)], weighs_senders
