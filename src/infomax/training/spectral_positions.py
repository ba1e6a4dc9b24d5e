"""Positions from the edges: singular vectors of the graph of all types and relations together.

P = D^-1/2 A D^-1/2, A being the edges of all relations in both directions and D the sums of their
weights. Where a graph falls into many small parts, all sums are a little more, so that these parts
do not come first (`regularisation`). The position of a node is its row of V (s^2 + ... + s^24), at
length 1, V being the singular vectors and s their values: what 2 to 24 hops bring. So nodes of all
types stand in one space. Nodes that come later stand where their neighbours do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
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

FIRST_POWER = 2
LAST_POWER = 24
"""The powers of s that weigh singular vectors.

On validation nodes positions alone gain 5 points on Cora, 4 on Pubmed and 2 on chameleon by these
and by rows of length 1; on held-out edges of debian the AUC goes from 0.87 to 0.91.
"""
REGULARISATION_SHARE = 0.1
"""The share of the mean degree that `regularisation` adds at most."""
ROWS_PER_BLOCK = 1 << 13
ENTRIES_PER_BLOCK = 1 << 22
"""Entries of the adjacency whose rows are read at a time, where it is not one matrix in memory."""
HASH_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64
)

CPU = torch.device("cpu")

Array = NDArray[np.float32]
Rows = NDArray[np.int64]
Product = Callable[[Tensor, Tensor], None]
"""A function of x ``[N, w]`` and ``out``, to which it writes P x."""


@dataclass(frozen=True)
class PositionSettings:
    """How many singular vectors are searched, and how closely.

    A large graph has fewer of them, in single precision: 128 would take longer than the training.
    """

    columns: int = 128
    """Singular vectors at most. On validation nodes 256 gave no more than 128."""
    spare_columns: int = 32
    """How many more are searched, so that the last of those that are kept is exact as well."""
    tolerance: float = TOLERANCE
    """The largest residual of a singular vector."""
    most_products: int = MOST_PRODUCTS
    """Products with the adjacency after which the search ends."""
    large_nodes: int = 2_000_000
    """Nodes of all types above which a graph is large."""
    columns_if_large: int = 64
    huge_nodes: int = 20_000_000
    columns_if_huge: int = 32
    spare_columns_if_large: int = 16
    tolerance_if_large: float = 1e-2
    """See `TOLERANCE` for what it costs in classes; it saves a quarter of the products."""
    entries_per_block: int = ENTRIES_PER_BLOCK

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
            f"vectors have {columns} positions, not {self.columns}: of {node_count:,} nodes,"
            " more would take longer than the training"
        )


SETTINGS = PositionSettings()


def fit_spectral_positions(
    graph: Record,
    backend: Backend,
    column_count: int | None = None,
    *,
    settings: PositionSettings = SETTINGS,
) -> SpectralPositions:
    """Find the positions of all nodes.

    Nodes that training sees have them from the edges among these nodes alone; the others stand near
    their neighbours.

    Args:
        graph: a graph of any number of types, in memory or on disk.
        backend: where they are computed. A graph that is on disk or large takes less memory there
            than others.
        column_count: how many columns they must have, the last of zeros if there are too few
            singular vectors; None: as many as the settings say.
        settings: how many are searched, and how closely.
    """
    graph_of_type = _graphs_by_type(graph)
    ids = typed_ids(graph)
    is_seen_of_type = {
        node_type: typed.splits.get("seen", np.ones(typed.num_nodes, bool)).copy()
        for node_type, typed in graph_of_type.items()
    }
    is_seen = np.concatenate([*is_seen_of_type.values()])
    node_count = len(is_seen)
    is_large = settings.is_large(node_count)
    most_columns = settings.columns_for(node_count) if column_count is None else column_count
    edge_lists = edges_both_ways(graph, ids.rows, settings.entries_per_block)

    spare_columns = settings.spare_columns_if_large if is_large else settings.spare_columns
    width = most_columns + spare_columns
    work_folder = TemporaryDirectory() if graph.table.mapped else None
    is_mapped = work_folder is not None
    device = _device_for(edge_lists, node_count, width, backend, is_large, is_mapped)
    dtype = torch.float32 if is_large else torch.float64

    # The degrees D, and what is added to all of them. Nodes that training does not see have no
    # edges here.
    weight_sums = _sum_weights(edge_lists, is_seen)
    device_of_parts = device if is_large else CPU
    added = regularisation(edge_lists, is_seen, weight_sums, most_columns, device_of_parts)
    degrees = weight_sums + added
    scale = np.where(is_seen, inverse_root(degrees), 0.0)

    # The search begins with random signs.
    current = _empty_columns(node_count, width, dtype, device, work_folder, "current")
    following = _empty_columns(node_count, width, dtype, device, work_folder, "following")
    for first in range(0, node_count, ROWS_PER_BLOCK):
        last = min(first + ROWS_PER_BLOCK, node_count)
        # Hashes of ids take longer than all else in a large graph, where the search forgets where
        # it began anyway.
        names: Iterable[Any] = range(first, last) if is_large else ids[first:last]
        current[first:last] = torch.from_numpy(start_rows(names, width)).to(device)

    if is_large or is_mapped:
        product = _product_by_blocks(edge_lists, scale, device, dtype, backend)
    else:
        product = _product_in_memory(edge_lists, scale, backend)
    leading = leading_vectors(
        product,
        current,
        following,
        most_columns,
        tolerance=settings.tolerance_if_large if is_large else settings.tolerance,
        most_products=settings.most_products,
    )

    positions = _weigh_by_powers(leading, degrees, added, ids.rows, column_count, work_folder)
    if not is_seen.all():
        positions.fill_from_neighbours(graph_of_type, is_seen_of_type)
    return positions


@dataclass(frozen=True, eq=False)
class SpectralPositions:
    """The positions of all nodes of a graph, type after type.

    Shapes:
        table: ``[N, 1 + K]``: of each node its degree D, then its row of V (s^2 + ... + s^24)
        values: ``[1 + K]``: what D is more than the sum of the weights of a node's edges, then the
            singular values
    """

    table: Array
    values: Array
    rows_of_type: Mapping[str, slice]
    """By type, its rows of the table."""
    work_folder: TemporaryDirectory[str] | None = None
    """The folder of the table, where that is mapped; removed with this object."""
    search: str | None = None
    """The search for the singular vectors in one line; None where they were read from a run."""

    @property
    def width(self) -> int:
        """K."""
        return len(self.values) - 1

    @property
    def added_degree(self) -> np.float32:
        """What each degree is more than the sum of the weights of a node's edges."""
        added: np.float32 = self.values[0]
        return added

    @property
    def singular_values(self) -> Array:
        """s ``[K]``, the largest first."""
        return self.values[1:]

    def of_type(self, node_type: str) -> Array:
        """The positions ``[n, K]`` of the nodes of a type, not yet of length 1."""
        return self.table[self.rows_of_type[node_type], 1:]

    def singular_vectors(self, node_type: str) -> Array:
        """The singular vectors ``[n, K]`` of all types together at the nodes of one type."""
        return np.asarray(self.of_type(node_type) / _power_sum(self.singular_values))

    def rows_from_links(self, links: Iterable[ReceivedLinks], count: int) -> Array:
        """Rows ``[count, 1 + K]`` of the table for new nodes, by their links to known ones.

        V = P V / s holds for known nodes, so the row of a new one is P times the known rows / s.
        """
        rows = np.zeros((count, 1 + self.width), np.float32)
        for receivers, node_type, senders, weights in links:
            # Only the rows of nodes that send are read: the table may be mapped.
            unique_senders, columns = np.unique(senders, return_inverse=True)
            sender_rows = self.table[self.rows_of_type[node_type]][unique_senders]
            shares = weights * inverse_root(sender_rows[:, 0])[columns]
            matrix = sparse.csr_array(
                (shares.astype(np.float32), (receivers, columns)),
                shape=(count, len(unique_senders)),
            )
            rows[:, 1:] += matrix @ sender_rows[:, 1:]
            rows[:, 0] += np.bincount(receivers, weights, count)
        rows[:, 0] += self.added_degree
        rows[:, 1:] *= inverse_root(rows[:, :1]) / self.singular_values
        return rows

    def for_later_graph(self, earlier: Record, later: Record) -> SpectralPositions:
        """The positions of the nodes of a later graph.

        Known nodes, by their ids, keep theirs, and new ones stand near their neighbours. A new node
        whose neighbours are all new gets its position after them, over at most four edges.
        """
        if later is earlier:
            return self
        earlier_types = _graphs_by_type(earlier)
        later_types = _graphs_by_type(later)

        # By type, the row that each node had in the earlier graph; -1 for a new node.
        earlier_rows: dict[str, Rows] = {}
        for node_type, graph in later_types.items():
            if node_type in earlier_types:
                earlier_ids = earlier_types[node_type].ids[:]
                earlier_rows[node_type] = rows_before(earlier_ids, graph.ids[:])
            else:
                earlier_rows[node_type] = np.full(graph.num_nodes, -1)

        if earlier_types.keys() == later_types.keys() and all(
            np.array_equal(rows, np.arange(earlier_types[node_type].num_nodes))
            for node_type, rows in earlier_rows.items()
        ):
            return self

        rows_of_type = typed_ids(later).rows
        node_count = sum(len(rows) for rows in earlier_rows.values())
        table = np.zeros((node_count, 1 + self.width), np.float32)
        has_position: dict[str, NDArray[np.bool_]] = {}
        for node_type, rows in earlier_rows.items():
            is_known = rows >= 0
            has_position[node_type] = is_known
            if is_known.any():
                earlier_table = self.table[self.rows_of_type[node_type]]
                table[rows_of_type[node_type]][is_known] = earlier_table[rows[is_known]]
        positions = SpectralPositions(table, self.values, rows_of_type)
        positions.fill_from_neighbours(later_types, has_position)
        return positions

    def fill_from_neighbours(
        self, graph_of_type: Mapping[str, Record], has_position: dict[str, NDArray[np.bool_]]
    ) -> None:
        """Give positions to nodes that have none, each once, from neighbours that have one.

        ``has_position``, by type ``[n]``, is changed as nodes get theirs.
        """
        for _ in range(ATTACHING_ROUNDS):
            # All nodes of a round take their positions from nodes of the rounds before.
            new_rows: dict[str, Rows] = {}
            for node_type, graph in graph_of_type.items():
                rows = np.flatnonzero(~has_position[node_type])
                links = [link.only_from(has_position) for link in received(graph, rows)]
                positions = self.rows_from_links(links, len(rows))
                has_neighbour = positions[:, 0] > self.added_degree
                new_rows[node_type] = rows[has_neighbour]
                table_of_type = self.table[self.rows_of_type[node_type]]
                table_of_type[new_rows[node_type]] = positions[has_neighbour]
            for node_type, rows in new_rows.items():
                has_position[node_type][rows] = True


