"""The shape of a batch of patches: the children and the parent of each node."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tree:
    """Trees of n nodes, level by level; the m nodes above the outermost level have children, which are contiguous.

    Shapes:
        first, count: ``[m]``, the first child of a node, and how many it has
        parent: ``[n]``, -1 for the roots
    """

    roots: int
    first: Tensor
    count: Tensor
    parent: Tensor

    @classmethod
    def of(cls, sizes: tuple[int, ...], device: torch.device) -> Tree:
        """Build the trees whose levels have these sizes."""
        count = [torch.full((size,), below // max(size, 1)) for size, below in pairwise(sizes)]
        inner = torch.cat(count) if count else torch.zeros(0, dtype=torch.int64)
        first = sizes[0] + inner.cumsum(0) - inner
        parent = torch.cat([torch.full((sizes[0],), -1), torch.repeat_interleave(torch.arange(len(inner)), inner)])
        return cls(sizes[0], first.to(device), inner.to(device), parent.to(device))
