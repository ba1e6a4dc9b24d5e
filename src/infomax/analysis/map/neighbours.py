"""The exact nearest neighbours of all nodes, by cosine similarity."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from infomax.progress import Progress, silent

SPARE = 6
PAIRS = 1 << 25


@torch.no_grad()
def nearest(
    vectors: NDArray[np.float32],
    k: int,
    *,
    device: str | torch.device = "cpu",
    progress: Progress = silent,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Rows and cosines ``[N, k]`` of the k nodes most similar to each node, without itself, the nearest first.

    k is at most N - 1. All pairs are compared, in blocks of rows: float32 products select SPARE candidates more than
    needed, which are then ranked in float64; ties are in input order. A vector of zeros has similarity 0 to all others.
    `Embeddings.neighbours` gives the same for one node.
    """
    n = len(vectors)
    k = min(k, n - 1)
    units = torch.nn.functional.normalize(torch.from_numpy(vectors).to(device))
    rows = torch.empty(n, k, dtype=torch.int64)
    cosines = torch.empty(n, k)
    block = max(1, PAIRS // n)
    for start in range(0, n, block):
        here = units[start : start + block]
        similar = here @ units.T
        own = torch.arange(len(here), device=device)
        similar[own, own + start] = -torch.inf
        candidates = similar.topk(min(k + SPARE, n - 1), dim=1).indices.sort(dim=1).values
        exact = torch.einsum("bd,bcd->bc", here.double(), units[candidates].double()).float()
        best = exact.argsort(dim=1, descending=True, stable=True)[:, :k]
        rows[start : start + block] = candidates.gather(1, best).cpu()
        cosines[start : start + block] = exact.gather(1, best).clamp(-1, 1).cpu()
        progress(start + len(here), "neighbours", n)
    return rows.numpy(), cosines.numpy()
