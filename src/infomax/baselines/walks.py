"""Random walks and the skip-gram objective: nodes that share a walk get alike vectors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding, softplus

from infomax.views.sampling import Neighbours


def random_walks(neighbours: Neighbours, starts: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """A walk of so many nodes from each start, ``[n] -> [n, length]``; at an isolated node it stays."""
    walk = [starts]
    for _ in range(length - 1):
        walk.append(neighbours.draw(walk[-1], 1, generator)[:, 0])
    return torch.stack(walk, dim=1)


def closeness(length: int, window: int, device: torch.device) -> Tensor:
    """How much two places of a walk count as a pair, ``[length, length]``: 1 side by side, 0 past the window.

    Word2vec shrinks each window at random; these are the chances that it still holds a pair.
    """
    place = torch.arange(length, device=device)
    gap = (place[:, None] - place).abs()
    return (window + 1 - gap).clamp(min=0) / window * (gap > 0)


def skip_gram_loss(
    centres: Tensor, contexts: Tensor, walks: Tensor, near: Tensor, others: Tensor, negatives: int
) -> Tensor:
    """Skip-gram with negative sampling, the mean over pairs; all pairs of a walk are one small matrix product.

    A pair costs ``-log σ(u·v)``, and as much as ``negatives`` pairs with nodes drawn at random, ``-log σ(-u·v)``.
    The M nodes drawn are shared by all pairs, and their mean is counted ``negatives`` times.

    Shapes:
        centres, contexts: ``[N, d]``, the two vectors of each node
        walks: ``[B, L]``; near: ``[L, L]``, see `closeness`; others: ``[M]``
    """
    u, v = embedding(walks, centres), embedding(walks, contexts)
    alike = (softplus(-(u @ v.transpose(1, 2))) * near).sum()
    unlike = (softplus(u @ embedding(others, contexts).T).mean(-1) * near.sum(1)).sum()
    return (alike + negatives * unlike) / (len(walks) * near.sum())
