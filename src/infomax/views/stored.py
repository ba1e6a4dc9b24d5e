"""Tables of rows on disk: a batch reads the rows that it needs, in the order of the file."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from infomax import memory
from infomax.arrays.integrity import refuse_not_finite
from infomax.arrays.scaling import Scaler
from infomax.arrays.sparsity import dense
from infomax.arrays.table import FeatureTable, SparseRows
from infomax.kernels import Backend
from infomax.kernels.host import on_one_thread
from infomax.kernels.random import Permutation
from infomax.memory import BYTES_PER_BLOCK
from infomax.views.neighbourhoods import KnownRows, Neighbourhoods
from infomax.views.operands import SparseOperand, tensors, to_gather

DENSE_BYTES_TO_GATHER = 1 << 33
"""Bytes up to which sparse features whose rows are gathered become dense on a GPU.

All batches then have one shape, so a step can be replayed.
"""
SPARSE_SHARE = 0.01
"""The share of entries below which rows on disk stay sparse.

A dense product of the rows that they are pooled to would take longer.
"""
SHARE_OF_FREE_MEMORY = 0.8
"""The share of free memory that a file may take and be expected to stay there once it was read."""


class StoredTable:
    """A table ``[N, F]`` on disk whose rows are read when a batch needs them.

    Attributes:
        table: the mapped table.
        raw: the values as they are on disk, not yet scaled.
        scaler: what scales them.
        large: whether the file is too large to stay in memory.
    """

    def __init__(self, table: FeatureTable) -> None:
        self.table = table
        self.raw = table.values
        self.scaler = table.scaler or Scaler("none")

        arrays = [self.raw]
        if isinstance(self.raw, SparseRows):
            arrays = [self.raw.entries, self.raw.columns]
        bases: list[Any] = [getattr(array, "base", None) for array in arrays]
        files = [base for base in bases if isinstance(base, mmap.mmap)]
        file_bytes = sum(len(file) for file in files)
        self.large = file_bytes > SHARE_OF_FREE_MEMORY * memory.free_bytes()

        # Of a file that does not fit into memory, the pages around a row will be gone before they
        # are needed.
        if self.large and hasattr(mmap, "MADV_RANDOM"):
            for file in files:
                file.madvise(mmap.MADV_RANDOM)

    @property
    def shape(self) -> tuple[int, int]:
        """``(N, F)``."""
        return self.table.shape

    @property
    def sparse(self) -> bool:
        """Whether rows have so few entries that they are multiplied before they are pooled."""
        if not isinstance(self.raw, SparseRows) or not self.table.sparse:
            return False
        row_count, width = self.shape
        return len(self.raw.entries) < SPARSE_SHARE * row_count * width

    def gather(self, rows: Tensor) -> Tensor:
        """Read rows ``[n, F]``, float32."""
        return torch.from_numpy(dense(self.table[rows.numpy()]))

    def gather_sparse(self, rows: Tensor, backend: Backend) -> SparseOperand:
        """Read rows ``[n, F]`` of a table that is `sparse`."""
        return SparseOperand.of_rows(*tensors(self.table[rows.numpy()]), self.shape[1], backend)

    def pool(
        self,
        graph: Neighbourhoods,
        nodes: Tensor,
        offsets: Tensor,
        permutation: Permutation | None = None,
        known_rows: KnownRows | None = None,
    ) -> Tensor:
        """As `Neighbourhoods.pool`; where numba can read the table, from the mapped file."""
        numbers = graph.entries(len(nodes)) * self.shape[1]
        if not self._numba_can_read() or not graph.backend.numba_for(numbers):
            # On one thread, since its steps are short.
            return on_one_thread(self._pool_parts, graph, nodes, offsets, permutation)
        from infomax.kernels.cpu_neighbourhoods import pool_rows

        if self.large:
            self._read_ahead(graph, nodes, offsets, permutation)
        if isinstance(self.raw, SparseRows):
            table: Any = self.raw.arrays()
        else:
            table = torch.from_numpy(self.raw)

        # The kernel centres rows, or scales them to a sum of 1; deviations are divided by below.
        scaler = self.scaler
        scales_rows = scaler.scale == "rows"
        pooled = pool_rows(
            graph, nodes, offsets, table, permutation, known_rows, scaler.mean, scales_rows
        )
        if not np.isfinite(pooled.numpy()).all():
            refuse_not_finite(self.raw)
        if scaler.deviation is None:
            return pooled
        return pooled.div_(torch.from_numpy(scaler.deviation))

    def _numba_can_read(self) -> bool:
        """Whether the values are of a dtype that numba's kernel reads."""
        values = self.raw.entries if isinstance(self.raw, SparseRows) else self.raw
        return isinstance(values, np.ndarray) and values.dtype in (np.float32, np.float16)

    def _read_ahead(
        self, graph: Neighbourhoods, nodes: Tensor, offsets: Tensor, permutation: Permutation | None
    ) -> None:
        """Read the pages of the rows that `pool` needs, in the order of the file.

        Any other order is slower.
        """
        _, senders, _ = graph.rows(nodes, offsets)
        feature_rows = senders if permutation is None else permutation(senders)
        needed_rows = torch.unique(feature_rows).numpy()
        if isinstance(self.raw, SparseRows):
            self.raw[needed_rows]
            return
        # Reading the first and the last number of a row brings the pages of both ends.
        for column in (0, -1):
            self.raw[needed_rows, column]

    def _pool_parts(
        self, graph: Neighbourhoods, nodes: Tensor, offsets: Tensor, permutation: Permutation | None
    ) -> Tensor:
        """As `pool`, in parts that fit into `BYTES_PER_BLOCK`.

        A part reads each row on disk once, in ascending order.
        """
        degrees = graph.starts[nodes + 1] - graph.starts[nodes]
        row_lengths = degrees.clamp(max=graph.cap) + 1
        if len(nodes) > 1 and 4 * self.shape[1] * int(row_lengths.sum()) > BYTES_PER_BLOCK:
            halves = zip(nodes.tensor_split(2), offsets.tensor_split(2), strict=True)
            return torch.cat([self._pool_parts(graph, *half, permutation) for half in halves])

        starts, senders, values = graph.rows(nodes, offsets)
        if permutation is not None:
            senders = permutation(senders)
        needed_rows, positions = torch.unique(senders, return_inverse=True)
        return embedding_bag(
            positions,
            self.gather(needed_rows),
            starts,
            mode="sum",
            per_sample_weights=values,
            include_last_offset=True,
        )


def rows_of(table: FeatureTable, backend: Backend) -> Any:
    """A table whose rows batches gather: on the device, or for a CPU on disk if it is mapped."""
    if table.mapped and backend.device.type == "cpu":
        return StoredTable(table)
    return to_gather(table, backend, dense_share=0, dense_bytes=DENSE_BYTES_TO_GATHER)


def gather_rows(table: Tensor | StoredTable, rows: Tensor) -> Tensor:
    """Gather rows of a table, which may be on disk, or on the host while the rows are on a GPU."""
    if isinstance(table, StoredTable):
        return table.gather(rows)
    return table[rows.to(table.device)].to(rows.device)
