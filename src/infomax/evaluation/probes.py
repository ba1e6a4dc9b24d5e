"""Linear probes: what a linear classifier reads off the vectors of the labelled nodes.

All have one signature, ``probe(vectors, codes, splits, seed=0, device="cpu") -> Score``, and are
found in `PROBES`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.errors import InputError
from infomax.evaluation.logistic import SETTINGS, Regression, RegressionSettings, logistic_path
from infomax.evaluation.metrics import accuracy, auc, macro_f1, micro_f1
from infomax.evaluation.splits import SPLIT_PARTS, Splits, is_labelled
from infomax.kernels import Adam
from infomax.kernels.initialisation import glorot
from infomax.kernels.replay import repeat
from infomax.progress import Progress, followed, silent

Vectors: TypeAlias = NDArray[np.floating[Any]] | Tensor | sparse.csr_array
"""``[N, d]``: an array, a tensor on any device, or CSR, whose rows are made dense only in use."""

Device: TypeAlias = str | torch.device

STEPS, LEARNING_RATE = 100, 0.01
"""Of the paper's probe."""
PAPER_PROBE_RESTARTS = 20
"""Initialisations of the paper's probe for single labels."""
NODES_PER_COLUMN = 10
"""Training nodes per column of the vectors from which an unregularised loss has a lowest point."""
PROBE_COSTS = tuple(10.0**power for power in range(-3, 8))
"""Costs C of the validated probe, from strong to weak regularisation, for vectors of mean square
length 1."""
LARGEST_REQUIRED_COST = 100.0
"""All costs below are tried; from here on the search may end."""
COST_PATIENCE = 2
"""Costs in a row that are no better than the best, after which the search ends."""
MOST_ENTRIES_FOR_ONE_THREAD = 1 << 22
"""Stored entries of the training rows below which a second thread makes their products slower."""
MOST_NUMBERS_ON_GPU = 1 << 28
"""Numbers up to which all vectors are kept on a GPU while splits are scored."""
ROWS_PER_BLOCK = 4096
"""Test rows that are predicted, and made dense, at a time."""


@dataclass(frozen=True, eq=False)
class Score:
    """What a probe measured on the test nodes.

    Shapes:
        values: ``[R]``, the score of each initialisation, a fraction of 1.
        predictions: ``[R, T]`` codes of the T test nodes in row order, or ``[R, T, C]`` of 0/1.
    """

    metric: str
    values: NDArray[np.float64]
    predictions: NDArray[Any]
    hyperparameters: dict[str, float] = field(default_factory=dict)
    """What was chosen on the validation nodes, by name."""
    other_metrics: dict[str, float] = field(default_factory=dict)
    """For single labels "macro-F1", and "AUC" where a probe ranks nodes; see
    `infomax.evaluation.metrics`."""

    @classmethod
    def of(cls, predictions: NDArray[Any], codes: NDArray[Any]) -> Score:
        """The accuracy of codes ``[R, T]`` against ``[T]``, or the micro-F1 of ``[R, T, C]``."""
        if codes.ndim == 2:
            return cls("micro-F1", micro_f1(predictions, codes), predictions)
        other_metrics = {"macro-F1": macro_f1(predictions, codes)}
        values = accuracy(predictions, codes)
        return cls("accuracy", values, predictions, other_metrics=other_metrics)

    @property
    def value(self) -> float:
        """The score: the mean over initialisations."""
        return float(self.values.mean())


