"""Linear probes: what a linear classifier reads off the vectors of the labelled nodes.

All have one signature, ``probe(vectors, codes, splits, seed=0, device="cpu") -> Score``, and are found in `PROBES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.errors import InputError
from infomax.evaluation.logistic import Regression, logistic_path
from infomax.evaluation.metrics import accuracy, auc, macro_f1, micro_f1
from infomax.evaluation.splits import PARTS, Splits, known
from infomax.kernels import Adam
from infomax.kernels.initialisation import glorot
from infomax.kernels.replay import repeat
from infomax.progress import Progress, followed, silent

Vectors: TypeAlias = NDArray[np.floating[Any]] | Tensor | sparse.csr_array
"""``[N, d]``: an array, a tensor on any device, or CSR, of which only the rows in use are made dense."""

Device: TypeAlias = str | torch.device

STEPS, LEARNING_RATE = 100, 0.01
MANY = 10
"""Training nodes per column of the vectors from which a loss without regularisation has a lowest point."""
COSTS = tuple(10.0**power for power in range(-3, 8))
"""Costs C of the validated probe, from strong to weak regularisation, for vectors of mean square length 1."""
ENOUGH, PATIENCE = 100.0, 2
"""The cost from which the search may end, and the costs in a row that are then no better than the best."""
SMALL = 1 << 22
"""Stored entries of the training rows below which a second thread makes their products slower, not faster."""
ON_GPU = 1 << 28
"""Numbers up to which all vectors are kept on a GPU while splits are scored."""
BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Score:
    """What a probe found.

    Shapes:
        values: ``[R]``, the score of each initialisation on the test nodes, a fraction of 1.
        predictions: ``[R, T]`` codes of the T test nodes in row order, or ``[R, T, C]`` of 0/1.
    """

    metric: str
    values: NDArray[np.float64]
    predictions: NDArray[Any]
    chosen: dict[str, float] = field(default_factory=dict)
    """What validation chose, by name."""
    beside: dict[str, float] = field(default_factory=dict)
    """Of one label: "macro-F1", and where a probe ranks nodes "AUC", see `infomax.evaluation.metrics`."""

    @classmethod
    def of(cls, predictions: NDArray[Any], codes: NDArray[Any]) -> Score:
        """The accuracy of predictions ``[R, T]`` for codes ``[T]``, or the micro-F1 of ``[R, T, C]`` for ``[T, C]``."""
        if codes.ndim == 2:
            return cls("micro-F1", micro_f1(predictions, codes), predictions)
        beside = {"macro-F1": macro_f1(predictions, codes)}
        return cls("accuracy", accuracy(predictions, codes), predictions, beside=beside)

    @property
    def value(self) -> float:
        """The score: the mean over initialisations."""
        return float(self.values.mean())


Probe: TypeAlias = Callable[..., Score]
"""Trains on ``splits["train"]``, chooses on ``splits["validation"]``, scores once on ``splits["test"]``.

