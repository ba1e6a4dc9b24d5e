"""The exact nearest neighbours of all nodes, by cosine similarity."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.progress import Progress, silent

SPARE = 6
BLOCK = 4000
"""Rows that are compared with each other at a time; with a power of 2, transposing takes twice as long."""


@torch.no_grad()
def nearest(
    vectors: NDArray[np.float32],
    k: int,
    *,
    device: str | torch.device = "cpu",
    progress: Progress = silent,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows and cosines ``[N, k]`` of the k nodes most similar to each node, without itself, the nearest first.

    k is at most N - 1. All pairs are compared, each once, in blocks: float32 products select SPARE candidates more than
    needed, which are then ranked in float64; ties are in input order. A vector of zeros has similarity 0 to all others.
    `Embeddings.neighbours` gives the same for one node.
    """
    n = len(vectors)
    k, spare = min(k, n - 1), min(k + SPARE, n - 1)
    units = torch.nn.functional.normalize(torch.from_numpy(vectors).to(device))
    best, found = units.new_full((n, spare), -torch.inf), torch.zeros(n, spare, dtype=torch.int64, device=device)

    def keep(similar: Tensor, of: int, among: int) -> None:
        """Keep the best of the rows from ``of`` on among those kept and the rows from ``among`` on."""
        new, here = similar.topk(min(spare, similar.shape[1]), dim=1), slice(of, of + len(similar))
        best[here], places = torch.cat([best[here], new.values], dim=1).topk(spare, dim=1)
        found[here] = torch.cat([found[here], new.indices + among], dim=1).gather(1, places)

    starts = range(0, n, BLOCK)
    for done, first in enumerate(starts):
        for second in starts[: done + 1]:
            similar = units[first : first + BLOCK] @ units[second : second + BLOCK].T
            if first == second:
                similar.fill_diagonal_(-torch.inf)
            else:
                keep(similar.T.contiguous(), second, first)
            keep(similar, first, second)
        progress((done + 1) * (done + 2) // 2, "neighbours", len(starts) * (len(starts) + 1) // 2)
    rows, cosines = torch.empty(n, k, dtype=torch.int64), torch.empty(n, k)
    for some in torch.arange(n).split(BLOCK):
        rows[some], cosines[some] = (part.cpu() for part in _ordered(units[some], units, found[some], k))
    return rows.numpy(), cosines.numpy()


def ranked(here: Tensor, there: Tensor, own: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The rows of ``there [m, d]`` that are nearest to ``here [b, d]``, and the cosines ``[b, k]``.

    A node of ``here`` is the row ``own [b]`` of ``there``, and is left out.
    """
    similar = here @ there.T
    similar[torch.arange(len(here), device=own.device), own] = -torch.inf
    return _ordered(here, there, similar.topk(min(k + SPARE, len(there) - 1), dim=1).indices, k)


def _ordered(here: Tensor, there: Tensor, candidates: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The nearest k of the candidates ``[b, c]``, rows of ``there [m, d]``, to ``here [b, d]``, and the cosines."""
    candidates = candidates.sort(dim=1).values
    exact = torch.einsum("bd,bcd->bc", here.double(), there[candidates].double()).float()
    best = exact.argsort(dim=1, descending=True, stable=True)[:, :k]
    return candidates.gather(1, best), exact.gather(1, best).clamp(-1, 1)