Probe: TypeAlias = Callable[..., Score]
"""Trains on the part "train", chooses on "validation", and scores once on "test".

It takes vectors ``[N, d]`` and class codes ``[N]``, or ``[N, C]`` of 0/1 where a node may have
several labels. Nodes whose code is -1 are in none of the three.
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
    rows_per_block: int = ROWS_PER_BLOCK,
) -> Score:
    """The paper's probe: 100 full-batch steps of Adam at 0.01 from a Glorot start, unregularised.

    Single labels: softmax regression, accuracy. Several labels: one logistic regression per label
    on vectors standardised over the training nodes, pooled micro-F1 at 0.5. Nothing is chosen.

    The score is the mean over ``restarts`` initialisations, which are trained together: 20 for
    single labels, since 100 steps are too few to forget where they began; and 1 for several, since
    over many regressions that averages out.
    """
    train_rows = _rows_of_part(vectors, codes, splits, "train")
    x = _dense_rows(vectors, train_rows, device)
    targets = torch.as_tensor(codes[train_rows].astype(np.int64), device=device)
    has_many_labels = codes.ndim == 2
    if has_many_labels:
        y = targets.float()
        mean = x.mean(0)
        deviation = x.std(0, correction=0)
        deviation = torch.where(deviation > 0, deviation, 1)  # a constant column stays as it is
    else:
        # The number of classes is that of the training nodes: nothing about the test labels, not
        # even their number, may come in.
        y = torch.nn.functional.one_hot(targets).float()
        mean = x.new_zeros(())
        deviation = x.new_ones(())

    if not restarts:
        restarts = 1 if has_many_labels else PAPER_PROBE_RESTARTS
    start = first_weights(restarts, x.shape[1], y.shape[1], seed).to(device)
    weight, bias = fit_linear((x - mean) / deviation, y, start, has_many_labels, steps)
    classifiers = _Classifiers(weight, bias, mean, deviation)
    return _score_on_test(vectors, codes, splits, device, classifiers, rows_per_block)


def converged_probe(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    *,
    seed: int = 0,
    device: Device = "cpu",
    rows_per_block: int = ROWS_PER_BLOCK,
) -> Score:
    """The paper's probe without its limit of 100 steps.

    Several labels: to the lowest loss, so that the start changes nothing. Single labels, or few
    training nodes: 1,000 steps, since these nodes can be told apart without error, and the loss
    then has no lowest point.
    """
    train_rows = _rows_of_part(vectors, codes, splits, "train")
    if codes.ndim == 1 or len(train_rows) < NODES_PER_COLUMN * vectors.shape[1]:
        return paper_probe(
            vectors,
            codes,
            splits,
            seed=seed,
            device=device,
            steps=10 * STEPS,
            rows_per_block=rows_per_block,
        )
    x = _dense_rows(vectors, train_rows, device)
    _, regression = next(logistic_path(x, codes[train_rows], [np.inf]))
    weight = torch.as_tensor(regression.weights, dtype=torch.float32, device=device)
    bias = torch.as_tensor(regression.bias, dtype=torch.float32, device=device)
    classifiers = _Classifiers(weight[:, None], bias[None])
    return _score_on_test(vectors, codes, splits, device, classifiers, rows_per_block)


def validated_probe(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    *,
    seed: int = 0,
    device: Device = "cpu",
    rows_per_block: int = ROWS_PER_BLOCK,
    settings: RegressionSettings = SETTINGS,
) -> Score:
    """Logistic regression whose cost C is chosen on the validation nodes, then scored once.

    Vectors are centred and divided by one number, the root mean square distance of the training
    rows from their mean, so that the score does not depend on the scale of the vectors, nor on a
    rotation or a shift. All rows are divided by the same number, so what a linear map can read from
    the length of a vector stays readable; with rows of unit length it would be lost, and of vectors
    with a single column all but the sign.

    Costs are tried from the strongest regularisation on. From `LARGEST_REQUIRED_COST` on the search
    ends once `COST_PATIENCE` costs in a row are no better than the best, if that is better than the
    first: below some cost all predict the same class. Of equally accurate costs the one nearest to
    1 is chosen. The problem is convex, so the seed changes nothing.
    """
    from threadpoolctl import threadpool_limits

    if codes.ndim == 2:
        remedy = "Use the paper's probe."
        raise InputError("validated probe", "one label per node", "several", remedy)
    train_rows, validation_rows, test_rows = (
        _rows_of_part(vectors, codes, splits, part) for part in SPLIT_PARTS
    )
    train_codes = codes[train_rows]
    if len(np.unique(train_codes)) < 2:
        raise InputError("split 'train'", "nodes of at least two classes", "one class")

    x = _some_rows(vectors, train_rows)
    validation_x = _some_rows(vectors, validation_rows)
    entry_count = getattr(x, "nnz", x.shape[0] * x.shape[1])
    on_gpu = torch.device(device).type == "cuda"
    needs_one_thread = on_gpu or entry_count < MOST_ENTRIES_FOR_ONE_THREAD
    with threadpool_limits(1 if needs_one_thread else None):
        path = logistic_path(x, train_codes, PROBE_COSTS, device, settings)
        best = _best_of_path(path, validation_x, codes[validation_rows])

    regression = best.regression
    logits_of_blocks = [
        torch.as_tensor(regression.logits(_some_rows(vectors, rows))).cpu()
        for rows in _blocks(test_rows, rows_per_block)
    ]
    logits = torch.cat(logits_of_blocks).numpy()
    predictions = regression.classes[logits.argmax(axis=1)][None]
    test_codes = codes[test_rows]
    return Score(
        "accuracy",
        accuracy(predictions, test_codes),
        predictions,
        hyperparameters={"C": best.cost},
        other_metrics={
            "macro-F1": macro_f1(predictions, test_codes),
            "AUC": auc(logits, regression.classes, test_codes),
        },
    )


class _Candidate(NamedTuple):
    """A regression with its cost, and its accuracy on the validation nodes."""

    accuracy: float
    cost: float
    regression: Regression

    @property
    def rank(self) -> tuple[float, float]:
        """By accuracy, then by how near the cost is to 1."""
        return self.accuracy, -abs(np.log10(self.cost))


def _best_of_path(path: Any, validation_x: Any, validation_codes: NDArray[Any]) -> _Candidate:
    """The best candidate on the validation nodes; `validated_probe` says when the search ends."""
    candidates: list[_Candidate] = []
    for cost, regression in path:
        right = float(accuracy(regression.predict(validation_x), validation_codes))
        candidates.append(_Candidate(right, cost, regression))
        best = max(candidates, key=lambda candidate: candidate.rank)
        costs_since_best = len(candidates) - 1 - candidates.index(best)
        has_learnt = best.accuracy > candidates[0].accuracy
        if cost >= LARGEST_REQUIRED_COST and costs_since_best >= COST_PATIENCE and has_learnt:
            break
    return best


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
    is_dense = not sparse.issparse(vectors)
    fits_gpu = is_dense and vectors.shape[0] * vectors.shape[1] <= MOST_NUMBERS_ON_GPU
    if torch.device(device).type == "cuda" and fits_gpu:
        vectors = torch.as_tensor(vectors, device=device)  # once, not with each split
    each_split = followed(splits, progress, "splits", len(splits), 1)
    return [probe(vectors, codes, split, device=device) for split in each_split]


# Training by Adam


def first_weights(restarts: int, dimensions: int, classes: int, seed: int) -> Tensor:
    """Glorot's initial weights ``[d, R, C]``.

    Those of a restart do not depend on how many follow.
    """
    generator = torch.Generator().manual_seed(seed)
    shape = (restarts, dimensions, classes)
    draws = glorot(shape, (dimensions, classes), generator=generator)
    return draws.detach().transpose(0, 1).contiguous()


def fit_linear(
    x: Tensor, y: Tensor, weight: Tensor, has_many_labels: bool, steps: int = STEPS
) -> tuple[Tensor, Tensor]:
    """Weights ``[d, R, C]`` and biases ``[R, C]`` after steps of Adam on the mean cross-entropy.

    R regressions side by side make each step two matrix products. The gradient is closed,
    prediction minus target, both for softmax and for independent sigmoids, and nothing in the loop
    waits for the device.

    Shapes:
        x: ``[n, d]``; y: ``[n, C]``, of 0/1; weight: ``[d, R, C]``, where the regressions start.
    """
    weight = weight.clone()
    bias = weight.new_zeros(weight.shape[1:])
    optimiser = Adam([weight, bias], LEARNING_RATE)

    def step() -> None:
        optimiser.step(linear_gradient(x, y, weight, bias, has_many_labels))

    repeat(step, steps, x.device)
    return weight, bias


def linear_gradient(
    x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, has_many_labels: bool
) -> tuple[Tensor, Tensor]:
    """Gradient of each mean cross-entropy: of weights ``[d, R, C]`` and of biases ``[R, C]``.

    The mean is over nodes, and over labels too where there are many.
    """
    logits = _logits(x, weight, bias)
    predictions = logits.sigmoid() if has_many_labels else logits.softmax(-1)
    error = predictions - y[:, None]
    error /= y.numel() if has_many_labels else len(y)
    return (x.T @ error.flatten(1)).view_as(weight), error.sum(0)


class _Classifiers(NamedTuple):
    """R linear classifiers of ``(x - mean) / deviation``: ``[d, R, C]`` and ``[R, C]``."""

    weight: Tensor
    bias: Tensor
    mean: Tensor | float = 0.0
    deviation: Tensor | float = 1.0


def _score_on_test(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    device: Device,
    classifiers: _Classifiers,
    rows_per_block: int,
) -> Score:
    """Score classifiers on the test nodes."""
    test_rows = _rows_of_part(vectors, codes, splits, "test")
    predictions = []
    for rows in _blocks(test_rows, rows_per_block):
        x = (_dense_rows(vectors, rows, device) - classifiers.mean) / classifiers.deviation
        logits = _logits(x, classifiers.weight, classifiers.bias)
        if codes.ndim == 2:
            predictions.append(logits > 0)
        else:
            predictions.append(logits.argmax(-1))
    by_restart = torch.cat(predictions).transpose(0, 1).cpu().numpy()
    return Score.of(by_restart, codes[test_rows])


def _logits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``[n, d]`` by ``[d, R, C]`` -> ``[n, R, C]``."""
    return torch.addmm(bias.flatten(), x, weight.flatten(1)).view(-1, *bias.shape)


