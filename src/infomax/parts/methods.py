"""Methods: what is trained, and the loss of a step on a pair of views. Deep Graph Infomax is one."""

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

Part = Callable[..., Any]


class Model(nn.Module):
    """An encoder, and what a method trains beside it, such as ``readout`` and ``discriminator``."""

    encoder: Any
    readout: Any
    discriminator: Any

    def __init__(self, encoder: nn.Module, **parts: nn.Module) -> None:
        super().__init__()
        for name, part in {"encoder": encoder, **parts}.items():
            self.add_module(name, part)


class Method:
    """What is trained, and by which loss. Your own method defines `loss`, and what else differs."""

    metrics: tuple[str, ...] = ("loss",)
    """The names of what `loss` returns: in the history, in the log and in the report of a training."""

    def build(self, encoder: nn.Module, generator: torch.Generator | None) -> Model:
        """Return the encoder with the other parts of the method; initial weights come from the generator."""
        return Model(encoder)

    def loss(self, model: Any, pair: tuple[View, View]) -> Tensor:
        """Return the metrics of a step, one number each: first the loss, which has a gradient."""
        raise NotImplementedError

    def after_step(self, model: Any) -> None:
        """Change weights that the optimiser does not train, after each of its steps."""

    def is_fused(self, model: Model) -> bool:
        """Whether all steps run the same kernels, so that a GPU can replay them and processes can share them."""
        return False

    def guessing_loss(self, device: torch.device) -> float | None:
        """Return the loss of a model that knows nothing; None where there is no such number."""
        return None


class DeepGraphInfomax(Method):
    """The paper's method: tell the vectors of the graph from those of its negative, each beside a summary of the graph.

    With the paper's parts a step is fused: readout, scores, loss and gradient are computed in a few passes over the
    data, and the modules of `infomax.parts` only hold the weights. Tests check that both give the same numbers.
    """

    metrics = ("loss", "discriminator_accuracy", "summary_spread")

    def __init__(
        self,
        readout: Part = SigmoidMean,
        discriminator: Part = Bilinear,
        objective: Part = binary_cross_entropy,
    ) -> None:
        self.readout, self.discriminator, self.objective = readout, discriminator, objective
        self.scored = 2, 2
        """How many positives and negatives an objective of your own was last given."""

    def build(self, encoder: Any, generator: torch.Generator | None) -> Model:
        """Return encoder, readout and discriminator."""
        readout = self.readout(encoder.out_dim, generator=generator)
        discriminator = self.discriminator(encoder.out_dim, generator=generator)
        return Model(encoder, readout=readout, discriminator=discriminator)

    def loss(self, model: Model, pair: tuple[View, View]) -> Tensor:
        """Return ``[3]``: loss, share of nodes told apart by the discriminator, deviation of the summary's entries."""
        return (
            _fused_step(model, *pair) if self.is_fused(model) else self._written_step(model, *pair)
        )

    def is_fused(self, model: Model) -> bool:
        """Whether all parts are the paper's, and not subclasses."""
        return (
            type(model.encoder)
            in (GCN, MeanPool, SkipMeanPool, DenseSkipMeanPool, TwoHops, PathMean)
            and type(model.readout) is SigmoidMean
            and type(model.discriminator) is Bilinear
            and self.objective is binary_cross_entropy
        )

    def guessing_loss(self, device: torch.device) -> float:
        """Return the loss of scores that are all 0."""
        with torch.no_grad():
            return float(
                self.objective(*(torch.zeros(count, device=device) for count in self.scored))
            )

    def _written_step(self, model: Model, positive: View, negative: View) -> Tensor:
        """As `loss`, by the parts as they are written."""
        h, h_negative = model.encoder(positive, negative)
        for vectors, view in (
            (h, positive),
            (h_negative, negative),
        ):  # else they would be broadcast, or left out
            shape = [getattr(view, "n", len(vectors)), model.encoder.out_dim]
            if list(vectors.shape) != shape:
                raise InputError("encoder", f"numbers of shape {shape}", found(vectors))
        summary = model.readout(h, positive)
        scores, scores_negative = (
            model.discriminator(h, summary),
            model.discriminator(h_negative, summary),
        )
        ours = self.objective in (
            binary_cross_entropy,
            jensen_shannon,
        )  # one of your own may take several of each node
        for one, vectors in ((scores, h), (scores_negative, h_negative)):
            shaped = isinstance(one, Tensor) and one.shape[:1] == vectors.shape[:1]
            if not shaped or (ours and one.numel() != len(vectors)):
                raise InputError("discriminator", f"numbers of shape {[len(vectors)]}", found(one))
        self.scored = len(scores), len(scores_negative)
        loss = self.objective(scores, scores_negative)
        if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
            raise InputError("objective", "one number, as a tensor with a gradient", found(loss))
        right = (scores > 0).sum() + (scores_negative < 0).sum()
        spread = summary.detach().std(correction=0)
        return torch.stack([loss, right / (len(scores) + len(scores_negative)), spread])


def found(value: Any) -> str:
    """What a part has returned, in words."""
    if not isinstance(value, Tensor):
        return f"one of type {type(value).__name__}"
    return f"{value.dtype} of shape {list(value.shape)}{'' if value.requires_grad else ' without a gradient'}"


def _fused_step(model: Model, positive: View, negative: View) -> Tensor:
    """As `DeepGraphInfomax.loss`; also the gradient of everything after the last linear map, in closed form."""
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
        kernel = partial(
            positive.backend.shuffle_loss, p.prepared, p.transpose.prepared, shuffle[1]
        )
        return _ClosedForm.apply(kernel, y, *last)  # type: ignore[no-any-return, no-untyped-call]
    both = side_by_side(positive, negative)
    z = (
        encoder.before_activation(both)[0].chunk(2)
        if both
        else encoder.before_activation(positive, negative)
    )
    return _ClosedForm.apply(pair_loss, *z, *last)  # type: ignore[no-any-return, no-untyped-call]


def _of_both(
    pair_loss: Callable[..., Any], h: Tensor, *last: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
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
