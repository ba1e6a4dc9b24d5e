"""Contrast: what the discriminator has to tell apart, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Contrast:
    """Patch representations of a graph and of a negative sample, and what the discriminator says of them.

    The score of a patch is a logit, the sum of its terms and the bias: above 0 it is taken for real.

    Shapes:
        nodes, places: ``[n]``, ``[m]``, the node of each positive, and that whose place in the graph a negative has.
        positives, negatives: ``[n, d]``, ``[m, d]``.
        positive_terms, negative_terms: ``[n, d]``, ``[m, d]``, what each dimension adds to the score.
    """

    nodes: NDArray[np.int64]
    places: NDArray[np.int64]
    positives: NDArray[np.float32]
    negatives: NDArray[np.float32]
    positive_terms: NDArray[np.float32]
    negative_terms: NDArray[np.float32]
    bias: float

    @property
    def positive_scores(self) -> NDArray[Any]:
        """``[n]``."""
        return np.asarray(self.positive_terms.sum(axis=1) + self.bias)

    @property
    def negative_scores(self) -> NDArray[Any]:
        """``[m]``."""
        return np.asarray(self.negative_terms.sum(axis=1) + self.bias)
