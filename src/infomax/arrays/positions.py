"""Positions in the graph: what describes a node without features is where it stands among the others.

Every node begins with a row of signs, the bits of a hash of its id. A hop replaces all rows by the weighted means of
their neighbours' rows, so that nodes with common neighbours become alike; see `fill_positions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency
from infomax.arrays.blocks import row_blocks, unit

WIDTH = 256
"""Signs per node. On validation nodes of Cora 128, 256 and 512 random columns gave 63.2, 68.1 and 68.4 % (10 hops)."""
FIRST, LAST = 2, 24
"""The hops that are added. On validation nodes of Cora, Citeseer and Pubmed hops 2 to 10 gave 67.2, 42.6 and 60.6 %, 2
to 16 gave 70.7, 45.9 and 68.6, and 2 to 24 gave 73.4, 48.9 and 70.4. Late hops do no harm where degrees are high: 93.6,
93.6 and 94.0 on a generated graph of degree 50. Each hop is a pass over the edges."""
ROUNDS = 4
"""A new node gets a position where a known one is at most so many edges away."""
POSITION_NAMES = tuple(f"position {column} of {WIDTH}" for column in range(1, WIDTH + 1))
"""The names of the features of `fill_positions`."""
ENTRIES = 1 << 17
"""Entries of the adjacency at a time: their rows take 128 MiB."""

Rows = NDArray[np.float32]


def positions(edges: Adjacency, ids: Any, seen: NDArray[np.bool_] | None = None) -> Rows:
    """The positions ``[N, WIDTH]`` of the nodes of a graph, in memory; see `fill_positions`."""
    total, now, then = (np.empty((edges.n, WIDTH), np.float32) for _ in range(3))
    fill_positions(total, now, then, edges, ids, seen)
    return total


def positions_bytes(edges: Adjacency) -> int:
    """Estimate the peak bytes of making positions in memory: three tables, three of the rows of some edges, P."""
    return 3 * 4 * WIDTH * (edges.n + min(edges.n, ENTRIES)) + 24 * edges.nnz * (1 + edges.directed)


def fill_positions(
    total: Rows, now: Rows, then: Rows, edges: Adjacency, ids: Any, seen: NDArray[np.bool_] | None
) -> None:
    """Fill ``total`` with x = u(u(P^2 R) + ... + u(P^24 R)), where u makes rows of length 1.

    R are the rows of `signs`, P = D^-1 A with the edges in both directions. Rows of nodes without neighbours are zero.
    With ``seen`` the rows of seen nodes come from the edges among these alone, and the others get theirs as new nodes
    do, see `attached`.

    Shapes:
        total, now, then: ``[N, WIDTH]``, in memory or mapped; the last two are for work
        ids: ``[N]``; seen: ``[N]``
    """
    for rows in _rows(total):
        now[rows], total[rows] = signs(ids[rows].tolist()), 0
    strength = _strength(edges, seen)
    parts = (
        None if isinstance(now, np.memmap) else list(_parts(edges, strength, seen))
    )  # in memory once for all hops
    for hop in range(1, LAST + 1):
        _add_parts(parts or _parts(edges, strength, seen), now, then)
        now, then = then, now
        if hop >= FIRST:
            for rows in _rows(total):
                total[rows] += unit(now[rows])
    for rows in _rows(total):
        total[rows] = unit(total[rows])
    if seen is not None and not seen.all():
        strength = _strength(edges, None)
        for _ in range(ROUNDS):
            _add_parts(_parts(edges, strength, None), total, then)
            for rows in _rows(total):
                total[rows] = np.where(seen[rows, None], total[rows], unit(then[rows]))


def attached(links: sparse.csr_array, known: Any) -> Rows:
    """The positions ``[M, WIDTH]`` of new nodes: x = u(weighted mean of the neighbours' x); known nodes keep theirs.

    It is applied four times, from zero, so that new nodes which are joined through others get theirs.

    Shapes:
        links: ``[M, N + M]``, the weights of the new nodes' edges, in both directions
        known: ``[N, WIDTH]``, of which only the neighbours' rows are read
    """
    m, n = links.shape[0], links.shape[1] - links.shape[0]
    sums = np.asarray(links.sum(axis=1, dtype=np.float64))
    links = sparse.csr_array(sparse.diags_array(1 / np.where(sums > 0, sums, 1)) @ links)
    places = np.unique(links.indices[links.indices < n]).astype(np.int64)
    constant, among = links[:, places] @ known[places], links[:, n:]
    out = np.zeros((m, constant.shape[1]), np.float32)
    for _ in range(ROUNDS):
        out = unit(constant + among @ out)
    return out


def signs(ids: Sequence[Any], width: int = WIDTH) -> Rows:
    """Random rows ``[n, width]`` of 1 and -1: the bits of BLAKE2b of the text of each id, the same on every machine."""
    words = (str(identifier).encode("utf-8", "surrogatepass") for identifier in ids)
    bits = np.frombuffer(
        b"".join(blake2b(word, digest_size=WIDTH // 8).digest() for word in words), np.uint8
    )
    return (
        np.unpackbits(bits.reshape(-1, WIDTH // 8), axis=1, count=width).astype(np.float32) * 2 - 1
    )


def _rows(table: Rows) -> Iterator[slice]:
    """The rows of a table, some at a time."""
    first = 0
    for block in row_blocks(table):
        yield slice(first, first := first + len(block))


def entries(
    senders: Any,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """The receivers, senders and weights of edges in CSR form, some at a time."""
    indptr, indices, data = senders
    for first in range(0, len(indices), ENTRIES):
        last = min(first + ENTRIES, len(indices))
        begin, end = np.searchsorted(indptr, [first, last - 1], side="right")
        counts = np.diff(np.clip(indptr[begin - 1 : end + 1], first, last))
        owner = np.repeat(np.arange(begin - 1, end), counts)
        weight = np.ones(len(owner)) if data is None else data[first:last].astype(np.float64)
        yield owner, indices[first:last].astype(np.int64), weight


def _entries(
    edges: Adjacency, seen: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
    """Those of the edges among seen nodes."""
    for owner, sender, weight in entries(edges.senders):
        kept = slice(None) if seen is None else seen[owner] & seen[sender]
        yield owner[kept], sender[kept], weight[kept]


def _strength(edges: Adjacency, seen: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """The sum of the weights at each node ``[N]``; 1 where there are none."""
    total = np.zeros(edges.n)
    for owner, sender, weight in _entries(edges, seen):
        np.add.at(total, owner, weight)
        if edges.directed:
            np.add.at(total, sender, weight)
    return np.where(total > 0, total, 1)


def _add_parts(parts: Iterable[tuple[Any, Any, sparse.csr_array]], x: Rows, out: Rows) -> None:
    """Write P x to ``out``, by the `_parts` of P."""
    for rows in _rows(out):
        out[rows] = 0
    for receivers, senders, block in parts:
        out[receivers] += block @ x[senders]


def _parts(
    edges: Adjacency, strength: NDArray[np.float64], seen: NDArray[np.bool_] | None
) -> Iterator[tuple[Any, Any, sparse.csr_array]]:
    """P = D^-1 A over the edges among seen nodes, in both directions, as parts to add: receivers, senders, a block."""
    for owner, sender, weight in _entries(edges, seen):
        yield _part_of(owner, sender, weight / strength[owner])
        if edges.directed:
            yield _part_of(sender, owner, weight / strength[sender])


def _part_of(
    receiver: NDArray[np.int64], sender: NDArray[np.int64], weight: NDArray[np.float64]
) -> tuple[Any, Any, sparse.csr_array]:
    """Each receiver and each sender once, and the weights between them; each row is then read and written once."""
    (to, rows), (of, columns) = (
        np.unique(ends, return_inverse=True) for ends in (receiver, sender)
    )
    block = sparse.csr_array((weight, (rows, columns)), shape=(len(to), len(of)))
    # A range of rows need not be copied.
    first, second = (
        slice(at[0], at[-1] + 1) if len(at) and at[-1] - at[0] + 1 == len(at) else at
        for at in (to, of)
    )
    return first, second, block
