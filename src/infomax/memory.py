"""Main memory: what is free under every limit, the most that this process has held, what a training will need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # `infomax info` does not wait for torch
    import torch

_CONTROL_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_STATUS = Path("/proc/self/status")
_LIMITS = {"RLIMIT_AS": "vms", "RLIMIT_DATA": "data"}
"""Limits of a process on its memory, and what psutil calls the bytes that count against each."""
BYTES = 1 << 27
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


def free_bytes() -> int:
    """Bytes of main memory that this process may still take: free on the machine, and within every limit."""
    import psutil

    free = [*_free_in_control_groups(), *_free_in_limits()]
    with suppress(OSError):
        free.append(psutil.virtual_memory().available)
    return max(0, min(free, default=sys.maxsize))


def has_limit() -> bool:
    """Whether this process may map or take only so many bytes (``ulimit -v``, ``ulimit -d``)."""
    return any(True for _ in _free_in_limits())


def peak_bytes() -> int:
    """The most bytes of main memory that this process has held so far; where that is not known, what it holds now."""
    for line in _lines(_STATUS):
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    try:  # on Linux second to the above: there it begins with the peak of the process that started this one
        import resource
    except ImportError:
        import psutil

        held = psutil.Process().memory_info()
        return int(getattr(held, "peak_wset", held.rss))  # the first of the two on Windows
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def format_size(count: float) -> str:
    """Bytes as a person reads them: 3.2 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _free_in_limits() -> Iterator[int]:
    """Bytes left under each limit that is set for this process; Windows has none of this kind."""
    try:
        import resource
    except ImportError:
        return
    for name, counted in _LIMITS.items():
        limit = resource.getrlimit(getattr(resource, name))[0]
        if limit != resource.RLIM_INFINITY:
            import psutil

            yield limit - getattr(psutil.Process().memory_info(), counted, 0)


def _free_in_control_groups() -> Iterator[int]:
    """Bytes left in each control group of this process, which is how containers limit memory on Linux."""
    for line in _lines(_OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            root, names = _CONTROL_GROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):  # version 1
            root = _CONTROL_GROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.lstrip("/")
        # A limit of a group holds for the groups in it. In a container the path may be the host's: only root is there.
        for folder in [group, *(parent for parent in group.parents if parent.is_relative_to(root))]:
            statistics = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat"))
            with suppress(ValueError):  # no such group, or no limit: "max"
                limit, used = (int("".join(_lines(folder / name))) for name in names[:2])
                # Files in the cache do not count, since the kernel drops them when memory is short.
                yield limit - used + int(statistics.get(names[2], 0))


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel; none if there is no such file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def training_bytes(graph: _Graph, dim: int, layers: int = 1, out_dim: int | None = None) -> int:
    """Estimate the peak bytes of a training on the whole graph in float32, beside Python, torch and the graph itself.

    Of the encoder it needs the width, the number of layers and the width of the vectors; None: as wide as the layers.
    """
    # Two views of four matrices per layer, less where the last one has a closed form.
    activations = 4 * _nodes(graph) * (out_dim or dim) * (4 * layers + 2)
    return features_bytes(graph) + edges_bytes(graph, 72) + activations + weights_bytes(graph, dim)


def features_bytes(graph: _Graph, each: int = 52) -> int:
    """Estimate the bytes of the features that a training holds; a stored entry of sparse ones takes ``each``."""
    # Sparse: the matrix, its transpose, 8-byte columns, and temporaries. Dense: one copy on a CPU, two on a GPU.
    tables = [nodes.table for nodes in graph.nodes.values()]
    return sum(
        each * one.statistics.nonzero_count if one.sparse else 7 * len(one) * one.shape[1]
        for one in tables
    )


def gathered_bytes(graph: _Graph, device: torch.device) -> int:
    """Estimate the bytes of features whose rows a step gathers; dense ones that do not fit a GPU stay on the host."""
    return 0 if device.type == "cuda" and not graph.table.sparse else features_bytes(graph)


def edges_bytes(graph: _Graph, each: int) -> int:
    """Return the bytes of all edges and self-loops, at so many bytes each; between two types messages run both ways."""
    entries: int = sum(
        relation.edges.nnz * (1 if relation.within_one_type else 2) for relation in graph.relations
    )
    return each * (entries + _nodes(graph))


def _nodes(graph: _Graph) -> int:
    """The number of nodes of all types."""
    count: int = sum(nodes.num_nodes for nodes in graph.nodes.values())
    return count


def weights_bytes(graph: _Graph, dim: int) -> int:
    """Estimate the bytes of weights, gradients, Adam's two moments and the best weights so far."""
    features: int = sum(nodes.num_features for nodes in graph.nodes.values())
    return 5 * 4 * (features * dim + 4 * dim * dim)


def embedding_bytes(graph: _Graph, out_dim: int, device: torch.device) -> int:
    """Estimate the peak bytes of embedding on a device, beside the graph itself: scaled features, edges and layers.

    The layers are the one before, the one that is computed and a product; the vectors, on the host, come on top of them
    on a CPU. Sorting the edges takes more than keeping them, but is over when the first layer begins.
    """
    n = _nodes(graph)
    edges = edges_bytes(graph, 1)
    each = 15 if device.type == "cpu" else 11
    return features_bytes(graph, 24) + max(64 * edges, 28 * edges + each * n * out_dim)


def stored_bytes(graph: _Graph) -> int:
    """Estimate the peak bytes of reading a graph folder: a few numbers per node, and the rows of a batch."""
    return 32 * _nodes(graph) + 4 * BYTES


def resident_bytes(graph: _Graph) -> int:
    """Estimate the peak bytes of a graph folder on a GPU, without its features: neighbours, and numbers per node."""
    return (8 if graph.weighted else 4) * edges_bytes(graph, 1) + 36 * _nodes(graph)
