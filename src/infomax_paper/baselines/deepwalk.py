"""DeepWalk (Perozzi et al., 2014): skip-gram over random walks, alone or beside the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import normalize
from torch import Tensor, nn
from torch.nn.functional import embedding, softplus

from infomax.arrays.scaling import Scale
from infomax.graphs.graph import Graph
from infomax.kernels.initialisation import generators
from infomax_paper.patches import Neighbours


@dataclass(frozen=True)
class Settings:
    """The hyperparameters: the defaults of the authors' program, except for ``lr``, which is
    Adam's."""

    dim: int = 64
    walks: int = 50
    """Walks per node. The authors' program draws ten and passes over them five times."""
    length: int = 40
    window: int = 5
    negatives: int = 5
    lr: float = 0.001
    """Chosen on validation nodes."""
    batch: int = 128
    """Walks per step."""
    drawn: int = 64
    """Negative nodes per step, shared by all its walks."""


SETTINGS = Settings()


def deepwalk(
    graph: Graph,
    codes: NDArray[Any],
    seed: int,
    device: torch.device,
    settings: Settings = SETTINGS,
) -> Tensor:
    """Learn vectors ``[N, dim]`` from the edges alone.

    Where training may see only a part of the graph, that part is learnt first. Then the vectors of
    the other nodes are learnt, on walks that start at them, while the vectors of the first part
    stay fixed, as in Hamilton et al.
    """
    weights_generator, draws = generators(seed, device)
    tables = new_tables(graph.num_nodes, settings.dim, weights_generator, device)
    all_nodes = np.ones(graph.num_nodes, dtype=bool)
    is_seen = torch.from_numpy(graph.splits.get("seen", all_nodes)).to(device)

    seen_tables = [table[is_seen] for table in tables]
    learn(graph.seen(), seen_tables, settings, draws)
    for table, seen_rows in zip(tables, seen_tables, strict=True):
        table[is_seen] = seen_rows
    if not is_seen.all():
        learn(graph, tables, settings, draws, moving=~is_seen)
    centres, _ = tables
    return centres


def new_tables(n: int, dim: int, generator: torch.Generator, device: torch.device) -> list[Tensor]:
    """word2vec's initial tables: small random centre vectors and zero context vectors, ``[n, dim]``
    each."""
    centres = torch.empty(n, dim).uniform_(-0.5, 0.5, generator=generator) / dim
    return [centres.to(device), torch.zeros(n, dim, device=device)]


def learn(
    graph: Graph,
    tables: list[Tensor],
    settings: Settings,
    draws: torch.Generator,
    *,
    moving: Tensor | None = None,
    extra: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> None:
    """Train centre and context vectors ``[N, d]`` in place, so that nodes which share a walk become
    similar.

    The learning rate falls linearly to zero. With ``moving`` ``[N]``, only the vectors of these
    nodes change, and walks start there. What ``extra`` returns for both tables is a loss to add to
    that of the walks.
    """
    device = draws.device
    neighbours = Neighbours.of(graph, device)
    parameters = [nn.Parameter(table) for table in tables]
    centres, contexts = parameters
    pair_weights = closeness(settings.length, settings.window, device)
    negative_chance = neighbours.starts.diff().double() ** 0.75
    if moving is None:
        nodes = torch.arange(graph.num_nodes, device=device)
    else:
        nodes = torch.nonzero(moving)[:, 0]

    optimiser = torch.optim.Adam(parameters, lr=settings.lr, fused=True)
    steps = settings.walks * -(-len(nodes) // settings.batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, total_iters=steps)
    for _ in range(settings.walks):
        starts = nodes[torch.randperm(len(nodes), generator=draws, device=device)]
        all_walks = random_walks(neighbours, starts, settings.length, draws)
        for walks in all_walks.split(settings.batch):
            negatives = torch.multinomial(
                negative_chance, settings.drawn, replacement=True, generator=draws
            )
            loss = skip_gram_loss(
                centres, contexts, walks, pair_weights, negatives, settings.negatives
            )
            if extra is not None:
                loss = loss + extra(centres, contexts)
            optimiser.zero_grad()
            loss.backward()
            if moving is not None:
                for parameter in parameters:
                    parameter.grad.mul_(moving[:, None])  # type: ignore[union-attr]
            optimiser.step()
            schedule.step()


def with_features(
    graph: Graph,
    codes: NDArray[Any],
    seed: int,
    device: torch.device,
    scale: Scale,
    settings: Settings = SETTINGS,
) -> Any:
    """DeepWalk's vectors concatenated with the features, ``[N, dim + F]``; CSR if the features are.

    The features are scaled as for DGI and then to length 1; the vectors are left as they were
    learnt. Of four ways to scale the two, this was the best on validation nodes. (A probe of 100
    steps relies on whatever is large.)
    """
    features = normalize(graph.scaler(scale).transform(graph.features))
    vectors = deepwalk(graph, codes, seed, device, settings).cpu().numpy()
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([vectors, features]), dtype=np.float32)
    return np.hstack([vectors, features], dtype=np.float32)


def random_walks(
    neighbours: Neighbours, starts: Tensor, length: int, generator: torch.Generator
) -> Tensor:
    """Random walks ``[n, length]`` from nodes ``[n]``; a walk stays at an isolated node."""
    walk = [starts]
    for _ in range(length - 1):
        walk.append(neighbours.draw(walk[-1], 1, generator)[:, 0])
    return torch.stack(walk, dim=1)


def closeness(length: int, window: int, device: torch.device) -> Tensor:
    """The weight of each pair of positions in a walk, ``[length, length]``: 1 for neighbours, 0
    beyond the window.

    word2vec shrinks each window at random; the weights are the probabilities that it still contains
    the pair.
    """
    position = torch.arange(length, device=device)
    distance = (position[:, None] - position).abs()
    return (window + 1 - distance).clamp(min=0) / window * (distance > 0)


def skip_gram_loss(
    centres: Tensor,
    contexts: Tensor,
    walks: Tensor,
    pair_weights: Tensor,
    negatives: Tensor,
    negatives_per_pair: int,
) -> Tensor:
    """Skip-gram loss with negative sampling, averaged over pairs; all pairs of a walk are one small
    matrix product.

    The loss of a pair is ``-log σ(u·v)`` plus ``negatives_per_pair`` times the mean of
    ``-log σ(-u·v)`` over M nodes drawn at random, which all pairs share.

    Shapes:
        centres, contexts: ``[N, d]``, the two vectors of each node
        walks: ``[B, L]``
        pair_weights: ``[L, L]``, see `closeness`
        negatives: ``[M]``
    """
    u, v = embedding(walks, centres), embedding(walks, contexts)
    positive_loss = (softplus(-(u @ v.transpose(1, 2))) * pair_weights).sum()
    negative_losses = softplus(u @ embedding(negatives, contexts).T).mean(-1)
    negative_loss = (negative_losses * pair_weights.sum(1)).sum()
    pair_count = len(walks) * pair_weights.sum()
    return (positive_loss + negatives_per_pair * negative_loss) / pair_count
