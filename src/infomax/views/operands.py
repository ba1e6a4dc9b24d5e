"""Constant matrices that multiply dense ones, and tables whose rows are gathered.

A constant matrix is dense, or sparse with the transpose that gradients need. Products with features
are computed once per step and shared by the views of a pair.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import pad

from infomax.arrays.integrity import refuse_not_finite
from infomax.arrays.sparsity import dense
from infomax.arrays.table import Features, FeatureTable, SparseRows
from infomax.kernels import Backend
from infomax.kernels.host import row_product, transposed_product
from infomax.kernels.plain import linear
from infomax.kernels.room import available_bytes
from infomax.kernels.transfer import ROWS_PER_COPY, is_mapped, read_blocks, to_device

# Torch warns once per process that CSR tensors are in beta; the operations used here are tested
# against dense ones.
warnings.filterwarnings(
    "ignore", message="Sparse (CSR tensor support|invariant checks)", category=UserWarning
)
# A product may be the first GPU operation on autograd's own thread.
warnings.filterwarnings(
    "ignore", message="Attempting to run cuBLAS, but there was no current CUDA context"
)
# Features are never written to.
warnings.filterwarnings(
    "ignore", message="The given NumPy array is not writable", category=UserWarning
)

DENSE_SHARE = 0.03
"""The share of non-zeros from which on sparse features become dense on a GPU, which is faster."""
MOST_DENSE_BYTES = 1 << 30
"""The bytes up to which sparse features become dense on a GPU."""
TENSOR_CORE_MULTIPLE = 8
"""Dense matrices for a GPU are padded to a multiple of so many numbers, 32 bytes of float32.

Tensor cores require it of the length of rows.
"""
LARGEST_HALF_ERROR = 2.0**-10
"""The rounding error, as a share of a column's largest number, that tf32 has as well."""


class SparseOperand:
    """A constant CSR matrix ``[M, N]``; gradients flow through the other factor only."""

    def __init__(
        self, matrix: Tensor, backend: Backend | None = None, *, symmetric: bool = False
    ) -> None:
        self.matrix = matrix
        self.backend = backend or Backend(matrix.device)
        self.symmetric = symmetric

    @classmethod
    def of_rows(
        cls,
        starts: Tensor,
        columns: Tensor,
        values: Tensor,
        width: int,
        backend: Backend | None = None,
    ) -> SparseOperand:
        """Build the matrix ``[M, width]`` from its rows.

        Args:
            starts: ``[M + 1]``, the first entry of each row.
            columns: ``[E]``, ascending within each row.
            values: ``[E]``.
            width: the number of columns.
            backend: the kernels.
        """
        shape = (len(starts) - 1, width)
        matrix = torch.sparse_csr_tensor(
            starts.long(), columns.long(), values, shape, check_invariants=False
        )
        return cls(matrix, backend)

    @property
    def shape(self) -> torch.Size:
        """``(M, N)``."""
        return self.matrix.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.matrix.dtype

    @property
    def entry_count(self) -> int:
        """The number of entries that are stored."""
        return len(self.matrix.values())

    @property
    def scipy(self) -> sparse.csr_array:
        """The same matrix, on a CPU, without a copy."""
        starts = self.matrix.crow_indices().numpy()
        columns = self.matrix.col_indices().numpy()
        values = self.matrix.values().numpy()
        return sparse.csr_array((values, columns, starts), shape=tuple(self.shape))

    @cached_property
    def prepared(self) -> Any:
        """The matrix in the form in which products are fastest, made at first use."""
        return self.backend.prepare(self.matrix)

    @property
    def transpose(self) -> SparseOperand:
        """The transpose, computed at first use, by a gradient."""
        return self if self.symmetric else self._transposed

    @cached_property
    def _transposed(self) -> SparseOperand:
        row_count, column_count = self.matrix.shape
        if not self.matrix.is_cuda:
            # scipy counts the entries of each column, which is faster than torch's sort.
            return SparseOperand.of_rows(*tensors(self.scipy.tocsc()), row_count, self.backend)
        starts = self.matrix.crow_indices()
        columns = self.matrix.col_indices()
        rows = torch.repeat_interleave(torch.arange(row_count, device=starts.device), starts.diff())
        keys, order = torch.sort(columns * row_count + rows)
        transposed = csr(keys, self.matrix.values()[order], (column_count, row_count))
        return SparseOperand(transposed, self.backend)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Multiply by y ``[N, D]``, ``[M, D]``; the gradient is a product with the transpose."""
        product = self.backend.product
        return linear(
            y, partial(product, self.prepared), lambda grad: product(self.transpose.prepared, grad)
        )

    def multiply_with_shuffled(self, y: Tensor, order: Tensor) -> Tensor:
        """P Y and P Y[order], ``[2, M, D]``, of y ``[N, D]`` and an order ``[N]``, on a CPU."""
        gradient = self.backend.pair_gradient
        product = partial(self.backend.pair_product, self.matrix, order)
        return linear(y, product, lambda grad: gradient(self.transpose.matrix, order, grad))

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Return rows start to stop, ``[stop - start, N]``."""
        starts = self.matrix.crow_indices()[start : stop + 1]
        first = int(starts[0])
        last = int(starts[-1])
        columns = self.matrix.col_indices()[first:last]
        values = self.matrix.values()[first:last]
        width = self.matrix.shape[1]
        return SparseOperand.of_rows(starts - first, columns, values, width, self.backend)

    def gather(self, rows: Tensor) -> SparseOperand:
        """Return the rows of these numbers ``[n]``, in that order, ``[n, N]``."""
        starts = self.matrix.crow_indices()
        columns = self.matrix.col_indices()
        values = self.matrix.values()
        width = self.matrix.shape[1]

        counts = starts[rows + 1] - starts[rows]
        new_starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        # For each entry of the result, its number among the entries of this matrix.
        entries = torch.arange(int(new_starts[-1]), device=rows.device)
        entries += torch.repeat_interleave(starts[rows] - new_starts[:-1], counts)
        return SparseOperand.of_rows(
            new_starts, columns[entries], values[entries], width, self.backend
        )


