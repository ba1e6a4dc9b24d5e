"""The contrast between a view and its negative: what the discriminator makes of both, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from infomax import kernels
from infomax.errors import InputError
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, SkipMeanPool
from infomax.parts.objectives import binary_cross_entropy
from infomax.parts.readouts import SigmoidMean
from infomax.views import View, shuffle_of

Objective = Callable[[Tensor, Tensor], Tensor]


class Model(nn.Module):
    """The three parts that learn."""

    encoder: Any
    readout: Any
    discriminator: Any

    def __init__(self, encoder: nn.Module, readout: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.encoder, self.readout, self.discriminator = encoder, readout, discriminator


def contrast(model: Model, objective: Objective, positive: View, negative: View) -> Tensor:
    """The record of a step ``[3]``: loss, discriminator accuracy, spread of the summary; the loss has a gradient."""
    if fusable(model, objective):
        return fused(model, positive, negative)
    h, h_negative = model.encoder(positive, negative)
    summary = model.readout(h, positive)
    scores, scores_negative = model.discriminator(h, summary), model.discriminator(h_negative, summary)
    loss = objective(scores, scores_negative)
    if loss.dim():
        raise InputError("objective", "one number", f"a tensor of shape {list(loss.shape)}")
    right = (scores > 0).sum() + (scores_negative < 0).sum()
    spread = summary.detach().std(correction=0)
    return torch.stack([loss, right / (len(scores) + len(scores_negative)), spread])


def fusable(model: Model, objective: Objective) -> bool:
    """Whether the parts are the paper's own, and not heirs of them, whose gradient is known in closed form."""
    return (
        type(model.encoder) in (GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool)
        and type(model.readout) is SigmoidMean
        and type(model.discriminator) is Bilinear
        and objective is binary_cross_entropy
    )


def fused(model: Model, positive: View, negative: View) -> Tensor:
    """The same as `contrast` writes it, in as few passes as it takes."""
    encoder, discriminator = model.encoder, model.discriminator
    last = (encoder.biases[-1], encoder.slopes[-1], discriminator.weight, discriminator.bias)
    shuffle = shuffle_of(positive, negative)
    if shuffle is not None and type(encoder) in (GCN, MeanPool) and encoder.depth == 1:
        p, y = shuffle[0].operand, positive.own(None, encoder.weights[0])
        kernel = partial(kernels.shuffle_contrast, p.prepared, p.transpose.prepared, shuffle[1])
        return _Contrast.apply(kernel, y, *last)  # type: ignore[no-any-return, no-untyped-call]
    return _Contrast.apply(kernels.contrast, *encoder.before_activation(positive, negative), *last)  # type: ignore[no-any-return, no-untyped-call]


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: Callable[..., Any], *arguments: Tensor) -> Tensor:
        record, ctx.gradients = kernel(*arguments)
        return record  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients  # of the loss, the only one of the three that has any
