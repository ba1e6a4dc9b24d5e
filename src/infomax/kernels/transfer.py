"""Copies between host and GPU memory, through a page-locked block, which is several times as fast
as without."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROWS_PER_COPY = 1 << 14
NUM_READERS = 8
"""Threads that read a mapped file for a GPU."""
BYTES_PER_READ = 1 << 24


def to_device(x: NDArray[Any], device: torch.device) -> Tensor:
    """Copy an array ``[N, ...]`` to a device; on a CPU the tensor shares the array's memory."""
    source = torch.from_numpy(x)
    if device.type != "cuda":
        return source
    out = torch.empty_like(source, device=device)
    if is_mapped(x):
        for start, block in read_blocks(x, device):
            out[start : start + len(block)] = block
        return out
    _copy_by_way_of(torch.empty_like(source[:ROWS_PER_COPY], pin_memory=True), source, out)
    return out


def _copy_by_way_of(page_locked: Tensor, source: Tensor, target: Tensor) -> None:
    """Copy rows through a page-locked block that holds some of them."""
    blocks = zip(source.split(len(page_locked)), target.split(len(page_locked)), strict=True)
    for source_block, target_block in blocks:
        target_block.copy_(page_locked[: len(source_block)].copy_(source_block))


def is_mapped(x: Any) -> bool:
    """Whether this is an array that is a whole mapped file, in its order."""
    base: Any = getattr(x, "base", None)
    return (
        isinstance(x, np.memmap)
        and isinstance(base, mmap.mmap)
        and x.flags.c_contiguous
        and x.size > 0
    )


def read_blocks(x: NDArray[Any], device: torch.device) -> Iterator[tuple[int, Tensor]]:
    """Read the file of a mapped array; yield the first row of each block, and the block on the
    device.

    Several threads read ahead into page-locked memory. The file is read, not mapped: page faults
    would be slower.
    """
    rows_per_block = max(1, BYTES_PER_READ * len(x) // x.nbytes)
    block_shape = (min(rows_per_block, len(x)), *x.shape[1:])
    dtype = torch.from_numpy(x[:0]).dtype
    free_blocks = [
        torch.empty(block_shape, dtype=dtype, pin_memory=device.type == "cuda")
        for _ in range(2 * NUM_READERS)
    ]
    starts = deque(range(0, len(x), rows_per_block))
    being_read = deque[Any]()
    with ThreadPoolExecutor(NUM_READERS) as pool:
        while starts or being_read:
            while starts and free_blocks:
                start, block = starts.popleft(), free_blocks.pop()
                being_read.append((start, block, pool.submit(_fill, x, start, block)))
            start, block, num_rows = being_read.popleft()
            yield start, block[: num_rows.result()].to(device, copy=True)
            free_blocks.append(block)


def _fill(x: Any, start: int, block: Tensor) -> int:
    """Read rows of a mapped array from its file into a block; returns how many."""
    num_rows = min(len(block), len(x) - start)
    missing_bytes = block[:num_rows].numpy().data.cast("B")
    with Path(x.filename).open("rb", buffering=0) as file:
        file.seek(x.offset + start * x.strides[0])
        while len(missing_bytes):
            num_read = file.readinto(missing_bytes)
            if not num_read:
                raise OSError(f"{x.filename} has become shorter")
            missing_bytes = missing_bytes[num_read:]
    return num_rows


def to_host(h: Tensor) -> NDArray[np.float32]:
    """Copy a tensor ``[N, d]`` from a GPU to an array that NumPy allocates; on a CPU the two share
    memory."""
    if not h.is_cuda:
        return h.numpy()
    out = np.empty(h.shape, np.float32)
    page_locked = torch.empty_like(h[:ROWS_PER_COPY], device="cpu", pin_memory=True)
    _copy_by_way_of(page_locked, h, torch.from_numpy(out))
    return out
