"""Random permutations and random numbers as functions: any entry is computed alone, without an
array of all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from infomax.kernels import NUMBERS_PER_IMAGE, Backend

ROUNDS = 8
LOWEST_32_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class Permutation:
    """A random permutation of 0 to n - 1 by a Feistel network: each half of the bits is XORed with
    a hash of the other.

    The network permutes all numbers of a given bit length. Where the result is n or above, it is
    applied again.

    Shapes:
        keys: ``[ROUNDS]`` int32
    """

    n: int
    keys: Tensor
    backend: Backend

    @classmethod
    def draw(
        cls, n: int, generator: torch.Generator, backend: Backend | None = None
    ) -> Permutation:
        """Draw a permutation of 0 to n - 1."""
        device = generator.device
        keys = torch.randint(
            -(2**31), 2**31, (ROUNDS,), generator=generator, device=device, dtype=torch.int32
        )
        return cls(n, keys, backend or Backend(device))

    @property
    def bits(self) -> tuple[int, int]:
        """Number of bits of the lower and of the upper half."""
        bits = max((self.n - 1).bit_length(), 6)
        return bits // 2, bits - bits // 2

    @cached_property
    def images(self) -> Tensor:
        """The images of all numbers, ``[n]``, int32 where they fit, computed at first use."""
        images = self(torch.arange(self.n, device=self.keys.device))
        return images.int() if self.n <= 2**31 else images

    def first(self, count: int) -> Tensor:
        """Return the images of 0 to count - 1: ``count`` different random numbers below n."""
        if self.backend.triton is not None:
            first_images = self.backend.triton.first_images
            images: Tensor = first_images(self.keys[None], self.n, count, *self.bits)[0]
            return images
        return self(torch.arange(count, device=self.keys.device))

    def __call__(self, numbers: Tensor) -> Tensor:
        """Return the image of each number, int64 of the same shape."""
        if self.backend.numba_for(NUMBERS_PER_IMAGE * numbers.numel()):
            from infomax.kernels.cpu_neighbourhoods import images

            return images(numbers, self.keys, self.n, *self.bits)
        x = self._stir(numbers.long())
        is_outside = x >= self.n
        while bool(is_outside.any()):
            x = torch.where(is_outside, self._stir(x), x)
            is_outside = x >= self.n
        return x

    def _stir(self, x: Tensor) -> Tensor:
        """Apply the network once: in turn, each half is XORed with a hash of the other."""
        low_bits, high_bits = self.bits
        low_mask = (1 << low_bits) - 1
        high_mask = (1 << high_bits) - 1
        high_half = x >> low_bits
        low_half = x & low_mask
        keys = (self.keys.long() & LOWEST_32_BITS).unbind()
        for step, key in enumerate(keys):
            if step % 2 == 0:
                high_half = high_half ^ (_hash(low_half, key) & high_mask)
            else:
                low_half = low_half ^ (_hash(high_half, key) & low_mask)
        return (high_half << low_bits) | low_half


def _hash(x: Tensor, key: Tensor) -> Tensor:
    """A hash of 32 bits of each number, by multiplications and shifts."""
    x = (x * 0x9E3779B1 + key) & LOWEST_32_BITS
    x = ((x ^ (x >> 15)) * 0x85EBCA77) & LOWEST_32_BITS
    x = ((x ^ (x >> 13)) * 0xC2B2AE3D) & LOWEST_32_BITS
    return x ^ (x >> 16)


def uniform(numbers: Tensor, seed: Tensor) -> Tensor:
    """Return a float32 in [0, 1) for each number: a hash of the number and the seed, by
    multiplications and shifts."""
    x = (numbers + seed) * -7046029254386353131
    x = (x ^ ((x >> 32) & LOWEST_32_BITS)) * -4658895280553007687
    x = (x ^ ((x >> 29) & 0x7FFFFFFFF)) * -7723592293110705685
    return ((x >> 40) & 0xFFFFFF).float() * 2.0**-24
