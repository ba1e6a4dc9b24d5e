"""Numbers that need only arrays: how right the predictions are, and how much of the space the vectors use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def accuracy(predicted: NDArray[Any], actual: NDArray[Any]) -> NDArray[np.float64]:
    """Share of nodes named right: ``[..., N]`` codes against ``[N]`` -> ``[...]``, a fraction of 1."""
    return np.asarray((predicted == actual).mean(axis=-1))


def micro_f1(predicted: NDArray[Any], actual: NDArray[Any]) -> NDArray[np.float64]:
    """F1 pooled over the whole label matrix: ``[..., N, C]`` of 0/1 against ``[N, C]`` -> ``[...]``, a fraction of 1.

    Every node-label pair counts the same: 2 TP / (2 TP + FP + FN). Nothing predicted and nothing there scores 0.
    """
    hits = (predicted.astype(bool) & actual.astype(bool)).sum(axis=(-2, -1))
    claims = predicted.astype(bool).sum(axis=(-2, -1)) + actual.astype(bool).sum()
    return np.asarray(2 * hits / np.maximum(claims, 1))


def macro_f1(predicted: NDArray[Any], actual: NDArray[Any]) -> float:
    """The mean over classes of F1, each class counting the same: codes ``[..., N]``, -1 for none, against ``[N]``."""
    actual = np.broadcast_to(actual, predicted.shape)
    count = int(max(predicted.max(initial=0), actual.max(initial=0))) + 1
    hits, claims, there = (
        np.bincount(one[one >= 0], minlength=count)
        for one in (actual[predicted == actual], predicted, actual)
    )
    known = claims + there > 0
    return float((2 * hits[known] / (claims + there)[known]).mean())


def auc(logits: NDArray[Any], classes: NDArray[Any], actual: NDArray[Any]) -> float:
    """The mean over classes of the AUC of each against the others; logits ``[N, K]`` of classes ``[K]``, codes ``[N]``.

    Guessing has 0.5. Classes that no node has, or all nodes have, are left out.
    """
    log_shares = logits.astype(np.float64)
    log_shares -= log_shares.max(axis=1, keepdims=True)
    log_shares -= np.log(np.exp(log_shares).sum(axis=1, keepdims=True))
    scores = []
    for column, code in enumerate(classes):
        of_class = log_shares[actual == code, column]
        of_others = log_shares[actual != code, column]
        if len(of_class) and len(of_others):
            scores.append(auc_of_values(of_class, of_others))
    return float(np.mean(scores)) if scores else 0.5


def auc_of_values(positive: NDArray[Any], negative: NDArray[Any]) -> float:
    """How often one of the values ``[P]`` is above one of the others ``[N]``; of equal ones, half of the times."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    not_above = np.searchsorted(ordered, positive, side="right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def silhouette(vectors: NDArray[Any], codes: NDArray[Any]) -> float:
    """Mean silhouette of ``[N, d]`` vectors grouped by ``[N]`` codes, from -1 to 1; nodes of code -1 are left out."""
    from sklearn.metrics import silhouette_score

    known = codes >= 0
    return float(silhouette_score(vectors[known], codes[known]))


def singular_values(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The d singular values of ``[N, d]`` vectors, descending; 0 where they are only rounding."""
    # The Gram matrix [d, d] has the squared singular values, and is far cheaper than a decomposition of [N, d]. It is
    # summed over blocks of rows, so that the float64 copy stays small.
    gram = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(vectors), 16_384):
        block = vectors[start : start + 16_384].astype(np.float64)
        gram += block.T @ block
    squares = np.linalg.eigvalsh(gram)[::-1]
    floor = len(gram) * np.finfo(np.float64).eps * squares[0]
    return np.sqrt(np.where(squares > max(floor, 0.0), squares, 0.0))


def effective_rank(vectors: NDArray[Any]) -> float:
    """How many directions ``[N, d]`` vectors really use: exp of the entropy of their normalised singular values.

    d when all directions are equally strong, 1 when all vectors lie on one line, 0 when all are zero.
    """
    values = singular_values(vectors)
    values = values[values > 0]
    if len(values) == 0:
        return 0.0
    share = values / values.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def dead_dimensions(vectors: NDArray[Any]) -> int:
    """How many of the d columns of ``[N, d]`` hardly vary: by less than a millionth of the one that varies most."""
    spread = vectors.std(axis=0, dtype=np.float64)
    return int((spread <= 1e-6 * spread.max()).sum())
