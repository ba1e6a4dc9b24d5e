"""The exact nearest neighbours of all nodes, by cosine similarity."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from infomax.kernels.host import (
    equal_ranges,
    leading_eigenvectors,
    run_in_ranges,
    run_on_threads,
)
from infomax.progress import Progress, silent

SPARE = 6
LARGE = 8_000
"""Nodes from which compiled code is worth loading."""


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
    select = _Compiled if n >= LARGE and units.device.type == "cpu" else _Plain
    kept = select(units, spare)
    count = -(-n // select.block)
    for turn in range(count):  # in each turn every block is compared with one other, or with itself
        pairs = [(one, (turn - one) % count) for one in range(count) if one >= (turn - one) % count]
        kept.compare([(select.block * first, select.block * second) for first, second in pairs])
        progress(turn + 1, "neighbours", count)
    rows, cosines = kept.ordered(k)
    return rows.numpy(), cosines.numpy()


class _Plain:
    """The nodes that are most similar to each node, so far as was seen, on any device."""

    block = 4000
    """Rows that are compared with each other at a time; with a power of 2, transposing takes twice as long."""

    def __init__(self, units: Tensor, count: int) -> None:
        self.units, n = units, len(units)
        self.best = units.new_full((n, count), -torch.inf)
        self.found = torch.zeros(n, count, dtype=torch.int64, device=units.device)

    def compare(self, pairs: list[tuple[int, int]]) -> None:
        """Look at the cosines of pairs of blocks, which begin with these nodes; no block is in two pairs."""
        for first, second in pairs:
            similar = (
                self.units[first : first + self.block] @ self.units[second : second + self.block].T
            )
            if first == second:
                similar.fill_diagonal_(-torch.inf)
            else:
                self._keep(similar.T.contiguous(), second, first)
            self._keep(similar, first, second)

    def _keep(self, similar: Tensor, of: int, among: int) -> None:
        """Keep the best of the rows from ``of`` on among those kept and the rows from ``among`` on."""
        count, here = self.best.shape[1], slice(of, of + len(similar))
        new = similar.topk(min(count, similar.shape[1]), dim=1)
        self.best[here], places = torch.cat([self.best[here], new.values], dim=1).topk(count, dim=1)
        self.found[here] = torch.cat([self.found[here], new.indices + among], dim=1).gather(
            1, places
        )

    def ordered(self, k: int) -> tuple[Tensor, Tensor]:
        """The rows and the cosines ``[N, k]`` of the nearest nodes, ranked in double precision."""
        parts = [
            _ordered(each, self.units, found, k)
            for each, found in zip(
                self.units.split(self.block), self.found.split(self.block), strict=True
            )
        ]
        rows, cosines = (
            torch.cat([part.cpu() for part in each]) for each in zip(*parts, strict=True)
        )
        return rows, cosines


class _Compiled(_Plain):
    """As `_Plain`, in main memory, in one pass over the products along half of the axes of the vectors, the main ones.

    Along the others a product is at most that of both lengths there, so that most pairs need no further look.
    """

    block = 1500
    """Their cosines stay in the cache."""

    def __init__(self, units: Tensor, count: int) -> None:
        super().__init__(units, count)
        self.worst, self.level = (
            np.zeros(len(units), np.int64),
            np.full(len(units), -np.inf, np.float32),
        )
        turned = units @ torch.from_numpy(
            leading_eigenvectors((units.T @ units).numpy(), units.shape[1])
        )
        head, tail = (
            part.contiguous() for part in turned.tensor_split([-(-units.shape[1] // 2)], dim=1)
        )
        self.halves = head, tail.numpy(), tail.norm(dim=1).numpy()
        none = np.zeros((len(units), 0), np.float32)
        self.factors = (
            units,
            none,
            np.zeros(len(units), np.float32),
        )  # in the first turn, before any cosine is known

    def compare(self, pairs: list[tuple[int, int]]) -> None:
        run_on_threads(self._compare, pairs)
        self.factors = self.halves

    def _compare(self, first: int, second: int) -> None:
        from infomax.neighbours.compiled import keep_nearest

        head, *beside = self.factors
        similar = head[first : first + self.block] @ head[second : second + self.block].T
        kept = self.best.numpy(), self.found.numpy(), self.worst, self.level
        keep_nearest(similar.numpy(), first, second, *beside, *kept)

    def ordered(self, k: int) -> tuple[Tensor, Tensor]:
        from infomax.neighbours.compiled import exact_cosines

        candidates, exact = self.found.sort(dim=1).values, torch.empty_like(self.best)
        run_in_ranges(
            exact_cosines,
            (equal_ranges(len(exact)), *(each.numpy() for each in (self.units, candidates, exact))),
        )
        return _best(candidates, exact, k)


def _ordered(here: Tensor, there: Tensor, candidates: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The nearest k of the candidates ``[b, c]``, rows of ``there [m, d]``, to ``here [b, d]``, and the cosines."""
    candidates = candidates.sort(dim=1).values
    exact = torch.einsum("bd,bcd->bc", here.double(), there[candidates].double()).float()
    return _best(candidates, exact, k)


def _best(candidates: Tensor, cosines: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k of the candidates ``[b, c]`` with the highest cosines, and these; ties in the order of the candidates."""
    best = cosines.argsort(dim=1, descending=True, stable=True)[:, :k]
    return candidates.gather(1, best), cosines.gather(1, best).clamp(-1, 1)
