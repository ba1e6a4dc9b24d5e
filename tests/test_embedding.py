"""Vectors: the same at every call, and found by their ids."""

from __future__ import annotations

import torch
from torch import nn

from infomax.embedding import embed
from infomax.encoders import GCN
from infomax.views import WholeView


class Restless(GCN):
    """With one part that draws, one that remembers, and one that its maker put to rest."""

    def __init__(self, in_dim, dim):
        super().__init__(in_dim, dim)
        self.dropout, self.norm, self.frozen = nn.Dropout(0.5), nn.BatchNorm1d(dim), nn.BatchNorm1d(dim).eval()

    def layer(self, k, view, h):
        return self.frozen(self.norm(self.dropout(super().layer(k, view, h))))


def test_an_encoder_rests_while_it_embeds_and_keeps_its_modes(graph):
    encoder = Restless(graph.num_features, 4)
    state = {name: value.clone() for name, value in encoder.state_dict().items()}
    view = WholeView.of(graph, encoder.rule, torch.device("cpu"))
    torch.testing.assert_close(embed(encoder, view), embed(encoder, view, block=7))
    torch.testing.assert_close(dict(encoder.state_dict()), state)
    assert [encoder.training, encoder.dropout.training, encoder.frozen.training] == [True, True, False]
