"""Random walks and the skip-gram loss: nodes that share a walk get similar vectors."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding, softplus

from infomax.views.sampling import Neighbours


def random_walks(neighbours: Neighbours, starts: Tensor, length: int, generator: torch.Generator) -> Tensor:
    """Random walks ``[n, length]`` from nodes ``[n]``; a walk stays at an isolated node."""
    walk = [starts]
    for _ in range(length - 1):
        walk.append(neighbours.draw(walk[-1], 1, generator)[:, 0])
    return torch.stack(walk, dim=1)


def closeness(length: int, window: int, device: torch.device) -> Tensor:
    """The weight of each pair of places of a walk, ``[length, length]``: 1 for neighbours, 0 beyond the window.

    word2vec shrinks each window at random; the weights are the probabilities that it still contains the pair.
    """
    place = torch.arange(length, device=device)
    gap = (place[:, None] - place).abs()
    return (window + 1 - gap).clamp(min=0) / window * (gap > 0)


def skip_gram_loss(
    centres: Tensor, contexts: Tensor, walks: Tensor, near: Tensor, others: Tensor, negatives: int
) -> Tensor:
    """Skip-gram loss with negative sampling, averaged over pairs; all pairs of a walk are one small matrix product.

    The loss of a pair is ``-log σ(u·v)`` plus ``negatives`` times the mean of ``-log σ(-u·v)`` over M nodes drawn at
    random, which all pairs share.

    Shapes:
        centres, contexts: ``[N, d]``, the two vectors of each node
        walks: ``[B, L]``; near: ``[L, L]``, see `closeness`; others: ``[M]``
    """
    u, v = embedding(walks, centres), embedding(walks, contexts)
    alike = (softplus(-(u @ v.transpose(1, 2))) * near).sum()
    unlike = (softplus(u @ embedding(others, contexts).T).mean(-1) * near.sum(1)).sum()
    return (alike + negatives * unlike) / (len(walks) * near.sum())
