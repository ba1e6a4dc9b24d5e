"""Links: which nodes are joined, by an edge or by a row that refers to both.

Such a row is a rental, which refers to a customer and a film. An edge between the rental and the
film is only half of a link: hiding one half of it hides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Senders, spans
from infomax.arrays.relations import Relation

LONGEST_CHAIN = 2
"""References that are followed one after the other.

A line of an order refers to the order, and that to its customer.
"""


@dataclass(frozen=True, eq=False)
class Links:
    """The links of one kind, from nodes of one type to nodes of another, or of the same.

    Attributes:
        first_type: the type of the nodes in ``first``.
        second_type: the type of the nodes in ``second``.
        by: the type of the rows that join them, or the name of the relation whose edges do.
        first: ``[M]`` rows of nodes.
        second: ``[M]`` rows of nodes.
        rows: ``[M]`` the rows that join them; None where edges do.
        first_path: the types that a row refers to one after the other, up to the first type.
        second_path: the same up to the second type.
    """

    first_type: str
    second_type: str
    by: str
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None
    first_path: tuple[str, ...] = ()
    second_path: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.first)

    def __str__(self) -> str:
        return f"{self.first_type} - {self.second_type} by {self.by}"

    def reversed(self) -> Links:
        """The same links, seen from their other end."""
        return Links(
            self.second_type,
            self.first_type,
            self.by,
            self.second,
            self.first,
            self.rows,
            self.second_path,
            self.first_path,
        )


class Reference(NamedTuple):
    """A relation by which each row of the source refers to at most one row of the target.

    The edges of the relation may run in either direction.
    """

    source: str
    target: str
    relation: Relation
    rows: NDArray[np.int64]
    """``[S]``, the row that each row refers to; -1 for none."""


@dataclass(frozen=True, eq=False)
class Chain:
    """References one after the other.

    ``rows [n]`` are the rows of the last type that the rows of the first type refer to; -1 for
    none.
    """

    path: tuple[Reference, ...]
    rows: NDArray[np.int64]

    @property
    def node_type(self) -> str:
        """The type that is referred to."""
        return self.path[-1].target

    @property
    def types(self) -> tuple[str, ...]:
        """The types on the way, this one last."""
        return tuple(reference.target for reference in self.path)

    def passes(self, other: Chain) -> bool:
        """Whether the other chain is the beginning of this one."""
        relations = [reference.relation for reference in self.path]
        other_relations = [reference.relation for reference in other.path]
        return relations[: len(other_relations)] == other_relations


def find_references(relations: Sequence[Relation]) -> list[Reference]:
    """The relations between two types that are references."""
    references = []
    for relation in relations:
        if relation.within_one_type or not relation.edges.nnz:
            continue
        # Rows of the source refer, where each has at most one edge; else rows of the target may.
        forward = _referred_rows(relation.edges.receivers)
        if forward is not None:
            references.append(Reference(relation.source, relation.target, relation, forward))
            continue
        backward = _referred_rows(relation.edges.senders)
        if backward is not None:
            references.append(Reference(relation.target, relation.source, relation, backward))
    return references


def _referred_rows(neighbours: Senders) -> NDArray[np.int64] | None:
    """The one neighbour ``[S]`` of each row, -1 for none; None where a row has several."""
    counts = np.diff(neighbours.indptr)
    # A row with several neighbours lists them; it does not refer to one.
    if int(counts.max(initial=0)) != 1:
        return None
    rows = np.full(len(counts), -1, np.int64)
    rows[counts > 0] = neighbours.indices[:]
    return rows


def find_chains(
    references: Sequence[Reference], node_type: str, longest: int = LONGEST_CHAIN
) -> list[Chain]:
    """The chains of at most ``longest`` references from a type, the shortest first."""
    longest_chains = [
        Chain((reference,), reference.rows)
        for reference in references
        if reference.source == node_type
    ]
    chains: list[Chain] = []
    for _ in range(longest):
        chains += longest_chains
        # A type that was reached already is reached by a shorter chain.
        passed_types = {node_type} | {chain.node_type for chain in chains}
        longer_chains = []
        for chain in longest_chains:
            for reference in references:
                goes_on = reference.source == chain.node_type
                if goes_on and reference.target not in passed_types:
                    rows = _referred_by(chain.rows, reference.rows)
                    longer_chains.append(Chain((*chain.path, reference), rows))
        longest_chains = longer_chains
    return chains


def _referred_by(rows: NDArray[np.int64], referred_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """To which row each of some rows refers; -1 stays -1."""
    return np.where(rows >= 0, referred_rows[rows], -1)


def find_links(relations: Sequence[Relation], node_type: str) -> list[Links]:
    """The links of nodes of a type, which are ``first``; those by edges before those by rows."""
    references = find_references(relations)
    referred_types = {reference.target for reference in references}
    facts = [name for name in joining_types(relations) if name not in referred_types]

    # Facts are rows that join others and to which none refers. An edge between a fact and what it
    # refers to is half of a link, except where the fact itself is looked at.
    halves = [reference.relation for reference in references if reference.source in facts]

    # Links by edges.
    all_links: list[Links] = []
    for relation in relations:
        is_half = relation in halves and node_type not in facts
        if node_type in (relation.source, relation.target) and not is_half:
            links = links_of(relation)
            all_links.append(links if relation.source == node_type else links.reversed())

    # Links by rows: a row joins each pair of rows that it refers to.
    for row_type in dict.fromkeys(reference.source for reference in references):
        if row_type == node_type:
            continue
        for first, second in combinations(find_chains(references, row_type), 2):
            if node_type not in (first.node_type, second.node_type):
                continue
            if second.passes(first) or first.passes(second):
                # A customer of an order and that order are no link: the longer chain says both.
                continue
            links = _joined_by_rows(row_type, first, second)
            all_links.append(links if first.node_type == node_type else links.reversed())
    return [links for links in all_links if len(links)]


def links_of(relation: Relation) -> Links:
    """The edges of a relation; those without directions once."""
    entries = relation.edges.matrix().tocoo()
    first, second = (np.asarray(rows, np.int64) for rows in (entries.row, entries.col))
    if relation.within_one_type and not relation.directed:
        is_once = first < second
        first, second = first[is_once], second[is_once]
    return Links(relation.source, relation.target, relation.name, first, second)


def _joined_by_rows(row_type: str, first_chain: Chain, second_chain: Chain) -> Links:
    """The nodes to which the same row refers."""
    rows = np.flatnonzero((first_chain.rows >= 0) & (second_chain.rows >= 0))
    return Links(
        first_type=first_chain.node_type,
        second_type=second_chain.node_type,
        by=row_type,
        first=first_chain.rows[rows],
        second=second_chain.rows[rows],
        rows=rows,
        first_path=first_chain.types,
        second_path=second_chain.types,
    )


def joining_types(relations: Sequence[Relation]) -> list[str]:
    """The types whose rows join others: by two relations or more, a row refers to one row each."""
    sources = [reference.source for reference in find_references(relations)]
    joining = [name for name in dict.fromkeys(sources) if sources.count(name) > 1]
    return [name for name in joining if sources.count(name) == _relation_count(relations, name)]


def _relation_count(relations: Sequence[Relation], node_type: str) -> int:
    """How many relations a type has, except those by which other types refer to it."""
    referring = [
        reference.relation
        for reference in find_references(relations)
        if reference.target == node_type
    ]
    return sum(
        node_type in (relation.source, relation.target) and relation.edges.nnz > 0
        for relation in relations
        if relation not in referring
    )


def hidden_links(
    held_out: NDArray[np.int64],
    first_rows: Mapping[str, int],
    relations: Sequence[Relation],
    links: Links,
) -> Links:
    """The links among hidden edges that are like some known links.

    Of a hidden row that joined others, all references are hidden; what these refer to is known.

    Args:
        held_out: ``[2, H]`` rows, counted over all types.
        first_rows: the row of the first node of each type.
        relations: the relations of the graph, without the hidden edges.
        links: known links of the same types, by the same relation or rows.
    """
    starts = sorted((start, name) for name, start in first_rows.items())
    type_names = [name for _, name in starts]
    type_starts = np.array([start for start, _ in starts])

    # The type and the row in its type of each end of a hidden edge.
    types = np.searchsorted(type_starts, held_out, side="right") - 1
    rows = held_out - type_starts[types]

    def hidden_edges(source: str, target: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ends = [type_names.index(name) for name in (source, target)]
        forward = (types[0] == ends[0]) & (types[1] == ends[1])
        backward = (types[1] == ends[0]) & (types[0] == ends[1]) & (source != target)
        first = np.concatenate([rows[0, forward], rows[1, backward]])
        second = np.concatenate([rows[1, forward], rows[0, backward]])
        return first, second

    if links.rows is None:
        first, second = hidden_edges(links.first_type, links.second_type)
        return Links(links.first_type, links.second_type, links.by, first, second)

    references = find_references(relations)
    sides = []
    for path in (links.first_path, links.second_path):
        owners, referred = hidden_edges(links.by, path[0])
        for source, target in pairwise(path):
            next_reference = next(
                reference
                for reference in references
                if (reference.source, reference.target) == (source, target)
            )
            referred = _referred_by(referred, next_reference.rows)
        sides.append((owners[referred >= 0], referred[referred >= 0]))

    # The links of a row are all pairs of what it refers to on both sides.
    (first_owners, first), (second_owners, second) = sides
    order = np.argsort(second_owners, kind="stable")
    begin = np.searchsorted(second_owners[order], first_owners, side="left")
    end = np.searchsorted(second_owners[order], first_owners, side="right")
    pair_owners, sorted_seconds = spans(begin, end - begin)
    first, second = first[pair_owners], second[order][sorted_seconds]
    is_pair = (first != second) | (links.first_type != links.second_type)
    return Links(links.first_type, links.second_type, links.by, first[is_pair], second[is_pair])


def linked_rows(
    relations: Sequence[Relation], node_type: str, other_type: str, sizes: tuple[int, int]
) -> sparse.csr_array:
    """Which nodes of a type are linked to which of another, in any way: 0/1 ``[N, M]``.

    ``sizes`` are N and M.
    """
    matrix = sparse.csr_array(sizes, dtype=np.float32)
    for links in find_links(relations, node_type):
        if links.second_type != other_type:
            continue
        ones = np.ones(len(links), np.float32)
        matrix = matrix + sparse.csr_array((ones, (links.first, links.second)), shape=sizes)

    # A row may refer by a chain: a track to its album, and that to its artist.
    references = find_references(relations)
    for source, target in ((node_type, other_type), (other_type, node_type)):
        for referred in find_chains(references, source):
            if referred.node_type == target and len(referred.path) > 1:
                rows = np.flatnonzero(referred.rows >= 0)
                pair = (rows, referred.rows[rows])
                ends = pair if source == node_type else pair[::-1]
                ones = np.ones(len(rows), np.float32)
                matrix = matrix + sparse.csr_array((ones, ends), shape=sizes)
    matrix.data[:] = 1
    return sparse.csr_array(matrix)
