"""Supervised GCNs: the two-layer DGI encoder of the paper's table, and the network of Kipf and
Welling (2017).

Both are trained as Kipf and Welling do: dropout, weight decay, early stopping on the validation
loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, prelu

from infomax.arrays.scaling import Scale
from infomax.evaluation.splits import is_labelled
from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import generators, glorot
from infomax.parts import encoders
from infomax.views import SYMMETRIC
from infomax.views.operands import Operand, operand
from infomax.views.propagation import Propagation
from infomax_paper.baselines import shared


class GCN(nn.Module):
    """Kipf and Welling's logits ``[N, C]``: ``P ReLU(P X Θ) Θ'``, with dropout before each product;
    no biases.

    `fastgcn` samples the same network, where a bias would learn the most frequent class from nodes
    that have no neighbour in the sample.
    """

    def __init__(self, in_dim: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = glorot((in_dim, hidden), generator=generator)
        self.second = glorot((hidden, outputs), generator=generator)

    def forward(
        self, x: Operand, propagation: Propagation, drop: shared.Drop = shared.keep
    ) -> Tensor:
        """Logits from features ``[N, F]``, dense or sparse; ``drop`` is applied to the input of
        each layer."""
        h = (propagation @ product(x, self.first, drop)).relu()
        return propagation @ (drop(h) @ self.second)


class TwoLayerEncoder(nn.Module):
    """The two-layer DGI encoder with a linear classifier on its vectors: logits ``[N, C]``."""

    def __init__(self, in_dim: int, hidden: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = encoders.GCN(in_dim, hidden, layers=2, generator=generator)
        self.classifier = glorot((hidden, outputs), generator=generator)

    @property
    def first(self) -> Tensor:
        """The weight of the first layer, which decays."""
        weight: Tensor = self.encoder.weights[0]
        return weight

    def forward(
        self, x: Operand, propagation: Propagation, drop: shared.Drop = shared.keep
    ) -> Tensor:
        """Logits from features ``[N, F]``, dense or sparse; ``drop`` is applied to the input of
        each layer."""
        first, second = self.encoder.weights
        h = propagation @ product(x, first, drop) + self.encoder.biases[0]
        h = propagation @ (drop(prelu(h, self.encoder.slopes[0])) @ second) + self.encoder.biases[1]
        return drop(prelu(h, self.encoder.slopes[1])) @ self.classifier


@dataclass(frozen=True)
class Settings:
    """The hyperparameters; Kipf and Welling's but for the model and its width."""

    model: type[GCN] | type[TwoLayerEncoder] = GCN
    hidden: int = 16
    dropout: float = 0.5
    decay: float = 5e-4
    """Weight decay of the first layer."""
    lr: float = 0.01
    epochs: int = 200
    window: int = 10
    """Training stops when the validation loss exceeds its mean over this many epochs before."""
    scale: Scale = "rows"


KIPF = Settings()
"""Kipf and Welling's settings, for the citation graphs."""
WIDE = Settings(hidden=256, dropout=0, decay=0, scale="columns")
"""For PPI and Reddit, which have many labels."""


def product(x: Operand, weight: Tensor, drop: shared.Drop) -> Tensor:
    """X Θ with dropout on X. If X is sparse, its stored entries are dropped; each row sums weighted
    rows of Θ."""
    if isinstance(x, Tensor):
        return drop(x) @ weight
    return embedding_bag(
        x.matrix.col_indices(),
        weight,
        x.matrix.crow_indices(),
        mode="sum",
        per_sample_weights=drop(x.matrix.values()),
        include_last_offset=True,
    )


def train(
    graph: Graph,
    codes: Tensor,
    settings: Settings,
    seed: int,
    device: torch.device,
    validation_loss: Callable[[nn.Module], float],
) -> nn.Module:
    """Train and return the model of the last epoch. Codes are ``[n]`` or ``[n, C]``, -1 for nodes
    not for training."""
    weights_generator, draws_generator = generators(seed, device)
    model = settings.model(
        graph.num_features, settings.hidden, shared.class_count(codes), weights_generator
    ).to(device)
    # The weights of the first layer decay; the others do not.
    other_weights = [weight for weight in model.parameters() if weight is not model.first]
    groups: list[dict[str, Any]] = [
        {"params": [model.first], "weight_decay": settings.decay},
        {"params": other_weights},
    ]
    optimiser = torch.optim.Adam(groups, lr=settings.lr, fused=True)
    x, propagation = graph_inputs(graph, device)
    rows = shared.known_rows(codes)
    drop = shared.dropout(settings.dropout, draws_generator)

    losses: list[float] = []
    for _ in range(settings.epochs):
        logits = model(x, propagation, drop)
        shared.descend(optimiser, shared.label_loss(logits[rows], codes[rows]))
        losses.append(validation_loss(model))
        losses_before = losses[-settings.window - 1 : -1]
        if len(losses_before) == settings.window and losses[-1] > np.mean(losses_before):
            break
    return model


def graph_inputs(graph: Graph, device: torch.device) -> tuple[Operand, Propagation]:
    """The inputs of a model: a graph's features ``[N, F]``, and P."""
    backend = Backend(device)
    return operand(graph.features, backend), Propagation.of(graph, SYMMETRIC, backend)


def gcn(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings = KIPF
) -> NDArray[Any]:
    """Predict all nodes, in the shape of the codes; trained on the seen nodes, then run over the
    whole graph."""
    scaled_graph = graph.scaled(graph.scaler(settings.scale))
    training_codes = shared.training_codes(graph, codes, device)
    x, propagation = graph_inputs(scaled_graph, device)
    validation_rows = np.flatnonzero(graph.splits["validation"] & is_labelled(codes))
    validation_codes = torch.from_numpy(codes[validation_rows]).to(device)
    rows = torch.from_numpy(validation_rows).to(device)

    @torch.no_grad()
    def validation_loss(model: nn.Module) -> float:
        return float(shared.label_loss(model(x, propagation)[rows], validation_codes))

    seen = scaled_graph.seen()
    model = train(seen, training_codes, settings, seed, device, validation_loss)
    with torch.no_grad():
        return shared.decide(model(x, propagation), codes)
