"""Scaling of the features: fitted once, stored with the model, and applied to every graph that is embedded.

It is fitted to statistics, which are computed once for a graph folder and kept in its graph.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import row_blocks
from infomax.errors import InputError

SMALL = 1 << 20
"""Numbers up to which scaling needs no threads."""
Scale = Literal["auto", "rows", "columns", "none"]


class Statistics(NamedTuple):
    """Statistics of features ``[N, F]``.

    Shapes:
        mean, variance: ``[F]`` float64
    """

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    filled: int
    """The number of entries that are not zero."""
    negative: bool
    """Whether any entry is negative."""

    @classmethod
    def of(cls, features: Any) -> Statistics:
        """Compute them, of an array, a sparse matrix, or anything that gives rows when it is indexed."""
        (n, f), total, filled, negative = features.shape, np.zeros(features.shape[1]), 0, False
        whole, known = [features] if sparse.issparse(features) else None, np.zeros(f, np.int64)
        for block in whole or row_blocks(features):
            values = block.data if sparse.issparse(block) else block
            if sparse.issparse(block):
                total += np.bincount(block.indices, values, f)
                known += np.bincount(block.indices, minlength=f)
            else:
                total += block.sum(axis=0, dtype=np.float64)
                known += len(block)
            filled += int(np.count_nonzero(values))
            negative = negative or bool((values < 0).any())
        mean = total / n
        squares = (n - known) * mean**2  # of the zeros that are not stored
        for block in whole or row_blocks(
            features
        ):  # by squared deviations: a difference of squares would cancel
            if sparse.issparse(block):
                squares += np.bincount(block.indices, (block.data - mean[block.indices]) ** 2, f)
            else:
                apart = block - mean
                squares += np.square(apart, out=apart).sum(axis=0)
        return cls(mean, squares / n, filled, negative)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them back exactly."""
        return {**self._asdict(), "mean": self.mean.tolist(), "variance": self.variance.tolist()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Statistics:
        """Read what `to_json` wrote."""
        mean, variance = (np.array(values[name], np.float64) for name in ("mean", "variance"))
        return cls(mean, variance, int(values["filled"]), bool(values["negative"]))


@dataclass(frozen=True)
class Scaler:
    """How features are scaled before an encoder sees them.

    - ``rows``: every row sums to 1; all-zero rows stay zero. For bags of words, as in the paper;
    - ``columns``: every column gets mean 0 and deviation 1; sparse features are only divided, so they stay sparse;
    - ``none``.

    Shapes:
        mean, deviation: ``[F]``, for ``columns`` only; for sparse features the mean is zero
    """

    kind: Scale
    mean: NDArray[np.float32] | None = None
    deviation: NDArray[np.float32] | None = None
    others: Mapping[str, Scaler] = field(default_factory=dict)
    """Those of the other types of nodes, where a graph has several."""

    @classmethod
    def fit(cls, features: Any, kind: Scale = "auto") -> Scaler:
        """Fit to an array or a sparse matrix ``[N, F]``; see `Table.fit_scaler` for a table."""
        if check_scale(kind) in ("rows", "none"):
            return cls(kind)
        return cls.of(Statistics.of(features), features.shape, sparse.issparse(features), kind)

    @classmethod
    def of(
        cls, statistics: Statistics, shape: tuple[int, int], is_sparse: bool, kind: Scale = "auto"
    ) -> Scaler:
        """Fit to the statistics of features ``[N, F]``, which may be sparse.

        ``auto`` means rows if nothing is negative and half the entries are zero, else columns.
        """
        mean, variance, filled, negative = statistics
        if kind == "auto" and not negative and filled <= 0.5 * shape[0] * shape[1]:
            return cls("rows")
        # A column that is constant to float32 precision is centred, not divided: its deviation is 0 or rounding.
        deviation = np.where(variance > 1e-14 * np.maximum(mean**2, 1e-28), np.sqrt(variance), 1)
        centre = np.zeros_like(mean) if is_sparse else mean
        return cls("columns", centre.astype(np.float32), deviation.astype(np.float32))

    @property
    def keeps_zeros(self) -> bool:
        """Whether zeros stay zeros, so that sparse features stay sparse."""
        return self.mean is None or not self.mean.any()

    def transform(self, features: Any) -> Any:
        """Scaled features ``[N, F]``; sparse features stay sparse."""
        if self.kind == "rows":
            total = np.asarray(features.sum(axis=1)).reshape(-1, 1)
            factor = np.divide(1, total, out=np.zeros_like(total), where=total != 0).astype(
                np.float32
            )
            return _times(features, factor)
        if self.kind == "columns" and self.mean is not None and self.deviation is not None:
            if sparse.issparse(features) and self.keeps_zeros:
                return _times(features, 1 / self.deviation[None, :])
            dense = features.toarray() if sparse.issparse(features) else features
            return _standardised(dense, self.mean, self.deviation)
        return features


def check_scale(kind: Scale) -> Scale:
    """The kind of scaling; refused where it is unknown."""
    if kind not in get_args(Scale):
        raise InputError("scale", f"one of {', '.join(get_args(Scale))}", str(kind))
    return kind


def _standardised(
    x: NDArray[Any], mean: NDArray[np.float32], deviation: NDArray[np.float32]
) -> NDArray[np.float32]:
    """``(X - mean) / deviation``, ``[N, F]``, computed on all cores."""
    if x.size <= SMALL:  # not worth the time to import torch; the bits are the same
        return np.divide(x - mean, deviation, dtype=np.float32)

    import torch

    out = np.empty(x.shape, np.float32)  # NumPy's allocator uses large pages
    torch.sub(torch.from_numpy(x), torch.from_numpy(mean), out=torch.from_numpy(out)).div_(
        torch.from_numpy(deviation)
    )
    return out


def _times(features: Any, factor: NDArray[Any]) -> Any:
    product: Any = (
        sparse.csr_array(features.multiply(factor))
        if sparse.issparse(features)
        else features * factor
    )
    return product
