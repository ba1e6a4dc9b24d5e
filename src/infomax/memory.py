"""Main memory: what is free under every limit, what was held, what a training will need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # `infomax info` does not wait for torch
    import torch

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_STATUS = Path("/proc/self/status")
_LIMITS = {"RLIMIT_AS": "vms", "RLIMIT_DATA": "data"}
"""Limits of a process on its memory, and psutil's name for the bytes that count against each."""
BYTES_PER_BLOCK = 1 << 27
"""Approximate limit on the bytes of rows of a graph folder in memory at a time."""


class _Graph(Protocol):
    """What the estimates ask of a graph, which is made of arrays far above this file."""

    @property
    def nodes(self) -> Mapping[str, Any]: ...
    @property
    def relations(self) -> Sequence[Any]: ...
    @property
    def table(self) -> Any: ...
    @property
    def weighted(self) -> bool: ...


# What is free, and what is held


def free_bytes() -> int:
    """Bytes of main memory that this process may still take: on the machine, within every limit."""
    import psutil

    free = [*_free_in_control_groups(), *_free_in_limits()]
    with suppress(OSError):
        free.append(psutil.virtual_memory().available)
    return max(0, min(free, default=sys.maxsize))


def has_limit() -> bool:
    """Whether this process has a limit on its memory (``ulimit -v``, ``ulimit -d``)."""
    return any(True for _ in _free_in_limits())


def peak_bytes() -> int:
    """The most bytes of main memory that this process has held so far.

    Where the system does not know, it is what the process holds now.
    """
    # VmHWM is the kernel's name for the peak resident set.
    for line in _lines(_STATUS):
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])

    # Systems without /proc. On Linux the peak of getrusage is inherited from the process that
    # started this one, so VmHWM is asked first.
    try:
        import resource
    except ImportError:
        import psutil

        memory_info = psutil.Process().memory_info()
        return int(getattr(memory_info, "peak_wset", memory_info.rss))  # peak_wset is of Windows
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def format_size(count: float) -> str:
    """Bytes as a person reads them: 3.2 GB."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def _free_in_limits() -> Iterator[int]:
    """Bytes left under each limit that is set for this process; Windows has none of this kind."""
    try:
        import resource
    except ImportError:
        return
    for name, counted_bytes in _LIMITS.items():
        limit = resource.getrlimit(getattr(resource, name))[0]
        if limit != resource.RLIM_INFINITY:
            import psutil

            yield limit - getattr(psutil.Process().memory_info(), counted_bytes, 0)


def _free_in_control_groups() -> Iterator[int]:
    """Bytes left in each control group of this process: containers limit memory so on Linux."""
    for line in _lines(_OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            root = _CONTROL_GROUPS
            limit_file, usage_file = "memory.max", "memory.current"
            cache_entry = "inactive_file"
        elif "memory" in controllers.split(","):  # version 1
            root = _CONTROL_GROUPS / "memory"
            limit_file, usage_file = "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache_entry = "total_inactive_file"
        else:
            continue

        # A parent's limit also bounds its children, so all parents count. In a container the path
        # may be the host's, and only the root exists.
        group = root / path.lstrip("/")
        parents = [parent for parent in group.parents if parent.is_relative_to(root)]
        for folder in [group, *parents]:
            statistics = dict(entry.split(maxsplit=1) for entry in _lines(folder / "memory.stat"))
            # No such group; or no limit, which version 2 writes as "max".
            with suppress(ValueError):
                limit = int("".join(_lines(folder / limit_file)))
                usage = int("".join(_lines(folder / usage_file)))
                # Files in the cache do not count: the kernel drops them when memory is short.
                yield limit - usage + int(statistics.get(cache_entry, 0))


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel; none if there is no such file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


# Estimates


def training_bytes(graph: _Graph, dim: int, layers: int = 1, out_dim: int | None = None) -> int:
    """Estimate the peak bytes of a training on all nodes at once, in float32.

    Python, torch and the graph itself come on top.

    Args:
        graph: the graph.
        dim: the width of the encoder's layers.
        layers: their number.
        out_dim: the width of the vectors. None: that of the layers.
    """
    # Matrices [N, out_dim] that are held at once. Each layer keeps four for the backward pass: the
    # input and the output of its activation, for the graph and for its corruption. Two more are
    # gradients that come and go.
    matrix_count = 4 * layers + 2
    activations = 4 * _count_nodes(graph) * (out_dim or dim) * matrix_count
    # About 72 bytes for an edge, or a self-loop, while edges are sorted into the matrix of the
    # propagation: its keys, ends, order and weights, and sorted copies of these.
    feature_and_edge_bytes = features_bytes(graph) + edges_bytes(graph, 72)
    return feature_and_edge_bytes + activations + weights_bytes(graph, dim)


def features_bytes(graph: _Graph, bytes_per_entry: int = 52) -> int:
    """Estimate the bytes of the features that a training holds.

    An entry of sparse features, which is stored, takes ``bytes_per_entry``.
    """
    total = 0
    for nodes in graph.nodes.values():
        table = nodes.table
        if table.sparse:
            # The matrix, its transpose, 8-byte columns, and temporaries.
            total += bytes_per_entry * table.statistics.nonzero_count
        else:
            # One copy on a CPU, two on a GPU.
            total += 7 * len(table) * table.shape[1]
    return total


def gathered_bytes(graph: _Graph, device: torch.device) -> int:
    """Estimate the bytes of features whose rows a step gathers.

    Dense features that do not fit a GPU stay on the host.
    """
    if device.type == "cuda" and not graph.table.sparse:
        return 0
    return features_bytes(graph)


def edges_bytes(graph: _Graph, bytes_per_edge: int) -> int:
    """The bytes of all edges and self-loops; between two types messages run both ways."""
    entries = 0
    for relation in graph.relations:
        directions = 1 if relation.within_one_type else 2
        entries += relation.edges.nnz * directions
    return bytes_per_edge * (entries + _count_nodes(graph))


def _count_nodes(graph: _Graph) -> int:
    """The number of nodes of all types."""
    count: int = sum(nodes.num_nodes for nodes in graph.nodes.values())
    return count


def weights_bytes(graph: _Graph, dim: int) -> int:
    """Estimate the bytes of weights, gradients, Adam's two moments and the best weights so far."""
    feature_count: int = sum(nodes.num_features for nodes in graph.nodes.values())
    return 5 * 4 * (feature_count * dim + 4 * dim * dim)


def embedding_bytes(graph: _Graph, out_dim: int, device: torch.device) -> int:
    """Estimate the peak bytes of embedding: scaled features, edges and layers, without the graph.

    The layers are the one before, the one that is computed and a product; the vectors, on the host,
    come on top of them on a CPU. Sorting the edges takes more than keeping them, but is over when
    the first layer begins.
    """
    edge_count = edges_bytes(graph, 1)
    bytes_per_number = 15 if device.type == "cpu" else 11
    layers = bytes_per_number * _count_nodes(graph) * out_dim
    return features_bytes(graph, 24) + max(64 * edge_count, 28 * edge_count + layers)


def stored_bytes(graph: _Graph) -> int:
    """Estimate the peak bytes of reading a graph folder: numbers per node, and rows of a batch."""
    return 32 * _count_nodes(graph) + 4 * BYTES_PER_BLOCK


def resident_bytes(graph: _Graph) -> int:
    """Estimate the peak bytes of a graph folder on a GPU: neighbours, and numbers per node.

    Its features are left out.
    """
    bytes_per_edge = 8 if graph.weighted else 4
    return bytes_per_edge * edges_bytes(graph, 1) + 36 * _count_nodes(graph)