class ReceivedLinks(NamedTuple):
    """The links by which some nodes receive from the nodes of one type.

    Shapes:
        receivers: ``[L]``, the position of the receiver among the nodes asked for
        senders: ``[L]``, rows of the type that sends
        weights: ``[L]``
    """

    receivers: Rows
    sender_type: str
    senders: Rows
    weights: Any

    def only_from(self, has_position: Mapping[str, NDArray[np.bool_]]) -> ReceivedLinks:
        """The links from nodes that have positions."""
        is_kept = has_position[self.sender_type][self.senders]
        return ReceivedLinks(
            self.receivers[is_kept],
            self.sender_type,
            self.senders[is_kept],
            self.weights[is_kept],
        )


def received(graph: Record, rows: Rows) -> Iterator[ReceivedLinks]:
    """The links by which some nodes, of the type that a graph is seen from, receive."""
    for step in steps(graph.relations, graph.node_type):
        receivers, senders, weights = step.received(rows)
        yield ReceivedLinks(receivers, step.sender, senders, weights)


def typed_ids(graph: Record) -> TypedIds:
    """The ids of all nodes, and which of them are those of each type."""
    return TypedIds({node_type: typed.ids for node_type, typed in _graphs_by_type(graph).items()})


def _graphs_by_type(graph: Record) -> Mapping[str, Record]:
    """By type of nodes, the graph as it is seen from that type."""
    return {node_type: graph.target(node_type) for node_type in sorted(graph.nodes)}


