"""FastGCN (Chen et al., 2018): a GCN with labels that hears from nodes drawn for the whole layer, by importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from infomax.baselines.shared import classes, decide, known_rows, label_loss, rescaled, training_codes
from infomax.graphs.graph import Graph
from infomax.kernels.initialisation import generators, glorot
from infomax.parts.encoders import Encoder
from infomax.training.embedding import embed
from infomax.views import View, WholeView
from infomax.views.propagation import Propagation, Rule


@dataclass(frozen=True)
class Settings:
    """One place for every number; the authors', but for ``epochs``."""

    dim: int = 128
    draws: int = 400
    batch: int = 256
    lr: float = 1e-3
    epochs: int = 30


REDDIT = Settings()
"""The authors'."""
PPI = Settings(lr=1e-2)
"""The rate was chosen on validation graphs."""


class TwoLayers(Encoder):
    """``P ReLU(P X Θ) Θ'``: logits ``[N, C]`` a view; no biases, as the authors have it.

    With a bias, nodes that hear nothing of a sample teach it the commonest class.
    """

    rule: Rule = "symmetric"
    depth = 2

    def __init__(self, in_dim: int, dim: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.out_dim = outputs
        widths = ((in_dim, dim), (dim, outputs))
        self.weights = nn.ParameterList(glorot(shape, generator=generator) for shape in widths)

    def layer(self, k: int, view: View, h: Tensor | None) -> Tensor:
        """One convolution; ReLU after the first."""
        outcome: Tensor = view.pooled(h, self.weights[k])
        return outcome.relu() if k == 0 else outcome


@dataclass(frozen=True)
class LayerSample:
    """What B nodes hear of t nodes drawn for all of them.

    Shapes:
        messages: ``[t, F]``, rows of P X, exact: they do not change while one trains
        weights: ``[B, t]``, P between the two, each column divided by how often its node is expected to be drawn
    """

    messages: Tensor
    weights: Tensor

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P X Θ of the t nodes; then P H Θ of the B, estimated without bias."""
        return self.messages @ weight if h is None else self.weights @ (h @ weight)

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """Not needed: a GCN has no skip connections."""
        raise NotImplementedError

    def carry(self, h: Tensor) -> Tensor:
        """Not needed either."""
        raise NotImplementedError


class Importance:
    """Draws nodes in proportion to the squared length of their column of P: those that tell most, most often.

    Shapes:
        chance: ``[N]``
        starts: ``[N + 1]``, columns, values: ``[E]``, P's rows
    """

    def __init__(self, propagation: Propagation) -> None:
        matrix, n = propagation.operand.matrix, propagation.n
        self.starts, self.columns, self.values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        self.chance = torch.zeros(n, dtype=torch.float64, device=self.starts.device)
        self.chance.index_add_(0, self.columns, self.values.double() ** 2)

    def draw(self, batch: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Nodes ``[t]``, drawn with replacement, and the weights ``[B, t]`` of what they tell a batch ``[B]``.

        Only nodes that tell the batch something are drawn.
        """
        first, sizes = self.starts[batch], self.starts.diff()[batch]
        row = torch.repeat_interleave(torch.arange(len(batch), device=batch.device), sizes)
        entry = torch.arange(len(row), device=batch.device) + (first - sizes.cumsum(0) + sizes)[row]
        told, place = torch.unique(self.columns[entry], return_inverse=True)
        chance = self.chance[told] / self.chance[told].sum()
        drawn = torch.multinomial(chance, count, replacement=True, generator=generator)
        dense = self.values.new_zeros(len(batch), len(told))
        dense[row, place] = self.values[entry]
        return told[drawn], dense[:, drawn] / (count * chance[drawn]).to(dense.dtype)


def train(graph: Graph, codes: Tensor, settings: Settings, seed: int, device: torch.device) -> TwoLayers:
    """The model after its epochs on a graph; codes ``[n]`` or ``[n, C]``, -1 where a node is not for training."""
    first, draws = generators(seed, device)
    model = TwoLayers(graph.num_features, settings.dim, classes(codes), first).to(device)
    propagation = Propagation.of(graph, model.rule, device)
    messages, importance = propagation @ torch.from_numpy(graph.features).to(device), Importance(propagation)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    labelled = known_rows(codes)
    for _ in range(settings.epochs):
        order = torch.randperm(len(labelled), generator=draws, device=device)
        for batch in labelled[order].split(settings.batch):
            drawn, weights = importance.draw(batch, settings.draws, draws)
            (logits,) = model(LayerSample(messages[drawn], weights))
            optimiser.zero_grad()
            label_loss(logits, codes[batch]).backward()
            optimiser.step()
    return model


def fastgcn(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings = REDDIT
) -> NDArray[Any]:
    """Predictions for every node, shaped as the codes are; the trained layers run over the whole graph, unsampled."""
    scaled, targets = rescaled(graph, "columns"), training_codes(graph, codes, device)
    model = train(scaled.seen(), targets, settings, seed, device)
    return decide(embed(model, WholeView.of(scaled, model.rule, device)), codes)
