"""One step on a pair of views: encode both, summarise the positive, score both, compute the loss."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from infomax.errors import InputError
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, PathMean, SkipMeanPool, TwoHops
from infomax.parts.objectives import binary_cross_entropy
from infomax.parts.readouts import SigmoidMean
from infomax.views import View
from infomax.views.many import side_by_side
from infomax.views.whole import shuffle_of

Objective = Callable[[Tensor, Tensor], Tensor]


class Model(nn.Module):
    """The three parts with weights: encoder, readout, discriminator."""

    encoder: Any
    readout: Any
    discriminator: Any

    def __init__(self, encoder: nn.Module, readout: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.encoder, self.readout, self.discriminator = encoder, readout, discriminator


def evaluate_pair(model: Model, objective: Objective, positive: View, negative: View) -> Tensor:
    """Return the record of a step ``[3]``: loss, discriminator accuracy, summary spread. The loss has a gradient."""
    if has_closed_form(model, objective):
        return _closed_form(model, positive, negative)
    h, h_negative = model.encoder(positive, negative)
    summary = model.readout(h, positive)
    scores, scores_negative = model.discriminator(h, summary), model.discriminator(h_negative, summary)
    loss = objective(scores, scores_negative)
    if loss.dim():
        raise InputError("objective", "one number", f"a tensor of shape {list(loss.shape)}")
    right = (scores > 0).sum() + (scores_negative < 0).sum()
    spread = summary.detach().std(correction=0)
    return torch.stack([loss, right / (len(scores) + len(scores_negative)), spread])


def has_closed_form(model: Model, objective: Objective) -> bool:
    """Whether all parts are the paper's, and not subclasses: `_closed_form` then has the gradient."""
    return (
        type(model.encoder) in (GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool, TwoHops, PathMean)
        and type(model.readout) is SigmoidMean
        and type(model.discriminator) is Bilinear
        and objective is binary_cross_entropy
    )


def _closed_form(model: Model, positive: View, negative: View) -> Tensor:
    """As `evaluate_pair`; also computes the gradient of everything after the last linear map in closed form."""
    encoder, discriminator = model.encoder, model.discriminator
    pair_loss = partial(positive.backend.pair_loss, portion=getattr(positive, "portion", None))
    if type(encoder) is PathMean:  # its activations are not the last thing that it does
        both = side_by_side(positive, negative)
        h = encoder(both) if both else encoder(positive, negative)
        nothing = h[0].new_zeros(encoder.out_dim), h[0].new_ones(1)
        kernel = partial(_of_both, pair_loss) if both else pair_loss
        return _ClosedForm.apply(kernel, *h, *nothing, discriminator.weight, discriminator.bias)  # type: ignore[no-any-return, no-untyped-call]
    last = (encoder.biases[-1], encoder.slopes[-1], discriminator.weight, discriminator.bias)
    shuffle = shuffle_of(positive, negative)
    if shuffle is not None and type(encoder) in (GCN, MeanPool) and encoder.depth == 1:
        p, y = shuffle[0].operand, positive.at(0).own(None, encoder.weights[0])
        kernel = partial(positive.backend.shuffle_loss, p.prepared, p.transpose.prepared, shuffle[1])
        return _ClosedForm.apply(kernel, y, *last)  # type: ignore[no-any-return, no-untyped-call]
    both = side_by_side(positive, negative)
    z = encoder.before_activation(both)[0].chunk(2) if both else encoder.before_activation(positive, negative)
    return _ClosedForm.apply(pair_loss, *z, *last)  # type: ignore[no-any-return, no-untyped-call]


def _of_both(pair_loss: Callable[..., Any], h: Tensor, *last: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As ``pair_loss``, from ``[2 N, d]``: the nodes of the positive, then of the negative."""
    record, (grad, grad_negative, *gradients) = pair_loss(*h.chunk(2), *last)
    overwritten = grad.data_ptr() == h.data_ptr()
    return record, (h if overwritten else torch.cat([grad, grad_negative]), *gradients)


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: Callable[..., Any], *arguments: Tensor) -> Tensor:
        record, ctx.gradients = kernel(*arguments)
        return record  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients  # of the loss; accuracy and spread have none
