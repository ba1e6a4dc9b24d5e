"""Copies between host and GPU memory, through a page-locked block, which is several times as fast as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = 1 << 14


def to_device(x: NDArray[Any], device: torch.device) -> Tensor:
    """Copy an array ``[N, F]`` to a device; on a CPU the tensor shares the array's memory."""
    source = torch.from_numpy(x)
    if device.type != "cuda":
        return source
    out = torch.empty_like(source, device=device)
    stage = torch.empty_like(source[:BLOCK], pin_memory=True)
    for part, place in zip(source.split(BLOCK), out.split(BLOCK), strict=True):
        place.copy_(stage[: len(part)].copy_(part))
    return out


def to_host(h: Tensor) -> NDArray[np.float32]:
    """Copy a tensor ``[N, d]`` from a GPU to an array that NumPy allocates; on a CPU the two share memory."""
    if not h.is_cuda:
        return h.numpy()
    out = np.empty(h.shape, np.float32)
    stage = torch.empty_like(h[:BLOCK], device="cpu", pin_memory=True)
    for part, place in zip(h.split(BLOCK), torch.from_numpy(out).split(BLOCK), strict=True):
        place.copy_(stage[: len(part)].copy_(part))
    return out


def free_bytes(gpu: torch.device) -> int:
    """Free GPU bytes, including torch's unused cache."""
    held = torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
    return int(torch.cuda.mem_get_info(gpu)[0]) + held
