"""Adam (Kingma & Ba, 2015), as the paper uses it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from infomax.kernels import Backend


class Adam:
    """Adam: the weights, running means of their gradients and of the squared gradients, and the number of steps."""

    def __init__(self, weights: Sequence[Tensor], lr: float, backend: Backend | None = None) -> None:
        self.weights, self.lr = [weight.detach() for weight in weights], lr
        self.means = [torch.zeros_like(weight) for weight in self.weights]
        self.variances = [torch.zeros_like(weight) for weight in self.weights]
        self.count = torch.zeros((), device=self.weights[0].device)
        self.backend = backend or Backend(self.count.device)

    def step(self, gradients: Sequence[Tensor], kept: list[Tensor] | None = None, waited: Tensor | None = None) -> None:
        """Update the weights; see `plain.adam` for ``kept`` and ``waited``."""
        self.backend.adam(self, gradients, kept, waited)
