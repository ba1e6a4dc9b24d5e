"""Discriminators D: score each patch representation h_i against a summary s."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from infomax.kernels.initialisation import glorot


class Bilinear(nn.Module):
    """The paper's discriminator before its sigmoid: logits ``h_i^T W s + b``.

    Computed as H (W s): N d + d^2 operations instead of N d^2. The scalar b is not in the paper,
    but in the code of its authors.

    Shapes:
        h: ``[N, d]``; s: ``[d]``
        out: ``[N]``
    """

    def __init__(self, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        # The paper's W is a [1, d, d] tensor, for which Glorot's bound has fans d * d and d.
        self.weight = glorot((dim, dim), fans=(dim * dim, dim), generator=generator)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, h: Tensor, s: Tensor) -> Tensor:
        """Return logits ``[N]``."""
        return h @ (self.weight @ s) + self.bias
