"""How much memory a training needs and how much is free: checked before it starts."""

from __future__ import annotations

import torch
from scipy import sparse

from infomax import machine
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.kernels.transfer import free_bytes
from infomax.machine import size
from infomax.views.sampling import level_sizes
from infomax.views.stored import BYTES


def training_bytes(graph: Graph, dim: int, *, gpu: bool = False, fan_out: tuple[int, ...] = (), batch: int = 0) -> int:
    """Peak bytes of a training in float32, without those of Python and torch themselves.

    With a batch in batches, with a fan-out as well in patches, else on the whole graph.
    """
    n, f, d, sparse_features = graph.num_nodes, graph.num_features, dim, sparse.issparse(graph.features)
    # Sparse: the matrix and its transpose with 8-byte columns, and the making of them. Dense: table, scaled, on device.
    features = 52 * int(graph.features.nnz) if sparse_features else 12 * n * f
    if gpu and batch and not sparse_features:
        features = 0  # what does not fit stays on the host
    if (
        batch and not fan_out and not gpu and graph.folder is not None
    ):  # read from disk; per node its degree and its scales, per batch its rows
        return stored_bytes(graph) + 4 * min(batch, n) * (18 * d + 8 * f) + 20 * (f * d + 4 * d * d)
    edges = 72
    if fan_out:
        # Half as much again, for the gaps that an allocator leaves between freed blocks.
        rows, inner = sum(level_sizes(batch, fan_out)), sum(level_sizes(batch, fan_out[:-1]))
        edges, activations = 24, 24 * rows + 12 * inner * (2 * f + 8 * d)
    elif batch:
        edges, batch = 24, min(batch, n)
        activations = 4 * batch * 18 * d + (16 * n * d if sparse_features else 16 * batch * f)
    else:
        activations = 4 * n * d * 18
    weights = 5 * 4 * (f * d + 4 * d * d)  # the weights, their gradient, Adam's two moments, the best so far
    return features + edges * (int(graph.adjacency.nnz) + n) + activations + weights


def embedding_bytes(graph: Graph, out_dim: int) -> int:
    """Peak bytes of embedding a graph: the layer before, the layer itself and a product; features, and messages."""
    n, f = graph.num_nodes, graph.num_features
    features = 24 * int(graph.features.nnz) if sparse.issparse(graph.features) else 8 * n * f
    return 12 * n * out_dim + features + 28 * (int(graph.adjacency.nnz) + n)


def stored_bytes(graph: Graph) -> int:
    """Peak bytes of reading a graph folder: a few numbers per node, and the rows of a batch."""
    return 32 * graph.num_nodes + 4 * BYTES


def available_bytes(device: torch.device) -> int:
    """Bytes that a training may take on the device now."""
    if device.type == "cuda":
        return free_bytes(device)
    return machine.free_bytes()


def require(needed: int, device: torch.device) -> None:
    """Refuse a training that cannot fit, with the numbers."""
    free = available_bytes(device)
    if needed > free:
        raise InputError(
            f"memory ({device.type})",
            f"{size(needed)} free for this graph at this width",
            size(free),
            "Lower the dimension (--dim), or allow more memory.",
        )