It takes vectors ``[N, d]`` and class codes ``[N]``, or ``[N, C]`` of 0/1 where a node has any number of labels. Nodes
whose code is -1 are in none of the three.
"""


def paper_probe(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    *,
    seed: int = 0,
    device: Device = "cpu",
    restarts: int | None = None,
    steps: int = STEPS,
) -> Score:
    """The paper's probe: 100 full-batch Adam steps at 0.01 from a Glorot start, nothing chosen, nothing regularised.

    Single labels: softmax regression, accuracy. Many labels: one logistic regression per label on vectors standardised
    over the training nodes, pooled micro-F1 at 0.5. The score is the mean over ``restarts`` initialisations, which are
    trained together: 20 for one label, since 100 steps are too few to forget where they began, and 1 for many, since
    over many regressions that averages out.
    """
    train = _rows(vectors, codes, splits, "train")
    many = codes.ndim == 2
    x = _dense(vectors, train, device)
    mean, spread = (
        (x.mean(0), x.std(0, correction=0)) if many else (x.new_zeros(()), x.new_ones(()))
    )
    spread = torch.where(spread > 0, spread, 1)  # a constant column has none to divide by
    targets = torch.as_tensor(codes[train].astype(np.int64), device=device)
    # The number of classes is the training nodes' too: nothing about the test labels comes in, not even that.
    y = targets.float() if many else torch.nn.functional.one_hot(targets).float()
    start = first_weights(restarts or (1 if many else 20), x.shape[1], y.shape[1], seed).to(device)
    weight, bias = fit_linear((x - mean) / spread, y, start, many, steps)
    return _scored(vectors, codes, splits, device, weight, bias, mean, spread)


def converged_probe(
    vectors: Vectors, codes: NDArray[Any], splits: Splits, *, seed: int = 0, device: Device = "cpu"
) -> Score:
    """The paper's probe without its limit of 100 steps.

    Many labels: to the lowest loss, so that the start changes nothing. Single labels, or few training nodes: 1,000
    steps, since these nodes can be told apart without error, and the loss then has no lowest point.
    """
    train = _rows(vectors, codes, splits, "train")
    if codes.ndim == 1 or len(train) < MANY * vectors.shape[1]:
        return paper_probe(vectors, codes, splits, seed=seed, device=device, steps=10 * STEPS)
    x = _dense(vectors, train, device)
    _, found = next(logistic_path(x, codes[train], [np.inf]))
    weight, bias = (
        torch.as_tensor(part, dtype=torch.float32, device=device)
        for part in (found.weights, found.bias)
    )
    return _scored(vectors, codes, splits, device, weight[:, None], bias[None])


def first_weights(restarts: int, d: int, classes: int, seed: int) -> Tensor:
    """Glorot's initial weights ``[d, R, C]``; those of a restart do not depend on how many follow."""
    draws = glorot(
        (restarts, d, classes), (d, classes), generator=torch.Generator().manual_seed(seed)
    )
    return draws.detach().transpose(0, 1).contiguous()


def fit_linear(
    x: Tensor, y: Tensor, weight: Tensor, many: bool, steps: int = STEPS
) -> tuple[Tensor, Tensor]:
    """Weights ``[d, R, C]`` and biases ``[R, C]`` after so many steps of Adam on the mean cross-entropy.

    R regressions side by side make each step two matrix products. The gradient is closed, prediction minus target,
    both for softmax and for independent sigmoids, and nothing in the loop waits for the device.

    Shapes:
        x: ``[n, d]``; y: ``[n, C]``, of 0/1; weight: ``[d, R, C]``, where the regressions start.
    """
    weight, bias = weight.clone(), weight.new_zeros(weight.shape[1:])
    optimiser = Adam([weight, bias], LEARNING_RATE)
    repeat(lambda: optimiser.step(linear_gradient(x, y, weight, bias, many)), steps, x.device)
    return weight, bias


def linear_gradient(
    x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, many: bool
) -> tuple[Tensor, Tensor]:
    """Gradient of each regression's mean cross-entropy: of the weights ``[d, R, C]`` and of the biases ``[R, C]``.

    The mean is over nodes, and with ``many`` over labels too.
    """
    logits = _logits(x, weight, bias)
    error = (logits.sigmoid() if many else logits.softmax(-1)) - y[:, None]
    error /= y.numel() if many else len(y)
    return (x.T @ error.flatten(1)).view_as(weight), error.sum(0)


def validated_probe(
    vectors: Vectors, codes: NDArray[Any], splits: Splits, *, seed: int = 0, device: Device = "cpu"
) -> Score:
    """Logistic regression, its cost C chosen on the validation nodes, then scored once.

    Vectors are centred and divided by one number, the root mean square distance of the training rows from their mean,
    so that the score does not depend on the scale of the vectors, nor on a rotation or a shift. All rows are divided by
    the same number, so what a linear map can read from the length of a vector stays readable; with rows of unit length
    it would be lost, and of vectors with a single column all but the sign.

    Costs are tried from the strongest regularisation on. From `ENOUGH` on the search ends once `PATIENCE` costs in a
    row are no better than the best, if that is better than the first: below some cost all predict the same class. Of
    equally accurate costs the one nearest to 1 is chosen. The problem is convex, so the seed changes nothing.
    """
    from threadpoolctl import threadpool_limits

    if codes.ndim == 2:
        raise InputError(
            "validated probe", "one label per node", "several", "Use the paper's probe."
        )
    train, validation, test = (_rows(vectors, codes, splits, name) for name in PARTS)
    if len(np.unique(codes[train])) < 2:
        raise InputError("split 'train'", "nodes of at least two classes", "one class")
    x, held_out = _some(vectors, train), _some(vectors, validation)
    tried: list[tuple[float, float, Regression]] = []

    def better(found: tuple[float, float, Regression]) -> tuple[float, float]:
        return found[0], -abs(np.log10(found[1]))

    small = (
        torch.device(device).type == "cuda" or getattr(x, "nnz", x.shape[0] * x.shape[1]) < SMALL
    )
    with threadpool_limits(1 if small else None):
        for cost, model in logistic_path(x, codes[train], COSTS, device):
            tried.append((float(accuracy(model.predict(held_out), codes[validation])), cost, model))
            best = max(tried, key=better)
            worse = len(tried) - 1 - tried.index(best)
            if cost >= ENOUGH and worse >= PATIENCE and best[0] > tried[0][0]:
                break
    _, cost, model = max(tried, key=better)
    blocks = [torch.as_tensor(model.logits(_some(vectors, rows))).cpu() for rows in _blocks(test)]
    logits = torch.cat(blocks).numpy()
    predictions = model.classes[logits.argmax(axis=1)][None]
    beside = {
        "macro-F1": macro_f1(predictions, codes[test]),
        "AUC": auc(logits, model.classes, codes[test]),
    }
    return Score("accuracy", accuracy(predictions, codes[test]), predictions, {"C": cost}, beside)


