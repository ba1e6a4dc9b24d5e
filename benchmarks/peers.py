"""Peers, each in a fast form: dense features, adjacency normalised once, fused Adam, no reads from the device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from benchmarks.problem import LEARNING_RATE, Problem


class Peer(ABC):
    """One way to train DGI.

    Shapes:
        x: ``[N, F]``, dense
    """

    def __init__(self, problem: Problem) -> None:
        features = problem.graph.features
        dense = features.toarray() if sparse.issparse(features) else features
        self.x = torch.from_numpy(dense).to(problem.device)
        self.generator = problem.generator()
        self.model = self.build(problem).to(problem.device)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, fused=True)

    @abstractmethod
    def build(self, problem: Problem) -> nn.Module:
        """Build all parts with weights, with the problem's initial weights."""

    @abstractmethod
    def embed(self) -> Tensor:
        """Compute H of the graph, ``[N, d]``."""

    @abstractmethod
    def loss(self) -> Tensor:
        """Compute the loss of the graph and a new corruption."""

    def shuffled(self) -> Tensor:
        """Return the rows of X in random order, ``[N, F]``."""
        return self.x[torch.randperm(len(self.x), generator=self.generator, device=self.x.device)]

    def epoch(self) -> Tensor:
        """Corrupt, forward, backward, one step of Adam; returns the loss, still on the device."""
        self.optimiser.zero_grad()
        loss = self.loss()
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def train(self, count: int) -> float:
        """Train ``count`` epochs; returns the last loss."""
        for _ in range(count):
            loss = self.epoch()
        return float(loss)


class PyG(Peer):
    """PyG's `DeepGraphInfomax` over a `GCNConv` that caches its normalisation.

    ``csr`` passes the adjacency as a CSR tensor instead of an edge list; `GCNConv` caches that as
    well.
    """

    def __init__(self, problem: Problem, *, csr: bool = False) -> None:
        from torch_geometric.utils import to_torch_csr_tensor

        matrix = problem.graph.adjacency  # symmetric, so equal to its transpose, which PyG expects
        edges = torch.from_numpy(np.stack(matrix.nonzero()).astype(np.int64))
        self.adjacency = (to_torch_csr_tensor(edges, size=matrix.shape) if csr else edges).to(
            problem.device
        )
        super().__init__(problem)

    def build(self, problem: Problem) -> nn.Module:
        """Build PyG's module."""
        from torch_geometric.nn import DeepGraphInfomax, GCNConv

        encoder = _Convolution(GCNConv(*problem.theta.shape, cached=True))
        model = DeepGraphInfomax(
            problem.dim,
            encoder,
            summary=lambda h, *inputs: h.mean(0).sigmoid(),
            corruption=lambda x, adjacency: (self.shuffled(), adjacency),
        )
        with torch.no_grad():
            encoder.convolve.lin.weight.copy_(problem.theta.T)
            model.weight.copy_(problem.bilinear)
        return model

    def embed(self) -> Tensor:
        """Run PyG's encoder."""
        return self.model.encoder(self.x, self.adjacency)

    def loss(self) -> Tensor:
        """Half of PyG's loss, which is the sum of both classes' means: Adam's epsilon would count
        half beside it."""
        return self.model.loss(*self.model(self.x, self.adjacency)) / 2


class _Convolution(nn.Module):
    """One convolution and a PReLU with one slope."""

    def __init__(self, convolve: nn.Module) -> None:
        super().__init__()
        self.convolve, self.activate = convolve, nn.PReLU()

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return self.activate(self.convolve(x, adjacency))


class Plain(Peer):
    """The paper's formulas written directly: `nn.Bilinear` with the summary repeated for every
    node."""

    def build(self, problem: Problem) -> nn.Module:
        """Build the linear map, the bias, the PReLU and the bilinear form."""
        self.propagation = normalised(problem.graph.adjacency).to(problem.device)
        n = problem.graph.num_nodes
        self.targets = torch.cat([torch.ones(n), torch.zeros(n)]).to(problem.device)
        model = nn.Module()
        model.linear = nn.Linear(*problem.theta.shape, bias=False)
        model.bias = nn.Parameter(torch.zeros(problem.dim))
        model.activate = nn.PReLU()
        model.bilinear = nn.Bilinear(problem.dim, problem.dim, 1)
        with torch.no_grad():
            model.linear.weight.copy_(problem.theta.T)
            model.bilinear.weight[0].copy_(problem.bilinear)
            model.bilinear.bias.zero_()
        return model

    def encode(self, x: Tensor) -> Tensor:
        """Compute H, ``[N, F] -> [N, d]``."""
        return self.model.activate(
            torch.spmm(self.propagation, self.model.linear(x)) + self.model.bias
        )

    def embed(self) -> Tensor:
        """Compute H of the features in their own order."""
        return self.encode(self.x)

    def score(self, h: Tensor, summary: Tensor) -> Tensor:
        """Return logits ``[N]``."""
        return self.model.bilinear(h, summary.expand_as(h)).squeeze(1)

    def loss(self) -> Tensor:
        """Cross-entropy over all positives and negatives."""
        h, h_negative = self.encode(self.x), self.encode(self.shuffled())
        summary = h.mean(0).sigmoid()
        logits = torch.cat([self.score(h, summary), self.score(h_negative, summary)])
        return nn.functional.binary_cross_entropy_with_logits(logits, self.targets)


class PlainProduct(Plain):
    """As `Plain`, with scores computed as H (W s)."""

    def score(self, h: Tensor, summary: Tensor) -> Tensor:
        """Return logits ``[N]``."""
        return h @ (self.model.bilinear.weight[0] @ summary) + self.model.bilinear.bias


def normalised(adjacency: sparse.csr_array) -> Tensor:
    """Compute ``D^-1/2 (A + I) D^-1/2`` as a COO tensor ``[N, N]``."""
    looped = adjacency + sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    scale = sparse.diags_array(np.asarray(looped.sum(1)) ** -0.5)
    matrix = sparse.coo_array(scale @ looped @ scale, dtype=np.float32)
    return torch.sparse_coo_tensor(np.stack(matrix.coords), matrix.data, matrix.shape).coalesce()


PEERS: dict[str, Callable[[Problem], Peer]] = {
    "pyg": PyG,
    "pyg-csr": partial(PyG, csr=True),
    "plain": Plain,
    "plain-product": PlainProduct,
}
