"""Random permutations without a sort: `infomax.kernels.random.Permutation`, in the same integers.

In place of ``randperm(n)``; every number is an image once, and each permutation of few numbers is
as likely as another (tests/kernels/test_gpu.py).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROUNDS = 8
IMAGES_PER_PROGRAM = 64


@triton.jit
def _stir(x, keys, low: tl.constexpr, high: tl.constexpr, ROUNDS: tl.constexpr):
    """Apply a Feistel network over low + high bits: each half in turn is XORed with a hash of the
    other."""
    high_half = x >> low
    low_half = x & ((1 << low) - 1)
    for step in tl.static_range(ROUNDS):
        h = (high_half if step % 2 else low_half).to(tl.uint32) * 0x9E3779B1 + tl.load(
            keys + step
        ).to(tl.uint32)
        h = (h ^ (h >> 15)) * 0x85EBCA77
        h = (h ^ (h >> 13)) * 0xC2B2AE3D
        h = (h ^ (h >> 16)).to(tl.int64)
        if step % 2:
            low_half ^= h & ((1 << low) - 1)
        else:
            high_half ^= h & ((1 << high) - 1)
    return (high_half << low) | low_half


@triton.jit
def image(x, keys, n, low: tl.constexpr, high: tl.constexpr, ROUNDS: tl.constexpr):
    """Return the images of numbers below n."""
    x = _stir(x, keys, low, high, ROUNDS)
    # Apply the network again where the result is n or above (cycle walking): a permutation of 0 to
    # n - 1 remains.
    while tl.max((x >= n).to(tl.int32), 0) > 0:
        x = tl.where(x >= n, _stir(x, keys, low, high, ROUNDS), x)
    return x


@triton.jit
def _first_images(
    keys, out, n, count, blocks,
    low: tl.constexpr, high: tl.constexpr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute a block of images of one of the permutations, of which each has so many blocks."""
    i = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    permutation = tl.program_id(0) // blocks
    x = image(
        tl.where(i < count, i, 0).to(tl.int64), keys + permutation * ROUNDS, n, low, high, ROUNDS
    )
    tl.store(out + permutation.to(tl.int64) * count + i, x, i < count)


def first_images(keys: Tensor, n: int, count: int, low: int, high: int) -> Tensor:
    """The images of 0 to count - 1 under permutations of 0 to n - 1, ``[P, ROUNDS] -> [P, count]``.

    ``low`` and ``high`` are the numbers of bits of the two halves of a number; see
    ``Permutation.bits``.
    """
    out = torch.empty(len(keys), count, dtype=torch.int64, device=keys.device)
    blocks = triton.cdiv(count, IMAGES_PER_PROGRAM)
    _first_images[(len(keys) * blocks,)](
        keys, out, n, count, blocks, low, high, ROUNDS, IMAGES_PER_PROGRAM, num_warps=1
    )
    return out


def permutations(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Draw so many permutations of 0 to n - 1, ``[count, n]``."""
    keys = torch.randint(
        -(2**31),
        2**31,
        (count, ROUNDS),
        generator=generator,
        device=generator.device,
        dtype=torch.int32,
    )
    bits = max((n - 1).bit_length(), 6)
    return first_images(keys, n, n, bits // 2, bits - bits // 2)
