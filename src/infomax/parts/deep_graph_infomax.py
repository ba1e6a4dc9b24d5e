"""Deep Graph Infomax (Veličković et al., 2019), in the paper's order and notation.

Section 3.4 of the paper, for one graph (X, A):

1. Sample a negative example by the corruption: (X~, A~) ~ C(X, A).
2. Encode the graph: H = E(X, A), a row h_i for each of N nodes.
3. Encode the negative: H~ = E(X~, A~), a row h~_j for each of M nodes.
4. Summarise the graph: s = R(H).
5. Change the weights of E, R and D along the gradient of Equation (1)::

       L = 1 / (N + M) ( sum_i log D(h_i, s) + sum_j log (1 - D(h~_j, s)) )

The parts stand one by one in the files beside this one:

=====  ==================  =========================================================
C      corruptions.py      by default `shuffle_features`
E      encoders.py         by default `GCN`; the preset of a regime names its own
R      readouts.py         by default `SigmoidMean`
D      discriminators.py   by default `Bilinear`; gives logits, the sigmoid is in L
-L     objectives.py       by default `binary_cross_entropy`
=====  ==================  =========================================================

What runs, and who calls it:

- `train_step` is every step of every training: ``Training.step`` in training/loop.py calls it. The
  loop ends after a number of epochs; with a patience, as in the paper, training/early_stopping.py
  ends it earlier.
- Steps 1 and 5 are `train_step` itself. Step 1 calls the corruption, through ``views.pair``: on a
  whole graph that is ``WholeGraph.pair`` in views/whole.py.
- Steps 2 to 4 and the loss are ``method.loss``. Where at least one part is your own, or an
  alternative such as `Set2Set`, that is `DeepGraphInfomax.loss` below.
- Where all parts are the paper's, which is the default, ``method.loss`` is
  `FusedDeepGraphInfomax.loss` in fused.py: the same record and the same gradients, in closed form.
  ``assemble`` in estimator/assembly.py asks `accelerate` in fused.py for it, once, before the
  training begins.
- tests/laws/test_step.py holds `DeepGraphInfomax.loss`, its equivalent and the paper's formulas,
  written a second time with torch's own parts, to the same numbers in float64.
  tests/kernels/test_kernels.py holds the compiled kernels, which larger graphs run, to the same.
- By default a training has 200 steps, no patience, and a learning rate that rises and falls
  (training/schedule.py, training/presets.py). ``--vectors paper`` trains as the paper does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from infomax.errors import InputError
from infomax.parts.discriminators import Bilinear
from infomax.parts.methods import Method, Model, Part, describe_output
from infomax.parts.objectives import binary_cross_entropy, jensen_shannon
from infomax.parts.readouts import SigmoidMean
from infomax.views import View, Views


def train_step(
    method: Method,
    model: Model,
    views: Views,
    batch: Tensor,
    generator: torch.Generator,
    weights: Sequence[Tensor],
    descend: Callable[[Tensor, Sequence[Tensor]], None],
) -> None:
    """Do one step of a training.

    Args:
        method: Deep Graph Infomax, its equivalent in closed form, or another method.
        model: the encoder, and what the method trains beside the encoder.
        views: draws the graph and its negative, by the corruption.
        batch: the nodes or graphs of this step, as `Views.batches` gave them.
        generator: for all random draws.
        weights: the weights that are trained.
        descend: takes the record of the loss and the gradients, and changes the weights.
    """
    # 1. Sample a negative example of the graph.
    positive, negative = views.pair(batch, generator)

    # 2. to 4. Encode both, summarise the graph, and score all nodes beside the summary: minus
    # Equation (1).
    record = method.loss(model, (positive, negative))
    _check_record(record, method)

    # 5. Descend along the gradient of the loss. It is taken of one number: for the gradient of
    # several, torch first imports a library of symbols, which takes 0.5 to 3 s.
    loss = record[0]
    gradients = torch.autograd.grad(loss, weights, materialize_grads=True)
    descend(record, gradients)
    method.after_step(model)


class DeepGraphInfomax(Method):
    """The paper's method: tell the vectors of a graph from those of its negative, each beside a
    summary of the graph.

    Args:
        readout: R, makes the summary.
        discriminator: D, scores vectors beside the summary.
        objective: the loss of the scores; by default minus Equation (1).
    """

    metrics = ("loss", "discriminator_accuracy", "summary_spread")

    def __init__(
        self,
        readout: Part = SigmoidMean,
        discriminator: Part = Bilinear,
        objective: Part = binary_cross_entropy,
    ) -> None:
        self.readout = readout
        self.discriminator = discriminator
        self.objective = objective
        self.score_counts = 2, 2
        """N and M of the last step. `guessing_loss` needs them, since an objective of your own may
        not be a mean. The equivalent in closed form leaves them: the paper's objective is one."""

    def build(self, encoder: Any, generator: torch.Generator | None) -> Model:
        """Return encoder, readout and discriminator, with weights from the generator."""
        readout = self.readout(encoder.out_dim, generator=generator)
        discriminator = self.discriminator(encoder.out_dim, generator=generator)
        return Model(encoder, readout=readout, discriminator=discriminator)

    def loss(self, model: Model, pair: tuple[View, View]) -> Tensor:
        """Return ``[3]``: -L, the accuracy of the discriminator, the deviation of the entries of
        s."""
        positive, negative = pair

        # 2. and 3. H = E(X, A) and H~ = E(X~, A~), [N, d] and [M, d].
        h, h_negative = model.encoder(positive, negative)
        _check_vectors(h, positive, model)
        _check_vectors(h_negative, negative, model)

        # 4. s = R(H), [d].
        s = model.readout(h, positive)

        # D(h_i, s) and D(h~_j, s) before the sigmoid, [N] and [M].
        scores = model.discriminator(h, s)
        scores_negative = model.discriminator(h_negative, s)
        self._check_scores(scores, h)
        self._check_scores(scores_negative, h_negative)
        self.score_counts = len(scores), len(scores_negative)

        # -L, since step 5 descends.
        loss = self.objective(scores, scores_negative)
        _check_loss(loss)

        # For the history and the health of the training; neither has a gradient.
        right_count = (scores > 0).sum() + (scores_negative < 0).sum()
        accuracy = right_count / (len(scores) + len(scores_negative))
        summary_spread = s.detach().std(correction=0)
        return torch.stack([loss, accuracy, summary_spread])

    def guessing_loss(self, device: torch.device) -> float:
        """Return the loss of scores that are all 0."""
        no_scores = [torch.zeros(count, device=device) for count in self.score_counts]
        with torch.no_grad():
            return float(self.objective(*no_scores))

    def _check_scores(self, scores: Any, vectors: Tensor) -> None:
        """Raise InputError unless there is a score for each vector."""
        has_rows = isinstance(scores, Tensor) and scores.shape[:1] == vectors.shape[:1]
        # An objective of your own may take several scores of each node.
        takes_one_each = self.objective in (binary_cross_entropy, jensen_shannon)
        if not has_rows or (takes_one_each and scores.numel() != len(vectors)):
            expected = f"numbers of shape {[len(vectors)]}"
            raise InputError("discriminator", expected, describe_output(scores))


def _check_vectors(vectors: Tensor, view: View, model: Model) -> None:
    """Raise InputError unless there is a vector for each node: torch would broadcast others."""
    # A view of your own need not say how many nodes it has.
    node_count = getattr(view, "n", len(vectors))
    shape = [node_count, model.encoder.out_dim]
    if list(vectors.shape) != shape:
        raise InputError("encoder", f"numbers of shape {shape}", describe_output(vectors))


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        expected = "one number, as a tensor with a gradient"
        raise InputError("objective", expected, describe_output(loss))


def _check_record(record: Any, method: Method) -> None:
    shape = (len(method.metrics),)
    if not isinstance(record, Tensor) or record.shape != shape or not record.requires_grad:
        expected = f"numbers of shape {list(shape)} with a gradient"
        location = f"loss of {type(method).__name__}"
        raise InputError(location, expected, describe_output(record))