# Rows


def _rows_of_part(
    vectors: Vectors, codes: NDArray[Any], splits: Splits, part: str
) -> NDArray[np.int64]:
    """The labelled rows of one part of a split; refused where there are none."""
    if vectors.shape[0] != len(codes):
        raise InputError("labels", f"{vectors.shape[0]}, one per vector", str(len(codes)))
    rows = np.empty(0, np.int64)
    if part in splits:
        rows = np.flatnonzero(splits[part] & is_labelled(codes))
    if len(rows) == 0:
        raise InputError(f"split {part!r}", "at least one labelled node", "none")
    return rows


def _blocks(rows: NDArray[np.int64], rows_per_block: int) -> list[NDArray[np.int64]]:
    """Rows in blocks, so that sparse vectors are never all dense at once."""
    return np.split(rows, range(rows_per_block, len(rows), rows_per_block))


def _some_rows(vectors: Vectors, rows: NDArray[np.int64]) -> Any:
    """Some rows ``[n, d]``, as an array, a tensor or CSR as the vectors are."""
    if isinstance(vectors, Tensor):
        return vectors[torch.from_numpy(rows).to(vectors.device)]
    return vectors[rows]


def _dense_rows(vectors: Vectors, rows: NDArray[np.int64], device: Device) -> Tensor:
    """Some rows ``[n, d]`` as a float32 tensor on the device."""
    block = _some_rows(vectors, rows)
    if sparse.issparse(block):
        block = block.toarray()
    return torch.as_tensor(block, dtype=torch.float32, device=device)
