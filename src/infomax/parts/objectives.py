"""Objectives: the loss of the discriminator's logits on positives ``[N]`` and negatives ``[M]``.

With a logit z, D = sigmoid(z), so log D = -softplus(-z) and log (1 - D) = -softplus(z): written so,
neither overflows.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softplus


def binary_cross_entropy(positive: Tensor, negative: Tensor) -> Tensor:
    """Minus the paper's Equation (1): cross-entropy on logits, averaged over the N + M examples."""
    total = softplus(-positive).sum() + softplus(negative).sum()
    return total / (len(positive) + len(negative))


def jensen_shannon(positive: Tensor, negative: Tensor) -> Tensor:
    """Deep InfoMax's softplus form: the sum of the means of both classes. Twice the cross-entropy
    if N = M."""
    return softplus(-positive).mean() + softplus(negative).mean()
