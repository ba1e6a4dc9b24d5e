"""DeepWalk (Perozzi et al., 2014): random walks read as sentences; alone, and beside the features."""

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

from infomax.baselines.walks import closeness, random_walks, skip_gram_loss
from infomax.graphs.graph import Graph
from infomax.graphs.scaling import Scale, Scaler
from infomax.kernels.initialisation import generators
from infomax.views.sampling import Neighbours


@dataclass(frozen=True)
class Settings:
    """One place for every number; those of the authors' program as it is shipped, but for ``lr``, which is Adam's."""

    dim: int = 64
    walks: int = 50
    """From each node. The program walks ten, and reads them five times."""
    length: int = 40
    window: int = 5
    negatives: int = 5
    lr: float = 0.001
    """Chosen on validation nodes."""
    batch: int = 128
    """Walks a step."""
    drawn: int = 64
    """Negatives a step, shared by all its walks."""


SETTINGS = Settings()


def deepwalk(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, settings: Settings = SETTINGS
) -> Tensor:
    """Vectors ``[N, dim]``, from the edges alone.

    Where training sees a part only, that part is learnt first; then the other nodes' vectors, on walks that start at
    them, while what was learnt stays as it is. So new nodes find their place among the old, as in Hamilton et al.
    """
    first, draws = generators(seed, device)
    tables = new_tables(graph.num_nodes, settings.dim, first, device)
    seen = torch.from_numpy(graph.splits.get("seen", np.ones(graph.num_nodes, dtype=bool))).to(device)
    known = [table[seen] for table in tables]
    learn(graph.seen(), known, settings, draws)
    for table, rows in zip(tables, known, strict=True):
        table[seen] = rows
    if not seen.all():
        learn(graph, tables, settings, draws, moving=~seen)
    return tables[0]


def new_tables(n: int, dim: int, generator: torch.Generator, device: torch.device) -> list[Tensor]:
    """Where word2vec begins: small centre vectors and context vectors of zero, ``[n, dim]`` each."""
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
    """Teach centre and context vectors ``[N, d]``, in place, that nodes which share a walk are alike.

    Args:
        graph: where the walks run.
        tables: the two.
        settings: of the walks and of Adam, whose rate falls to zero.
        draws: randomness.
        moving: ``[N]``, the nodes whose vectors change and at which walks start; None: all.
        extra: called with both tables: a loss beside that of the walks.
    """
    device, neighbours = draws.device, Neighbours.of(graph, draws.device)
    centres, contexts = parameters = [nn.Parameter(table) for table in tables]
    near = closeness(settings.length, settings.window, device)
    chance = neighbours.starts.diff().double() ** 0.75
    nodes = torch.arange(graph.num_nodes, device=device) if moving is None else torch.nonzero(moving)[:, 0]
    optimiser = torch.optim.Adam(parameters, lr=settings.lr, fused=True)
    steps = settings.walks * -(-len(nodes) // settings.batch)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, total_iters=steps)
    for _ in range(settings.walks):
        starts = nodes[torch.randperm(len(nodes), generator=draws, device=device)]
        for walks in random_walks(neighbours, starts, settings.length, draws).split(settings.batch):
            others = torch.multinomial(chance, settings.drawn, replacement=True, generator=draws)
            loss = skip_gram_loss(centres, contexts, walks, near, others, settings.negatives)
            optimiser.zero_grad()
            (loss if extra is None else loss + extra(centres, contexts)).backward()
            if moving is not None:
                for parameter in parameters:
                    parameter.grad.mul_(moving[:, None])  # type: ignore[union-attr]
            optimiser.step()
            schedule.step()


def with_features(
    graph: Graph, codes: NDArray[Any], seed: int, device: torch.device, scale: Scale, settings: Settings = SETTINGS
) -> Any:
    """DeepWalk's vectors beside the features, ``[N, dim + F]``, an array, or CSR where the features are.

    Features are scaled as DGI has them and then to length 1, beside vectors as they were learnt: of four ways the best
    on validation nodes. A probe of 100 steps leans on whatever is large.
    """
    features = normalize(Scaler.of_seen(graph, scale).transform(graph.features))
    vectors = deepwalk(graph, codes, seed, device, settings).cpu().numpy()
    if sparse.issparse(features):
        return sparse.csr_array(sparse.hstack([vectors, features]), dtype=np.float32)
    return np.hstack([vectors, features], dtype=np.float32)
