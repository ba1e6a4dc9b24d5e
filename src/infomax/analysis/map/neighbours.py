"""The nearest neighbours of all nodes, by cosine similarity: exact, or in groups of similar nodes."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.progress import Progress, silent

SPARE = 6
PAIRS = 1 << 25
BLOCK = 4000
"""Rows that are compared with each other at a time; with a power of 2, transposing takes twice as long."""
DRAWN, ROUNDS = 64, 6
"""Of k-means: nodes per group that it is fitted to, and how often the middles move."""
SAMPLE, RECALL = 100, 0.95
"""Nodes whose exact neighbours are known, and the share of these that is to be found."""


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


def _ranked(here: Tensor, there: Tensor, own: Tensor, k: int) -> tuple[Tensor, Tensor]:
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


class Groups:
    """Nodes in groups of similar ones, of about sqrt(N) / 2 each: neighbours are searched in the nearest groups.

    As many groups are searched as it takes to find the share ``RECALL`` of the exact neighbours of a sample of nodes.
    """

    @torch.no_grad()
    def __init__(self, vectors: NDArray[np.float32], k: int, seed: int = 0) -> None:
        self.units = torch.nn.functional.normalize(torch.from_numpy(vectors))
        n, generator = len(vectors), torch.Generator().manual_seed(seed)
        self.k, count = min(k, n - 1), min(n, round(2 * n**0.5))
        sample = self.units[torch.randperm(n, generator=generator)[: DRAWN * count]]
        middles = sample[:count].clone()
        for _ in range(ROUNDS):
            middles.index_add_(0, _nearest_to(middles, sample), sample)
            middles = torch.nn.functional.normalize(middles)
        owner = _nearest_to(middles, self.units)
        self.members = list(torch.split(owner.argsort(stable=True), torch.bincount(owner, minlength=count).tolist()))
        self.order = (middles @ middles.T).argsort(dim=1, descending=True)
        nodes = torch.randperm(n, generator=generator)[:SAMPLE]
        exact = (self.units[nodes] @ self.units.T).topk(self.k + 1, dim=1).values[:, -1:]  # of the node itself, too
        self.searched = 4
        while True:
            found = torch.cat([self._search(int(owner[node]), node[None])[1] for node in nodes])
            self.recall = float((found >= exact - 1e-6).float().mean())
            if self.recall >= RECALL or self.searched >= count:
                break
            self.searched *= 2

    def _search(self, group: int, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The neighbours of some nodes of a group, and their cosines."""
        enough = torch.tensor([len(self.members[other]) for other in self.order[group].tolist()]).cumsum(0) > self.k
        many = max(self.searched, int(enough.to(torch.uint8).argmax()) + 1)
        near = torch.cat([self.members[other] for other in self.order[group][:many].tolist()]).sort().values
        rows, cosines = _ranked(self.units[nodes], self.units[near], torch.searchsorted(near, nodes), self.k)
        return near[rows], cosines

    @torch.no_grad()
    def nearest(self, progress: Progress = silent) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """As `nearest`, among the nodes of the groups that are searched."""
        n, done = len(self.units), 0
        rows, cosines = torch.empty(n, self.k, dtype=torch.int64), torch.empty(n, self.k)
        for group, nodes in enumerate(self.members):
            for some in nodes.split(PAIRS // 4096):
                rows[some], cosines[some] = self._search(group, some)
            done += len(nodes)
            progress(done, "neighbours", n)
        return rows.numpy(), cosines.numpy()

    def __str__(self) -> str:
        sampled = f"against exact, on {min(SAMPLE, len(self.units))} sampled nodes"
        told = f"{len(self.members):,} groups of similar nodes, {self.searched} of them searched for a node"
        return f"{told}: recall@{self.k} {self.recall:.2f} {sampled}"


def _nearest_to(middles: Tensor, units: Tensor) -> Tensor:
    """The middle ``[n]`` that is nearest to each of the units ``[n, d]``."""
    return torch.cat([(some @ middles.T).argmax(dim=1) for some in units.split(max(1, PAIRS // len(middles)))])
