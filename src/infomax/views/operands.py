"""Constant matrices that multiply dense ones: sparse, with the transpose that gradients need; dense; tables of rows."""

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

# Torch warns once per process that CSR tensors are in beta; the operations used here are tested against dense ones.
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


class SparseOperand:
    """A constant CSR matrix ``[M, N]``; gradients flow through the other factor only."""

    def __init__(
        self, matrix: Tensor, backend: Backend | None = None, *, symmetric: bool = False
    ) -> None:
        self.matrix, self.backend, self.symmetric = (
            matrix,
            backend or Backend(matrix.device),
            symmetric,
        )

    @property
    def shape(self) -> torch.Size:
        """``(M, N)``."""
        return self.matrix.shape

    @property
    def dtype(self) -> torch.dtype:
        """That of its entries."""
        return self.matrix.dtype

    @property
    def entries(self) -> int:
        """The number of entries that are stored."""
        return len(self.matrix.values())

    @property
    def scipy(self) -> sparse.csr_array:
        """The same matrix, on a CPU, without a copy."""
        starts, columns, values = (
            self.matrix.crow_indices(),
            self.matrix.col_indices(),
            self.matrix.values(),
        )
        return sparse.csr_array(
            (values.numpy(), columns.numpy(), starts.numpy()), shape=tuple(self.shape)
        )

    @cached_property
    def prepared(self) -> Any:
        """The matrix in the form in which products are fastest, made at first use."""
        return self.backend.prepare(self.matrix)

    @classmethod
    def of_rows(
        cls,
        starts: Tensor,
        columns: Tensor,
        values: Tensor,
        width: int,
        backend: Backend | None = None,
    ) -> SparseOperand:
        """Build the matrix ``[M, width]`` from row starts ``[M + 1]``, ascending columns per row, and values."""
        shape = (len(starts) - 1, width)
        matrix = torch.sparse_csr_tensor(
            starts.long(), columns.long(), values, shape, check_invariants=False
        )
        return cls(matrix, backend)

    @property
    def transpose(self) -> SparseOperand:
        """The transpose, computed at first use, by a gradient."""
        return self if self.symmetric else self._transposed

    @cached_property
    def _transposed(self) -> SparseOperand:
        m, n = self.matrix.shape
        if not self.matrix.is_cuda:  # scipy counts, which is faster than torch's sort
            return SparseOperand.of_rows(*tensors(self.scipy.tocsc()), m, self.backend)
        starts, columns = self.matrix.crow_indices(), self.matrix.col_indices()
        rows = torch.repeat_interleave(torch.arange(m, device=starts.device), starts.diff())
        keys, order = torch.sort(columns * m + rows)
        return SparseOperand(csr(keys, self.matrix.values()[order], (n, m)), self.backend)

    def __matmul__(self, y: Tensor) -> Tensor:
        """Multiply by y ``[N, D]``, ``[M, D]``; the gradient is a product with the transpose."""
        product = self.backend.product
        return linear(
            y, partial(product, self.prepared), lambda grad: product(self.transpose.prepared, grad)
        )

    def pair(self, y: Tensor, rows: Tensor) -> Tensor:
        """P Y and P Y[rows], ``[2, M, D]``, of y ``[N, D]`` and a permutation ``[N]``, on a CPU."""
        back = self.backend.pair_gradient
        product = partial(self.backend.pair_product, self.matrix, rows)
        return linear(y, product, lambda grad: back(self.transpose.matrix, rows, grad))

    def rows(self, start: int, stop: int) -> SparseOperand:
        """Return rows start to stop, ``[stop - start, N]``."""
        starts = self.matrix.crow_indices()[start : stop + 1]
        first, last = int(starts[0]), int(starts[-1])
        columns, values = self.matrix.col_indices()[first:last], self.matrix.values()[first:last]
        return SparseOperand.of_rows(
            starts - first, columns, values, self.matrix.shape[1], self.backend
        )

    def gather(self, rows: Tensor) -> SparseOperand:
        """Return the given rows ``[n]``, in that order, ``[n, N]``."""
        starts, columns = self.matrix.crow_indices(), self.matrix.col_indices()
        counts = starts[rows + 1] - starts[rows]
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        places = torch.arange(int(ends[-1]), device=rows.device)
        places += torch.repeat_interleave(starts[rows] - ends[:-1], counts)
        values, width = self.matrix.values()[places], self.matrix.shape[1]
        return SparseOperand.of_rows(ends, columns[places], values, width, self.backend)