def _weigh_by_powers(
    leading: LeadingVectors,
    degrees: NDArray[np.float64],
    added: float,
    rows_of_type: Mapping[str, slice],
    column_count: int | None,
    work_folder: TemporaryDirectory[str] | None,
) -> SpectralPositions:
    """The degrees D and the rows of V (s^2 + ... + s^24), as float32 on the host."""
    singular_count = len(leading.values)
    columns = singular_count if column_count is None else column_count
    node_count = len(degrees)
    if work_folder is None:
        table = np.empty((node_count, 1 + columns), np.float32)
    else:
        path = Path(work_folder.name) / "table"
        table = np.memmap(path, np.float32, "w+", shape=(node_count, 1 + columns))

    table[:, 0] = degrees
    # The search leaves V s, so each column is divided by s.
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
    return SpectralPositions(table, values, rows_of_type, work_folder, search)


# Edges and degrees


@dataclass(frozen=True, eq=False)
class EdgeList:
    """The edges by which nodes of one type receive from those of another, or of the same."""

    receivers: slice
    """The rows of the nodes that receive, among those of all types."""
    senders: slice
    """The rows of the nodes that send, among those of all types."""
    edges: Senders
    is_mirror: bool
    """Whether another list has the same edges, in the other direction."""
    entries_per_block: int = ENTRIES_PER_BLOCK

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of the receiving nodes, each with about ``entries_per_block`` entries."""
        starts = self.edges.indptr
        row_count = len(starts) - 1
        first = 0
        while first < row_count:
            limit = int(starts[first]) + self.entries_per_block
            last = int(np.searchsorted(starts, limit, side="right")) - 1
            # A node with more entries than a block has a block of its own.
            last = min(max(last, first + 1), row_count)
            yield first, last
            first = last

    def entries(self, first: int, last: int) -> tuple[Rows, Rows, NDArray[np.float64]]:
        """The edges of a range of the receiving nodes.

        Returns receivers and senders, as rows among the nodes of all types, and weights.
        """
        starts = np.asarray(self.edges.indptr[first : last + 1], np.int64)
        entry_range = slice(int(starts[0]), int(starts[-1]))
        receivers = np.repeat(np.arange(first, last), np.diff(starts)) + self.receivers.start
        senders = np.asarray(self.edges.indices[entry_range], np.int64) + self.senders.start
        if self.edges.data is None:
            return receivers, senders, np.ones(len(senders))
        return receivers, senders, np.asarray(self.edges.data[entry_range], np.float64)


def edges_both_ways(
    graph: Record,
    rows_of_type: Mapping[str, slice],
    entries_per_block: int = ENTRIES_PER_BLOCK,
) -> list[EdgeList]:
    """All edges in both directions."""
    edge_lists: list[EdgeList] = []
    for relation in graph.relations:
        sources = rows_of_type[relation.source]
        targets = rows_of_type[relation.target]
        senders = relation.edges.senders
        edge_lists.append(EdgeList(targets, sources, senders, False, entries_per_block))
        # An undirected relation within a type has each edge in both directions already.
        if relation.directed or not relation.within_one_type:
            receivers = relation.edges.receivers
            edge_lists.append(EdgeList(sources, targets, receivers, True, entries_per_block))
    return edge_lists


def _sum_weights(edge_lists: Sequence[EdgeList], is_seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The sum of the weights of each node's edges among seen nodes ``[N]``."""
    weight_sums = np.zeros(len(is_seen))
    if is_seen.all():
        for edge_list in edge_lists:
            weight_sums[edge_list.receivers] += edge_list.edges.sums()
        return weight_sums

    for edge_list in edge_lists:
        for first, last in edge_list.blocks():
            receivers, senders, weights = edge_list.entries(first, last)
            seen_weights = weights * (is_seen[receivers] & is_seen[senders])
            begin = edge_list.receivers.start + first
            end = edge_list.receivers.start + last
            sums = np.bincount(receivers - begin, seen_weights, last - first)
            weight_sums[begin:end] += sums
    return weight_sums


