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

SPARE_CANDIDATES = 6
"""Candidates beyond the neighbours that are asked for: float32 may rank the last ones wrongly."""
LEAST_COMPILED_NODES = 8_000
"""Nodes from which compiled code is worth loading."""
NODES_PER_BLOCK = 4000
"""Nodes that are compared with others at a time; transposing powers of 2 takes twice as long."""
NODES_PER_COMPILED_BLOCK = 1500
"""The same for compiled code: the cosines of two blocks stay in the cache."""


@torch.no_grad()
def nearest(
    vectors: NDArray[np.float32],
    k: int,
    *,
    device: str | torch.device = "cpu",
    progress: Progress = silent,
    nodes_per_block: int | None = None,
    least_compiled_nodes: int = LEAST_COMPILED_NODES,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k nodes most similar to each node, without itself, the nearest first.

    All pairs are compared, each once, in blocks: float32 products select some candidates more than
    needed. Their cosines are then computed in double precision and ranked as float32; equal ones
    are in input order. `Embeddings.neighbours` gives the same for one node.

    Args:
        vectors: ``[N, d]``.
        k: how many; at most N - 1.
        device: where they are compared.
        progress: is told the rounds that are done.
        nodes_per_block: nodes that are compared with others at a time.
        least_compiled_nodes: nodes from which compiled code compares them, on a CPU.

    Returns:
        the rows and the cosines ``[N, k]``
    """
    n = len(vectors)
    k = min(k, n - 1)
    candidate_count = min(k + SPARE_CANDIDATES, n - 1)
    units = torch.nn.functional.normalize(torch.from_numpy(vectors).to(device))
    candidates: _Candidates
    if n >= least_compiled_nodes and units.device.type == "cpu":
        block_size = nodes_per_block or NODES_PER_COMPILED_BLOCK
        candidates = _CompiledCandidates(units, candidate_count, block_size)
    else:
        candidates = _Candidates(units, candidate_count, nodes_per_block or NODES_PER_BLOCK)

    # In each round every block is compared with one other, or with itself. So no block is in two
    # pairs of a round, and threads can compare the pairs at once.
    block_count = -(-n // candidates.block_size)
    for round_number in range(block_count):
        pairs = []
        for block in range(block_count):
            other_block = (round_number - block) % block_count
            if block >= other_block:
                pairs.append((candidates.block_size * block, candidates.block_size * other_block))
        candidates.compare(pairs)
        progress(round_number + 1, "neighbours", block_count)
    rows, cosines = candidates.rank(k)
    return rows.numpy(), cosines.numpy()


class _Candidates:
    """The nodes that are most similar to each node, as far as they were compared, on any device.

    Attributes:
        units: ``[N, d]``, the vectors, each of length 1 or 0.
        block_size: nodes that are compared with others at a time.
        cosines: ``[N, c]``, those of the candidates of each node, in float32.
        rows: ``[N, c]``, the candidates.
    """

    def __init__(self, units: Tensor, count: int, block_size: int) -> None:
        n = len(units)
        self.units = units
        self.block_size = block_size
        self.cosines = units.new_full((n, count), -torch.inf)
        self.rows = torch.zeros(n, count, dtype=torch.int64, device=units.device)

    def compare(self, pairs: list[tuple[int, int]]) -> None:
        """Look at the cosines of pairs of blocks, by the nodes where these begin.

        No block is in two pairs.
        """
        for first, second in pairs:
            block = self.units[first : first + self.block_size]
            other_block = self.units[second : second + self.block_size]
            cosines = block @ other_block.T
            if first == second:
                cosines.fill_diagonal_(-torch.inf)
            else:
                self._keep(cosines.T.contiguous(), second, first)
            self._keep(cosines, first, second)

    def _keep(self, cosines: Tensor, first: int, first_other: int) -> None:
        """Compare a block of b nodes with another block of m, and keep the best candidates.

        Args:
            cosines: ``[b, m]``, of each node of the block with each node of the other block.
            first: the row of the first node of the block.
            first_other: the row of the first node of the other block.
        """
        count = self.cosines.shape[1]
        nodes = slice(first, first + len(cosines))
        # Only the best of the other block can be among the best of all.
        best_others = cosines.topk(min(count, cosines.shape[1]), dim=1)
        all_cosines = torch.cat([self.cosines[nodes], best_others.values], dim=1)
        all_rows = torch.cat([self.rows[nodes], best_others.indices + first_other], dim=1)
        self.cosines[nodes], positions = all_cosines.topk(count, dim=1)
        self.rows[nodes] = all_rows.gather(1, positions)

    def rank(self, k: int) -> tuple[Tensor, Tensor]:
        """The rows and the cosines ``[N, k]`` of the nearest nodes.

        Cosines are computed in double precision and ranked as float32; equal ones are in input
        order.
        """
        rows, cosines = [], []
        blocks = zip(
            self.units.split(self.block_size), self.rows.split(self.block_size), strict=True
        )
        for units, candidates in blocks:
            # Candidates are sorted by row, so that equal cosines are in input order.
            candidates = candidates.sort(dim=1).values
            candidate_units = self.units[candidates].double()
            exact = torch.einsum("bd,bcd->bc", units.double(), candidate_units).float()
            best_rows, best_cosines = _best(candidates, exact, k)
            rows.append(best_rows.cpu())
            cosines.append(best_cosines.cpu())
        return torch.cat(rows), torch.cat(cosines)


class _CompiledCandidates(_Candidates):
    """The same in main memory, where half of the entries of two vectors mostly rule a pair out.

    Vectors are rotated so that their first entries, the head, vary most. The product of two tails
    is at most that of their lengths. Where heads and this bound stay below the lowest kept cosines
    of both nodes, as in most pairs, tails are not multiplied.

    Attributes:
        positions_of_lowest: ``[N]``, the position of the lowest of the kept cosines of each node.
        lowest_cosines: ``[N]``, that cosine.
    """

    def __init__(self, units: Tensor, count: int, block_size: int) -> None:
        super().__init__(units, count, block_size)
        n, width = units.shape
        self.positions_of_lowest = np.zeros(n, np.int64)
        self.lowest_cosines = np.full(n, -np.inf, np.float32)

        # In the first round no cosine is known that a bound could be compared with, so whole
        # vectors are heads.
        no_tails = np.zeros((n, 0), np.float32)
        self._heads_and_tails = units, no_tails, np.zeros(n, np.float32)
        main_axes = leading_eigenvectors((units.T @ units).numpy(), width)
        rotated_units = units @ torch.from_numpy(main_axes)
        head_width = -(-width // 2)
        heads = rotated_units[:, :head_width].contiguous()
        tails = rotated_units[:, head_width:].contiguous()
        tail_lengths = tails.norm(dim=1).numpy()
        self._heads_and_tails_of_later_rounds = heads, tails.numpy(), tail_lengths

    def compare(self, pairs: list[tuple[int, int]]) -> None:
        run_on_threads(self._compare, pairs)
        self._heads_and_tails = self._heads_and_tails_of_later_rounds

    def _compare(self, first: int, second: int) -> None:
        """Compare two blocks by heads; tails only where the bound allows."""
        from infomax.neighbours.compiled import keep_nearest

        heads, tails, tail_lengths = self._heads_and_tails
        block = heads[first : first + self.block_size]
        other_block = heads[second : second + self.block_size]
        keep_nearest(
            (block @ other_block.T).numpy(),
            first,
            second,
            tails,
            tail_lengths,
            self.cosines.numpy(),
            self.rows.numpy(),
            self.positions_of_lowest,
            self.lowest_cosines,
        )

    def rank(self, k: int) -> tuple[Tensor, Tensor]:
        from infomax.neighbours.compiled import exact_cosines

        candidates = self.rows.sort(dim=1).values
        exact = torch.empty_like(self.cosines)
        arrays = self.units.numpy(), candidates.numpy(), exact.numpy()
        run_in_ranges(exact_cosines, (equal_ranges(len(exact)), *arrays))
        return _best(candidates, exact, k)


def _best(candidates: Tensor, cosines: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k candidates ``[b, c]`` of the highest cosines, and these cosines.

    Candidates of equal cosines keep their order.
    """
    positions = cosines.argsort(dim=1, descending=True, stable=True)[:, :k]
    # Rounding may leave a cosine above 1.
    return candidates.gather(1, positions), cosines.gather(1, positions).clamp(-1, 1)