Operand: TypeAlias = Tensor | SparseOperand
"""A constant matrix, dense or sparse, that multiplies a dense one."""


def operand(features: Features, backend: Backend, dtype: torch.dtype = torch.float32) -> Operand:
    """Put features ``[N, F]`` on the device; sparse features stay sparse."""
    if not sparse.issparse(features):
        return to_device(np.asarray(features), backend.device).to(dtype)
    keys, values = keyed(features, backend.device)
    return SparseOperand(csr(keys, values.to(dtype), features.shape), backend)


def to_multiply(table: FeatureTable, backend: Backend) -> Operand:
    """Put features on the device for products; on a GPU dense rows are padded for tensor cores."""
    features = _dense_if_faster(
        table.loaded().values, backend.device, DENSE_SHARE, MOST_DENSE_BYTES
    )
    x = operand(features, backend)
    if isinstance(x, Tensor) and x.is_cuda:
        return pad(x, (0, _padding(x.shape[1])))
    return x


def to_gather(
    table: FeatureTable,
    backend: Backend,
    *,
    dense_share: float = DENSE_SHARE,
    dense_bytes: int = MOST_DENSE_BYTES,
) -> Operand:
    """Put features where rows can be gathered from them.

    Dense features for a GPU are in half precision, which halves the bytes to gather, if that rounds
    no more than tf32: both have ten bits of mantissa, but half precision ends at 65,504 and loses
    bits below 6e-5. If they would take more than half of the free GPU memory, they stay in
    page-locked host memory, and the GPU reads them from there.

    Args:
        table: the features.
        backend: where they are gathered.
        dense_share: the share of non-zeros from which on sparse features become dense.
        dense_bytes: the bytes up to which they do.
    """
    if not table.mapped:
        features = _dense_if_faster(table.loaded().values, backend.device, dense_share, dense_bytes)
        table = FeatureTable(features)

    # Features in memory that are still sparse were too large, or had too few non-zeros.
    stays_sparse = table.sparse and (
        not table.mapped or 4 * table.shape[0] * table.shape[1] > dense_bytes
    )
    if backend.device.type != "cuda" or stays_sparse:
        return operand(table.loaded().values, backend)

    halves, is_close = dense_table(table, backend, torch.half)
    if is_close:
        return halves
    return dense_table(table, backend, torch.float32)[0]


def dense_table(
    features: FeatureTable, backend: Backend, dtype: torch.dtype
) -> tuple[Tensor, bool]:
    """Return a table ``[N, F]`` of a dtype, padded as in `to_multiply`.

    The second value says whether rounding changed the numbers by no more than tf32 does.
    """
    row_count, feature_count = features.shape
    width = feature_count + _padding(feature_count)
    device = backend.device

    # Without Triton no kernel can read host memory, so the table must be on the GPU.
    fits = row_count * width * dtype.itemsize <= available_bytes(device) / 2
    if fits or backend.triton is None:
        table = torch.empty(row_count, width, dtype=dtype, device=device)
    else:
        table = torch.empty(row_count, width, dtype=dtype, pin_memory=True)

    largest_error = torch.zeros(width, device=device)
    largest = torch.zeros(width, device=device)
    for start, block in _blocks_on_device(features, device):
        x = pad(block, (0, width - feature_count))
        rounded = x.to(dtype)
        table[start : start + len(x)] = rounded
        largest_error = torch.maximum(largest_error, (rounded - x).abs().amax(0))
        largest = torch.maximum(largest, x.abs().amax(0))
    if features.mapped and not largest.isfinite().all():
        refuse_not_finite(features.values)
    return table, bool((largest_error <= LARGEST_HALF_ERROR * largest).all())


def _padding(width: int) -> int:
    """How many columns of zeros make rows of this width a multiple of `TENSOR_CORE_MULTIPLE`."""
    return -width % TENSOR_CORE_MULTIPLE


