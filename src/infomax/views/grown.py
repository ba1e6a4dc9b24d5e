"""Neighbourhoods of a graph whose edges are not in one array, as those of a graph folder with new nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from infomax.arrays.adjacency import Adjacency
from infomax.kernels.neighbourhoods import Neighbourhoods


@dataclass(frozen=True)
class GrownNeighbourhoods(Neighbourhoods):
    """As `Neighbourhoods`, whose rows are asked for one by one; no neighbours are sampled."""

    edges: Adjacency

    def rows(self, nodes: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows of P, a node itself first: starts ``[B + 1]``, senders ``[e]`` and values ``[e]``."""
        chosen = nodes.cpu().numpy()
        place, columns, weights = self.edges.received(chosen)
        itself = chosen if self.loops else chosen[:0]
        owner = np.concatenate([np.arange(len(itself)), place])
        order = np.argsort(owner, kind="stable")  # a node comes before its neighbours
        senders = torch.from_numpy(np.concatenate([itself, columns])[order]).to(nodes.device)
        weight = torch.from_numpy(np.concatenate([np.ones(len(itself), np.float32), weights])[order]).to(nodes.device)
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(chosen)))])
        left = self.left[nodes][torch.from_numpy(owner[order]).to(nodes.device)]
        return torch.from_numpy(starts).to(nodes.device), senders, left * weight * self.right[senders]