Operand: TypeAlias = Tensor | SparseOperand
"""A constant matrix, dense or sparse, that multiplies a dense one."""


def operand(features: Features, backend: Backend, dtype: torch.dtype = torch.float32) -> Operand:
    """Put features ``[N, F]`` on the device; sparse features stay sparse."""
    if not sparse.issparse(features):
        return to_device(np.asarray(features), backend.device).to(dtype)
    keys, values = keyed(features, backend.device)
    return SparseOperand(csr(keys, values.to(dtype), features.shape), backend)


DENSE_SHARE, DENSE_BYTES = 0.03, 1 << 30
"""Sparse features become dense on a GPU above this share of non-zeros and up to these bytes, since that is faster."""


def to_multiply(table: FeatureTable, backend: Backend) -> Operand:
    """Put features on the device for products; on a GPU dense rows are zero-padded to 32 bytes for tensor cores."""
    x = operand(_laid_out(table.loaded().values, backend.device, DENSE_SHARE, DENSE_BYTES), backend)
    return pad(x, (0, -x.shape[1] % 8)) if isinstance(x, Tensor) and x.is_cuda else x


def to_gather(
    table: FeatureTable,
    backend: Backend,
    *,
    dense_share: float = DENSE_SHARE,
    dense_bytes: int = DENSE_BYTES,
) -> Operand:
    """Put features where rows can be gathered from them.

    Dense features for a GPU are in half precision, which halves the bytes to gather, if that rounds no more than tf32:
    both have ten bits of mantissa, but half precision ends at 65,504 and loses bits below 6e-5. If they would take more
    than half of the free GPU memory, they stay in page-locked host memory, and the GPU reads them from there.
    """
    if not table.mapped:
        table = FeatureTable(
            _laid_out(table.loaded().values, backend.device, dense_share, dense_bytes)
        )
    large = not table.mapped or 4 * table.shape[0] * table.shape[1] > dense_bytes
    if backend.device.type != "cuda" or (table.sparse and large):
        return operand(table.loaded().values, backend)
    half, close = _table(table, backend, torch.half)
    return half if close else _table(table, backend, torch.float32)[0]


def _table(features: FeatureTable, backend: Backend, dtype: torch.dtype) -> tuple[Tensor, bool]:
    """Return a table ``[N, F]`` of a dtype, padded as in `to_multiply`, and whether rounding changed it little."""
    n, width, device = len(features), features.shape[1] + -features.shape[1] % 8, backend.device
    fits = n * width * dtype.itemsize <= available_bytes(device) / 2 or backend.triton is None
    out = torch.empty(
        n, width, dtype=dtype, **({"device": device} if fits else {"pin_memory": True})
    )
    error = largest = torch.zeros(width, device=device)
    for start, block in _blocks(features, device):
        x = pad(block, (0, width - features.shape[1]))
        rounded = x.to(dtype)
        out[start : start + len(x)] = rounded
        error, largest = (
            torch.maximum(error, (rounded - x).abs().amax(0)),
            torch.maximum(largest, x.abs().amax(0)),
        )
    if features.mapped and not largest.isfinite().all():
        refuse_not_finite(features.values)
    return out, bool((error <= 2.0**-10 * largest).all())


def _blocks(features: FeatureTable, device: torch.device) -> Iterator[tuple[int, Tensor]]:
    """Yield blocks of dense features on a GPU, float32, each with its first row.

    Mapped ones are scaled there, and those that are stored sparse become dense there.
    """
    if features.mapped and is_mapped(features.values):
        scaler = features.scaler
        yield from (
            (start, scaled(block, scaler)) for start, block in read_blocks(features.values, device)
        )
        return
    for start in range(0, len(features), ROWS_PER_COPY):
        some = slice(start, start + ROWS_PER_COPY)
        if isinstance(features.values, SparseRows):
            rows = features.values[some]
            places, values = keyed(rows, device)
            block = torch.zeros(rows.shape, device=device)
            block.view(-1)[places] = values
            yield start, scaled(block, features.scaler)
        else:
            yield start, to_device(dense(features[some]), device)