def regularisation(
    edge_lists: Sequence[EdgeList],
    is_seen: NDArray[np.bool_],
    weight_sums: NDArray[np.float64],
    column_count: int,
    device: torch.device = CPU,
    share: float = REGULARISATION_SHARE,
) -> float:
    """The number that is added to all degrees, so that small components do not take the columns.

    Each connected component of a graph has a singular value of 1. Components with fewer than
    1 / column_count of the nodes would take columns that tell nothing of the other nodes. A number
    added to the degrees makes their singular values smaller, the more the fewer edges their nodes
    have. It is a share of the mean degree, times the share of the columns that small components
    would take: 0 for a connected graph. Figures are in docs/explanation/evidence.md.

    Args:
        edge_lists: the edges, in both directions.
        is_seen: ``[N]``, the nodes that training sees.
        weight_sums: ``[N]``, the degrees.
        column_count: the columns of the positions.
        device: the device on which components are searched.
        share: the share of the mean degree where small components would take all columns.
    """
    has_edges = weight_sums > 0
    if not has_edges.any():
        return 1.0  # no degree may be 0, since it is divided by
    part_sizes = np.bincount(connected_parts(edge_lists, is_seen, device)[has_edges])
    part_sizes = part_sizes[part_sizes > 0]
    small_part_count = int((part_sizes < has_edges.sum() / column_count).sum())
    mean_degree = weight_sums.sum() / is_seen.sum()
    return float(share * min(1.0, small_part_count / column_count) * mean_degree)


