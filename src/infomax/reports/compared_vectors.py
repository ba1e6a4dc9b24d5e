"""The vectors that are scored side by side.

They are the vectors of a run, each of their parts alone, and what a user could have had without the
run: the untrained encoder, singular vectors of the edges, averaged and raw features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

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
from infomax.io.atomic import make_folder
from infomax.parts.vectors import PAPER

OURS = "DGI"
RANDOM = "Random-Init"
RAW = "Raw features"
EDGES = "SVD of the edges"
AVERAGED = "Averaged features"
MOST_AVERAGED_NUMBERS = 1 << 27
"""Numbers up to which averaged features are computed: 512 MB of float32."""
MOST_BASELINE_NODES = 200_000
"""Nodes up to which baselines are computed.

The singular vectors of a larger graph take longer than the vectors of the run.
"""
WRITES_ALL = "infomax evaluate RUN --out FOLDER"
"""The command that writes the vectors of every row of scores but raw features."""
WRITES_ALL_OF_EDGES = "infomax evaluate RUN --edges --out FOLDER"
"""The same command where edges are scored."""

KeepVectors: TypeAlias = Callable[[str, str, Any], None]
"""What is called with the vectors of each row of scores: the name of the row, the type of the
nodes, their vectors."""


class ComparedVectors(NamedTuple):
    """Vectors that are scored as one row of the table of scores."""

    name: str
    vectors: Any
    """``[N, d]``, dense or sparse."""
    command: str = ""
    """The command that writes them."""
    is_fixed: bool = False
    """Whether no encoder has made them."""


def discard_vectors(name: str, node_type: str, vectors: Any) -> None:
    """Keep no vectors: they are scored alone."""


def write_compared_vectors(
    folder: Path, graph: Graph, name: str, node_type: str, vectors: Any
) -> None:
    """Write the vectors of a row of scores as a parquet file: ``svd-of-the-edges.parquet``.

    Raw features are not written, since the user has them.

    Args:
        folder: where to write.
        graph: the graph of the run.
        name: the name of the row of the table of scores, such as ``SVD of the edges``.
        node_type: the type of the nodes. If it is not the type that the graph targets, the file
            name ends with it.
        vectors: ``[N, d]``.
    """
    if name == RAW:
        return
    make_folder(folder)
    nodes = graph.nodes[node_type]
    file_name = name.lower().replace(" ", "-")
    if node_type != graph.node_type:
        file_name = f"{file_name}.{node_type}"
    Embeddings(dense(vectors), nodes.ids, nodes.node_names).save(folder / f"{file_name}.parquet")


def name_of_part(part: str) -> str:
    """The name of the row of scores of a part alone: ``Positions alone``."""
    return f"{part[0].upper()}{part[1:]} alone"


def parts_alone(embeddings: Embeddings) -> list[str]:
    """The parts of vectors that are also scored alone: all, where there are several."""
    return list(embeddings.parts) if len(embeddings.parts) > 1 else []


def untrained(model: DGI) -> DGI:
    """Random-Init: a model with the first weights of another, whose vectors are the encoder's."""
    settings: dict[str, Any] = {
        "epochs": 0,
        "vectors": PAPER,
        "seed": model.seed_,
        "device": model.device,
    }
    return DGI(preset=model.preset_, **settings).fit(model.graph_)


def trained_vectors(embeddings: Embeddings) -> Iterator[ComparedVectors]:
    """The vectors of a run with all their parts, and each part alone."""
    yield ComparedVectors(OURS, embeddings.vectors, "infomax embed RUN")
    for part in parts_alone(embeddings):
        part_columns = embeddings.columns[part]
        command = f"infomax embed RUN --vectors {part}"
        yield ComparedVectors(name_of_part(part), embeddings.vectors[:, part_columns], command)


