"""Positive and negative vectors, and the discriminator's scores of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """Vectors of a graph's nodes (positives) and of a corrupted graph (negatives), with the discriminator's scores.

    A score is a logit, the sum of a vector's terms and the bias. Above 0 the discriminator takes the vector for a
    positive.

    Shapes:
        nodes: ``[n]``, the node of each positive.
        places: ``[m]``, the node whose place in the graph each negative has.
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
        """The scores ``[n]`` of the positives."""
        return np.asarray(self.positive_terms.sum(axis=1) + self.bias)

    @property
    def negative_scores(self) -> NDArray[Any]:
        """The scores ``[m]`` of the negatives."""
        return np.asarray(self.negative_terms.sum(axis=1) + self.bias)
