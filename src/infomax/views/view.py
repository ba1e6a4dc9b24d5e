"""Interfaces: the view that an encoder reads, and the regime that makes pairs of views."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor


class View(Protocol):
    """Features and edges as an encoder's layer reads them.

    H is ``[n, d]``, the output of the layer before; None stands for the features X. A layer computes m of the n nodes:
    all of them on a whole graph, all but the outermost level in patches.
    """

    def carry(self, h: Tensor) -> Tensor:
        """H of the nodes that the layer computes, ``[m, d]``."""

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of those nodes, ``[m, d']``."""

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ of those nodes, ``[m, d']``: pooled over their neighbourhoods, which include the nodes themselves."""


Corruption = Callable[..., View]
"""A function of (view, generator) that returns a negative of the view."""


class Views(Protocol):
    """A regime: the pairs of views that one epoch trains on.

    If it depends on the depth of the encoder, it also has a method ``prepare(layers)``, called before training. If
    several processes can share a step, it also has a method ``divide(ranks)``; see `Batches.divide`. If its pairs
    can be made uniform, it also has a method ``pad()``; see `ManyGraphs.pad`.
    """

    steps: int
    """Steps per epoch."""
    uniform: bool
    """Whether batches of equal length give pairs of equal shape, so that a GPU can replay a recorded step."""

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """Return the batches of an epoch, one per step; the call itself makes all random draws for them."""

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """Return the positive and the negative view of a step."""