def vectors_beside(
    model: DGI,
    rows: NDArray[np.int64] | None = None,
    *,
    raw: bool = True,
    with_baselines: bool = True,
    command: str = WRITES_ALL,
) -> Iterator[ComparedVectors]:
    """The vectors that a run is compared with: Random-Init, baselines and raw features.

    Args:
        model: the model of the run.
        rows: ``[n]``, the rows of some nodes in the graph; None for all.
        raw: whether raw and averaged features are among them.
        with_baselines: whether singular vectors of the edges and averaged features are.
        command: the command that writes them.
    """
    graph = model.graph_
    random_vectors = untrained(model).transform(graph, rows=rows).vectors
    yield ComparedVectors(RANDOM, random_vectors, command)

    if with_baselines and has_baselines(graph):
        yield ComparedVectors(EDGES, edge_vectors(graph), command, is_fixed=True)
        averaged = averaged_features(graph, model) if raw else None
        if averaged is not None:
            yield ComparedVectors(AVERAGED, averaged, command, is_fixed=True)

    if raw:
        table = graph.table.scaled(graph.scaler(model.preset_.scale))
        requested_rows: Any = slice(None) if rows is None else rows
        yield ComparedVectors(RAW, table[requested_rows], "", is_fixed=True)


def has_baselines(graph: Graph, most_nodes: int = MOST_BASELINE_NODES) -> bool:
    """Whether the baselines of a graph are computed: it is in memory and of bearable size."""
    return not graph.table.mapped and graph.num_nodes <= most_nodes


def link_matrices(graph: Graph) -> list[tuple[str, sparse.csr_array]]:
    """The links of the nodes of the graph's type: other types with 0/1 matrices ``[N, M]``."""
    matrices: list[tuple[str, sparse.csr_array]] = []
    for links in find_links(graph.relations, graph.node_type):
        shape = (graph.num_nodes, graph.nodes[links.second_type].num_nodes)
        ones = np.ones(len(links), np.float32)
        matrix = sparse.csr_array((ones, (links.first, links.second)), shape=shape)
        # Two nodes that are linked several times count as linked once.
        matrix.sum_duplicates()
        matrix.data[:] = 1
        if links.second_type == graph.node_type:
            matrix = sparse.csr_array(matrix.maximum(matrix.T))
        matrices.append((links.second_type, matrix))
    return matrices


def edge_vectors(graph: Graph) -> NDArray[np.float32]:
    """Singular vectors ``[N, K]`` of the normalised edges of the nodes of the graph's type.

    Of several types, the matrices of all links stand side by side.
    """
    if not graph.has_named_types:
        return baselines.edge_vectors(graph.adjacency)
    matrices = [baselines.normalised(matrix) for _, matrix in link_matrices(graph)]
    if not matrices:
        return np.zeros((graph.num_nodes, 1), np.float32)
    return baselines.edge_vectors(sparse.csr_array(sparse.hstack(matrices)))


def averaged_features(graph: Graph, model: DGI, most_numbers: int = MOST_AVERAGED_NUMBERS) -> Any:
    """Features averaged over two hops ``[N, F]``.

    Of several types they are, side by side, the node's own features, the means of its neighbours'
    features, and the means of its own type's features over common neighbours.

    None where nodes have no features of their own, or the numbers would be too many.
    """
    scaled = graph.scaled(graph.scaler(model.preset_.scale))
    has_own_features = not structural_features_named(graph.feature_names)
    if not graph.has_named_types:
        is_too_large = graph.num_nodes * graph.num_features > most_numbers
        if is_too_large or not has_own_features:
            return None
        return baselines.averaged_features(scaled.table.values, graph.adjacency)

    own_features = scaled.table.values
    blocks = [own_features] if has_own_features else []
    width = graph.num_features
    for other_type, matrix in link_matrices(graph):
        other_nodes = scaled.nodes[other_type]
        width += other_nodes.num_features + graph.num_features
        if graph.num_nodes * width > most_numbers:
            break
        if not structural_features_named(other_nodes.feature_names):
            blocks.append(baselines.neighbour_means(other_nodes.table.values, matrix))
        if has_own_features:
            # First at the neighbours, then back at the nodes.
            means_at_others = baselines.neighbour_means(own_features, sparse.csr_array(matrix.T))
            blocks.append(baselines.neighbour_means(means_at_others, matrix))
    if not blocks:
        return None
    return np.concatenate([np.asarray(dense(block), np.float32) for block in blocks], axis=1)
