"""Deep Graph Infomax in closed form: an equivalent of `DeepGraphInfomax.loss` for the paper's
parts.

Readout, scores, loss and the gradient of everything after the last linear map are computed in a few
passes over the data; autograd does what comes before it. tests/laws/test_step.py holds the
equivalent to the written loss and to the formulas of the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from infomax.parts.deep_graph_infomax import DeepGraphInfomax
from infomax.parts.discriminators import Bilinear
from infomax.parts.encoders import GCN, DenseSkipMeanPool, MeanPool, PathMean, SkipMeanPool, TwoHops
from infomax.parts.methods import Method, Model
from infomax.parts.objectives import binary_cross_entropy
from infomax.parts.readouts import SigmoidMean
from infomax.views import View
from infomax.views.many import side_by_side
from infomax.views.whole import shuffle_of

FUSED_ENCODERS = (GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool, TwoHops, PathMean)
"""Encoders whose last bias and activation the kernels know; a subclass may do something else."""


def accelerate(method: Method, model: Model) -> Method:
    """Return the registered equivalent of a method for the parts of a model, else the method."""
    equivalent = EQUIVALENTS.get(type(method))
    accelerated = None if equivalent is None else equivalent(method, model)
    return method if accelerated is None else accelerated


class FusedDeepGraphInfomax(DeepGraphInfomax):
    """`DeepGraphInfomax` with the paper's parts, and an encoder of `FUSED_ENCODERS`."""

    repeats_the_same_work = True

    def loss(self, model: Model, pair: tuple[View, View]) -> Tensor:
        """As `DeepGraphInfomax.loss`."""
        positive, negative = pair
        encoder, discriminator = model.encoder, model.discriminator
        portion = getattr(positive, "portion", None)
        kernel: Callable[..., Any] = partial(positive.backend.pair_loss, portion=portion)
        if type(encoder) is PathMean:
            return _loss_of_vectors(kernel, model, positive, negative)

        last = encoder.biases[-1], encoder.slopes[-1], discriminator.weight, discriminator.bias

        # A shuffle of one graph by one layer: X Θ is computed once, for both.
        shuffle = shuffle_of(positive, negative)
        if shuffle is not None and type(encoder) in (GCN, MeanPool) and encoder.depth == 1:
            propagation, rows = shuffle
            matrix = propagation.operand
            x_theta = positive.at(0).own(None, encoder.weights[0])
            kernel = partial(
                positive.backend.shuffle_loss, matrix.prepared, matrix.transpose.prepared, rows
            )
            return _closed_form(kernel, x_theta, *last)

        both = side_by_side(positive, negative)
        if both is not None:
            z, z_negative = encoder.before_activation(both)[0].chunk(2)
        else:
            z, z_negative = encoder.before_activation(positive, negative)
        return _closed_form(kernel, z, z_negative, *last)


def fused_deep_graph_infomax(method: Any, model: Model) -> FusedDeepGraphInfomax | None:
    """The equivalent of Deep Graph Infomax, where all parts are the paper's, not subclasses."""
    has_papers_parts = (
        type(model.encoder) in FUSED_ENCODERS
        and type(model.readout) is SigmoidMean
        and type(model.discriminator) is Bilinear
        and method.objective is binary_cross_entropy
    )
    if not has_papers_parts:
        return None
    return FusedDeepGraphInfomax(method.readout, method.discriminator, method.objective)


EQUIVALENTS: dict[type[Method], Callable[[Any, Model], Method | None]] = {
    DeepGraphInfomax: fused_deep_graph_infomax
}
"""By method, the function that makes its equivalent for a model; None for other parts."""


def _loss_of_vectors(
    kernel: Callable[..., Any], model: Model, positive: View, negative: View
) -> Tensor:
    """The loss from H on, of an encoder whose activation is not the last thing that it does."""
    both = side_by_side(positive, negative)
    vectors = model.encoder(positive, negative) if both is None else model.encoder(both)
    # No bias, and a slope of 1: no activation.
    no_activation = vectors[0].new_zeros(model.encoder.out_dim), vectors[0].new_ones(1)
    scorer = model.discriminator.weight, model.discriminator.bias
    if both is not None:
        kernel = partial(_pair_in_one_matrix, kernel)
    return _closed_form(kernel, *vectors, *no_activation, *scorer)


def _pair_in_one_matrix(
    pair_loss: Callable[..., Any], h: Tensor, *last: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As ``pair_loss``, from ``[2 N, d]``: the nodes of the positive, then of the negative."""
    record, (gradient, gradient_negative, *other_gradients) = pair_loss(*h.chunk(2), *last)
    is_overwritten = gradient.data_ptr() == h.data_ptr()
    both = h if is_overwritten else torch.cat([gradient, gradient_negative])
    return record, (both, *other_gradients)


def _closed_form(kernel: Callable[..., Any], *arguments: Tensor) -> Tensor:
    """The record that a kernel computes, with the gradients that it computes beside it."""
    return _ClosedForm.apply(kernel, *arguments)  # type: ignore[no-any-return, no-untyped-call]


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: Callable[..., Any], *arguments: Tensor) -> Tensor:
        record, ctx.gradients = kernel(*arguments)
        return record  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        return None, *ctx.gradients  # of the loss; accuracy and spread have none