def score_splits(
    probe: Probe,
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Sequence[Splits],
    *,
    device: Device = "cpu",
    progress: Progress = silent,
) -> list[Score]:
    """The score of each split."""
    dense = not sparse.issparse(vectors) and vectors.shape[0] * vectors.shape[1] <= ON_GPU
    if torch.device(device).type == "cuda" and dense:
        vectors = torch.as_tensor(vectors, device=device)  # once, not with each split
    each = followed(splits, progress, "splits", len(splits), 1)
    return [probe(vectors, codes, split, device=device) for split in each]


PROBES: dict[str, Probe] = {
    "paper": paper_probe,
    "converged": converged_probe,
    "validated": validated_probe,
}


def choose_probe(name: str) -> Probe:
    """Look up a probe by name."""
    if name not in PROBES:
        raise InputError("probe", f"one of {', '.join(PROBES)}", name)
    return PROBES[name]


def _rows(vectors: Vectors, codes: NDArray[Any], splits: Splits, name: str) -> NDArray[np.int64]:
    """The rows of one part of the split whose label is known."""
    if vectors.shape[0] != len(codes):
        raise InputError("labels", f"{vectors.shape[0]}, one per vector", str(len(codes)))
    rows = np.flatnonzero(splits[name] & known(codes)) if name in splits else np.empty(0, np.int64)
    if len(rows) == 0:
        raise InputError(f"split {name!r}", "at least one labelled node", "none")
    return rows


def _blocks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows a few thousand at a time, so that sparse vectors are never all dense at once."""
    return np.split(rows, range(BLOCK, len(rows), BLOCK))


def _some(vectors: Vectors, rows: NDArray[np.int64]) -> Any:
    """Some rows ``[n, d]``, as what they were."""
    return (
        vectors[torch.from_numpy(rows).to(vectors.device)]
        if isinstance(vectors, Tensor)
        else vectors[rows]
    )


def _dense(vectors: Vectors, rows: NDArray[np.int64], device: Device) -> Tensor:
    """Some rows ``[n, d]`` as a float32 tensor on the device."""
    block = _some(vectors, rows)
    return torch.as_tensor(
        block.toarray() if sparse.issparse(block) else block, dtype=torch.float32, device=device
    )


def _scored(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    device: Device,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor | float = 0.0,
    spread: Tensor | float = 1.0,
) -> Score:
    """Score R linear classifiers of ``(x - mean) / spread``, ``[d, R, C]`` and ``[R, C]``, on the test nodes."""
    test, found = _rows(vectors, codes, splits, "test"), []
    for rows in _blocks(test):
        logits = _logits((_dense(vectors, rows, device) - mean) / spread, weight, bias)
        found.append(logits > 0 if codes.ndim == 2 else logits.argmax(-1))
    return Score.of(torch.cat(found).transpose(0, 1).cpu().numpy(), codes[test])


def _logits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``[n, d]`` by ``[d, R, C]`` -> ``[n, R, C]``."""
    return torch.addmm(bias.flatten(), x, weight.flatten(1)).view(-1, *bias.shape)
