"""Exact vectors of all nodes: layer by layer over the whole graph, each layer in blocks of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.nn.functional import normalize

from infomax.parts.encoders import Encoder
from infomax.views import BlockView, WholeView
from infomax.views.operands import SparseOperand
from infomax.views.propagation import Propagation

BLOCK = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Nodes per block: few fit into a CPU's cache, many keep a GPU busy."""

COLUMNS = 64
"""Columns that are smoothed at a time."""


@torch.no_grad()
def embed(encoder: Encoder, view: WholeView, block: int | None = None) -> torch.Tensor:
    """Compute H of every node ``[N, d]``, exactly: layer by layer over the whole graph, each in blocks of nodes.

    Memory holds the layer before, the layer itself, one product H Θ and one block. Dropout is switched off.
    """
    propagation, h = view.propagation, None
    assert isinstance(propagation, Propagation)  # noqa: S101  flipped edges occur only in negatives
    n, block = propagation.n, block or BLOCK[propagation.operand.matrix.device.type]
    with evaluating(encoder):
        for k in range(encoder.depth):
            whole = view.fresh()
            blocks = (BlockView(whole, propagation, start, min(start + block, n)) for start in range(0, n, block))
            out = None
            for part in blocks:
                vectors = encoder.layer(k, part, h)
                out = vectors.new_empty(n, vectors.shape[1]) if out is None else out
                out[part.start : part.stop] = vectors
            h = out
    assert h is not None  # noqa: S101  there is at least one layer and one node
    return h


@torch.no_grad()
def smooth(h: torch.Tensor, propagation: Propagation, hops: int) -> torch.Tensor:
    """Smooth vectors: H + P^hops H with rows of length 1, ``[N, d]``. H is overwritten.

    It works on a few columns at a time, to save memory. This is more work than an encoder's pass, and its own choice
    of kernels.
    """
    p = SparseOperand(propagation.operand.matrix)
    for columns in h.split(COLUMNS, dim=1):
        far = columns.contiguous()
        for _ in range(hops):
            far = p @ far
        columns.add_(far)
    for rows in h.split(BLOCK[h.device.type]):
        rows.copy_(normalize(rows))
    return h


@contextmanager
def evaluating(encoder: Encoder) -> Iterator[None]:
    """Put all modules of the encoder in evaluation mode; restore their modes afterwards."""
    modes = {part: part.training for part in encoder.modules()}
    encoder.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode
