"""Planetoid-T (Yang et al., 2016): vectors from walks and labels, and a classifier over vectors and
features.

A node's context is a node near it on a random walk; for a training node also a node of its class,
against nodes of other classes. The classifier is a softmax over the learnt vectors and the features
together, trained with a softmax over each alone. In the authors' program the classifier also moves
the vectors. Here it does not: otherwise the few labelled nodes move away from the nodes that they
should represent, and validation accuracy falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import generators, glorot
from infomax.views.operands import Operand, operand
from infomax_paper.baselines import deepwalk, shared

WALK = deepwalk.Settings(walks=10, window=10, lr=0.003)


@dataclass(frozen=True)
class Settings:
    """The hyperparameters, chosen on validation nodes."""

    walk: deepwalk.Settings = WALK
    label_context: float = 3e-4
    """The weight of the label context beside that of the walks. The authors' sampler mixes the two.
    A larger weight lets the few labelled nodes drift away from the nodes that they should
    represent."""
    trust: float = 0.3
    """The factor of the vectors in the input of the classifier; features have length 1."""
    lr: float = 0.05
    decay: float = 5e-3
    steps: int = 300


SETTINGS = Settings()


def planetoid(
    graph: Graph,
    codes: NDArray[Any],
    seed: int,
    device: torch.device,
    settings: Settings = SETTINGS,
) -> NDArray[np.int64]:
    """Predict class codes ``[N]`` with the classifier of the step with the lowest validation
    loss."""
    weights_generator, draws = generators(seed, device)
    train_rows, validation_rows = (
        torch.from_numpy(np.flatnonzero(graph.splits[part] & (codes >= 0))).to(device)
        for part in ("train", "validation")
    )
    targets = torch.from_numpy(codes).to(device)
    tables = deepwalk.new_tables(graph.num_nodes, settings.walk.dim, weights_generator, device)

    def label_context(centres: Tensor, contexts: Tensor) -> Tensor:
        loss = label_context_loss(
            centres[train_rows],
            contexts[train_rows],
            targets[train_rows],
            settings.walk.negatives,
        )
        return settings.label_context * loss

    deepwalk.learn(graph, tables, settings.walk, draws, extra=label_context)
    features = operand(normalize(graph.features), Backend(device))
    vectors = settings.trust * tables[0]
    predictions = classify(
        (features, vectors),
        graph.num_features,
        targets,
        train_rows,
        validation_rows,
        settings,
        weights_generator,
    )
    return predictions.cpu().numpy()


def label_context_loss(centres: Tensor, contexts: Tensor, codes: Tensor, negatives: int) -> Tensor:
    """Skip-gram loss over all pairs of n labelled nodes: pairs of one class are positives, the
    others negatives.

    Shapes:
        centres, contexts: ``[n, d]``
        codes: ``[n]``
    """
    scores = centres @ contexts.T
    same_class = codes[:, None] == codes
    positive_loss = softplus(-scores[same_class]).mean()
    negative_loss = softplus(scores[~same_class]).mean()
    return positive_loss + negatives * negative_loss


def classify(
    inputs: tuple[Operand, Tensor],
    num_features: int,
    targets: Tensor,
    train_rows: Tensor,
    validation_rows: Tensor,
    settings: Settings,
    generator: torch.Generator,
) -> Tensor:
    """Predict codes ``[N]`` from features ``[N, F]`` and vectors ``[N, d]``: softmax of the sum of
    two linear maps.

    Each map is also trained to predict the class alone, so that neither relies on the other.
    """
    class_count = int(targets[train_rows].max()) + 1
    device = targets.device
    _, vectors = inputs
    widths = (num_features, vectors.shape[1])
    maps = [
        glorot((width, class_count), generator=generator).to(device).detach().requires_grad_()
        for width in widths
    ]
    biases = [torch.zeros(class_count, device=device, requires_grad=True) for _ in widths]
    optimiser = torch.optim.Adam(
        [*maps, *biases], lr=settings.lr, weight_decay=settings.decay, fused=True
    )

    lowest_loss, predictions = torch.inf, torch.empty(0)
    for _ in range(settings.steps):
        parts = [x @ weight + bias for x, weight, bias in zip(inputs, maps, biases, strict=True)]
        logits = parts[0] + parts[1]
        loss = cross_entropy(logits[validation_rows], targets[validation_rows])
        validation_loss = float(loss.detach())
        if validation_loss < lowest_loss:
            lowest_loss = validation_loss
            predictions = logits.detach().argmax(1)
        losses = [cross_entropy(part[train_rows], targets[train_rows]) for part in (*parts, logits)]
        shared.descend(optimiser, torch.stack(losses).sum())
    return predictions
