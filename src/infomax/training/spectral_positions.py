"""Positions from the edges: singular vectors of the whole normalised graph, all types and relations together.

P = D^-1/2 A D^-1/2, A being the edges of all relations in both directions and D the sums of their weights; where a
graph falls into many small parts, all sums are a little more, so that these do not come first (`regularisation`).
The position of a node is its row of V (s^2 + ... + s^24), at length 1, V being the singular vectors and s their
values: what 2 to 24 hops bring. So nodes of all types stand in one space. Nodes that come later stand where their
neighbours do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from infomax.arrays.adjacency import Senders
from infomax.arrays.positions import ATTACHING_ROUNDS
from infomax.arrays.relations import steps
from infomax.io.changes import rows_before
from infomax.io.record import Record
from infomax.io.union import TypedIds
from infomax.kernels import Backend
from infomax.kernels.room import available_bytes
from infomax.kernels.spectrum import (
    MOST_PRODUCTS,
    TOLERANCE,
    LeadingVectors,
    leading_vectors,
)
from infomax.kernels.transfer import to_device
from infomax.views.neighbourhoods import Neighbourhoods
from infomax.views.operands import SparseOperand, csr, keyed

FIRST_POWER, LAST_POWER = 2, 24
"""The powers of s that weigh singular vectors. On validation nodes positions alone gain 5 points on Cora, 4 on Pubmed
and 2 on chameleon by these and by rows of length 1; on held-out edges of debian the AUC goes from 0.87 to 0.91."""
ROWS_PER_BLOCK = 1 << 13
ENTRIES_PER_BLOCK = 1 << 22
"""Entries of the adjacency whose rows are read at a time, where it is not one matrix in memory."""
HASH_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64
)

CPU = torch.device("cpu")

Array = NDArray[np.float32]
Links = tuple[NDArray[np.int64], str, NDArray[np.int64], Any]
"""Who sends to some nodes: the place of each, the type of the senders, their rows, and weights."""


@dataclass(frozen=True)
class PositionSettings:
    """How many singular vectors are searched, and how closely.

    A large graph has fewer of them, in single precision: 128 would take longer than the training.
    """

    columns: int = 128
    """Singular vectors at most. On validation nodes 256 gave no more than 128."""
    spare_columns: int = 32
    """How many more are searched, so that the last of those that are kept is found as well."""
    tolerance: float = TOLERANCE
    most_products: int = MOST_PRODUCTS
    large_nodes: int = 2_000_000
    """Nodes of all types above which a graph is large."""
    columns_if_large: int = 64
    huge_nodes: int = 20_000_000
    columns_if_huge: int = 32
    spare_columns_if_large: int = 16
    tolerance_if_large: float = 1e-2
    """See `TOLERANCE` for what it costs in classes; it saves a quarter of the products."""

    def is_large(self, node_count: int) -> bool:
        """Whether a graph of so many nodes has fewer positions, in single precision."""
        return node_count > self.large_nodes

    def columns_for(self, node_count: int) -> int:
        """The number of singular vectors for a graph of so many nodes, at most."""
        if node_count > self.huge_nodes:
            return self.columns_if_huge
        if self.is_large(node_count):
            return self.columns_if_large
        return self.columns

    def note_for(self, node_count: int) -> str | None:
        """One line for the user where there are fewer positions than usual."""
        columns = self.columns_for(node_count)
        if columns == self.columns:
            return None
        return (
            f"vectors have {columns} positions, not {self.columns}: of {node_count:,} nodes, more would take longer"
            " than the training"
        )


SETTINGS = PositionSettings()


@dataclass(frozen=True, eq=False)
class SpectralPositions:
    """The positions of all nodes of a graph, those of each type after one another.

    Shapes:
        table: ``[N, 1 + K]``: of each node D, then its row of V (s^2 + ... + s^24)
        values: ``[1 + K]``: what D is more than the sum of the weights of a node's edges, then the singular values
    """

    table: Array
    values: Array
    rows: Mapping[str, slice]
    """By type, its rows."""
    work: TemporaryDirectory[str] | None = None
    """The folder of the table, where that is mapped; removed with this object."""
    search: str | None = None
    """How the singular vectors were found, in one line; None where they were read from a run folder."""

    @property
    def width(self) -> int:
        """K."""
        return len(self.values) - 1

    def of_type(self, node_type: str) -> Array:
        """The positions ``[n, K]`` of the nodes of a type, not yet of length 1."""
        return self.table[self.rows[node_type], 1:]

    def singular(self, node_type: str) -> Array:
        """The singular vectors ``[n, K]`` of the whole graph at the nodes of a type, the leading first."""
        return np.asarray(self.of_type(node_type) / _power_sum(self.values[1:]))

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

    def moved(self, earlier: Record, later: Record) -> SpectralPositions:
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
        found = SpectralPositions(table, self.values, rows_of_type)
        found.settle(after, placed)
        return found

    def settle(self, types: Mapping[str, Record], placed: dict[str, NDArray[np.bool_]]) -> None:
        """Fill in the positions of nodes that have none, each once, from neighbours that have one."""
        for _ in range(ATTACHING_ROUNDS):
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


def fit_spectral_positions(
    graph: Record,
    backend: Backend,
    column_count: int | None = None,
    *,
    settings: PositionSettings = SETTINGS,
) -> SpectralPositions:
    """Find the positions of all nodes; those that training sees have them from the edges among these alone.

    Args:
        graph: a graph of any number of types, in memory or on disk.
        backend: where they are computed. A graph that is on disk or large takes less memory there than others.
        column_count: how many columns they must have, the last of zeros if there are too few singular vectors.
        settings: how many are searched, and how closely.
    """
    types = _types(graph)
    ids = typed_ids(graph)
    seen_of_type = {
        node_type: one.splits.get("seen", np.ones(one.num_nodes, bool)).copy()
        for node_type, one in types.items()
    }
    seen = np.concatenate([*seen_of_type.values()])
    node_count = len(seen)
    is_large = settings.is_large(node_count)
    most_columns = settings.columns_for(node_count) if column_count is None else column_count
    edges = _edge_lists(graph, ids.rows)

    spare = settings.spare_columns_if_large if is_large else settings.spare_columns
    width = most_columns + spare
    work = TemporaryDirectory() if graph.table.mapped else None
    device = _device_for(edges, node_count, width, backend, is_large, work is not None)
    dtype = torch.float32 if is_large else torch.float64

    # The degrees D and what all of them are more; unseen nodes have no edges here.
    strength = _strength(edges, seen)
    added = regularisation(edges, seen, strength, most_columns, device if is_large else CPU)
    scale = np.where(seen, inverse_root(strength + added), 0.0)

    current = _empty(node_count, width, dtype, device, work, "current")
    following = _empty(node_count, width, dtype, device, work, "following")
    for first in range(0, node_count, ROWS_PER_BLOCK):
        last = min(first + ROWS_PER_BLOCK, node_count)
        # Hashes of ids take longer than all else in a large graph, where the search forgets where it began anyway.
        names: Iterable[Any] = range(first, last) if is_large else ids[first:last]
        current[first:last] = torch.from_numpy(start_rows(names, width)).to(device)

    if is_large or work is not None:
        product = _product_by_blocks(edges, scale, device, dtype, backend)
    else:
        product = _product_in_memory(edges, scale, backend)
    leading = leading_vectors(
        product,
        current,
        following,
        most_columns,
        tolerance=settings.tolerance_if_large if is_large else settings.tolerance,
        most_products=settings.most_products,
    )

    positions = _weighed(leading, strength + added, added, ids.rows, column_count, work)
    if not seen.all():
        positions.settle(types, seen_of_type)
    return positions


def _weighed(
    leading: LeadingVectors,
    degrees: NDArray[np.float64],
    added: float,
    rows_of_type: Mapping[str, slice],
    column_count: int | None,
    work: TemporaryDirectory[str] | None,
) -> SpectralPositions:
    """The rows of V (s^2 + ... + s^24) beside the degrees D, as float32 on the host."""
    singular_count = len(leading.values)
    columns = singular_count if column_count is None else column_count
    node_count = len(degrees)
    if work is None:
        table = np.empty((node_count, 1 + columns), np.float32)
    else:
        path = Path(work.name) / "table"
        table = np.memmap(path, np.float32, "w+", shape=(node_count, 1 + columns))

    table[:, 0] = degrees
    weights = (_power_sum(leading.values) / leading.values).to(leading.vectors)
    for first in range(0, node_count, ROWS_PER_BLOCK):
        block = leading.vectors[first : first + ROWS_PER_BLOCK] * weights
        table[first : first + ROWS_PER_BLOCK, 1 : 1 + singular_count] = block.float().cpu().numpy()
    table[:, 1 + singular_count :] = 0

    padding = np.ones(columns - singular_count)
    values = np.concatenate([[added], leading.values.numpy(), padding]).astype(np.float32)
    search = (
        f"{singular_count} singular vectors, {leading.products} products with the adjacency,"
        f" residuals up to {leading.residual:.1g}"
    )
    return SpectralPositions(table, values, rows_of_type, work, search)


def regularisation(
    edges: Sequence[EdgeList],
    seen: NDArray[np.bool_],
    strength: NDArray[np.float64],
    columns: int,
    device: torch.device = CPU,
    share: float = 0.1,
) -> float:
    """What is added to all degrees: a tenth of their mean, times the share of columns that small parts would take.

    Each connected part of a graph has a singular value of 1. Parts with fewer than a ``columns``-th of the nodes would
    take columns that tell nothing of the other nodes; what is added makes their values smaller, the more the fewer
    edges their nodes have. A connected graph needs nothing.

    On Citeseer, with 438 parts, positions alone have 55.2 % with the tenth, and 51.9 where small parts are left out of
    the singular vectors; on Cora, with 78, 76.3 and 76.9 (four splits 10/10/80). Of connected graphs, flattened DBLP's
    macro-F1 at 20, 40 and 60 labels is 89.2, 90.4, 91.5 with the tenth and 90.9, 89.5, 92.2 without, ACM's (5 parts)
    78.3, 79.8, 80.8 and 77.3, 80.1, 80.1; actor and chameleon change by at most 0.2.
    """
    joined = strength > 0
    if not joined.any():
        return 1.0
    part_sizes = np.bincount(connected_parts(edges, seen, device)[joined])
    part_sizes = part_sizes[part_sizes > 0]
    small_parts = int((part_sizes < joined.sum() / columns).sum())
    mean_strength = strength.sum() / seen.sum()
    return float(share * min(1.0, small_parts / columns) * mean_strength)


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The edges by which nodes of one type receive from those of another, or of the same."""

    receivers: slice
    """The rows of the nodes that receive, among those of all types."""
    senders: slice
    edges: Senders
    mirrors: bool
    """Whether another list has the same edges, in the other direction."""

    def blocks(self, entries: int | None = None) -> Iterator[tuple[int, int]]:
        """Ranges of the receiving nodes, each with about so many entries, `ENTRIES_PER_BLOCK` by default."""
        entries = ENTRIES_PER_BLOCK if entries is None else entries
        starts = self.edges.indptr
        row_count = len(starts) - 1
        first = 0
        while first < row_count:
            limit = int(starts[first]) + entries
            last = int(np.searchsorted(starts, limit, side="right")) - 1
            last = min(max(last, first + 1), row_count)
            yield first, last
            first = last

    def entries(
        self, first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Receivers and senders among nodes of all types, and weights, of a range of the receiving nodes."""
        starts = np.asarray(self.edges.indptr[first : last + 1], np.int64)
        chosen = slice(int(starts[0]), int(starts[-1]))
        receivers = np.repeat(np.arange(first, last), np.diff(starts)) + self.receivers.start
        senders = np.asarray(self.edges.indices[chosen], np.int64) + self.senders.start
        if self.edges.data is None:
            return receivers, senders, np.ones(len(senders))
        return receivers, senders, np.asarray(self.edges.data[chosen], np.float64)


def _edge_lists(graph: Record, rows_of_type: Mapping[str, slice]) -> list[EdgeList]:
    """All edges in both directions."""
    lists: list[EdgeList] = []
    for relation in graph.relations:
        sources, targets = rows_of_type[relation.source], rows_of_type[relation.target]
        lists.append(EdgeList(targets, sources, relation.edges.senders, mirrors=False))
        if relation.directed or not relation.within_one_type:
            lists.append(EdgeList(sources, targets, relation.edges.receivers, mirrors=True))
    return lists


def _strength(edges: Sequence[EdgeList], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The sum of the weights of each node's edges among seen nodes ``[N]``."""
    strength = np.zeros(len(seen))
    if seen.all():
        for edge_list in edges:
            strength[edge_list.receivers] += edge_list.edges.sums()
        return strength

    for edge_list in edges:
        for first, last in edge_list.blocks():
            receivers, senders, weights = edge_list.entries(first, last)
            kept = weights * (seen[receivers] & seen[senders])
            begin = edge_list.receivers.start + first
            end = edge_list.receivers.start + last
            strength[begin:end] += np.bincount(receivers - begin, kept, last - first)
    return strength


def connected_parts(
    edges: Sequence[EdgeList],
    seen: NDArray[np.bool_],
    device: torch.device = CPU,
    entries: int | None = None,
) -> NDArray[np.int64]:
    """For each node ``[N]`` the first node of its connected part of the graph of seen nodes.

    Every root takes the smallest root that it meets, block by block, until nothing changes.
    """
    root = torch.arange(len(seen), device=device)
    is_seen = None if seen.all() else torch.from_numpy(seen).to(device)
    lists = [
        (
            edge_list,
            to_device(np.asanyarray(edge_list.edges.indptr, dtype=np.int64), device),
            to_device(edge_list.edges.indices, device),
        )
        for edge_list in edges
        if not edge_list.mirrors
    ]
    changed = True
    while changed:
        changed = False
        for edge_list, starts, indices in lists:
            for first, last in edge_list.blocks(entries):
                counts = starts[first : last + 1].diff()
                rows = torch.arange(first, last, device=device) + edge_list.receivers.start
                receivers = torch.repeat_interleave(rows, counts)
                entry_range = slice(int(starts[first]), int(starts[last]))
                senders = indices[entry_range].long() + edge_list.senders.start
                low = torch.minimum(root[receivers], root[senders])
                high = torch.maximum(root[receivers], root[senders])
                differing = low != high
                if is_seen is not None:
                    differing &= is_seen[receivers] & is_seen[senders]
                if differing.any():
                    root.scatter_reduce_(0, high[differing], low[differing], "amin")
                    changed = True

        # Roots may have got roots of their own.
        shorter = root[root]
        while not torch.equal(shorter, root):
            root, shorter = shorter, shorter[shorter]
    return root.cpu().numpy()


def _device_for(
    edges: Sequence[EdgeList],
    node_count: int,
    width: int,
    backend: Backend,
    is_large: bool,
    is_mapped: bool,
) -> torch.device:
    """The backend's device where there is room for the search, else the CPU.

    Only a large graph is read from disk into a GPU's memory: there single precision is enough.
    """
    if backend.device.type == "cpu" or (is_mapped and not is_large):
        return CPU
    entry_bytes = sum(
        edge_list.edges.indices.dtype.itemsize * len(edge_list.edges.indices)
        + (0 if edge_list.edges.data is None else 4 * len(edge_list.edges.data))
        for edge_list in edges
    )
    column_bytes = 2 * (4 if is_large else 8) * node_count * width
    needed = entry_bytes + column_bytes + 24 * node_count * len(edges)
    if needed > available_bytes(backend.device):
        return CPU
    return backend.device


def _product_by_blocks(
    edges: Sequence[EdgeList],
    scale: NDArray[np.float64],
    device: torch.device,
    dtype: torch.dtype,
    backend: Backend,
) -> Callable[[Tensor, Tensor], None]:
    """A function that writes P x, reading the adjacency as it lies, in memory or mapped from disk."""
    place = backend if device == backend.device else Backend(device)
    factors = torch.from_numpy(scale).to(dtype).to(device)
    hoods = [
        Neighbourhoods(
            to_device(np.asanyarray(edge_list.edges.indptr, dtype=np.int64), device),
            to_device(edge_list.edges.indices, device),
            None if edge_list.edges.data is None else to_device(edge_list.edges.data, device),
            factors[edge_list.receivers],
            factors[edge_list.senders],
            cap=max(len(edge_list.edges.indices), 1),
            capped=False,
            backend=place,
            loops=False,
        )
        for edge_list in edges
    ]

    def product(x: Tensor, out: Tensor) -> None:
        out.zero_()
        for edge_list, neighbours in zip(edges, hoods, strict=True):
            columns = x[edge_list.senders]
            offset = edge_list.receivers.start
            for first, last in edge_list.blocks():
                nodes = torch.arange(first, last, device=device)
                out[offset + first : offset + last] += neighbours.pool(nodes, None, columns)

    return product


def _product_in_memory(
    edges: Sequence[EdgeList], scale: NDArray[np.float64], backend: Backend
) -> Callable[[Tensor, Tensor], None]:
    """A function that writes P x, with P as one matrix in memory."""
    entries = [edge_list.entries(*ends) for edge_list in edges for ends in edge_list.blocks()]
    empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    receivers, senders, weights = (
        np.concatenate(arrays) for arrays in zip(empty, *entries, strict=True)
    )
    values = weights * scale[receivers] * scale[senders]
    matrix = sparse.csr_array((values, (receivers, senders)), shape=(len(scale), len(scale)))
    keys, numbers = keyed(matrix, backend.device)
    operand = SparseOperand(csr(keys, numbers, matrix.shape), backend, symmetric=True)

    def product(x: Tensor, out: Tensor) -> None:
        out.copy_(operand @ x)

    return product


def start_rows(ids: Iterable[Any], width: int) -> NDArray[np.int8]:
    """Random rows ``[n, width]`` of 1 and -1, which hashes of the ids decide."""
    if isinstance(ids, range):
        keys = np.arange(ids.start, ids.stop, dtype=np.uint64) + np.uint64(1)
    else:
        texts = (str(identifier).encode("utf-8", "surrogatepass") for identifier in ids)
        keys = np.fromiter(map(crc32, texts), np.uint64)
    bits = keys[:, None] * HASH_FACTORS[0]
    bits = bits + np.arange(1, width // 64 + 2, dtype=np.uint64) * HASH_FACTORS[1]
    for factor in HASH_FACTORS[2:]:
        bits = (bits ^ (bits >> np.uint64(32))) * factor
    signs = np.unpackbits(bits.view(np.uint8), axis=1, count=width).view(np.int8)
    return 2 * signs - 1


def typed_ids(graph: Record) -> TypedIds:
    """The ids of all nodes, and where those of each type are among them."""
    return TypedIds({node_type: one.ids for node_type, one in _types(graph).items()})


def received(graph: Record, rows: NDArray[np.int64]) -> Iterator[Links]:
    """Who sends to some nodes of the type that a graph is seen from."""
    for step in steps(graph.relations, graph.node_type):
        link_rows, senders, weights = step.received(rows)
        yield link_rows, step.sender, senders, weights


def inverse_root(sums: NDArray[Any]) -> NDArray[Any]:
    """D^-1/2; 0 for a node without edges."""
    roots: NDArray[Any] = np.divide(1, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
    return roots


def _power_sum(values: Any) -> Any:
    """s^2 + ... + s^24 of singular values ``[K]``."""
    return sum(values**power for power in range(FIRST_POWER, LAST_POWER + 1))


def _kept(links: Links, placed: NDArray[np.bool_]) -> Links:
    """The links from nodes that have positions."""
    link_rows, node_type, senders, weights = links
    kept = placed[senders]
    return link_rows[kept], node_type, senders[kept], weights[kept]


def _types(graph: Record) -> Mapping[str, Record]:
    return {node_type: graph.target(node_type) for node_type in sorted(graph.nodes)}


def _empty(
    node_count: int,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    work: TemporaryDirectory[str] | None,
    name: str,
) -> Tensor:
    """Columns ``[N, width]`` with arbitrary contents: on a device, or in a file of a folder."""
    if work is None or device.type != "cpu":
        return torch.empty(node_count, width, dtype=dtype, device=device)
    numpy_dtype = np.float32 if dtype == torch.float32 else np.float64
    path = Path(work.name) / name
    return torch.from_numpy(np.memmap(path, numpy_dtype, "w+", shape=(node_count, width)))
