"""Memory of this machine: how much is free under every limit, and the most that this process has held."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CONTROL_GROUPS, _OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_STATUS = Path("/proc/self/status")
_LIMITS = {"RLIMIT_AS": "vms", "RLIMIT_DATA": "data"}
"""Limits of a process on its memory, and what psutil calls the bytes that count against each."""


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


def size(count: float) -> str:
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
            yield from _free_in_group(folder, *names)


def _free_in_group(folder: Path, limit: str, usage: str, cached: str) -> Iterator[int]:
    """The limit less the usage; files in the cache do not count, since the kernel drops them when memory is short."""
    statistics = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat"))
    with suppress(ValueError):  # no such group, or no limit: "max"
        found = [int("".join(_lines(folder / name))) for name in (limit, usage)]
        yield found[0] - found[1] + int(statistics.get(cached, 0))


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel; none if there is no such file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
