"""Positions from the edges: singular vectors of the whole normalised graph, all types and relations together.

P = D^-1/2 A D^-1/2, A being the edges of all relations in both directions and D the sums of their weights, each with a
tenth of their mean more, so that small separate parts of a graph do not come first. The position of a node is its row
of V (s^2 + ... + s^24), at length 1, V being the singular vectors and s their values: what 2 to 24 hops bring.
So nodes of all types stand in one space. Nodes that come later stand where their neighbours do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.arrays.positions import ROUNDS, entries
from infomax.arrays.relations import steps
from infomax.io.changes import rows_before
from infomax.io.record import Record
from infomax.io.union import TypedIds
from infomax.kernels import Backend
from infomax.kernels.spectrum import leading_vectors
from infomax.views.operands import SparseOperand, csr, keyed

WIDTH, SPARE = 128, 32
"""Singular vectors at most, and how many more are searched. On validation nodes 256 gave no more than 128."""
MORE = 0.1
"""What is added to the sums of weights, by their mean. On validation nodes of Citeseer, which falls into 438 parts, the
default gains 0.8 points by it; Cora and chameleon change by 0.1."""
FIRST, LAST = 2, 24
"""The powers of s that weigh singular vectors. On validation nodes positions alone gain 5 points on Cora, 4 on Pubmed
and 2 on chameleon by these and by rows of length 1; on held-out edges of debian the AUC goes from 0.87 to 0.91."""

_ODD = np.array(
    [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64
)
_CPU = torch.device("cpu")
_ROWS = 1 << 16

Array = NDArray[np.float32]
Links = tuple[NDArray[np.int64], str, NDArray[np.int64], Any]
"""Who sends to some nodes: the place of each, the type of the senders, their rows, and weights."""


@dataclass(frozen=True, eq=False)
class Places:
    """The positions of all nodes of a graph, those of each type after one another.

    Shapes:
        table: ``[N, 1 + K]``: of each node D, then its row of V (s^2 + ... + s^24)
        values: ``[1 + K]``: what D is more than the sum of the weights of a node's edges, then the singular values
    """

    table: Array
    values: Array
    rows: Mapping[str, slice]
    """By type, its rows."""
    work: TemporaryDirectory[str] | None = None  # with the table, where that is mapped

    @property
    def width(self) -> int:
        """K."""
        return len(self.values) - 1

    def of_type(self, node_type: str) -> Array:
        """The positions ``[n, K]`` of the nodes of a type, not yet of length 1."""
        return self.table[self.rows[node_type], 1:]

    def singular(self, node_type: str) -> Array:
        """The singular vectors ``[n, K]`` of the whole graph at the nodes of a type, the leading first."""
        return np.asarray(self.of_type(node_type) / _weights(self.values[1:]))

    def near(self, links: Iterable[Links], count: int) -> Array:
        """Rows ``[count, 1 + K]`` of the table for new nodes: P times the known rows / s, by their links to these."""
        out = np.zeros((count, 1 + self.width), np.float32)
        for place, node_type, senders, weights in links:
            needed, at = np.unique(senders, return_inverse=True)
            known = self.table[self.rows[node_type]][needed]
            shares = weights * inverse_root(known[:, 0])[at]
            matrix = sparse.csr_array(
                (shares.astype(np.float32), (place, at)), shape=(count, len(needed))
            )
            out[:, 1:] += matrix @ known[:, 1:]
            out[:, 0] += np.bincount(place, weights, count)
        out[:, 0] += self.values[0]
        out[:, 1:] *= inverse_root(out[:, :1]) / self.values[1:]
        return out

    def moved(self, earlier: Record, later: Record) -> Places:
        """Those of a later graph: known nodes, by their ids, keep theirs, and the others stand near their neighbours.

        A new node whose neighbours are all new gets its position after them; at most four edges lead to a known one.
        """
        if later is earlier:
            return self
        before, after = _types(earlier), _types(later)
        known = {
            node_type: rows_before(before[node_type].ids[:], one.ids[:])
            if node_type in before
            else np.full(one.num_nodes, -1)
            for node_type, one in after.items()
        }
        same_types = before.keys() == after.keys()
        if same_types and all(
            np.array_equal(rows, np.arange(before[node_type].num_nodes))
            for node_type, rows in known.items()
        ):
            return self
        rows_of_type = typed_ids(later).rows
        table = np.zeros((sum(len(rows) for rows in known.values()), 1 + self.width), np.float32)
        placed = {node_type: rows >= 0 for node_type, rows in known.items()}
        for node_type, rows in known.items():
            if placed[node_type].any():
                table[rows_of_type[node_type]][placed[node_type]] = self.table[
                    self.rows[node_type]
                ][rows[placed[node_type]]]
        found = Places(table, self.values, rows_of_type)
        found.settle(after, placed)
        return found

    def settle(self, types: Mapping[str, Record], placed: dict[str, NDArray[np.bool_]]) -> None:
        """Fill in the positions of nodes that have none, each once, from neighbours that have one."""
        for _ in range(ROUNDS):
            new: dict[str, NDArray[np.int64]] = {}
            for node_type, graph in types.items():
                rows = np.flatnonzero(~placed[node_type])
                links = [_kept(link, placed[link[1]]) for link in received(graph, rows)]
                found = self.near(links, len(rows))
                joined = found[:, 0] > self.values[0]
                new[node_type] = rows[joined]
                self.table[self.rows[node_type]][new[node_type]] = found[joined]
            for node_type, rows in new.items():
                placed[node_type][rows] = True


def fit_places(graph: Record, backend: Backend, exactly: int | None = None) -> Places:
    """The positions of the nodes of a graph: those that training sees come from the edges among these alone.

    They have ``exactly`` so many columns, where that is said, the last of them of zeros if there are too few.
    """
    types = _types(graph)
    ids = typed_ids(graph)
    masks = {
        node_type: one.splits.get("seen", np.ones(one.num_nodes, bool)).copy()
        for node_type, one in types.items()
    }
    seen = np.concatenate([*masks.values()])
    n, width = len(seen), WIDTH + SPARE
    work = TemporaryDirectory() if graph.table.mapped else None
    table = _empty(n, 1 + WIDTH, np.float32, work, 0)
    if backend.device.type == "cuda" and work is None:
        now, then = torch.empty(2, n, width, dtype=torch.float64, device=backend.device)
    else:
        now, then = (
            torch.from_numpy(_empty(n, width, np.float64, work, number)) for number in (1, 2)
        )
    for first in range(0, n, _ROWS):
        now[first : first + _ROWS] = torch.from_numpy(
            start_rows(ids[first : first + _ROWS], width)
        ).to(now.device)
    strength = np.zeros(n)
    for receivers, _, weights in _entries(graph, ids.rows, seen):
        np.add.at(strength, receivers, weights)
    more = MORE * (strength.sum() / max(int(seen.sum()), 1) or 1.0)
    scale = inverse_root(strength + more)
    if work is None:
        matrix = _matrix(_entries(graph, ids.rows, seen), scale, backend)

        def product(x: Tensor, out: Tensor) -> None:
            out.copy_(matrix @ x)
    else:

        def product(x: Tensor, out: Tensor) -> None:
            out.zero_()
            for to, of, weights in _entries(graph, ids.rows, seen):
                rows, block = _rows_of(to, of, weights * scale[to] * scale[of], n)
                out[rows] += block @ x

    leading = leading_vectors(product, now, then, WIDTH if exactly is None else exactly)
    vectors, values = leading.vectors, leading.values
    found, count = len(values), len(values) if exactly is None else exactly
    table = table[:, : 1 + count]
    table[:, 0] = strength + more
    powers = (_weights(values) / values).to(vectors)
    for first in range(0, n, _ROWS):
        block = vectors[first : first + _ROWS] * powers
        table[first : first + _ROWS, 1 : 1 + found] = block.float().cpu().numpy()
    table[:, 1 + found :] = 0
    kept = np.concatenate([[more], values.numpy(), np.ones(count - found)]).astype(np.float32)
    places = Places(table, kept, ids.rows, work)
    if not seen.all():
        places.settle(types, masks)
    return places


def start_rows(ids: Iterable[Any], width: int) -> NDArray[np.int8]:
    """Random rows ``[n, width]`` of 1 and -1, which hashes of the ids decide."""
    words = (str(identifier).encode("utf-8", "surrogatepass") for identifier in ids)
    keys = np.fromiter(map(crc32, words), np.uint64)
    bits = keys[:, None] * _ODD[0] + np.arange(1, width // 64 + 2, dtype=np.uint64) * _ODD[1]
    for odd in _ODD[2:]:
        bits = (bits ^ (bits >> np.uint64(32))) * odd
    return 2 * np.unpackbits(bits.view(np.uint8), axis=1, count=width).view(np.int8) - 1


def typed_ids(graph: Record) -> TypedIds:
    """The ids of all nodes, and where those of each type are among them."""
    return TypedIds({node_type: one.ids for node_type, one in _types(graph).items()})


def received(graph: Record, rows: NDArray[np.int64]) -> Iterator[Links]:
    """Who sends to some nodes of the type that a graph is seen from."""
    for step in steps(graph.relations, graph.node_type):
        place, senders, weights = step.received(rows)
        yield place, step.sender, senders, weights


def inverse_root(sums: NDArray[Any]) -> NDArray[Any]:
    """D^-1/2; 0 for a node without edges."""
    roots: NDArray[Any] = np.divide(1, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
    return roots


def _weights(values: Any) -> Any:
    """s^2 + ... + s^24 of singular values ``[K]``."""
    return sum(values**power for power in range(FIRST, LAST + 1))


def _kept(links: Links, placed: NDArray[np.bool_]) -> Links:
    place, node_type, senders, weights = links
    kept = placed[senders]
    return place[kept], node_type, senders[kept], weights[kept]


def _types(graph: Record) -> Mapping[str, Record]:
    return {node_type: graph.target(node_type) for node_type in sorted(graph.nodes)}


def _empty(
    n: int, width: int, dtype: Any, work: TemporaryDirectory[str] | None, number: int
) -> NDArray[Any]:
    """An array ``[n, width]`` with arbitrary contents: in memory, or in a file of a folder."""
    if work is None:
        return np.empty((n, width), dtype)
    return np.memmap(Path(work.name) / str(number), dtype, "w+", shape=(n, width))


def _matrix(
    entries: Iterable[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]],
    scale: NDArray[np.float64],
    backend: Backend,
) -> SparseOperand:
    """P ``[N, N]`` on the device."""
    receivers, senders, weights = (np.concatenate(one) for one in zip(*entries, strict=True))
    values = weights * scale[receivers] * scale[senders]
    matrix = sparse.csr_array((values, (receivers, senders)), shape=(len(scale), len(scale)))
    keys, numbers = keyed(matrix, backend.device)
    return SparseOperand(csr(keys, numbers, matrix.shape), backend, symmetric=True)


def _rows_of(
    to: NDArray[np.int64], of: NDArray[np.int64], values: NDArray[np.float64], n: int
) -> tuple[Tensor, SparseOperand]:
    """The rows that some entries of P are in, and these rows ``[n', N]``."""
    order = np.argsort(to, kind="stable")  # those of a row stay in the order of their columns
    first = np.flatnonzero(np.diff(to[order], prepend=-1))
    starts, columns, weights = map(
        torch.from_numpy, (np.append(first, len(to)), of[order], values[order])
    )
    return torch.from_numpy(to[order][first]), SparseOperand.of_rows(
        starts, columns, weights, n, Backend(_CPU)
    )


def _entries(
    graph: Record, rows: Mapping[str, slice], seen: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """The receivers, senders and weights of all edges among seen nodes, in both directions, some at a time."""
    none = np.empty(0, np.int64)
    yield none, none, np.empty(0)
    for one in graph.relations:
        here, there = rows[one.target].start, rows[one.source].start
        for to, of, weight in entries(one.edges.senders):
            kept = seen[to + here] & seen[of + there]
            owner, sender, weight = to[kept] + here, of[kept] + there, weight[kept]
            yield owner, sender, weight
            if one.directed or not one.within:
                yield sender, owner, weight