def scaled(x: Tensor, scaler: Any) -> Tensor:
    """As `Scaler.transform`, for rows ``[n, F]`` on a device; returns float32."""
    x = x.float()
    if scaler is None or scaler.scale == "none":
        return x
    if scaler.scale == "rows":
        total = x.sum(1, keepdim=True)
        return x * torch.where(total == 0, 0, 1 / total)
    mean, deviation = (
        torch.from_numpy(vector).to(x.device) for vector in (scaler.mean, scaler.deviation)
    )
    return (x - mean) / deviation


def _laid_out(features: Features, device: torch.device, share: float, limit: int) -> Features:
    """Convert sparse features to a dense array if that is faster on a GPU: many non-zeros, and not too large."""
    size = features.shape[0] * features.shape[1]
    full = sparse.issparse(features) and features.nnz >= share * size and 4 * size <= limit
    return features.toarray() if full and device.type == "cuda" else features


def multiply(x: Operand, weight: Tensor, backend: Backend) -> Tensor:
    """Compute X Θ, where X may have padding columns."""
    if isinstance(x, Tensor) and not x.is_cuda and not x.requires_grad and weight.requires_grad:
        product = partial(row_product, x, empty=backend.empty)
        return linear(
            weight, lambda weight: product(weight.detach()), partial(transposed_product, x)
        )
    missing = x.shape[1] - len(weight) if isinstance(x, Tensor) else 0
    return x @ (pad(weight, (0, 0, 0, missing)) if missing > 0 else weight)


class Products:
    """Features X, and X Θ or H Θ for each weight Θ, computed once per step.

    Views with the same features share this object: shuffling rows commutes with the linear map, so a view and its
    shuffled negative need X Θ only once. Other features need another `Products`, so no view reads a stale product.
    """

    def __init__(self, features: Operand) -> None:
        self.features = features
        self._last: dict[
            Tensor, tuple[Tensor | None, Tensor, int]
        ] = {}  # tensors are told apart by identity

    def of(self, h: Tensor | None, weight: Tensor, backend: Backend) -> Tensor:
        """Return H Θ, or X Θ if H is None; the same tensor again for the same H and Θ, unless it was changed since."""
        known = self._last.get(weight)
        if known is None or known[0] is not h or known[2] != _version(known[1]):
            product = multiply(self.features if h is None else h, weight, backend)
            known = self._last[weight] = h, product, _version(product)
        return known[1]


def _version(y: Tensor) -> int:
    """The number of changes to a tensor in place; torch does not count them in inference mode."""
    return 0 if y.is_inference() else y._version


def tensors(matrix: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the row starts, columns and values of a scipy CSR matrix, or those of a CSC matrix's transpose."""
    return (
        torch.from_numpy(matrix.indptr),
        torch.from_numpy(matrix.indices),
        torch.from_numpy(matrix.data),
    )


def keyed(matrix: sparse.csr_array, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return keys ``[E]`` and values ``[E]`` of a CSR matrix with sorted indices, on the device; see `csr`."""
    matrix.sort_indices()
    n, width = matrix.shape
    starts = torch.from_numpy(matrix.indptr).to(device)
    rows = torch.repeat_interleave(
        torch.arange(n, device=device), starts.diff(), output_size=matrix.nnz
    )
    return rows.mul_(width).add_(torch.from_numpy(matrix.indices).to(device)), torch.from_numpy(
        matrix.data
    ).to(device)


def csr(keys: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Build a CSR matrix from keys ``[E]``, row * N + column, ascending without duplicates, and values ``[E]``."""
    bounds = torch.arange(shape[0] + 1, device=keys.device) * shape[1]
    starts = torch.searchsorted(keys, bounds)
    # No check needed: keys ascend and are in range.
    return torch.sparse_csr_tensor(starts, keys % shape[1], values, shape, check_invariants=False)
