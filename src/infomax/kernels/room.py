"""Free memory on a device, checked before a training or an embedding starts."""

from __future__ import annotations

import torch

from infomax import machine
from infomax.errors import InputError
from infomax.kernels.transfer import free_bytes
from infomax.machine import size


def available_bytes(device: torch.device) -> int:
    """Free bytes on the device now."""
    if device.type == "cuda":
        return free_bytes(device)
    return machine.free_bytes()


def require(needed: int, device: torch.device, processes: int = 1, remedy: str = "Allow more memory.") -> None:
    """Raise InputError if the bytes needed are not free on the device; main memory is shared by several processes."""
    free = available_bytes(device)
    needed *= 1 if device.type == "cuda" else processes
    if needed > free:
        raise InputError(
            f"memory ({device.type})",
            f"{size(needed)} free for this graph at this width",
            size(free),
            remedy,
        )
