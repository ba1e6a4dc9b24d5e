"""Free memory on a device, checked before a training or an embedding starts."""

from __future__ import annotations

import torch

from infomax import memory
from infomax.errors import InputError
from infomax.memory import format_size


def available_bytes(device: torch.device) -> int:
    """Free bytes on the device now; on a GPU with those that torch keeps unused."""
    if device.type != "cuda":
        return memory.free_bytes()
    free, _ = torch.cuda.mem_get_info(device)
    # torch.cuda.memory_reserved flattens these statistics first, which takes 1 ms.
    statistics = torch.cuda.memory_stats_as_nested_dict(device)
    reserved = statistics["reserved_bytes"]["all"]["current"]
    allocated = statistics["allocated_bytes"]["all"]["current"]
    return int(free + reserved - allocated)


def require(
    needed: int, device: torch.device, processes: int = 1, remedy: str = "Allow more memory."
) -> None:
    """Raise InputError if the bytes needed are not free on the device; main memory is shared by
    several processes."""
    free = available_bytes(device)
    if device.type != "cuda":
        needed *= processes
    if needed > free:
        expected = f"{format_size(needed)} free for this graph at this width"
        raise InputError(f"memory ({device.type})", expected, format_size(free), remedy)
