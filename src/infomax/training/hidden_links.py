"""Whether an encoder knows who is linked to whom, measured on links that are hidden from it.

Some links are taken out of the graph, and the trained encoder computes vectors without them: its
weights were trained on the full graph, but it reads the graph without these links. Nodes that a
hidden link joins should then be more alike than other pairs. A link to another type joins two nodes
of the first type that are linked to the same node: two tracks of one album. The same is measured of
the encoder before training. No labels are needed, nothing is trained, and the same graph gives the
same figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.links import Links, find_links
from infomax.arrays.relations import Relation
from infomax.arrays.structural_features import structural_features_named
from infomax.evaluation.metrics import auc_of_values
from infomax.graphs.graph import Graph
from infomax.parts.encoders import Encoder
from infomax.parts.vectors import PAPER
from infomax.training.recipe import Recipe
from infomax.training.vectors import embed

MOST_HIDDEN_LINKS = 2_000
"""Links of each pair of types that are hidden, at most.

The AUC of so many pairs deviates by 0.01 by luck.
"""
LARGEST_HIDDEN_SHARE = 0.2
"""The share of the links of a pair of types that is hidden, at most: the graph stays similar."""
FEWEST_SCORED_PAIRS = 200
"""Pairs of nodes from which on an AUC is reported: that of fewer deviates by 0.03 by luck."""
MOST_EDGE_ENTRIES = 5_000_000
"""Entries of all relations up to which links are hidden: taking them out reads all of them."""


@dataclass(frozen=True)
class HiddenLinkScores:
    """How well vectors tell hidden links from random pairs.

    The links are those of the pair of types that the trained encoder knows best.

    Attributes:
        links: which links, such as ``"track - album by album_id"``; "edges" in a graph of one type.
        pairs: how many pairs of nodes were compared.
        trained: the AUC of the trained encoder; 0.5 is chance.
        untrained: that of the same encoder with its first weights.
    """

    links: str
    pairs: int
    trained: float
    untrained: float


@dataclass(frozen=True, eq=False)
class HiddenLinks:
    """A graph without some of its links."""

    graph: Graph
    pairs: dict[str, NDArray[np.int64]]
    """By the name of the links, the pairs of nodes ``[2, P]`` that hidden ones join."""


def score_hidden_links(
    graph: Graph,
    recipe: Recipe,
    untrained_encoder: Encoder,
    device: str,
    *,
    fewest_pairs: int = FEWEST_SCORED_PAIRS,
    seed: int = 0,
) -> dict[str, Any] | None:
    """The scores of an encoder and of its first weights on hidden links, as JSON values.

    None where the graph has too few links that can be hidden.

    Args:
        graph: the graph that training saw.
        recipe: what makes the vectors, with the trained encoder.
        untrained_encoder: the same encoder with its first weights.
        device: where vectors are computed, by name.
        fewest_pairs: the fewest pairs of nodes of which an AUC is reported.
        seed: draws the links, and the random pairs.
    """
    if not can_hide_links(graph):
        return None
    draws = np.random.default_rng(seed)
    hidden = hide_links(graph, draws)
    pairs = {name: ends for name, ends in hidden.pairs.items() if ends.shape[1] >= fewest_pairs}
    if not pairs:
        return None

    # Vectors are computed for the nodes of the pairs alone.
    rows = np.unique(np.concatenate([ends.ravel() for ends in pairs.values()]))
    encoder_alone = recipe.only(PAPER)
    trained_vectors = embed(encoder_alone, hidden.graph, device, rows=rows)
    before_training = replace(encoder_alone, encoder=untrained_encoder)
    untrained_vectors = embed(before_training, hidden.graph, device, rows=rows)

    scores: list[HiddenLinkScores] = []
    for name, ends in pairs.items():
        linked = np.searchsorted(rows, ends)
        # Both nodes of a random pair are ends of some link, so that popular nodes are as frequent
        # as in links.
        random = np.stack([linked[0], draws.permutation(linked[1])])
        random = random[:, random[0] != random[1]]
        trained = _auc(trained_vectors, linked, random)
        untrained = _auc(untrained_vectors, linked, random)
        scores.append(HiddenLinkScores(name, ends.shape[1], trained, untrained))
    return asdict(max(scores, key=lambda score: score.trained))


def can_hide_links(graph: Graph, most_entries: int = MOST_EDGE_ENTRIES) -> bool:
    """Whether links can be hidden from an encoder.

    The graph must be a single one, in memory, and have features besides its edges.
    """
    if graph.groups is not None or any(nodes.table.mapped for nodes in graph.nodes.values()):
        return False
    if any(relation.edge_features is not None for relation in graph.relations):
        return False
    if sum(relation.edges.nnz for relation in graph.relations) > most_entries:
        return False

    # Features that are made of the edges would know the hidden ones.
    return any(
        nodes.num_features and structural_features_named(nodes.feature_names) is None
        for nodes in graph.nodes.values()
    )


def hide_links(graph: Graph, draws: np.random.Generator) -> HiddenLinks:
    """The graph without a share of the links of its type.

    Links are edges of a relation, or rows of another type that join nodes; of each a share is
    hidden.
    """
    hidden_rows: dict[str, NDArray[np.bool_]] = {}
    hidden_edges: dict[tuple[str, str, str], tuple[NDArray[Any], NDArray[Any]]] = {}
    pairs: dict[str, NDArray[np.int64]] = {}
    for links in find_links(graph.relations, graph.node_type):
        if links.rows is None:
            is_hidden = draws.random(len(links)) < _hidden_share(len(links))
            relation = _relation_of(graph, links)
            ends = (links.first[is_hidden], links.second[is_hidden])
            is_forward = relation.source == links.first_type
            hidden_edges[relation.ends] = ends if is_forward else ends[::-1]
        else:
            # A row that joins several nodes is hidden from all of them.
            if links.by not in hidden_rows:
                row_count = graph.nodes[links.by].num_nodes
                hidden_rows[links.by] = draws.random(row_count) < _hidden_share(row_count)
            is_hidden = hidden_rows[links.by][links.rows]
        name = str(links) if graph.has_named_types else "edges"
        pairs[name] = _pairs_joined(links, is_hidden, draws)

    relations = tuple(_without(graph, hidden_edges, hidden_rows))
    return HiddenLinks(replace(graph, relations=relations, held_out=None), pairs)


def _hidden_share(count: int) -> float:
    return min(LARGEST_HIDDEN_SHARE, MOST_HIDDEN_LINKS / max(count, 1))


def _relation_of(graph: Graph, links: Links) -> Relation:
    """The relation whose edges are the links, seen from either end."""
    types = {links.first_type, links.second_type}
    return next(
        relation
        for relation in graph.relations
        if relation.name == links.by and {relation.source, relation.target} == types
    )


def _pairs_joined(
    links: Links, is_hidden: NDArray[np.bool_], draws: np.random.Generator
) -> NDArray[np.int64]:
    """Pairs ``[2, P]`` of different nodes of the first type that hidden links join.

    Of a link to another type, the second node is drawn among the nodes that are still linked to the
    same node of the other type.
    """
    first, second = links.first[is_hidden], links.second[is_hidden]
    if links.second_type != links.first_type:
        order = np.argsort(links.second[~is_hidden], kind="stable")
        known_first = links.first[~is_hidden][order]
        known_second = links.second[~is_hidden][order]
        begin = np.searchsorted(known_second, second, side="left")
        end = np.searchsorted(known_second, second, side="right")
        has_others = end > begin
        drawn = draws.integers(begin[has_others], end[has_others])
        first, second = first[has_others], known_first[drawn]
    pairs = np.stack([first, second])
    return pairs[:, first != second]


def _without(
    graph: Graph,
    hidden_edges: dict[tuple[str, str, str], tuple[NDArray[Any], NDArray[Any]]],
    hidden_rows: dict[str, NDArray[np.bool_]],
) -> Iterator[Relation]:
    """The relations of a graph without hidden edges, and without all edges of hidden rows."""
    for relation in graph.relations:
        matrix = relation.edges.matrix()
        entries = matrix.tocoo()
        is_hidden = np.zeros(len(entries.row), bool)
        for node_type, ends in ((relation.source, entries.row), (relation.target, entries.col)):
            if node_type in hidden_rows:
                is_hidden |= hidden_rows[node_type][ends]
        if relation.ends in hidden_edges:
            sources, targets = hidden_edges[relation.ends]
            keys = entries.row.astype(np.int64) * matrix.shape[1] + entries.col
            is_hidden |= np.isin(keys, sources * matrix.shape[1] + targets)
            if relation.within_one_type:  # one direction would give away the other
                is_hidden |= np.isin(keys, targets * matrix.shape[1] + sources)
        kept = (entries.row[~is_hidden], entries.col[~is_hidden])
        remaining = sparse.csr_array((entries.data[~is_hidden], kept), shape=matrix.shape)
        yield Relation.of(*relation.ends, remaining, relation.directed)


def _auc(
    vectors: NDArray[np.float32], linked: NDArray[np.int64], random: NDArray[np.int64]
) -> float:
    """How often the cosine of a linked pair ``[2, P]`` is above that of a random pair.

    Vectors ``[n, d]`` are centred first.
    """
    centred = vectors - vectors.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    directions = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    linked_cosines = np.einsum("pd,pd->p", directions[linked[0]], directions[linked[1]])
    random_cosines = np.einsum("pd,pd->p", directions[random[0]], directions[random[1]])
    return round(auc_of_values(linked_cosines, random_cosines), 4)
