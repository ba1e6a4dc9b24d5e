"""FastGCN (Chen et al., 2018): a supervised GCN that samples the nodes of each layer by their
importance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.graphs.graph import Graph
from infomax.kernels import Backend
from infomax.kernels.initialisation import generators
from infomax.views import SYMMETRIC
from infomax.views.propagation import Propagation
from infomax_paper.baselines import gcn, shared


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


class Importance:
    """Draws nodes with a probability proportional to the squared length of their column of P.

    Shapes:
        chance: ``[N]``, the squared lengths.
        starts: ``[N + 1]``; columns, values: ``[E]``: the rows of P, as CSR.
    """

    def __init__(self, propagation: Propagation) -> None:
        matrix = propagation.operand.matrix
        self.starts = matrix.crow_indices()
        self.columns = matrix.col_indices()
        self.values = matrix.values()
        self.chance = torch.zeros(propagation.n, dtype=torch.float64, device=self.starts.device)
        self.chance.index_add_(0, self.columns, self.values.double() ** 2)

    def draw(self, batch: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw nodes ``[t]`` with replacement; with them the weights ``[B, t]`` of their messages
        to a batch ``[B]``.

        Only neighbours of the batch are drawn.
        """
        # The entries of the rows of the batch, and the row of each.
        first_entries = self.starts[batch]
        sizes = self.starts.diff()[batch]
        row = torch.repeat_interleave(torch.arange(len(batch), device=batch.device), sizes)
        shift = first_entries - sizes.cumsum(0) + sizes
        entry = torch.arange(len(row), device=batch.device) + shift[row]

        senders, sender_number = torch.unique(self.columns[entry], return_inverse=True)
        chance = self.chance[senders] / self.chance[senders].sum()
        drawn = torch.multinomial(chance, count, replacement=True, generator=generator)
        weights = self.values.new_zeros(len(batch), len(senders))
        weights[row, sender_number] = self.values[entry]
        # Divided by how often a node is drawn, so that the estimate is unbiased.
        return senders[drawn], weights[:, drawn] / (count * chance[drawn]).to(weights.dtype)


def sampled_logits(model: gcn.GCN, messages: Tensor, weights: Tensor) -> Tensor:
    """An unbiased estimate of the logits ``[B, C]`` of a batch, whose second messages come from t
    sampled nodes.

    Shapes:
        messages: ``[t, F]``, rows of P X; exact, since they do not change during training.
        weights: ``[B, t]``, see `Importance.draw`.
    """
    return weights @ ((messages @ model.first).relu() @ model.second)


def train(
    graph: Graph, codes: Tensor, settings: Settings, seed: int, device: torch.device
) -> gcn.GCN:
    """Train on a graph. Codes are ``[n]`` or ``[n, C]``, -1 for nodes that are not for training."""
    weights_generator, draws = generators(seed, device)
    class_count = shared.class_count(codes)
    model = gcn.GCN(graph.num_features, settings.dim, class_count, weights_generator).to(device)
    propagation = Propagation.of(graph, SYMMETRIC, Backend(device))
    messages = propagation @ torch.from_numpy(graph.features).to(device)
    importance = Importance(propagation)
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.lr, fused=True)
    labelled = shared.known_rows(codes)
    for _ in range(settings.epochs):
        order = torch.randperm(len(labelled), generator=draws, device=device)
        for batch in labelled[order].split(settings.batch):
            drawn, weights = importance.draw(batch, settings.draws, draws)
            logits = sampled_logits(model, messages[drawn], weights)
            shared.descend(optimiser, shared.label_loss(logits, codes[batch]))
    return model


def fastgcn(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings = REDDIT
) -> NDArray[Any]:
    """Predict all nodes, in the shape of the codes; the trained layers run over the whole graph,
    without sampling."""
    scaled_graph = graph.scaled(graph.scaler("columns"))
    training_codes = shared.training_codes(graph, codes, device)
    model = train(scaled_graph.seen(), training_codes, settings, seed, device)
    with torch.no_grad():
        return shared.decide(model(*gcn.graph_inputs(scaled_graph, device)), codes)
