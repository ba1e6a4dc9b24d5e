"""Numbers that need only arrays: how right predictions are, and how vectors fill their space."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS_PER_BLOCK = 16_384
"""Rows that are taken in double precision at a time."""


def accuracy(predicted: NDArray[Any], actual: NDArray[Any]) -> NDArray[np.float64]:
    """The share of right codes, ``[...]``, of ``[..., N]`` against ``[N]``; a fraction of 1."""
    return np.asarray((predicted == actual).mean(axis=-1))


def micro_f1(predicted: NDArray[Any], actual: NDArray[Any]) -> NDArray[np.float64]:
    """F1 pooled over all nodes and labels, ``[...]``, of ``[..., N, C]`` of 0/1 against ``[N, C]``.

    Every pair of a node and a label counts the same: 2 TP / (2 TP + FP + FN), a fraction of 1.
    Where no label is predicted, and none is there, the score is 0.
    """
    is_predicted = predicted.astype(bool)
    is_actual = actual.astype(bool)
    hits = (is_predicted & is_actual).sum(axis=(-2, -1))
    predicted_and_actual = is_predicted.sum(axis=(-2, -1)) + is_actual.sum()
    return np.asarray(2 * hits / np.maximum(predicted_and_actual, 1))


def macro_f1(predicted: NDArray[Any], actual: NDArray[Any]) -> float:
    """The mean of F1 over classes, each counting the same, of codes ``[..., N]`` against ``[N]``.

    A predicted code of -1 stands for no class.
    """
    actual = np.broadcast_to(actual, predicted.shape)
    class_count = int(max(predicted.max(initial=0), actual.max(initial=0))) + 1

    def nodes_of_class(codes: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(codes[codes >= 0], minlength=class_count)

    hits = nodes_of_class(actual[predicted == actual])
    predicted_and_actual = nodes_of_class(predicted) + nodes_of_class(actual)
    occurs = predicted_and_actual > 0
    return float((2 * hits[occurs] / predicted_and_actual[occurs]).mean())


def auc(logits: NDArray[Any], classes: NDArray[Any], actual: NDArray[Any]) -> float:
    """The mean over classes of the AUC of each class against the other ones; guessing has 0.5.

    Classes that no node has, or all nodes have, are left out.

    Shapes:
        logits: ``[N, K]`` of classes ``[K]``; actual: codes ``[N]``.
    """
    # A softmax, in logarithms: the logits of two nodes are comparable only as shares.
    log_shares = logits.astype(np.float64)
    log_shares -= log_shares.max(axis=1, keepdims=True)
    log_shares -= np.log(np.exp(log_shares).sum(axis=1, keepdims=True))

    scores = []
    for column, code in enumerate(classes):
        in_class = log_shares[actual == code, column]
        outside_class = log_shares[actual != code, column]
        if len(in_class) and len(outside_class):
            scores.append(auc_of_values(in_class, outside_class))
    return float(np.mean(scores)) if scores else 0.5


def auc_of_values(positive: NDArray[Any], negative: NDArray[Any]) -> float:
    """How often a value of ``[P]`` is above one of ``[N]``; equal values count half."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    not_above = np.searchsorted(ordered, positive, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def auc_standard_error(auc: float, positives: int, negatives: int) -> float:
    """How far an AUC of so many values deviates by luck: its standard error.

    By Hanley and McNeil (1982), who take the values of both sides as exponential.
    """
    both_above = auc / (2 - auc)
    above_both = 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc)
    variance += (positives - 1) * (both_above - auc**2)
    variance += (negatives - 1) * (above_both - auc**2)
    return float(np.sqrt(variance / (positives * negatives)))


def silhouette(vectors: NDArray[Any], codes: NDArray[Any]) -> float:
    """Mean silhouette, from -1 to 1, of vectors ``[N, d]`` grouped by codes ``[N]``.

    Nodes of code -1 are left out.
    """
    from sklearn.metrics import silhouette_score

    has_code = codes >= 0
    return float(silhouette_score(vectors[has_code], codes[has_code]))


def singular_values(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The d singular values of vectors ``[N, d]``, descending; 0 where they are only rounding."""
    # The Gram matrix [d, d] has the squared singular values, and is far cheaper than a
    # decomposition of [N, d]. It is summed over blocks, so that the float64 copy stays small.
    gram = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        block = vectors[start : start + ROWS_PER_BLOCK].astype(np.float64)
        gram += block.T @ block
    squares = np.linalg.eigvalsh(gram)[::-1]
    rounding = len(gram) * np.finfo(np.float64).eps * squares[0]
    return np.sqrt(np.where(squares > max(rounding, 0.0), squares, 0.0))


def effective_rank(vectors: NDArray[Any]) -> float:
    """How many directions vectors ``[N, d]`` use: exp of the entropy of their singular values.

    It is d where all directions are equally strong, 1 where all vectors lie on one line, 0 where
    all are zero.
    """
    values = singular_values(vectors)
    values = values[values > 0]
    if len(values) == 0:
        return 0.0
    shares = values / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def dead_dimensions(vectors: NDArray[Any]) -> int:
    """How many columns of ``[N, d]`` vary by less than a millionth of the one that varies most."""
    deviations = vectors.std(axis=0, dtype=np.float64)
    return int((deviations <= 1e-6 * deviations.max()).sum())
