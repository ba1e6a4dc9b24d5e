"""Pooling over trees of sampled neighbours: in plain torch, and by Triton where a backend has
it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

import torch
from torch import Tensor
from torch.nn.functional import embedding, embedding_bag

from infomax.kernels import Backend


@dataclass(frozen=True)
class Tree:
    """Patches as trees of n nodes, level by level.

    The m nodes above the outermost level have contiguous children.

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
        roots = sizes[0]
        counts_by_level = [
            torch.full((size,), next_size // max(size, 1)) for size, next_size in pairwise(sizes)
        ]
        count = torch.zeros(0, dtype=torch.int64)
        if counts_by_level:
            count = torch.cat(counts_by_level)
        first = roots + count.cumsum(0) - count
        parents_of_children = torch.repeat_interleave(torch.arange(len(count)), count)
        parent = torch.cat([torch.full((roots,), -1), parents_of_children])
        return cls(roots, first.to(device), count.to(device), parent.to(device))


def pool_tree(backend: Backend, h: Tensor, tree: Tree, share: Tensor) -> tuple[Tensor, Tensor]:
    """Return each inner node's own row of H, and the mean over it and its children.

    Args:
        backend: the kernels.
        h: ``[n, d]``.
        tree: the trees.
        share: ``[m]``, the weight of the children's mean; the node itself has the rest.

    Returns:
        Two tensors ``[m, d]``.
    """
    if backend.triton_for(h) is not None:
        own_rows, means = _triton_kernels().PoolTree.apply(h, tree, share)
        return own_rows, means
    own_rows = h[: len(tree.first)]
    parents, children = tree.parent[tree.roots :], h[tree.roots :]
    child_sums = torch.zeros_like(own_rows).index_add(0, parents, children)
    means = torch.lerp(own_rows, child_sums / tree.count[:, None], share[:, None])
    return own_rows, means


def gather_tree(
    backend: Backend, table: Tensor, rows: Tensor, tree: Tree, share: Tensor
) -> tuple[Tensor, Tensor]:
    """Do as `pool_tree` from a table ``[T, d]``, node i having row ``rows[i]``.

    The outermost level is not stored. The table may be in half precision, and for Triton in
    page-locked host memory; the result has the dtype of ``share``.
    """
    if not table.requires_grad and backend.triton_for(share) is not None:
        own_rows, means = _triton_kernels().gather_tree(table, rows, tree, share)
        return own_rows, means
    own_rows = embedding(rows[: len(tree.first)], table).to(share.dtype)
    child_rows = rows[tree.roots :]
    child_means = embedding_bag(child_rows, table, tree.first - tree.roots, mode="mean")
    return own_rows, torch.lerp(own_rows, child_means.to(share.dtype), share[:, None])


def permutations(
    backend: Backend, count: int, n: int, generator: torch.Generator, rows: slice = slice(None)
) -> Tensor:
    """Draw random permutations, ``[count, n]``, and return some rows of them."""
    if backend.triton:
        drawn: Tensor = backend.triton.permutations(count, n, generator)
        return drawn[rows]
    keys = torch.rand(count, n, generator=generator, device=generator.device)
    return keys[rows].argsort(dim=1)


def _triton_kernels() -> ModuleType:
    # Triton takes half a second to load.
    from infomax_paper import trees_gpu

    return trees_gpu
