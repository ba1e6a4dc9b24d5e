"""Scaling of the features: fitted once, stored with the model, and applied to every graph that is embedded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.statistics import Statistics
from infomax.arrays.table import Features, Table
from infomax.errors import InputError, InputWarning

Scale = Literal["auto", "rows", "columns", "none"]


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

    @classmethod
    def fit(cls, features: Table | Features, kind: Scale = "auto", seen: NDArray[np.bool_] | None = None) -> Scaler:
        """Fit to ``[N, F]``, or to the rows of a mask ``[N]``, such as the split "seen".

        ``auto`` means rows if nothing is negative and half the entries are zero, else columns.
        """
        if check_scale(kind) in ("rows", "none"):
            return cls(kind)
        if seen is not None:
            features = features[seen]
        known = features.statistics if isinstance(features, Table) else Statistics.of(features)
        mean, variance, filled, negative = known
        if kind == "auto" and not negative and filled <= 0.5 * features.shape[0] * features.shape[1]:
            return cls("rows")
        # A column that is constant to float32 precision is centred, not divided: its deviation is 0 or rounding.
        deviation = np.where(variance > 1e-14 * np.maximum(mean**2, 1e-28), np.sqrt(variance), 1)
        is_sparse = features.sparse if isinstance(features, Table) else sparse.issparse(features)
        centre = np.zeros_like(mean) if is_sparse else mean
        return cls("columns", centre.astype(np.float32), deviation.astype(np.float32))

    def transform(self, features: Features) -> Features:
        """Scaled features ``[N, F]``; sparse features stay sparse."""
        if self.kind == "rows":
            total = np.asarray(features.sum(axis=1)).reshape(-1, 1)
            factor = np.divide(1, total, out=np.zeros_like(total), where=total != 0).astype(np.float32)
            return _times(features, factor)
        if self.kind == "columns" and self.mean is not None and self.deviation is not None:
            if sparse.issparse(features) and not self.mean.any():
                return _times(features, 1 / self.deviation[None, :])
            dense = features.toarray() if sparse.issparse(features) else features
            return _standardised(dense, self.mean, self.deviation)
        return features


def warn_if_zero(scaled: Table, scaler: Scaler) -> None:
    """Warn where scaled features ``[N, F]`` are all zero: so will be all vectors."""
    if not scaled.is_zero():
        return
    reason, remedy = "all features are zero", ""
    if scaler.kind == "columns":
        reason, remedy = "every column of the features is constant, so scaling makes it zero", ', or use scale="none"'
    message = f"{reason}: all vectors will be zero. Leave the features out, to use the degrees instead{remedy}."
    warnings.warn(message, InputWarning, stacklevel=2)


def check_scale(kind: Scale) -> Scale:
    """The kind of scaling; refused where it is unknown."""
    if kind not in get_args(Scale):
        raise InputError("scale", f"one of {', '.join(get_args(Scale))}", str(kind))
    return kind


def _standardised(x: NDArray[Any], mean: NDArray[np.float32], deviation: NDArray[np.float32]) -> NDArray[np.float32]:
    """``(X - mean) / deviation``, ``[N, F]``, computed on all cores."""
    import torch

    out = np.empty(x.shape, np.float32)  # NumPy's allocator uses large pages
    torch.sub(torch.from_numpy(x), torch.from_numpy(mean), out=torch.from_numpy(out)).div_(torch.from_numpy(deviation))
    return out


def _times(features: Any, factor: NDArray[Any]) -> Features:
    product: Features = sparse.csr_array(features.multiply(factor)) if sparse.issparse(features) else features * factor
    return product
