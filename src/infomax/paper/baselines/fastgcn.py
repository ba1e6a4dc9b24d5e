"""FastGCN (Chen et al., 2018): a supervised GCN that samples the nodes of each layer by their importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import generators, glorot
from infomax.paper.baselines import shared
from infomax.parts.encoders import Encoder
from infomax.training.embed import embed
from infomax.views import LayerView, WholeView
from infomax.views.propagation import Propagation, Rule


@dataclass(frozen=True)
class Settings:
    """The hyperparameters: the authors', except for ``epochs``."""

    dim: int = 128
    draws: int = 400
    batch: int = 256
    lr: float = 1e-3
    epochs: int = 30


REDDIT = Settings()
"""The authors' settings."""
PPI = Settings(lr=1e-2)
"""The learning rate was chosen on validation graphs."""


class TwoLayers(Encoder):
    """Two convolutions, ``P ReLU(P X Θ) Θ'``: logits ``[N, C]``; without biases, as in the authors' program.

    A bias would learn the most frequent class from nodes that have no neighbour in the sample.
    """

    rule: Rule = "symmetric"
    depth = 2

    def __init__(self, in_dim: int, dim: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.out_dim = outputs
        widths = ((in_dim, dim), (dim, outputs))
        self.weights = nn.ParameterList(glorot(shape, generator=generator) for shape in widths)

    def layer(self, k: int, view: LayerView, h: Tensor | None) -> Tensor:
        """One convolution, with ReLU after the first."""
        outcome: Tensor = view.pooled(h, self.weights[k])
        return outcome.relu() if k == 0 else outcome


@dataclass(frozen=True)
class LayerSample:
    """A view of B nodes whose messages come from t sampled nodes.

    Shapes:
        messages: ``[t, F]``, rows of P X; exact, since they do not change during training.
        weights: ``[B, t]``, entries of P, each column divided by the expected number of draws of its node.
    """

    messages: Tensor
    weights: Tensor

    def at(self, k: int) -> LayerSample:
        """Itself: H tells the layer."""
        return self

    def pooled(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """P X Θ of the t nodes; then an unbiased estimate of P H Θ of the B nodes."""
        return self.messages @ weight if h is None else self.weights @ (h @ weight)

    def own(self, h: Tensor | None, weight: Tensor) -> Tensor:
        """Not used: a GCN has no skip connections."""
        raise NotImplementedError

    def carry(self, h: Tensor) -> Tensor:
        """Not used: a GCN has no skip connections."""
        raise NotImplementedError


class Importance:
    """Draws nodes with a probability proportional to the squared length of their column of P.

    Shapes:
        chance: ``[N]``, the squared lengths.
        starts: ``[N + 1]``; columns, values: ``[E]``: the rows of P, as CSR.
    """

    def __init__(self, propagation: Propagation) -> None:
        matrix, n = propagation.operand.matrix, propagation.n
        self.starts, self.columns, self.values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
        self.chance = torch.zeros(n, dtype=torch.float64, device=self.starts.device)
        self.chance.index_add_(0, self.columns, self.values.double() ** 2)

    def draw(self, batch: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw nodes ``[t]`` with replacement; with them the weights ``[B, t]`` of their messages to a batch ``[B]``.

        Only neighbours of the batch are drawn.
        """
        first, sizes = self.starts[batch], self.starts.diff()[batch]
        row = torch.repeat_interleave(torch.arange(len(batch), device=batch.device), sizes)
        entry = torch.arange(len(row), device=batch.device) + (first - sizes.cumsum(0) + sizes)[row]
        senders, place = torch.unique(self.columns[entry], return_inverse=True)
        chance = self.chance[senders] / self.chance[senders].sum()
        drawn = torch.multinomial(chance, count, replacement=True, generator=generator)
        dense = self.values.new_zeros(len(batch), len(senders))
        dense[row, place] = self.values[entry]
        return senders[drawn], dense[:, drawn] / (count * chance[drawn]).to(dense.dtype)


def train(graph: Graph, codes: Tensor, settings: Settings, seed: int, device: torch.device) -> TwoLayers:
    """Train on a graph. Codes are ``[n]`` or ``[n, C]``, -1 for nodes that are not for training."""
    first, draws = generators(seed, device)
    model = TwoLayers(graph.num_features, settings.dim, shared.classes(codes), first).to(device)
    propagation = Propagation.of(graph, model.rule, device)
    messages, importance = propagation @ torch.from_numpy(graph.features).to(device), Importance(propagation)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    labelled = shared.known_rows(codes)
    for _ in range(settings.epochs):
        order = torch.randperm(len(labelled), generator=draws, device=device)
        for batch in labelled[order].split(settings.batch):
            drawn, weights = importance.draw(batch, settings.draws, draws)
            (logits,) = model(LayerSample(messages[drawn], weights))
            shared.descend(optimiser, shared.label_loss(logits, codes[batch]))
    return model


def fastgcn(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings = REDDIT
) -> NDArray[Any]:
    """Predict all nodes, in the shape of the codes; the trained layers run over the whole graph, without sampling."""
    scaled, targets = shared.rescaled(graph, "columns"), shared.training_codes(graph, codes, device)
    model = train(scaled.seen(), targets, settings, seed, device)
    backend = Backend.of_embedding(device, scaled.num_nodes * model.out_dim)
    return shared.decide(embed(model, WholeView.of(scaled, model.rule, backend)), codes)
