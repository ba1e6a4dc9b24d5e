"""Estimates of the memory that training and embedding need; `infomax.kernels.room` compares them with what is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infomax.io.record import Record

if TYPE_CHECKING:  # `infomax info` does not wait for torch
    import torch

BYTES = 1 << 27
"""Approximate limit on the bytes of rows of a graph folder in memory at a time."""


def training_bytes(graph: Record, dim: int, layers: int = 1, out_dim: int | None = None) -> int:
    """Estimate the peak bytes of a training on the whole graph in float32, beside Python, torch and the graph itself.

    Of the encoder it needs the width, the number of layers and the width of the vectors; None: as wide as the layers.
    """
    # Two views of four matrices per layer, less where the last one has a closed form.
    activations = 4 * _nodes(graph) * (out_dim or dim) * (4 * layers + 2)
    return features_bytes(graph) + edges_bytes(graph, 72) + activations + weights_bytes(graph, dim)


def features_bytes(graph: Record, each: int = 52) -> int:
    """Estimate the bytes of the features that a training holds; a stored entry of sparse ones takes ``each``."""
    # Sparse: the matrix, its transpose, 8-byte columns, and temporaries. Dense: one copy on a CPU, two on a GPU.
    tables = [nodes.table for nodes in graph.nodes.values()]
    return sum(each * one.statistics.filled if one.sparse else 7 * len(one) * one.shape[1] for one in tables)


def gathered_bytes(graph: Record, device: torch.device) -> int:
    """Estimate the bytes of features whose rows a step gathers; dense ones that do not fit a GPU stay on the host."""
    return 0 if device.type == "cuda" and not graph.table.sparse else features_bytes(graph)


def edges_bytes(graph: Record, each: int) -> int:
    """Return the bytes of all edges and self-loops, at so many bytes each; between two types messages run both ways."""
    entries = sum(relation.edges.nnz * (1 if relation.within else 2) for relation in graph.relations)
    return each * (entries + _nodes(graph))


def _nodes(graph: Record) -> int:
    """The number of nodes of all types."""
    return sum(nodes.num_nodes for nodes in graph.nodes.values())


def weights_bytes(graph: Record, dim: int) -> int:
    """Estimate the bytes of weights, gradients, Adam's two moments and the best weights so far."""
    features = sum(nodes.num_features for nodes in graph.nodes.values())
    return 5 * 4 * (features * dim + 4 * dim * dim)


def embedding_bytes(graph: Record, out_dim: int) -> int:
    """Estimate the peak bytes of embedding, beside the graph itself: scaled features, propagation and layers.

    The layers are the one before, the one that is computed, a product and a block. Sorting the edges takes more than
    keeping them, but is over when the first layer begins.
    """
    n, edges = _nodes(graph), edges_bytes(graph, 1)
    return features_bytes(graph, 24) + max(64 * edges, 28 * edges + 15 * n * out_dim)


def stored_bytes(graph: Record) -> int:
    """Estimate the peak bytes of reading a graph folder: a few numbers per node, and the rows of a batch."""
    return 32 * _nodes(graph) + 4 * BYTES


def resident_bytes(graph: Record) -> int:
    """Estimate the peak bytes of a graph folder on a GPU, without its features: neighbours, and numbers per node."""
    return (8 if graph.weighted else 4) * edges_bytes(graph, 1) + 36 * _nodes(graph)
