"""How much memory a training needs, and how much there is: asked before, not found out after."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from scipy import sparse

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.kernels.transfer import free_bytes
from infomax.views.sampling import level_sizes


def training_bytes(graph: Graph, dim: int, *, gpu: bool = False, fan_out: tuple[int, ...] = (), batch: int = 0) -> int:
    """Peak bytes of a training at float32, beside what Python and torch take themselves; in patches with a fan-out."""
    n, f, d = graph.num_nodes, graph.num_features, dim
    # Sparse: the matrix and its transpose with 8-byte columns, and the making of them. Dense: table, scaled, on device.
    features = 52 * int(graph.features.nnz) if sparse.issparse(graph.features) else 12 * n * f
    if gpu and fan_out and not sparse.issparse(graph.features):
        features = 0  # what does not fit stays on the host
    edges, rows = (24, sum(level_sizes(batch, fan_out))) if fan_out else (72, n)
    inner = sum(level_sizes(batch, fan_out[:-1]))
    # In patches half as much again, for the gaps that an allocator leaves between freed blocks.
    activations = 4 * rows * d * 18 if not fan_out else 24 * rows + 12 * inner * (2 * f + 8 * d)
    weights = 5 * 4 * (f * d + 4 * d * d)  # the weights, their gradient, Adam's two moments, the best so far
    return features + edges * (int(graph.adjacency.nnz) + n) + activations + weights


def embedding_bytes(graph: Graph, out_dim: int) -> int:
    """Peak bytes of embedding a graph: the layer before, the layer itself and a product; features, and messages."""
    n, f = graph.num_nodes, graph.num_features
    features = 24 * int(graph.features.nnz) if sparse.issparse(graph.features) else 8 * n * f
    return 12 * n * out_dim + features + 28 * (int(graph.adjacency.nnz) + n)


def available_bytes(device: torch.device) -> int:
    """Bytes that a training may take on the device now."""
    if device.type == "cuda":
        return free_bytes(device)
    free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    info = Path("/proc/meminfo")
    if info.exists():
        free += [1024 * int(line.split()[1]) for line in info.read_text().splitlines() if line.startswith("MemAvail")]
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        free.append(int(limit.read_text()) - int(used.read_text()))
    return min(free)


def require(needed: int, device: torch.device) -> None:
    """Refuse a training that cannot fit, with the numbers."""
    free = available_bytes(device)
    if needed > free:
        raise InputError(
            f"memory ({device.type})",
            f"{size(needed)} free for this graph at this width",
            size(free),
            "Lower the dimension (--dim), or use a machine with more memory.",
        )


def size(count: float) -> str:
    """Bytes as a person reads them: 3.2 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
