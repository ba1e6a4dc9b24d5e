"""Groups of similar nodes, in which neighbours are searched: an index in memory, or mapped from a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.arrays.blocks import row_blocks
from infomax.evaluation.clustering import unit
from infomax.progress import Progress, silent

DRAWN, ROUNDS = 64, 6
"""Of k-means: nodes per group that it is fitted to, and how often the middles move."""
PAIRS = 1 << 25


@dataclass(frozen=True, eq=False)
class Groups:
    """N nodes in 2 sqrt(N) groups by k-means of their directions.

    Shapes:
        middles: ``[C, d]`` float32, of length 1.
        starts: ``[C + 1]``, the place of each group's first node.
        members: ``[N]``, the row of each node, group by group.
        units: ``[N, d]``, their vectors of length 1, in the order of the members.
        lengths: ``[N]`` float32, what the lengths were, in the same order.
        searched: how many groups are searched for neighbours: those whose middles are nearest.
    """

    middles: NDArray[np.float32]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    units: NDArray[Any]
    lengths: NDArray[np.float32]
    searched: int = 1

    @classmethod
    def of(cls, vectors: Any, dtype: type = np.float32, progress: Progress = silent) -> Groups:
        """Divide vectors ``[N, d]``, in memory or stored, into groups."""
        n, width = vectors.shape
        count = min(n, round(2 * n**0.5))
        sample = np.random.default_rng(0).permutation(n)[: DRAWN * count]
        order = np.argsort(sample)  # stored vectors are read in order
        drawn = np.empty((len(sample), width), np.float32)
        drawn[order] = unit(vectors[sample[order]])
        middles = drawn[:count].copy()
        for _ in range(ROUNDS):
            np.add.at(middles, _nearest_to(middles, drawn), drawn)
            middles = unit(middles)
        owner, done = np.empty(n, np.int64), 0
        for block in row_blocks(vectors):
            owner[done : done + len(block)] = _nearest_to(middles, unit(block))
            done += len(block)
            progress(done // 2, "indexing")
        members = np.argsort(owner, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=count))])
        groups = cls(middles, starts, members, np.empty((n, width), dtype), np.empty(n, np.float32))
        done = 0
        for block in row_blocks(vectors):
            places = groups.places[done : done + len(block)]
            groups.units[places], groups.lengths[places] = unit(block), np.linalg.norm(block, axis=1)
            done += len(block)
            progress((n + done) // 2, "indexing")
        return groups

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place ``[N]`` of each node among the members."""
        places = np.empty(len(self.members), np.int64)
        places[self.members] = np.arange(len(places))
        return places

    def get(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some nodes."""
        places = self.places[rows]
        return self.units[places].astype(np.float32) * self.lengths[places, None]

    def _near(self, direction: NDArray[np.float32], k: int) -> list[slice]:
        """The places of the groups that are nearest to a direction ``[d]``, with k members or more."""
        order = np.argsort(-(self.middles @ direction), kind="stable")
        ends = self.starts[order + 1]
        enough = int(np.searchsorted(np.cumsum(ends - self.starts[order]), k)) + 1
        chosen = order[: max(self.searched, enough)]
        return list(map(slice, self.starts[chosen].tolist(), ends[: len(chosen)].tolist()))

    def _directions(self, queries: NDArray[np.float32], together: bool) -> NDArray[np.float32]:
        """In which direction ``[n, d]`` queries are searched: ``together``, that of the nearest middle."""
        return self.middles[_nearest_to(self.middles, queries)] if together else queries

    def needed(self, queries: NDArray[np.float32], rows: NDArray[np.int64], *, together: bool) -> NDArray[np.int64]:
        """How many groups must be searched ``[n, k]`` so that queries ``[n, d]`` find nodes, ``rows [n, k]``."""
        order = np.argsort(-(self._directions(queries, together) @ self.middles.T), axis=1, kind="stable")
        owner = np.searchsorted(self.starts, self.places[rows], side="right") - 1
        return np.take_along_axis(np.argsort(order, axis=1), owner, 1) + 1

    def search(self, queries: NDArray[np.float32], k: int, *, together: bool = False) -> NDArray[np.int64]:
        """The rows ``[n, k]`` of the nodes that are nearest to queries ``[n, d]``, in no order; k is at most N.

        With ``together`` all nodes of a group are searched in the same groups, as `nearest` does.
        """
        found = np.empty((len(queries), k), np.int64)
        for at, (query, direction) in enumerate(zip(queries, self._directions(queries, together), strict=True)):
            spans = self._near(direction, k)
            # Group by group, since a copy of them all would take longer than the products.
            similar = [self.units[span].astype(np.float32, copy=False) @ query for span in spans]
            best = np.argpartition(np.concatenate(similar), -k)[-k:]
            found[at] = np.concatenate([self.members[span] for span in spans])[best]
        return found

    def nearest(self, k: int, progress: Progress = silent) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and cosines ``[N, k]`` of the k nodes that are found nearest to each node, the nearest first."""
        import torch

        from infomax.analysis.map.neighbours import ranked

        n, k = len(self), min(k, len(self) - 1)
        rows, cosines = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
        for group, (first, last) in enumerate(zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)):
            if first == last:
                continue
            near = np.sort(np.concatenate([self.members[span] for span in self._near(self.middles[group], k + 1)]))
            there = torch.from_numpy(self.units[self.places[near]].astype(np.float32, copy=False))
            own = torch.from_numpy(np.searchsorted(near, self.members[first:last]))
            for some in own.split(max(1, PAIRS // len(near))):
                found, similar = ranked(there[some], there, some, k)
                rows[near[some]], cosines[near[some]] = near[found], similar
            progress(last, "neighbours", n)
        return rows, cosines

    def save(self, path: Path) -> None:
        """Write all arrays to one file."""
        with path.open("wb") as file:
            for array in (np.array([self.searched]), self.starts, self.members, self.middles, self.units, self.lengths):
                np.save(file, array, allow_pickle=False)

    @classmethod
    def restore(cls, path: Path) -> Groups:
        """Map the arrays of such a file."""
        arrays: list[Any] = []
        with path.open("rb") as file:
            for _ in range(6):
                np.lib.format.read_magic(file)
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                arrays.append(np.asarray(np.memmap(path, dtype, "r", file.tell(), shape)))
                file.seek(arrays[-1].nbytes, 1)
        searched, starts, members, middles, units, lengths = arrays
        return cls(middles, starts, members, units, lengths, int(searched[0]))


def _nearest_to(middles: NDArray[np.float32], units: NDArray[np.float32]) -> NDArray[np.int64]:
    """The middle ``[n]`` that is nearest to each of the units ``[n, d]``."""
    step = max(1, PAIRS // len(middles))
    found = [(units[first : first + step] @ middles.T).argmax(axis=1) for first in range(0, len(units), step)]
    return np.concatenate(found)