def connected_parts(
    edge_lists: Sequence[EdgeList], is_seen: NDArray[np.bool_], device: torch.device = CPU
) -> Rows:
    """For each node ``[N]`` the first node of its connected part of the graph of seen nodes.

    Every root takes the smallest root that it meets, block by block, until nothing changes.
    """
    root = torch.arange(len(is_seen), device=device)
    seen_on_device = None if is_seen.all() else torch.from_numpy(is_seen).to(device)
    # Edges in the other direction join the same nodes.
    lists_on_device = [
        (
            edge_list,
            to_device(np.asanyarray(edge_list.edges.indptr, dtype=np.int64), device),
            to_device(edge_list.edges.indices, device),
        )
        for edge_list in edge_lists
        if not edge_list.is_mirror
    ]
    has_changed = True
    while has_changed:
        has_changed = False
        for edge_list, starts, indices in lists_on_device:
            for first, last in edge_list.blocks():
                counts = starts[first : last + 1].diff()
                rows = torch.arange(first, last, device=device) + edge_list.receivers.start
                receivers = torch.repeat_interleave(rows, counts)
                entry_range = slice(int(starts[first]), int(starts[last]))
                senders = indices[entry_range].long() + edge_list.senders.start

                lower_root = torch.minimum(root[receivers], root[senders])
                higher_root = torch.maximum(root[receivers], root[senders])
                differ = lower_root != higher_root
                if seen_on_device is not None:
                    differ &= seen_on_device[receivers] & seen_on_device[senders]
                if differ.any():
                    root.scatter_reduce_(0, higher_root[differ], lower_root[differ], "amin")
                    has_changed = True

        # Roots may have got roots of their own.
        shorter = root[root]
        while not torch.equal(shorter, root):
            root, shorter = shorter, shorter[shorter]
    return root.cpu().numpy()


# The search


