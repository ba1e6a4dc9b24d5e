"""Discriminators: how well a patch representation goes with a summary."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from infomax.kernels.initialisation import glorot


class Bilinear(nn.Module):
    """``h^T W s + b``, as logits, computed as H (W s): N d + d^2 operations instead of N d^2.

    Shapes:
        h: ``[N, d]``; s: ``[d]``
        out: ``[N]``
    """

    def __init__(self, dim: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        # The paper's W is a [1, d, d] tensor, and Glorot's bound counts its fans as d * d and d.
        self.weight = glorot((dim, dim), fans=(dim * dim, dim), generator=generator)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, h: Tensor, summary: Tensor) -> Tensor:
        """Logits ``[N]``."""
        return h @ (self.weight @ summary) + self.bias
