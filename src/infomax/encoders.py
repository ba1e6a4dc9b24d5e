"""Encoders: from views of a graph to one vector a node, its patch representation."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from infomax.initialisation import glorot
from infomax.kernels import bias_prelu, permute
from infomax.propagation import Rule
from infomax.views import View


class Encoder(Protocol):
    """What the training loop asks of an encoder; make your own as an ``nn.Module`` with these two."""

    rule: Rule
    """The normalisation of the propagation it wants."""

    def __call__(self, *views: View) -> tuple[Tensor, ...]:
        """H of each view, ``[N, d]`` each."""


class GCN(nn.Module):
    """Graph convolutions, ``H = PReLU(P X Θ + b)``, one or more; one slope a layer.

    Shapes:
        in: views of ``[N, F]``
        out: ``[N, dim]`` a view
    """

    rule: Rule = "symmetric"

    def __init__(self, in_dim: int, dim: int, *, layers: int = 1, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.weights = nn.ParameterList(
            glorot((dim if layer else in_dim, dim), generator=generator) for layer in range(layers)
        )
        self.biases = nn.ParameterList(torch.zeros(dim) for _ in range(layers))
        self.slopes = nn.ParameterList(torch.full((1,), 0.25) for _ in range(layers))

    def forward(self, *views: View) -> tuple[Tensor, ...]:
        """H of each view; where views share their features, X Θ is computed once."""
        return tuple(self._encode(view, y) for view, y in zip(views, project(views, self.weights[0]), strict=True))

    def _encode(self, view: View, y: Tensor) -> Tensor:
        h = y
        for layer, (weight, bias, slope) in enumerate(zip(self.weights, self.biases, self.slopes, strict=True)):
            h = bias_prelu(view.propagation @ (h @ weight if layer else h), bias, slope)
        return h


def project(views: tuple[View, ...], weight: Tensor) -> list[Tensor]:
    """X Θ of each view, ``[N, d]``. Shuffling rows commutes with the linear map, so a shared X is multiplied once."""
    products: dict[int, Tensor] = {}
    projected = []
    for view in views:
        key = id(view.features)
        if key not in products:
            products[key] = view.features @ weight
        y = products[key]
        projected.append(y if view.rows is None else permute(y, view.rows))
    return projected
