"""What researchers write as parts of their own: attention, layers of PyG, state, randomness, and mistakes."""

from __future__ import annotations

import numpy as np
import torch
from sample_graphs import random_graph
from torch import nn

from infomax import DGI
from infomax.kernels.initialisation import glorot
from infomax.parts.encoders import Encoder
from infomax.views import SYMMETRIC


class Linear(Encoder):
    rule, depth = SYMMETRIC, 1

    def __init__(self, in_dim, dim, *, generator=None):
        super().__init__()
        self.out_dim, self.weight = dim, glorot((in_dim, dim), generator=generator)
        self.bias = nn.Parameter(torch.ones(dim))

    def layer(self, k, view, h):
        return torch.relu(view.own(h, self.weight) + self.bias + view.pooled(h, self.weight))


def of(layer=Linear.layer, **attributes):
    """An encoder with another layer, or other attributes."""
    return type("Odd", (Linear,), {"layer": layer, **attributes})


def test_what_a_layer_changes_in_place_is_its_own():
    def layer(self, k, view, h):
        return torch.relu(view.own(h, self.weight).add_(self.bias) + view.pooled(h, self.weight))

    graph = random_graph(dense=True)
    there, elsewhere = (DGI(4, epochs=5, encoder=part).fit_transform(graph).vectors for part in (of(layer), Linear))
    np.testing.assert_allclose(there, elsewhere, atol=1e-5)
