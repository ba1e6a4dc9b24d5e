"""The vectors that a report scores: of a run, of each of its parts alone, and what a user could have had without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.links import find_links
from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.embeddings import Embeddings
from infomax.estimator import DGI
from infomax.evaluation import baselines
from infomax.graphs.graph import Graph
from infomax.parts.vectors import PAPER

OURS = "DGI"
RANDOM = "Random-Init"
RAW = "Raw features"
EDGES = "SVD of the edges"
AVERAGED = "Averaged features"
MOST_NUMBERS = 1 << 27
"""Numbers up to which averaged features are computed: 512 MB of float32."""
MOST_NODES = 200_000
"""Nodes up to which baselines are computed: their singular vectors take longer than those of the run."""
WRITES_ALL = "infomax evaluate RUN --out FOLDER"
"""The command that writes the vectors of every row but raw features, which the user has."""
WRITES_ALL_OF_EDGES = "infomax evaluate RUN --edges --out FOLDER"
"""The same, where edges are scored."""


class ComparedVectors(NamedTuple):
    """Some vectors ``[N, d]``, dense or sparse, under the name of their row."""

    name: str
    vectors: Any
    command: str = ""
    """What writes them."""
    is_fixed: bool = False
    """Whether no encoder has made them."""


def name_of_part(part: str) -> str:
    """The name of the row of a part alone: ``Positions alone``."""
    return f"{part[0].upper()}{part[1:]} alone"


def parts_alone(embeddings: Embeddings) -> list[str]:
    """The parts of vectors that are scored for themselves as well: all, where there are several."""
    return list(embeddings.parts) if len(embeddings.parts) > 1 else []


def untrained(model: DGI) -> DGI:
    """Random-Init: the encoder with which the training of a model began, and its output alone."""
    settings: dict[str, Any] = {
        "epochs": 0,
        "vectors": PAPER,
        "seed": model.seed_,
        "device": model.device,
    }
    return DGI(preset=model.preset_, **settings).fit(model.graph_)


def trained_vectors(embeddings: Embeddings) -> Iterator[ComparedVectors]:
    """All parts of the vectors of a run, and each part alone."""
    yield ComparedVectors(OURS, embeddings.vectors, "infomax embed RUN")
    for part in parts_alone(embeddings):
        columns = embeddings.columns[part]
        command = f"infomax embed RUN --vectors {part}"
        yield ComparedVectors(name_of_part(part), embeddings.vectors[:, columns], command)


def vectors_beside(
    model: DGI,
    rows: NDArray[np.int64] | None = None,
    *,
    raw: bool = True,
    with_baselines: bool = True,
    command: str = WRITES_ALL,
) -> Iterator[ComparedVectors]:
    """What a run is compared with, at all nodes or at some ``rows``: Random-Init, baselines and raw features.

    ``command`` is what writes them.
    """
    graph = model.graph_
    random = untrained(model).transform(graph, rows=rows).vectors
    yield ComparedVectors(RANDOM, random, command)

    if with_baselines and has_baselines(graph):
        yield ComparedVectors(EDGES, edge_vectors(graph), command, True)
        averaged = averaged_features(graph, model) if raw else None
        if averaged is not None:
            yield ComparedVectors(AVERAGED, averaged, command, True)
    if raw:
        table = graph.table.scaled(graph.scaler(model.preset_.scale))
        some: Any = slice(None) if rows is None else rows
        yield ComparedVectors(RAW, table[some], "", True)


def has_baselines(graph: Graph) -> bool:
    """Whether the baselines of a graph are computed: it is in memory, and not so large that they take long."""
    return not graph.table.mapped and graph.num_nodes <= MOST_NODES


def link_matrices(graph: Graph) -> list[tuple[str, sparse.csr_array]]:
    """What nodes of the graph's type are linked to: by type, 0/1 matrices ``[N, M]``."""
    matrices: list[tuple[str, sparse.csr_array]] = []
    for links in find_links(graph.relations, graph.node_type):
        shape = (graph.num_nodes, graph.nodes[links.second_type].num_nodes)
        ones = np.ones(len(links), np.float32)
        matrix = sparse.csr_array((ones, (links.first, links.second)), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        if links.second_type == graph.node_type:
            matrix = sparse.csr_array(matrix.maximum(matrix.T))
        matrices.append((links.second_type, matrix))
    return matrices


def edge_vectors(graph: Graph) -> NDArray[np.float32]:
    """Singular vectors ``[N, K]`` of the normalised edges of a type's nodes, those of all relations side by side."""
    if not graph.node_type:
        return baselines.edge_vectors(graph.adjacency)
    matrices = [baselines.normalised(matrix) for _, matrix in link_matrices(graph)]
    if not matrices:
        return np.zeros((graph.num_nodes, 1), np.float32)
    return baselines.edge_vectors(sparse.csr_array(sparse.hstack(matrices)))


def averaged_features(graph: Graph, model: DGI) -> Any:
    """Features averaged over two hops ``[N, F]``; None where nodes have none of their own, or they would be too many.

    Of several types they are the node's own, the means of those of its neighbours, and the means of its own type's over
    common neighbours, side by side.
    """
    scaled = graph.scaled(graph.scaler(model.preset_.scale))
    if not graph.node_type:
        too_many = graph.num_nodes * graph.num_features > MOST_NUMBERS
        if structural_features_named(graph.feature_names) or too_many:
            return None
        return baselines.averaged_features(scaled.table.values, graph.adjacency)

    own_features = scaled.table.values
    has_own = not structural_features_named(graph.feature_names)
    blocks = [own_features] if has_own else []
    width = graph.num_features
    for other_type, matrix in link_matrices(graph):
        other = scaled.nodes[other_type]
        width += other.num_features + graph.num_features
        if graph.num_nodes * width > MOST_NUMBERS:
            break
        if not structural_features_named(other.feature_names):
            blocks.append(baselines.neighbour_means(other.table.values, matrix))
        if has_own:
            there = baselines.neighbour_means(own_features, sparse.csr_array(matrix.T))
            blocks.append(baselines.neighbour_means(there, matrix))
    if not blocks:
        return None
    return np.concatenate([np.asarray(dense(block), np.float32) for block in blocks], axis=1)
