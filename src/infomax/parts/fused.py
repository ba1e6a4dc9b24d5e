"""Deep Graph Infomax in closed form: the equivalent of `DeepGraphInfomax.loss` for the paper's
parts.

When: ``assemble`` in estimator/assembly.py (and ``with_another_seed``, on the same views) calls
`accelerate` once, before a training begins. If encoder, readout, discriminator and objective are
all the paper's, as they are by default, the training runs with a `FusedDeepGraphInfomax`; with any
other part it runs with the method as written.

What is exchanged: ``method.loss`` in `train_step`, and nothing else. The parts keep their weights,
which the formulas read; readout and discriminator are not called in such a step. There are two
cases:

- One convolution and shuffled rows, the default: `Backend.shuffle_loss` computes everything from X
  Theta on. The encoder is not called either.
- Every other: the encoder computes Z, its last linear map, and `Backend.pair_loss` what follows.

(``infomax analyse`` calls readout and discriminator as they are written, in reports/analysis.py.
`DeepGraphInfomax.guessing_loss` calls the objective, at the end of every training.) What follows Z
has a formula, and so has its gradient::

    H = PReLU(Z + b),  s = sigmoid(mean_i h_i),  v = W s,  scores h_i . v + o,  cross-entropy

``pair_loss`` in kernels/plain.py is these formulas in torch, line by line. A `Backend` runs that,
or the same in numba (kernels/cpu.py) or Triton (kernels/gpu/loss.py). On a CPU each call decides
by its size, in ``Backend.numba_for``; on a GPU a training decides once.

Which laws hold it: tests/laws/test_step.py compares this loss and all its gradients with
`DeepGraphInfomax.loss` for each of `FUSED_ENCODERS` but `PathMean`, in float64, and both with the
formulas of the paper; tests/laws/test_paths.py does so for `PathMean`. Their graphs are small, so
they run in plain torch: tests/kernels/test_kernels.py compares numba and Triton with plain torch.
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

Kernel = Callable[..., tuple[Tensor, tuple[Tensor, ...]]]
"""A function of some arrays that returns the record of a step ``[3]``, and for each of the arrays
the gradient of the loss, which is the first number of the record."""


def accelerate(method: Method, model: Model) -> Method:
    """Return the registered equivalent of a method for the parts of a model, else the method."""
    make_equivalent = EQUIVALENTS.get(type(method))
    if make_equivalent is None:
        return method
    equivalent = make_equivalent(method, model)
    return method if equivalent is None else equivalent


def fused_deep_graph_infomax(method: Any, model: Model) -> FusedDeepGraphInfomax | None:
    """The equivalent of Deep Graph Infomax where all parts are the paper's, not subclasses; else
    None."""
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


class FusedDeepGraphInfomax(DeepGraphInfomax):
    """`DeepGraphInfomax` with the paper's parts, and an encoder of `FUSED_ENCODERS`."""

    repeats_the_same_work = True

    def loss(self, model: Model, pair: tuple[View, View]) -> Tensor:
        """As `DeepGraphInfomax.loss`."""
        positive, negative = pair
        # The mean over paths comes after the activation, so the formulas begin at H.
        if type(model.encoder) is PathMean:
            return _loss_from_vectors(model, positive, negative)

        # The paper's own case, one layer and a shuffle: Z~ = P (X Theta)[rows], so X Theta is
        # computed once for both views.
        shuffle = shuffle_of(positive, negative)
        has_one_convolution = type(model.encoder) in (GCN, MeanPool) and model.encoder.depth == 1
        if shuffle is not None and has_one_convolution:
            propagation, rows = shuffle
            return _loss_of_shuffle(model, positive, propagation.operand, rows)

        return _loss_from_last_map(model, positive, negative)


def _loss_of_shuffle(model: Model, positive: View, matrix: Any, rows: Tensor) -> Tensor:
    """The loss of one convolution and a shuffle of its features.

    X Θ ``[N, d]`` is computed once: the graph has Z = P X Θ, the negative Z~ = P (X Θ)[rows], with
    P the ``matrix``. So autograd gets one gradient, by X Θ, in place of two.
    """
    x_theta = positive.at(0).own(None, model.encoder.weights[0])
    kernel = partial(
        positive.backend.shuffle_loss, matrix.prepared, matrix.transpose.prepared, rows
    )
    return _closed_form(kernel, x_theta, *_last_weights(model))


def _loss_from_last_map(model: Model, positive: View, negative: View) -> Tensor:
    """The loss of a pair, from the last linear map Z of the encoder on."""
    # Views of one shape go through the encoder side by side, in half as many operations.
    both = side_by_side(positive, negative)
    if both is not None:
        z, z_negative = model.encoder.before_activation(both)[0].chunk(2)
    else:
        z, z_negative = model.encoder.before_activation(positive, negative)
    return _closed_form(_pair_loss_of(positive), z, z_negative, *_last_weights(model))


def _loss_from_vectors(model: Model, positive: View, negative: View) -> Tensor:
    """The loss of a pair from H on: the mean over paths comes after the activation of
    `PathMean`."""
    both = side_by_side(positive, negative)
    if both is None:
        vectors = model.encoder(positive, negative)
        kernel = _pair_loss_of(positive)
    else:
        vectors = model.encoder(both)
        kernel = partial(_pair_loss_of_one_matrix, _pair_loss_of(positive))

    # A bias of 0 and a slope of 1: the PReLU of the kernel then changes nothing.
    no_bias = vectors[0].new_zeros(model.encoder.out_dim)
    slope_of_one = vectors[0].new_ones(1)
    scorer = model.discriminator.weight, model.discriminator.bias
    return _closed_form(kernel, *vectors, no_bias, slope_of_one, *scorer)


def _last_weights(model: Model) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weights after the last linear map: bias b, slope of the PReLU, W and its offset o."""
    encoder, discriminator = model.encoder, model.discriminator
    return encoder.biases[-1], encoder.slopes[-1], discriminator.weight, discriminator.bias


def _pair_loss_of(view: View) -> Kernel:
    """The kernel of a pair; where several processes share a step, for the nodes of this process."""
    return partial(view.backend.pair_loss, portion=getattr(view, "portion", None))


def _pair_loss_of_one_matrix(
    pair_loss: Kernel, h_of_both: Tensor, *last_weights: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As ``pair_loss``, from ``[2 N, d]``: the nodes of the positive, then those of the
    negative."""
    record, gradients = pair_loss(*h_of_both.chunk(2), *last_weights)
    gradient, gradient_negative, *other_gradients = gradients

    # Most kernels overwrite both halves by their gradients: then nothing needs to be copied.
    if gradient.data_ptr() == h_of_both.data_ptr():
        gradient_of_both = h_of_both
    else:
        gradient_of_both = torch.cat([gradient, gradient_negative])
    return record, (gradient_of_both, *other_gradients)


def _closed_form(kernel: Kernel, *arrays: Tensor) -> Tensor:
    """The record that a kernel computes, with the gradients that the kernel computes beside it."""
    return _ClosedForm.apply(kernel, *arrays)  # type: ignore[no-any-return, no-untyped-call]


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: Kernel, *arrays: Tensor) -> Tensor:
        record, ctx.gradients = kernel(*arrays)
        return record

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        # The gradients are those of the loss alone, and `train_step` asks for no others: accuracy
        # and spread of the summary have none.
        return None, *ctx.gradients
