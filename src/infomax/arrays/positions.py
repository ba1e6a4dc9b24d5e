"""Positions in the graph: a node without features is described by where it stands in the graph.

Every node begins with a row of signs, the bits of a hash of its id. A hop replaces all rows by the
weighted means of their neighbours' rows, so that nodes with common neighbours become alike.
`fill_positions` has the formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.adjacency import Adjacency, Senders
from infomax.arrays.blocks import row_blocks, unit

POSITION_WIDTH = 256
"""Numbers per position. On validation nodes of Cora 128, 256 and 512 gave 63.2, 68.1 and 68.4 %."""
FIRST_HOP = 2
LAST_HOP = 24
"""The hops that are added, from the first to the last; each is a pass over the edges.

On validation nodes of Cora, Citeseer and Pubmed hops 2 to 10 gave 67.2, 42.6 and 60.6 %, 2 to 16
gave 70.7, 45.9 and 68.6, and 2 to 24 gave 73.4, 48.9 and 70.4. Late hops do no harm where degrees
are high: 93.6, 93.6 and 94.0 on a generated graph of degree 50.
"""
ATTACHING_ROUNDS = 4
"""A new node gets a position where a known node is at most so many edges away."""
POSITION_NAMES = tuple(
    f"position {column} of {POSITION_WIDTH}" for column in range(1, POSITION_WIDTH + 1)
)
"""The names of the features that positions are."""
EDGES_PER_BLOCK = 1 << 17
"""Edges that are multiplied at a time: the rows of their nodes take 128 MiB."""

PositionTable: TypeAlias = NDArray[np.float32]
"""A position for each node, ``[N, POSITION_WIDTH]``, in memory or mapped."""
Edges: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""The receivers, the senders and the weights of some edges, ``[E]`` each."""
Block: TypeAlias = tuple[Any, Any, sparse.csr_array]
"""Some receivers and some senders, each once, and the weights of the edges between them."""


def positions(
    edges: Adjacency,
    ids: Any,
    seen: NDArray[np.bool_] | None = None,
    edges_per_block: int = EDGES_PER_BLOCK,
) -> PositionTable:
    """The positions ``[N, POSITION_WIDTH]`` of the nodes of a graph, in memory.

    The arguments are those of `fill_positions`.
    """
    shape = (edges.n, POSITION_WIDTH)
    position_table, current, following = (np.empty(shape, np.float32) for _ in range(3))
    fill_positions(position_table, current, following, edges, ids, seen, edges_per_block)
    return position_table


def positions_bytes(edges: Adjacency, edges_per_block: int = EDGES_PER_BLOCK) -> int:
    """Estimate the peak bytes of `positions`."""
    # Three tables of all nodes; three of the nodes of a block of edges; P, in both directions.
    table_rows = edges.n + min(edges.n, edges_per_block)
    directions = 2 if edges.directed else 1
    return 3 * 4 * POSITION_WIDTH * table_rows + 24 * edges.nnz * directions


def fill_positions(
    total: PositionTable,
    current: PositionTable,
    following: PositionTable,
    edges: Adjacency,
    ids: Any,
    seen: NDArray[np.bool_] | None,
    edges_per_block: int = EDGES_PER_BLOCK,
) -> None:
    """Fill ``total`` with x = u(u(P^2 R) + ... + u(P^24 R)), where u makes rows of length 1.

    R are the rows of `signs`; P = D^-1 A with the edges in both directions. Positions of
    nodes without neighbours are zero.

    Args:
        total: ``[N, POSITION_WIDTH]``, in memory or mapped; it holds the sum over hops, then the
            positions.
        current: of the same shape, room for the rows of one hop.
        following: of the same shape, room for the rows of the next hop.
        edges: the edges of the graph.
        ids: ``[N]``.
        seen: ``[N]``, the nodes that training may see. Their rows come from the edges among these
            nodes alone; the others get theirs as new nodes do, see `attached_positions`.
        edges_per_block: edges that are multiplied at a time.
    """
    for rows in _row_slices(total):
        current[rows] = signs(ids[rows].tolist())
        total[rows] = 0

    # P is made once for all hops where there is memory for it, else again for each hop.
    weight_sums = _weight_sums(edges, seen, edges_per_block)
    blocks: list[Block] | None = None
    if not isinstance(current, np.memmap):
        blocks = list(_propagation_blocks(edges, weight_sums, seen, edges_per_block))
    for hop in range(1, LAST_HOP + 1):
        if blocks is not None:
            _multiply(blocks, current, following)
        else:
            streamed = _propagation_blocks(edges, weight_sums, seen, edges_per_block)
            _multiply(streamed, current, following)
        current, following = following, current
        if hop >= FIRST_HOP:
            for rows in _row_slices(total):
                total[rows] += unit(current[rows])
    for rows in _row_slices(total):
        total[rows] = unit(total[rows])

    if seen is None or seen.all():
        return
    weight_sums = _weight_sums(edges, None, edges_per_block)
    for _ in range(ATTACHING_ROUNDS):
        streamed = _propagation_blocks(edges, weight_sums, None, edges_per_block)
        _multiply(streamed, total, following)
        for rows in _row_slices(total):
            total[rows] = np.where(seen[rows, None], total[rows], unit(following[rows]))


