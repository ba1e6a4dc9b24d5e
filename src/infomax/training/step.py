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
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
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
    scored: tuple[int, int]
    """How many positives and negatives an objective of your own was last given."""

    def __init__(self, encoder: nn.Module, readout: nn.Module, discriminator: nn.Module) -> None:
        super().__init__()
        self.encoder, self.readout, self.discriminator = encoder, readout, discriminator
        self.scored = 2, 2


def evaluate_pair(model: Model, objective: Objective, positive: View, negative: View) -> Tensor:
    """Return the record of a step ``[3]``: loss, discriminator accuracy, summary spread. The loss has a gradient."""
    if has_closed_form(model, objective):
        return _closed_form(model, positive, negative)
    encoded, dtype = model.encoder(positive, negative), next(model.parameters()).dtype
    if not isinstance(encoded, tuple) or len(encoded) != 2:
        raise InputError("encoder", "a tuple of two tensors, for two views", _found(encoded))
    for vectors, view in zip(encoded, (positive, negative), strict=True):
        rows = getattr(view, "n", len(vectors) if isinstance(vectors, Tensor) and vectors.dim() else 1)
        _check("encoder", vectors, [rows, model.encoder.out_dim], dtype)
    h, h_negative = encoded
    summary = model.readout(h, positive)
    if type(model.discriminator) is Bilinear:  # one of your own may take other summaries
        _check("readout", summary, [h.shape[1]], dtype)
    scores, scores_negative = model.discriminator(h, summary), model.discriminator(h_negative, summary)
    for one, vectors in ((scores, h), (scores_negative, h_negative)):
        ours = objective in (binary_cross_entropy, jensen_shannon)  # one of your own may take several of each node
        if not isinstance(one, Tensor) or one.shape[:1] != vectors.shape[:1] or (ours and one.numel() != len(vectors)):
            raise InputError("discriminator", f"numbers of shape {[len(vectors)]}", _found(one))
    model.scored = len(scores), len(scores_negative)
    loss = objective(scores, scores_negative)
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        raise InputError("objective", "one number, as a tensor with a gradient", _found(loss))
    right = (scores > 0).sum() + (scores_negative < 0).sum()
    spread = summary.detach().std(correction=0)
    return torch.stack([loss, right / (len(scores) + len(scores_negative)), spread])


def _check(part: str, found: Any, shape: list[int], dtype: torch.dtype) -> None:
    """Raise InputError unless a part of your own has returned numbers of a shape and a type."""
    if not isinstance(found, Tensor) or list(found.shape) != shape or found.dtype != dtype:
        raise InputError(part, f"{dtype} of shape {shape}", _found(found))


def _found(value: Any) -> str:
    """What a part has returned, in words."""
    if not isinstance(value, Tensor):
        return f"one of type {type(value).__name__}"
    return f"{value.dtype} of shape {list(value.shape)}{'' if value.requires_grad else ' without a gradient'}"


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
