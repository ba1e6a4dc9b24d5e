"""Linear probes: what a linear classifier reads off the vectors of the labelled nodes.

All have one signature, ``probe(vectors, codes, splits, seed=0, device="cpu") -> Score``, and are found in `PROBES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from infomax.errors import InputError
from infomax.evaluation.logistic import logistic_path
from infomax.evaluation.metrics import accuracy, micro_f1
from infomax.evaluation.splits import Splits, known
from infomax.kernels.initialisation import glorot
from infomax.kernels.optimiser import Adam
from infomax.kernels.replay import repeat

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
"""Entries of the training rows below which a second thread makes their products slower, not faster."""
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
    validation: float | None = None
    """The score on the validation nodes, where these have chosen something."""

    @property
    def value(self) -> float:
        """The score: the mean over initialisations."""
        return float(self.values.mean())


class Probe(Protocol):
    """What every probe is: a function of arrays that trains, chooses and scores on its own part of the split."""

    def __call__(
        self, vectors: Vectors, codes: NDArray[Any], splits: Splits, *, seed: int = 0, device: Device = "cpu"
    ) -> Score:
        """Train on ``splits["train"]``, choose on ``splits["validation"]``, score once on ``splits["test"]``.

        Nodes whose code is -1 are in none of the three.

        Shapes:
            vectors: ``[N, d]``.
            codes: ``[N]`` class codes, or ``[N, C]`` of 0/1 where a node has any number of labels.
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
    # A constant column has no spread to divide by.
    mean, spread = (x.mean(0), x.std(0, correction=0)) if many else (x.new_zeros(()), x.new_ones(()))
    spread = torch.where(spread > 0, spread, 1)
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
    weight, bias = (torch.as_tensor(part, dtype=torch.float32, device=device) for part in (found.weights, found.bias))
    return _scored(vectors, codes, splits, device, weight[:, None], bias[None], x.new_zeros(()), x.new_ones(()))


def first_weights(restarts: int, d: int, classes: int, seed: int) -> Tensor:
    """Glorot's initial weights ``[d, R, C]``; those of a restart do not depend on how many follow."""
    draws = glorot((restarts, d, classes), (d, classes), generator=torch.Generator().manual_seed(seed))
    return draws.detach().transpose(0, 1).contiguous()


def fit_linear(x: Tensor, y: Tensor, weight: Tensor, many: bool, steps: int = STEPS) -> tuple[Tensor, Tensor]:
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


def linear_gradient(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, many: bool) -> tuple[Tensor, Tensor]:
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
    equally accurate costs the one nearest to 1 is chosen. The problem is convex, so the seed changes nothing; it is
    small, so the CPU solves it whatever the device.
    """
    from threadpoolctl import threadpool_limits

    if codes.ndim == 2:
        raise InputError("validated probe", "one label per node", "several", "Use the paper's probe.")
    train, validation, test = (_rows(vectors, codes, splits, name) for name in ("train", "validation", "test"))
    if len(np.unique(codes[train])) < 2:
        raise InputError("split 'train'", "nodes of at least two classes", "one class")
    held_out, tried, right, best = _host(vectors, validation), [], [], 0
    with threadpool_limits(1 if len(train) * vectors.shape[1] < SMALL else None):
        for cost, model in logistic_path(_host(vectors, train), codes[train], COSTS):
            tried.append((cost, model))
            right.append(float(accuracy(model.predict(held_out), codes[validation])))
            best = max(range(len(tried)), key=lambda at: (right[at], -abs(np.log10(tried[at][0]))))
            if cost >= ENOUGH and len(tried) - 1 - best >= PATIENCE and right[best] > right[0]:
                break
    chosen, model = tried[best]
    predictions = np.concatenate([model.predict(_host(vectors, rows)) for rows in _blocks(test)])[None]
    return Score("accuracy", accuracy(predictions, codes[test]), predictions, {"C": chosen}, right[best])


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


def _host(vectors: Vectors, rows: NDArray[np.int64]) -> Any:
    """Some rows ``[n, d]`` as an array, or as CSR where they were."""
    if isinstance(vectors, Tensor):
        return vectors[torch.from_numpy(rows).to(vectors.device)].numpy(force=True)
    return vectors[rows]


def _dense(vectors: Vectors, rows: NDArray[np.int64], device: Device) -> Tensor:
    """Some rows ``[n, d]`` as a float32 tensor on the device."""
    if isinstance(vectors, Tensor):
        return vectors[torch.from_numpy(rows).to(vectors.device)].to(device, torch.float32)
    block = _host(vectors, rows)
    return torch.as_tensor(block.toarray() if sparse.issparse(block) else block, dtype=torch.float32, device=device)


def _scored(
    vectors: Vectors,
    codes: NDArray[Any],
    splits: Splits,
    device: Device,
    weight: Tensor,
    bias: Tensor,
    mean: Tensor,
    spread: Tensor,
) -> Score:
    """Score R linear classifiers of ``(x - mean) / spread``, ``[d, R, C]`` and ``[R, C]``, on the test nodes."""
    test, found = _rows(vectors, codes, splits, "test"), []
    for rows in _blocks(test):
        logits = _logits((_dense(vectors, rows, device) - mean) / spread, weight, bias)
        found.append(logits > 0 if codes.ndim == 2 else logits.argmax(-1))
    predictions = torch.cat(found).transpose(0, 1).cpu().numpy()
    if codes.ndim == 2:
        return Score("micro-F1", micro_f1(predictions, codes[test]), predictions)
    return Score("accuracy", accuracy(predictions, codes[test]), predictions)


def _logits(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``[n, d]`` by ``[d, R, C]`` -> ``[n, R, C]``."""
    return torch.addmm(bias.flatten(), x, weight.flatten(1)).view(-1, *bias.shape)