def attached_positions(links: sparse.csr_array, known_positions: Any) -> PositionTable:
    """The positions ``[M, POSITION_WIDTH]`` of M new nodes; known nodes keep theirs.

    x = u(weighted mean of the neighbours' x), applied four times from zero, so that new nodes
    which are joined through other new nodes get positions as well.

    Args:
        links: ``[M, N + M]``, the weights of the new nodes' edges, in both directions.
        known_positions: ``[N, POSITION_WIDTH]``; only the rows of neighbours are read.
    """
    num_new = links.shape[0]
    num_known = links.shape[1] - num_new
    weight_sums = np.asarray(links.sum(axis=1, dtype=np.float64))
    inverse_sums = sparse.diags_array(1 / np.where(weight_sums > 0, weight_sums, 1))
    links = sparse.csr_array(inverse_sums @ links)

    # What comes from known nodes is the same in every round.
    known_neighbours = np.unique(links.indices[links.indices < num_known]).astype(np.int64)
    from_known = links[:, known_neighbours] @ known_positions[known_neighbours]
    links_among_new = links[:, num_known:]
    new_positions = np.zeros((num_new, from_known.shape[1]), np.float32)
    for _ in range(ATTACHING_ROUNDS):
        new_positions = unit(from_known + links_among_new @ new_positions)
    return new_positions


def signs(ids: Sequence[Any], width: int = POSITION_WIDTH) -> PositionTable:
    """Random rows ``[n, width]`` of 1 and -1: the bits of BLAKE2b of the text of each id.

    They are the same on every machine.
    """
    bytes_per_hash = POSITION_WIDTH // 8
    texts = (str(node_id).encode("utf-8", "surrogatepass") for node_id in ids)
    hashes = b"".join(blake2b(text, digest_size=bytes_per_hash).digest() for text in texts)
    hash_bytes = np.frombuffer(hashes, np.uint8).reshape(-1, bytes_per_hash)
    bits = np.unpackbits(hash_bytes, axis=1, count=width)
    return bits.astype(np.float32) * 2 - 1


def _row_slices(table: PositionTable) -> Iterator[slice]:
    """The rows of a table, some at a time."""
    first = 0
    for block in row_blocks(table):
        last = first + len(block)
        yield slice(first, last)
        first = last


def _edge_blocks(senders: Senders, edges_per_block: int) -> Iterator[Edges]:
    """All edges, so many at a time."""
    indptr, indices, weights = senders
    for first in range(0, len(indices), edges_per_block):
        last = min(first + edges_per_block, len(indices))
        # The receivers of these edges; of the first and the last a part may be in other blocks.
        begin, end = np.searchsorted(indptr, [first, last - 1], side="right")
        counts = np.diff(np.clip(indptr[begin - 1 : end + 1], first, last))
        receivers = np.repeat(np.arange(begin - 1, end), counts)
        if weights is None:
            block_weights = np.ones(len(receivers))
        else:
            block_weights = weights[first:last].astype(np.float64)
        yield receivers, indices[first:last].astype(np.int64), block_weights


def _seen_edge_blocks(
    edges: Adjacency, seen: NDArray[np.bool_] | None, edges_per_block: int
) -> Iterator[Edges]:
    """The edges among seen nodes, or all edges, at most so many at a time."""
    for receivers, senders, weights in _edge_blocks(edges.senders, edges_per_block):
        if seen is None:
            yield receivers, senders, weights
        else:
            is_kept = seen[receivers] & seen[senders]
            yield receivers[is_kept], senders[is_kept], weights[is_kept]


def _weight_sums(
    edges: Adjacency, seen: NDArray[np.bool_] | None, edges_per_block: int
) -> NDArray[np.float64]:
    """The sum of the weights at each node ``[N]``; 1 where there are none, to divide by."""
    sums = np.zeros(edges.n)
    for receivers, senders, weights in _seen_edge_blocks(edges, seen, edges_per_block):
        np.add.at(sums, receivers, weights)
        if edges.directed:
            np.add.at(sums, senders, weights)
    return np.where(sums > 0, sums, 1)


def _multiply(blocks: Iterable[Block], x: PositionTable, out: PositionTable) -> None:
    """Write P x to ``out``; P is the sum of blocks."""
    for rows in _row_slices(out):
        out[rows] = 0
    for receivers, senders, block in blocks:
        out[receivers] += block @ x[senders]


def _propagation_blocks(
    edges: Adjacency,
    weight_sums: NDArray[np.float64],
    seen: NDArray[np.bool_] | None,
    edges_per_block: int,
) -> Iterator[Block]:
    """P = D^-1 A over the edges among seen nodes, in both directions, as blocks to add."""
    for receivers, senders, weights in _seen_edge_blocks(edges, seen, edges_per_block):
        yield _block_of(receivers, senders, weights / weight_sums[receivers])
        # Without directions each edge is stored both ways already.
        if edges.directed:
            yield _block_of(senders, receivers, weights / weight_sums[senders])


def _block_of(
    receivers: NDArray[np.int64], senders: NDArray[np.int64], weights: NDArray[np.float64]
) -> Block:
    """Some edges as a matrix, so that each row of a table is read and written once."""
    block_receivers, rows = np.unique(receivers, return_inverse=True)
    block_senders, columns = np.unique(senders, return_inverse=True)
    shape = (len(block_receivers), len(block_senders))
    block = sparse.csr_array((weights, (rows, columns)), shape=shape)
    return _as_slice(block_receivers), _as_slice(block_senders), block


def _as_slice(rows: NDArray[np.int64]) -> Any:
    """Consecutive rows as a slice, which is not copied when it is read; others as they are."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(rows[0], rows[-1] + 1)
    return rows
