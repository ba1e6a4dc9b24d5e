"""What vectors are made of: an encoder, and the node's own part, singular vectors of its features, beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.arrays.blocks import BLOCK_BYTES
from infomax.arrays.scaling import Scaler
from infomax.arrays.table import Features, Table
from infomax.io.json import to_json
from infomax.kernels.host import leading
from infomax.parts.encoders import Encoder

LENGTH, LONG = 0.5, 4.0
"""The mean length of the own part, where that of the encoder's is 1; the other where neighbours are `unlike`.

Chosen on validation nodes: on Cora and Citeseer lengths 0.25, 0.5 and 1 are within 0.5 points of each other, on actor
0.5, 1, 2 and 4 give 32.0, 33.3, 33.9 and 34.7 % (the own part alone 35.4).
"""
FITTED = 200_000
"""Nodes to which the own part is fitted, at most."""
EXACT = 1024
"""Features up to which singular vectors come from the matrix of all products of features, in one pass over nodes."""
PASSES, SPARE = 5, 32
"""Passes over nodes where features are more, and directions that are searched beside those asked for."""


@dataclass(frozen=True, eq=False)
class Own:
    """What makes vectors ``[n, d]`` of an encoder and features ``[n, F]`` into vectors ``[n, d + K]``.

    Both parts are centred and have mean lengths of their own on the nodes that training saw: 1, and that of `LENGTH`.

    Shapes:
        projection: ``[F, K]`` singular directions of the scaled features
        centre, factor: ``[d + K]``
    """

    projection: Tensor
    centre: Tensor
    factor: Tensor

    @classmethod
    def fit(
        cls, count: int, length: float, vectors: NDArray[np.float32], table: Table, nodes: NDArray[np.int64], seed: int
    ) -> Own:
        """Fit to the vectors ``[n, d]`` and the scaled features of some nodes ``[n]``; K is at most F."""
        projection = directions(table, nodes, min(count, table.shape[1]), seed)
        own = np.concatenate([rows @ projection for rows in blocks(table, nodes)])
        centres, factors = [], []
        for part, mean in ((vectors, 1.0), (own, length)):
            centre = part.mean(axis=0, dtype=np.float64)
            spread = float(np.sqrt(np.square(part - centre).sum(axis=1)).mean())
            centres.append(centre)
            factors.append(np.full(part.shape[1], mean / spread if spread > 0 else 1.0))
        centre, factor = (np.concatenate(parts).astype(np.float32) for parts in (centres, factors))
        return cls(*map(torch.from_numpy, (projection, centre, factor)))

    @property
    def width(self) -> int:
        """K."""
        return int(self.projection.shape[1])

    def beside(self, vectors: Tensor, features: Features) -> Tensor:
        """Vectors ``[n, d + K]`` from those of the encoder ``[n, d]`` and scaled features ``[n, F]``."""
        own = torch.from_numpy(np.asarray(features @ self.projection.numpy(), np.float32)).to(vectors)
        return (torch.cat([vectors, own], dim=1) - self.centre.to(vectors)) * self.factor.to(vectors)

    def tensors(self) -> dict[str, Tensor]:
        """What a run keeps."""
        return {f"own.{name}": getattr(self, name) for name in ("projection", "centre", "factor")}


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that vectors depend on besides the graph.

    The encoder gives H ``[N, d]`` of features that the scaler has scaled. With ``smooth`` hops the vectors are
    H + P^smooth H, with rows of length 1. With ``own``, the node's own part stands beside them, ``[N, d + K]``. A
    ``turn`` ``[d + K, d + K]`` is a rotation of the result.
    """

    encoder: Encoder
    scaler: Scaler
    smooth: int = 0
    own: Own | None = None
    turn: Tensor | None = None

    @property
    def width(self) -> int:
        """d + K."""
        return self.encoder.out_dim + (self.own.width if self.own else 0)

    @cached_property
    def encoder_hash(self) -> str:
        """The hash of all that vectors depend on besides the graph and the hops of smoothing."""
        others = [one for _, one in sorted(self.scaler.others.items())]  # a run is read in another order
        scalers = (to_json([one.kind, one.mean, one.deviation]) for one in (self.scaler, *others))
        content = hashlib.sha256("".join(scalers).encode())
        own, turn = self.own.tensors() if self.own else {}, {} if self.turn is None else {"turn": self.turn}
        for name, weight in (self.encoder.state_dict() | own | turn).items():
            content.update(name.encode() + weight.cpu().numpy().tobytes())
        return content.hexdigest()

    @property
    def hash(self) -> str:
        """The hash by which vectors are known as those of one model."""
        return hashlib.sha256(f"{self.encoder_hash} {self.smooth}".encode()).hexdigest()


def directions(table: Table, nodes: NDArray[np.int64], count: int, seed: int) -> NDArray[np.float32]:
    """The leading right singular directions ``[F, K]`` of the features of some nodes.

    Nodes are read some at a time. Many features are searched by a seeded subspace iteration.
    """
    f = table.shape[1]
    if f <= max(EXACT, count + SPARE):
        found = leading(_gram(table, nodes), count)
    else:
        basis = _orthonormal(np.random.default_rng(seed).standard_normal((f, count + SPARE)))
        for _ in range(PASSES):
            basis = _orthonormal(_gram(table, nodes, basis))
        found = basis @ leading(basis.T @ _gram(table, nodes, basis), count)
    # Of a direction and its opposite, the one whose largest entry is positive.
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(count)])
    return np.ascontiguousarray(found * signs, np.float32)


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Orthonormal columns ``[F, k]`` of the same span; torch takes a quarter of the time of NumPy."""
    return np.asarray(torch.linalg.qr(torch.from_numpy(columns))[0].numpy())


def blocks(table: Table, nodes: NDArray[np.int64]) -> Iterator[Features]:
    """The features of some nodes; dense ones some at a time."""
    step = len(nodes) if table.sparse else max(1, BLOCK_BYTES // (4 * table.shape[1]))
    return (table[nodes[first : first + step]] for first in range(0, len(nodes), step))


def _gram(table: Table, nodes: NDArray[np.int64], by: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """X^T X ``[F, F]``, where X has the rows of some nodes, or its product with a matrix ``[F, k]``."""
    out = np.zeros((table.shape[1],) * 2 if by is None else by.shape)
    for rows in blocks(table, nodes):
        product = rows.T @ (rows if by is None else rows @ by.astype(np.float32))
        out += product.toarray() if sparse.issparse(product) else product
    return out
