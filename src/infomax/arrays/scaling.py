"""Scaling of the features: fitted once, stored with the model, applied to every graph embedded.

A scaler is fitted to statistics, which a graph folder keeps in its graph.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import BLOCK_BYTES, row_blocks
from infomax.errors import InputError

NUMBERS_WITHOUT_TORCH = 1 << 20
"""Numbers up to which scaling is done by NumPy on one core."""
Scale = Literal["auto", "rows", "columns", "none"]


class Statistics(NamedTuple):
    """Statistics of features ``[N, F]``.

    Shapes:
        mean, variance: ``[F]`` float64
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    nonzero_count: int
    """The number of entries that are not zero."""
    has_negative: bool
    """Whether any entry is negative."""

    @classmethod
    def of(cls, features: Any, bytes_per_block: int = BLOCK_BYTES) -> Statistics:
        """The statistics of features ``[N, F]``, computed in two passes.

        Args:
            features: an array, a sparse matrix, or anything that gives rows when it is indexed.
            bytes_per_block: bytes of dense rows that are read at a time.
        """
        num_rows, num_columns = features.shape

        def blocks() -> Iterable[Any]:
            if sparse.issparse(features):
                return [features]
            return row_blocks(features, bytes_per_block)

        # A first pass for the means.
        sums = np.zeros(num_columns)
        stored_counts = np.zeros(num_columns, np.int64)
        nonzero_count = 0
        has_negative = False
        for block in blocks():
            if sparse.issparse(block):
                values = block.data
                sums += np.bincount(block.indices, values, num_columns)
                stored_counts += np.bincount(block.indices, minlength=num_columns)
            else:
                values = block
                sums += block.sum(axis=0, dtype=np.float64)
                stored_counts += len(block)
            nonzero_count += int(np.count_nonzero(values))
            has_negative = has_negative or bool((values < 0).any())
        mean = sums / num_rows

        # By squared deviations in a second pass: a difference of squares would cancel. Zeros that
        # are not stored deviate by the mean.
        squared_deviations = (num_rows - stored_counts) * mean**2
        for block in blocks():
            if sparse.issparse(block):
                squares = (block.data - mean[block.indices]) ** 2
                squared_deviations += np.bincount(block.indices, squares, num_columns)
            else:
                deviations = block - mean
                squared_deviations += np.square(deviations, out=deviations).sum(axis=0)
        return cls(mean, squared_deviations / num_rows, nonzero_count, has_negative)

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON values; `from_json` reads them back exactly."""
        return {
            "mean": self.mean.tolist(),
            "variance": self.variance.tolist(),
            "filled": self.nonzero_count,
            "negative": self.has_negative,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Statistics:
        """Read what `to_json` wrote."""
        mean = np.array(values["mean"], np.float64)
        variance = np.array(values["variance"], np.float64)
        return cls(mean, variance, int(values["filled"]), bool(values["negative"]))


@dataclass(frozen=True)
class Scaler:
    """How features are scaled before an encoder sees them.

    - ``rows``: every row sums to 1; all-zero rows stay zero. For bags of words, as in the paper;
    - ``columns``: every column gets mean 0 and deviation 1; sparse features are only divided, so
      that they stay sparse;
    - ``none``.

    Shapes:
        mean, deviation: ``[F]``, for ``columns`` only; for sparse features the mean is zero
    """

    scale: Scale
    mean: NDArray[np.float32] | None = None
    deviation: NDArray[np.float32] | None = None
    other_types: Mapping[str, Scaler] = field(default_factory=dict)
    """The scalers of the other types of nodes, where a graph has several."""

    @classmethod
    def fit(cls, features: Any, scale: Scale = "auto") -> Scaler:
        """Fit to an array or a sparse matrix ``[N, F]``.

        `FeatureTable.fit_scaler` does so for a table, which may be mapped.
        """
        if check_scale(scale) in ("rows", "none"):
            return cls(scale)
        statistics = Statistics.of(features)
        return cls.of(statistics, features.shape, sparse.issparse(features), scale)

    @classmethod
    def of(
        cls, statistics: Statistics, shape: tuple[int, int], is_sparse: bool, scale: Scale = "auto"
    ) -> Scaler:
        """Fit to the statistics of features.

        Args:
            statistics: of all entries.
            shape: ``(N, F)``.
            is_sparse: whether the features are stored sparse.
            scale: ``columns``; or ``auto``, which means rows if nothing is negative and half of
                the entries are zero, else columns.
        """
        mean, variance, nonzero_count, has_negative = statistics
        is_mostly_zero = nonzero_count <= 0.5 * shape[0] * shape[1]
        if scale == "auto" and not has_negative and is_mostly_zero:
            return cls("rows")

        # A column that is constant to float32 precision is centred, not divided: its deviation is
        # 0 or rounding.
        is_constant = variance <= 1e-14 * np.maximum(mean**2, 1e-28)
        deviation = np.where(is_constant, 1, np.sqrt(variance))
        centre = np.zeros_like(mean) if is_sparse else mean
        return cls("columns", centre.astype(np.float32), deviation.astype(np.float32))

    @property
    def keeps_zeros(self) -> bool:
        """Whether zeros stay zeros, so that sparse features stay sparse."""
        return self.mean is None or not self.mean.any()

    def transform(self, features: Any) -> Any:
        """Scaled features ``[N, F]``; sparse features stay sparse."""
        if self.scale == "rows":
            # Rows that sum to zero are all zero, and stay so.
            row_sums = np.asarray(features.sum(axis=1)).reshape(-1, 1)
            factors = np.divide(1, row_sums, out=np.zeros_like(row_sums), where=row_sums != 0)
            return _multiply(features, factors.astype(np.float32))
        if self.scale == "columns" and self.mean is not None and self.deviation is not None:
            if sparse.issparse(features) and self.keeps_zeros:
                return _multiply(features, 1 / self.deviation[None, :])
            dense = features.toarray() if sparse.issparse(features) else features
            return _standardised(dense, self.mean, self.deviation)
        return features


def check_scale(scale: Scale) -> Scale:
    """The name of a scaling; refused where it is unknown."""
    if scale not in get_args(Scale):
        raise InputError("scale", f"one of {', '.join(get_args(Scale))}", str(scale))
    return scale


def _standardised(
    x: NDArray[Any], mean: NDArray[np.float32], deviation: NDArray[np.float32]
) -> NDArray[np.float32]:
    """``(X - mean) / deviation``, ``[N, F]``, computed on all cores."""
    # Few numbers are not worth the time to import torch; the bits are the same.
    if x.size <= NUMBERS_WITHOUT_TORCH:
        return np.divide(x - mean, deviation, dtype=np.float32)

    import torch

    # NumPy's allocator uses large pages.
    standardised = np.empty(x.shape, np.float32)
    out = torch.from_numpy(standardised)
    torch.sub(torch.from_numpy(x), torch.from_numpy(mean), out=out)
    out.div_(torch.from_numpy(deviation))
    return standardised


def _multiply(features: Any, factors: NDArray[Any]) -> Any:
    if sparse.issparse(features):
        return sparse.csr_array(features.multiply(factors))
    return features * factors
