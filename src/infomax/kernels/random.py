"""Random permutations and random numbers as functions: any entry by itself, without an array of all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from infomax.kernels import triton_for, worth_compiling

ROUNDS = 8
MASK = 0xFFFFFFFF


@dataclass(frozen=True)
class Permutation:
    """A Feistel network: each half of a number's bits, in turn, is masked by a hash of the other half.

    That permutes the numbers of so many bits. A number that lands at n or above walks on until it is below.

    Shapes:
        keys: ``[ROUNDS]`` int32
    """

    n: int
    keys: Tensor

    @classmethod
    def draw(cls, n: int, generator: torch.Generator) -> Permutation:
        """A permutation of 0 to n - 1, chosen by the generator."""
        shape, device = (ROUNDS,), generator.device
        return cls(n, torch.randint(-(2**31), 2**31, shape, generator=generator, device=device, dtype=torch.int32))

    @property
    def bits(self) -> tuple[int, int]:
        """Bits of the lower and of the upper half."""
        bits = max((self.n - 1).bit_length(), 6)
        return bits // 2, bits - bits // 2

    def first(self, count: int) -> Tensor:
        """The images of 0 to count - 1: so many different numbers below n, at random."""
        if kernels := triton_for(self.keys):
            return kernels.first_images(self.keys, self.n, count, *self.bits)  # type: ignore[no-any-return]
        return self(torch.arange(count, device=self.keys.device))

    def __call__(self, numbers: Tensor) -> Tensor:
        """The image of each number, int64 of the same shape."""
        if worth_compiling(self.keys, 8 * ROUNDS * numbers.numel()):
            from infomax.kernels.cpu_neighbourhoods import images

            return images(numbers, self.keys, self.n, *self.bits)
        x = self._stir(numbers.long())
        while bool((outside := x >= self.n).any()):
            x = torch.where(outside, self._stir(x), x)
        return x

    def _stir(self, x: Tensor) -> Tensor:
        low, high = self.bits
        left, right = x >> low, x & ((1 << low) - 1)
        for step, key in enumerate((self.keys.long() & MASK).unbind()):
            h = ((left if step % 2 else right) * 0x9E3779B1 + key) & MASK
            h = ((h ^ (h >> 15)) * 0x85EBCA77) & MASK
            h = ((h ^ (h >> 13)) * 0xC2B2AE3D) & MASK
            h = h ^ (h >> 16)
            if step % 2:
                right = right ^ (h & ((1 << low) - 1))
            else:
                left = left ^ (h & ((1 << high) - 1))
        return (left << low) | right


def uniform(numbers: Tensor, seed: Tensor) -> Tensor:
    """A float32 from 0 to 1 for each number: a hash of the number and the seed, two rounds of multiply and shift."""
    x = (numbers + seed) * -7046029254386353131
    x = (x ^ ((x >> 32) & MASK)) * -4658895280553007687
    x = (x ^ ((x >> 29) & 0x7FFFFFFFF)) * -7723592293110705685
    return ((x >> 40) & 0xFFFFFF).float() * 2.0**-24
