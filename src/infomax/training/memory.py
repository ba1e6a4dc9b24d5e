"""Estimates of the memory that training and embedding need, checked against free memory before they start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy import sparse

from infomax import machine
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.machine import size

if TYPE_CHECKING:  # `infomax info` does not wait for torch
    import torch


def training_bytes(
    graph: Graph,
    dim: int,
    layers: int = 1,
    out_dim: int | None = None,
    device: torch.device | None = None,
    *,
    fan_out: tuple[int, ...] = (),
    batch: int = 0,
) -> int:
    """Estimate the peak bytes of a training in float32, beside Python, torch and the graph itself.

    With ``batch`` and ``fan_out`` for patches, with ``batch`` alone for batches, else for the whole graph. Of the
    encoder it needs the width, the number of layers and the width of the vectors; None: as wide as the layers.
    """
    gpu = device is not None and device.type == "cuda"
    n, f, d, sparse_features = graph.num_nodes, graph.num_features, dim, sparse.issparse(graph.features)
    # Sparse: the matrix, its transpose, 8-byte columns, and temporaries. Dense: one copy on a CPU, two on a GPU.
    features = 52 * int(graph.features.nnz) if sparse_features else 7 * n * f
    if gpu and batch and not sparse_features:
        features = 0  # features that do not fit stay on the host
    if batch and not fan_out and graph.folder is not None:
        held = resident_bytes(graph) if gpu else stored_bytes(graph)
        return held + 4 * min(batch, n) * (18 * d + 8 * f) + 20 * (f * d + 4 * d * d)
    edges = 72
    if fan_out:
        from infomax.views.sampling import level_sizes

        # Includes half as much again, for gaps between the allocator's freed blocks.
        rows, inner = sum(level_sizes(batch, fan_out)), sum(level_sizes(batch, fan_out[:-1]))
        edges, activations = 24, 24 * rows + 12 * inner * (2 * f + 8 * d)
    elif batch:
        edges, batch = 24, min(batch, n)
        activations = 4 * batch * 18 * d + (16 * n * d if sparse_features else 16 * batch * f)
    else:
        # Two views of four matrices per layer, less where the last one has a closed form.
        activations = 4 * n * (out_dim or d) * (4 * layers + 2)
    weights = 5 * 4 * (f * d + 4 * d * d)  # weights, gradients, Adam's two moments, best weights so far
    return features + edges * (int(graph.adjacency.nnz) + n) + activations + weights


def embedding_bytes(graph: Graph, out_dim: int) -> int:
    """Estimate the peak bytes of embedding, beside the graph itself: scaled features, propagation and layers.

    The layers are the one before, the one that is computed, a product and a block. Sorting the edges takes more than
    keeping them, but is over when the first layer begins.
    """
    n, f, edges = graph.num_nodes, graph.num_features, int(graph.adjacency.nnz) + graph.num_nodes
    features = 24 * int(graph.features.nnz) if sparse.issparse(graph.features) else 7 * n * f
    return features + max(64 * edges, 28 * edges + 15 * n * out_dim)


def stored_bytes(graph: Graph) -> int:
    """Estimate the peak bytes of reading a graph folder: a few numbers per node, and the rows of a batch."""
    from infomax.views.stored import BYTES

    return 32 * graph.num_nodes + 4 * BYTES


def resident_bytes(graph: Graph) -> int:
    """Estimate the peak bytes of a graph folder on a GPU, without its features: neighbours, and numbers per node."""
    return (8 if graph.weighted else 4) * int(graph.adjacency.nnz) + 40 * graph.num_nodes


def available_bytes(device: torch.device) -> int:
    """Free bytes on the device now."""
    if device.type == "cuda":
        from infomax.kernels.transfer import free_bytes

        return free_bytes(device)
    return machine.free_bytes()


def require(needed: int, device: torch.device, processes: int = 1) -> None:
    """Raise InputError if the bytes needed are not free on the device; main memory is shared by several processes."""
    free = available_bytes(device)
    needed *= 1 if device.type == "cuda" else processes
    if needed > free:
        raise InputError(
            f"memory ({device.type})",
            f"{size(needed)} free for this graph at this width",
            size(free),
            "Lower the dimension (--dim), or allow more memory.",
        )
