"""Statistics of features: what `Scaler` needs, computed once for a graph folder and kept in its graph.json."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.arrays.blocks import row_blocks


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
        if sparse.issparse(features):
            columns, values = features.indices, features.data
            mean = np.bincount(columns, values, f) / n
            zeros = n - np.bincount(columns, minlength=f)
            variance = (np.bincount(columns, (values - mean[columns]) ** 2, f) + zeros * mean**2) / n
            return cls(mean, variance, int(np.count_nonzero(values)), bool((values < 0).any()))
        for block in row_blocks(features):
            total += block.sum(axis=0, dtype=np.float64)
            filled += int(np.count_nonzero(block))
            negative |= bool((block < 0).any())
        mean = total / n
        # By squared deviations: a difference of squares would cancel.
        squares = sum((np.square(block - mean).sum(axis=0) for block in row_blocks(features)), np.zeros(f))
        return cls(mean, squares / n, filled, negative)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` reads them back exactly."""
        return {**self._asdict(), "mean": self.mean.tolist(), "variance": self.variance.tolist()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Statistics:
        """Read what `to_json` wrote."""
        mean, variance = (np.array(values[name], np.float64) for name in ("mean", "variance"))
        return cls(mean, variance, int(values["filled"]), bool(values["negative"]))
