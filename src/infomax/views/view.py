"""What an encoder sees, and what a regime is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor


class View(Protocol):
    """What an encoder sees: features, and how a layer's messages run.

    H is ``[n, d]``, the outcome of the layer before; None stands for the features X. A layer computes the first m of
    the n nodes: all of them on a whole graph, all but the outermost level in patches.
    """

    def carry(self, h: Tensor) -> Tensor:
        """H of the nodes that the layer computes, ``[m, d]``."""

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """H Θ of those nodes, ``[m, d']``."""

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P H Θ of those nodes, ``[m, d']``: what their neighbourhoods (and they themselves) send them."""


Corruption = Callable[..., View]
"""Called with (view, generator): a negative of the view."""


class Views(Protocol):
    """A regime: what one epoch trains on.

    One that depends on the depth of the encoder has a method ``prepare(layers)`` too, called before training.
    """

    steps: int
    """Steps per epoch."""
    uniform: bool
    """Whether all batches of one length have pairs of one shape, so that a GPU can replay a step it has recorded."""

    def batches(self, generator: torch.Generator) -> Iterable[Tensor]:
        """What each step of an epoch is about; all that is random in it is drawn at the call."""

    def pair(self, batch: Tensor, generator: torch.Generator) -> tuple[View, View]:
        """The positive and the negative view of a step."""
