"""Sampling of patches: trees of neighbours, drawn on the device that holds the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infomax.arrays.adjacency import transposed
from infomax.errors import InputError, whole
from infomax.io.record import Record


@dataclass(frozen=True)
class Neighbours:
    """The neighbours from which each node receives messages, stored for sampling.

    Shapes:
        starts: ``[N + 1]``, node i receives from ``senders[starts[i] : starts[i + 1]]``
        senders: ``[E]``
        reach: ``[E]`` float64, cumulative sum of the weights; None if all are 1
        share: ``[N]``, the neighbours' share of a node's mean, d / (d + 1) for the sum d of their weights
    """

    starts: Tensor
    senders: Tensor
    reach: Tensor | None
    share: Tensor

    @classmethod
    def of(cls, graph: Record, device: torch.device) -> Neighbours:
        """Put the neighbours in a graph on the device; in a directed graph, the in-neighbours."""
        received = transposed(graph.adjacency) if graph.directed else graph.adjacency
        degree = torch.from_numpy(received.sum(axis=1))
        return cls(
            torch.from_numpy(received.indptr).long().to(device),
            torch.from_numpy(received.indices).to(device),
            torch.from_numpy(received.data).double().cumsum(0).to(device) if graph.weighted else None,
            (degree / (degree + 1)).float().to(device),
        )

    def draw(self, nodes: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draw neighbours by weight, with replacement, ``[n] -> [n, count]``; an isolated node draws itself."""
        return self.pick(nodes, torch.rand(len(nodes), count, generator=generator, device=nodes.device))

    def pick(self, nodes: Tensor, chance: Tensor) -> Tensor:
        """As `draw`, with random numbers from 0 to 1, ``[n, count]``."""
        first, last = self.starts[nodes], self.starts[nodes + 1]
        if self.reach is None:
            degree = (last - first)[:, None]
            drawn = first[:, None] + (chance * degree).long().clamp_(max=degree - 1)
        else:
            below = torch.where(first > 0, self.reach[first - 1], 0)[:, None]
            above = self.reach[(last - 1).clamp(min=0)][:, None]
            drawn = torch.searchsorted(self.reach, below + chance.double() * (above - below), right=True)
            drawn = torch.minimum(torch.maximum(drawn, first[:, None]), last[:, None] - 1)
        alone = (first == last)[:, None]
        drawn = self.senders[drawn.clamp_(min=0, max=max(len(self.senders) - 1, 0))] if len(self.senders) else drawn
        return torch.where(alone, nodes[:, None], drawn.long())


def check_fan_out(fan_out: Any) -> tuple[int, ...]:
    """Check the numbers of neighbours to draw on each level; returns plain ints."""
    if not isinstance(fan_out, Sequence | np.ndarray) or isinstance(fan_out, str):
        raise InputError("fan_out", "whole numbers, one per layer, such as (10, 10, 25)", repr(fan_out))
    return tuple(whole("fan_out", count, 1) for count in fan_out)


def level_sizes(batch: int, fan_out: tuple[int, ...]) -> list[int]:
    """Return the number of nodes on each level of a batch of patches: B, B k_1, B k_1 k_2, ..."""
    return list(accumulate(fan_out, mul, initial=batch))


def sample_patches(
    neighbours: Neighbours,
    centres: Tensor,
    fan_out: tuple[int, ...],
    generator: torch.Generator,
    rows: slice = slice(None),
) -> Tensor:
    """Draw the nodes of the patches around B centres, ``[B, 1 + k_1 + k_1 k_2 + ...]``, level by level.

    ``rows`` returns some of the patches, from the random numbers of all.
    """
    widths, device = level_sizes(1, fan_out), centres.device
    levels = [centres[rows]]
    for width, count in zip(widths, fan_out, strict=False):
        chance = torch.rand(len(centres) * width, count, generator=generator, device=device)
        mine = chance.view(len(centres), width, count)[rows].reshape(-1, count)
        levels.append(neighbours.pick(levels[-1], mine).view(-1))
    return torch.cat([level.view(-1, width) for level, width in zip(levels, widths, strict=True)], dim=1)


def by_level(rows: Tensor, fan_out: tuple[int, ...]) -> list[Tensor]:
    """Split patches ``[B, P]`` into flat levels: a node's children are contiguous, in the order of their parents."""
    return [level.reshape(-1) for level in rows.split(level_sizes(1, fan_out), dim=1)]
