"""What the baselines share: dropout, and the loss for one label or several labels per node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from infomax.graphs.graph import Graph

Drop = Callable[[Tensor], Tensor]


def dropout(rate: float, generator: torch.Generator) -> Drop:
    """A function that sets each entry of a tensor to zero with probability ``rate`` and scales up
    the others."""

    def drop(entries: Tensor) -> Tensor:
        is_kept = torch.rand(entries.shape, generator=generator, device=entries.device) >= rate
        return entries * is_kept / (1 - rate)

    return drop


def keep(entries: Tensor) -> Tensor:
    """No dropout."""
    return entries


def training_codes(graph: Graph, codes: NDArray[Any], device: torch.device) -> Tensor:
    """The codes of ``graph.seen()``, ``[n]`` or ``[n, C]`` int64; -1 for nodes that are not for
    training."""
    is_training = graph.splits["train"].reshape(-1, *[1] * (codes.ndim - 1))
    visible_codes = np.where(is_training, codes, -1).astype(np.int64)
    if "seen" in graph.splits:
        visible_codes = visible_codes[graph.splits["seen"]]
    return torch.from_numpy(visible_codes).to(device)


def known_rows(codes: Tensor) -> Tensor:
    """The rows ``[m]`` of codes ``[n]`` or ``[n, C]`` whose label is known."""
    return torch.nonzero(codes.view(len(codes), -1)[:, 0] >= 0)[:, 0]


def class_count(codes: Tensor) -> int:
    """The number of classes C in codes ``[n]`` or ``[n, C]``."""
    if codes.ndim == 2:
        return int(codes.shape[1])
    return int(codes.max()) + 1


def label_loss(logits: Tensor, codes: Tensor) -> Tensor:
    """Mean cross-entropy of logits ``[n, C]``: softmax for codes ``[n]``, one sigmoid per label for
    ``[n, C]``."""
    if codes.ndim == 2:
        return binary_cross_entropy_with_logits(logits, codes.to(logits.dtype))
    return cross_entropy(logits, codes)


def descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """Take one step down the gradient of a loss."""
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def decide(logits: Tensor, codes: NDArray[Any]) -> NDArray[Any]:
    """Predictions from logits ``[N, C]``, in the shape of the codes: the most likely class, or all
    labels above 0.5."""
    if codes.ndim == 2:
        predictions = logits > 0
    else:
        predictions = logits.argmax(1)
    return predictions.cpu().numpy()
