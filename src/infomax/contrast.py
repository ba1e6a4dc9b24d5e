"""The contrast between a view and its negative: what the discriminator makes of both, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from infomax import kernels
from infomax.discriminators import Bilinear
from infomax.encoders import Encoder
from infomax.objectives import binary_cross_entropy
from infomax.readouts import SigmoidMean
from infomax.views import View

Objective = Callable[[Tensor, Tensor], Tensor]


class Model(nn.Module):
    """The three parts that learn."""

    encoder: Any
    readout: Any
    discriminator: Any

    def __init__(self, encoder: nn.Module, readout: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.encoder, self.readout, self.discriminator = encoder, readout, discriminator


def contrast(model: Model, objective: Objective, positive: View, negative: View) -> tuple[Tensor, Tensor]:
    """The loss, and the record of the step ``[3]``: loss, discriminator accuracy, spread of the summary."""
    if fusable(model, objective):
        return fused(model, positive, negative)
    h, h_negative = model.encoder(positive, negative)
    summary = model.readout(h, positive)
    scores, scores_negative = model.discriminator(h, summary), model.discriminator(h_negative, summary)
    loss = objective(scores, scores_negative)
    with torch.no_grad():
        right = (scores > 0).sum() + (scores_negative < 0).sum()
        return loss, torch.stack([loss, right / (len(scores) + len(scores_negative)), summary.std(correction=0)])


def fusable(model: Model, objective: Objective) -> bool:
    """Whether the parts are the paper's own, whose gradient is known in closed form."""
    return (
        isinstance(model.encoder, Encoder)
        and model.encoder.ends_in_prelu
        and type(model.readout) is SigmoidMean
        and type(model.discriminator) is Bilinear
        and objective is binary_cross_entropy
    )


def fused(model: Model, positive: View, negative: View) -> tuple[Tensor, Tensor]:
    """The same as `contrast` writes it, in as few passes as it takes; its gradient is that of the loss itself."""
    encoder, discriminator = model.encoder, model.discriminator
    z, z_negative = encoder.before_activation(positive, negative)
    bias, slope = encoder.biases[-1], encoder.slopes[-1]
    return _Contrast.apply(z, z_negative, bias, slope, discriminator.weight, discriminator.bias)  # type: ignore[no-any-return, no-untyped-call]


class _Contrast(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> tuple[Tensor, Tensor]:
        record, ctx.gradients = kernels.contrast(*arguments)
        ctx.mark_non_differentiable(record)
        return record[0].clone(), record

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, ...]:
        return ctx.gradients  # type: ignore[no-any-return]