def _device_for(
    edge_lists: Sequence[EdgeList],
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
    entry_bytes = 0
    for edge_list in edge_lists:
        indices = edge_list.edges.indices
        entry_bytes += indices.dtype.itemsize * len(indices)
        if edge_list.edges.data is not None:
            entry_bytes += 4 * len(edge_list.edges.data)
    bytes_per_number = 4 if is_large else 8
    column_bytes = 2 * bytes_per_number * node_count * width
    needed_bytes = entry_bytes + column_bytes + 24 * node_count * len(edge_lists)
    if needed_bytes > available_bytes(backend.device):
        return CPU
    return backend.device


def _product_by_blocks(
    edge_lists: Sequence[EdgeList],
    scale: NDArray[np.float64],
    device: torch.device,
    dtype: torch.dtype,
    backend: Backend,
) -> Product:
    """A function that writes P x, reading the adjacency from memory or from mapped files."""
    if device != backend.device:
        backend = Backend(device)
    factors = torch.from_numpy(scale).to(dtype).to(device)
    neighbourhoods_of_lists = [
        Neighbourhoods(
            to_device(np.asanyarray(edge_list.edges.indptr, dtype=np.int64), device),
            to_device(edge_list.edges.indices, device),
            None if edge_list.edges.data is None else to_device(edge_list.edges.data, device),
            factors[edge_list.receivers],
            factors[edge_list.senders],
            cap=max(len(edge_list.edges.indices), 1),
            capped=False,
            backend=backend,
            loops=False,
        )
        for edge_list in edge_lists
    ]

    def product(x: Tensor, out: Tensor) -> None:
        out.zero_()
        for edge_list, neighbourhoods in zip(edge_lists, neighbourhoods_of_lists, strict=True):
            sender_rows = x[edge_list.senders]
            offset = edge_list.receivers.start
            for first, last in edge_list.blocks():
                nodes = torch.arange(first, last, device=device)
                out[offset + first : offset + last] += neighbourhoods.pool(nodes, None, sender_rows)

    return product


def _product_in_memory(
    edge_lists: Sequence[EdgeList], scale: NDArray[np.float64], backend: Backend
) -> Product:
    """A function that writes P x, with P as one matrix in memory."""
    no_entries = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    entries = [
        edge_list.entries(first, last)
        for edge_list in edge_lists
        for first, last in edge_list.blocks()
    ]
    receivers, senders, weights = (
        np.concatenate(arrays) for arrays in zip(no_entries, *entries, strict=True)
    )
    values = weights * scale[receivers] * scale[senders]
    matrix = sparse.csr_array((values, (receivers, senders)), shape=(len(scale), len(scale)))
    keys, values_on_device = keyed(matrix, backend.device)
    operand = SparseOperand(csr(keys, values_on_device, matrix.shape), backend, symmetric=True)

    def product(x: Tensor, out: Tensor) -> None:
        out.copy_(operand @ x)

    return product


def start_rows(ids: Iterable[Any], width: int) -> NDArray[np.int8]:
    """Random rows ``[n, width]`` of 1 and -1, which hashes of the ids decide.

    So the positions of a node do not depend on the order of the rows of its table.
    """
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


def inverse_root(sums: NDArray[Any]) -> NDArray[Any]:
    """D^-1/2; 0 for a node without edges."""
    roots: NDArray[Any] = np.divide(1, np.sqrt(sums), out=np.zeros_like(sums), where=sums > 0)
    return roots


def _power_sum(values: Any) -> Any:
    """s^2 + ... + s^24 of singular values ``[K]``."""
    return sum(values**power for power in range(FIRST_POWER, LAST_POWER + 1))


def _empty_columns(
    node_count: int,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    work_folder: TemporaryDirectory[str] | None,
    name: str,
) -> Tensor:
    """Columns ``[N, width]`` with arbitrary contents: on a device, or in a file of a folder."""
    if work_folder is None or device.type != "cpu":
        return torch.empty(node_count, width, dtype=dtype, device=device)
    numpy_dtype = np.float32 if dtype == torch.float32 else np.float64
    path = Path(work_folder.name) / name
    return torch.from_numpy(np.memmap(path, numpy_dtype, "w+", shape=(node_count, width)))
