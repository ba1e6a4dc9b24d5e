"""The edges of a graph: one relation per type of edge, and the paths along them."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency, Entries, Senders
from infomax.arrays.edge_features import EdgeFeatures
from infomax.errors import InputError, shorten

RELATION = "to"
"""The name of a relation that has none."""
MOST_PATHS = 32
"""Paths that a type of nodes may have where none are named."""


@dataclass(frozen=True, eq=False)
class Relation:
    """The edges of one meaning, from S nodes of one type to T nodes of another, or of the same.

    Between two types messages run both ways: a node receives from the nodes of the other type that
    it is joined to. Within one type they run from source to target, and both ways where edges have
    no directions.
    """

    source: str
    name: str
    target: str
    edges: Adjacency
    """``[S, T]``, in memory or mapped."""
    edge_features: EdgeFeatures | None = None
    """Numbers of the edges among nodes of one type, for encoders that use them."""

    @classmethod
    def of(
        cls, source: str, name: str, target: str, matrix: sparse.csr_array, directed: bool = False
    ) -> Relation:
        """The relation of a clean matrix A ``[S, T]``; ``A[i, j]`` is the edge i -> j."""
        return cls(source, name, target, Adjacency(matrix, directed or source != target))

    @property
    def ends(self) -> tuple[str, str, str]:
        """The type of its sources, its name, the type of its targets; unique in a graph."""
        return self.source, self.name, self.target

    @property
    def within_one_type(self) -> bool:
        """Whether it joins nodes of one type."""
        return self.source == self.target

    @property
    def directed(self) -> bool:
        """Whether it joins nodes of one type by edges that have directions."""
        return self.within_one_type and self.edges.directed

    def with_matrix(self, matrix: sparse.csr_array) -> Relation:
        """The same relation with other edges among the same nodes."""
        return replace(self, edges=Adjacency(matrix, self.edges.directed))

    def loaded(self) -> Relation:
        """The same relation with its arrays in memory."""
        return replace(self, edges=self.edges.loaded())

    def part(self, node_type: str, rows: NDArray[np.int64]) -> Relation:
        """The edges that remain when only some nodes of a type are kept, by ascending rows."""
        if node_type not in (self.source, self.target):
            return self
        if self.within_one_type:
            features = None if self.edge_features is None else self.edge_features.part(rows)
            return replace(self, edges=self.edges.part(rows), edge_features=features)
        matrix = self.edges.matrix()
        kept = matrix[rows] if node_type == self.source else matrix[:, rows]
        return Relation.of(*self.ends, sparse.csr_array(kept))


@dataclass(frozen=True)
class Step:
    """One step of a path: nodes of a type receive along a relation, from those of the next type."""

    relation: Relation
    node_type: str
    """The type that receives."""

    @property
    def sender(self) -> str:
        """The type that sends."""
        return self.relation.source if self.is_forward else self.relation.target

    @property
    def is_forward(self) -> bool:
        """Whether messages run from the source of the relation to its target."""
        return self.node_type == self.relation.target

    @property
    def senders(self) -> Senders:
        """Who sends to each node."""
        edges = self.relation.edges
        return edges.senders if self.is_forward else edges.receivers

    def received(self, nodes: NDArray[np.int64]) -> Entries:
        """Who sends to some nodes."""
        edges = self.relation.edges
        return edges.received(nodes) if self.is_forward else edges.sent(nodes)

    def sent(self, nodes: NDArray[np.int64]) -> Entries:
        """Who receives from some nodes that send."""
        edges = self.relation.edges
        return edges.sent(nodes) if self.is_forward else edges.received(nodes)


def steps(relations: Sequence[Relation], node_type: str) -> list[Step]:
    """The steps that nodes of a type can receive by."""
    return [
        Step(relation, node_type)
        for relation in relations
        if node_type in (relation.source, relation.target)
    ]


def path_name(path: Sequence[Step], relations: Sequence[Relation]) -> str:
    """The name of a path: its types, as in paper-author-paper.

    Where several relations join the same types, it is named as well: paper-[writes]-author.
    """
    name = path[0].node_type
    for step in path:
        senders = [other_step.sender for other_step in steps(relations, step.node_type)]
        if senders.count(step.sender) > 1:
            name += f"-[{step.relation.name}]"
        name += f"-{step.sender}"
    return name


def find_paths(
    relations: Sequence[Relation], node_type: str, hops: int, ends: Collection[str]
) -> dict[str, list[Step]]:
    """The paths of up to so many steps from a type to one of the ``ends``, by name."""
    path_by_name: dict[str, list[Step]] = {}
    # The paths of one step more than in the round before; they begin with the empty path.
    longest_paths: list[list[Step]] = [[]]
    for _ in range(hops):
        longer_paths = []
        for path in longest_paths:
            last_type = path[-1].sender if path else node_type
            longer_paths += [[*path, step] for step in steps(relations, last_type)]
        for path in longer_paths:
            if path[-1].sender in ends:
                path_by_name[path_name(path, relations)] = path
        longest_paths = longer_paths
        # Looked at in every round, since the number of paths may grow fast.
        if len(path_by_name) > MOST_PATHS:
            found = f"{len(path_by_name)} of {hops} steps"
            remedy = "Name those that matter (--paths), or take fewer steps (--hops)."
            raise InputError(f"paths from {node_type}", f"at most {MOST_PATHS}", found, remedy)
    return path_by_name


def named_path(relations: Sequence[Relation], name: str) -> list[Step]:
    """The steps of a path, from its name such as paper-[writes]-author, as `path_name` writes it.

    A name is read from the receivers to the senders. Names of types hold no hyphens.
    """
    # A type; then a relation or None, and a type, and so on.
    node_type, *remaining_parts = re.split(r"-(?:\[(.*?)\]-)?", name)
    relation_names = remaining_parts[::2]
    senders = remaining_parts[1::2]
    path: list[Step] = []
    for relation_name, sender in zip(relation_names, senders, strict=True):
        possible_steps = steps(relations, node_type)
        steps_to_sender = [step for step in possible_steps if step.sender == sender]
        matching_steps = [
            step
            for step in steps_to_sender
            if relation_name is None or step.relation.name == relation_name
        ]
        if len(matching_steps) != 1:
            if steps_to_sender:
                choices = [
                    f"{node_type}-[{step.relation.name}]-{sender}" for step in steps_to_sender
                ]
            else:
                choices = sorted({f"{node_type}-{step.sender}" for step in possible_steps})
            expected = "a type that has edges"
            if choices:
                expected = f"a step such as {', '.join(choices)}"
            raise InputError(f"path {shorten(name)}", expected, shorten(f"{node_type}-{sender}"))
        path.append(matching_steps[0])
        node_type = sender
    if not path:
        expected = "types joined by hyphens, such as paper-author-paper"
        raise InputError("path", expected, shorten(name))
    return path