def _blocks_on_device(features: FeatureTable, device: torch.device) -> Iterator[tuple[int, Tensor]]:
    """Yield blocks of dense features on a device, float32, each with its first row.

    Mapped ones are scaled there, and those that are stored sparse become dense there.
    """
    if features.mapped and is_mapped(features.values):
        for start, block in read_blocks(features.values, device):
            yield start, scaled(block, features.scaler)
        return

    for start in range(0, len(features), ROWS_PER_COPY):
        row_range = slice(start, start + ROWS_PER_COPY)
        if isinstance(features.values, SparseRows):
            rows = features.values[row_range]
            keys, values = keyed(rows, device)
            block = torch.zeros(rows.shape, device=device)
            block.view(-1)[keys] = values
            yield start, scaled(block, features.scaler)
        else:
            yield start, to_device(dense(features[row_range]), device)


def scaled(x: Tensor, scaler: Any) -> Tensor:
    """As `Scaler.transform`, for rows ``[n, F]`` on a device; returns float32."""
    x = x.float()
    if scaler is None or scaler.scale == "none":
        return x
    if scaler.scale == "rows":
        sums = x.sum(1, keepdim=True)
        return x * torch.where(sums == 0, 0, 1 / sums)
    mean = torch.from_numpy(scaler.mean).to(x.device)
    deviation = torch.from_numpy(scaler.deviation).to(x.device)
    return (x - mean) / deviation


def _dense_if_faster(
    features: Features, device: torch.device, dense_share: float, dense_bytes: int
) -> Features:
    """Convert sparse features to a dense array if that is faster on a GPU.

    They have many non-zeros then, and are not too large.
    """
    if device.type != "cuda" or not sparse.issparse(features):
        return features
    size = features.shape[0] * features.shape[1]
    if features.nnz >= dense_share * size and 4 * size <= dense_bytes:
        return features.toarray()
    return features


def multiply(x: Operand, weight: Tensor, backend: Backend) -> Tensor:
    """Compute X Θ, where X may have padding columns."""
    if isinstance(x, SparseOperand):
        return x @ weight
    if not x.is_cuda and not x.requires_grad and weight.requires_grad:
        product = partial(row_product, x, empty=backend.empty)
        return linear(
            weight, lambda weight: product(weight.detach()), partial(transposed_product, x)
        )
    padding = x.shape[1] - len(weight)
    if padding > 0:
        weight = pad(weight, (0, 0, 0, padding))
    return x @ weight


class Products:
    """Features X, and X Θ or H Θ for each weight Θ, computed once per step.

    Views with the same features share this object: shuffling rows commutes with the linear map, so
    a view and its shuffled negative need X Θ only once. Other features need another `Products`, so
    no view reads a stale product.
    """

    def __init__(self, features: Operand) -> None:
        self.features = features
        # For each weight the last H (None for X), the product, and how often that was changed in
        # place when it was kept. A dictionary tells tensors apart by identity.
        self._last: dict[Tensor, tuple[Tensor | None, Tensor, int]] = {}

    def of(self, h: Tensor | None, weight: Tensor, backend: Backend) -> Tensor:
        """Return H Θ, or X Θ if H is None.

        For the same H and Θ it is the same tensor again, unless that was changed since.
        """
        last = self._last.get(weight)
        if last is not None:
            last_h, product, change_count = last
            if last_h is h and change_count == _changes_in_place(product):
                return product
        product = multiply(self.features if h is None else h, weight, backend)
        self._last[weight] = h, product, _changes_in_place(product)
        return product


def _changes_in_place(y: Tensor) -> int:
    """The number of changes to a tensor in place; torch does not count them in inference mode."""
    return 0 if y.is_inference() else y._version


def tensors(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the row starts, columns and values of a scipy CSR matrix.

    Of a CSC matrix they are those of its transpose.
    """
    return (
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        torch.from_numpy(matrix.data),
    )


def keyed(matrix: sparse.csr_array, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return keys ``[E]`` and values ``[E]`` of a CSR matrix on the device; see `csr`.

    The indices of the matrix are sorted in place.
    """
    matrix.sort_indices()
    row_count, width = matrix.shape
    starts = torch.from_numpy(matrix.indptr).to(device)
    columns = torch.from_numpy(matrix.indices).to(device)
    values = torch.from_numpy(matrix.data).to(device)
    row_numbers = torch.arange(row_count, device=device)
    rows = torch.repeat_interleave(row_numbers, starts.diff(), output_size=matrix.nnz)
    # In place: of a large matrix each further copy takes 8 bytes per entry.
    return rows.mul_(width).add_(columns), values


def csr(keys: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Build a CSR matrix ``[M, N]``.

    Args:
        keys: ``[E]``, row * N + column, ascending without duplicates.
        values: ``[E]``.
        shape: ``(M, N)``.
    """
    row_count, width = shape
    first_keys = torch.arange(row_count + 1, device=keys.device) * width
    starts = torch.searchsorted(keys, first_keys)
    # No check needed: keys ascend and are in range.
    return torch.sparse_csr_tensor(starts, keys % width, values, shape, check_invariants=False)
