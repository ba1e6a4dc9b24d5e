"""Logistic regression for many strengths of regularisation, each fit starting from the one before.

There is one softmax over classes, or one sigmoid per label. The loss is the sum of the cross-entropies plus
``|weights|^2 / (2 C)``, as scikit-learn's; biases are not regularised. So that C means the same for long and for short
vectors, x is centred and divided by one number, the root mean square distance of its rows from their mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn.functional import one_hot, pad, softplus

from infomax.evaluation.lbfgs import minimise

LARGEST_BASIS = 2048
"""Rows or columns up to which the principal axes of a dense x are computed."""
DENSE_BASIS, DENSE = 512, 1 << 24
"""Rows or columns up to which a sparse x of at most so many entries, zeros included, is made dense for that."""
PRECISION = 1e-3
"""Largest entry of the gradient at which a fit ends; scores hardly change after it."""
BLOCK = 16_384


@dataclass(frozen=True, eq=False)
class Regression:
    """A linear classifier: ``weights`` ``[d, K]``, ``bias`` ``[K]`` and the codes ``[K]`` of the classes."""

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    classes: NDArray[Any]

    def logits(self, x: Any) -> Any:
        """Logits ``[n, K]`` of rows ``[n, d]``, an array, a tensor or CSR, in their precision."""
        if isinstance(x, Tensor):
            weights, bias = (torch.as_tensor(part, dtype=x.dtype).to(x.device) for part in (self.weights, self.bias))
            return torch.addmm(bias, x, weights)
        return x @ self.weights.astype(x.dtype) + self.bias.astype(x.dtype)

    def predict(self, x: Any) -> NDArray[Any]:
        """Codes ``[n]`` of rows ``[n, d]``."""
        codes: NDArray[Any] = self.classes[np.asarray(torch.as_tensor(self.logits(x)).argmax(1).cpu())]
        return codes


def logistic_path(x: Any, y: NDArray[Any], costs: Iterable[float]) -> Iterator[tuple[float, Regression]]:
    """The regression of rows x ``[n, d]``, an array, a tensor or CSR, for each cost C; infinite: not regularised.

    Where y are codes ``[n]`` it is a softmax over the classes, where y is ``[n, K]`` of 0/1 one sigmoid per label.
    """
    for cost, (found,) in logistic_paths([x], [y], costs, getattr(x, "device", "cpu")):
        yield cost, found


def logistic_paths(
    xs: Sequence[Any], ys: Sequence[NDArray[Any]], costs: Iterable[float], device: str | torch.device
) -> Iterator[tuple[float, list[Regression]]]:
    """What `logistic_path` gives for each of several x and y, of equal shapes and classes, fitted together on a device.

    L-BFGS runs on weights whose unit is chosen so that the loss curves about equally along each column. The columns of
    a dense x are rotated to its principal axes before, so it takes tens of passes whatever the shape of x.
    """
    many = ys[0].ndim == 2
    classes = np.arange(ys[0].shape[1]) if many else np.unique(ys[0])
    targets = np.stack([y if many else classes.searchsorted(y) for y in ys])
    problem = _Problem.of(xs, torch.as_tensor(targets, dtype=torch.float32 if many else torch.int64).to(device))
    weights = problem.variances.new_zeros(len(xs), problem.variances.shape[1] + 1, len(classes))
    for cost in costs:
        weights = problem.minimise(cost, weights)
        yield cost, [Regression(*found, classes) for found in map(_unscaled, weights, problem.frames)]


class _Frame(NamedTuple):
    """One x in coordinates of its own: ``rows - shift = (x - mean) @ axes / scale``.

    Shapes:
        mean: ``[d]``; axes: ``[d, r]``, None if r = d; variances: ``[r]``, the mean square of each shifted column.
    """

    rows: Any
    mean: Tensor
    axes: Tensor | None
    scale: float
    variances: Tensor


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is fitted, S regressions, in coordinates in which L-BFGS needs few passes.

    Shapes:
        rows: ``[S, n, r]``, float32; or sparse, a block for each x, ``[S n, S r]``, and the transpose of that.
        shift: ``[S, r]``, to be subtracted from each row; None: nothing.
        variances: ``[S, r]``, the mean square of each shifted column.
        targets: ``[S, n]``, from 0 to K - 1, or ``[S, n, K]`` of 0/1.
    """

    rows: Any
    shift: Tensor | None
    variances: Tensor
    targets: Tensor
    frames: list[_Frame]

    @classmethod
    def of(cls, xs: Sequence[Any], targets: Tensor) -> _Problem:
        (n, d), device = xs[0].shape, targets.device
        if sparse.issparse(xs[0]) and min(n, d) <= DENSE_BASIS and n * d <= DENSE:
            xs = [x.toarray() for x in xs]
        if sparse.issparse(xs[0]):
            frames = [_as_it_is(x) for x in xs]
            blocks = sparse.csr_array(sparse.block_diag([frame.rows for frame in frames], "csr"))
            rows: Any = [each if device.type == "cpu" else _on(device, each) for each in (blocks, blocks.T)]
        else:
            frame_of = _as_it_is if min(n, d) > LARGEST_BASIS else _rotated
            frames = [frame_of(torch.as_tensor(x).to(device)) for x in xs]
            rows = _stack([frame.rows for frame in frames], 0)
        shift = None if frames[0].axes is not None else torch.stack([one.mean / one.scale for one in frames])
        # A column that is padding has weight 0, whatever its unit.
        variances = _stack([frame.variances for frame in frames], 1).to(device)
        return cls(rows, shift if shift is None else shift.float().to(device), variances, targets, frames)

    def minimise(self, cost: float, start: Tensor) -> Tensor:
        """Weights and, in the last row, biases ``[S, r + 1, K]`` with the lowest loss."""
        n, one = self.targets.shape[1], self.variances.new_ones(len(start), 1)
        hits = self.targets if self.targets.ndim == 3 else one_hot(self.targets, start.shape[2])
        share = hits.double().mean(1)[:, None]
        # A label that no node has would let its bias fall for ever: it counts as that of one node.
        curvature = torch.cat([self.variances, one], 1)[:, :, None] * (share * (1 - share)).clamp(min=(1 - 1 / n) / n)
        decays = torch.cat([torch.full_like(self.variances, 1 / (cost * n)), 0 * one], 1)[:, :, None]
        unit = 1 / (curvature + decays).sqrt()

        def loss(flat: Tensor) -> tuple[Tensor, Tensor]:
            values = unit * flat.view_as(unit)
            value, slopes = self.cross_entropy(values.float())
            pull = decays * values
            total = torch.addcdiv(value / n, (pull * values).sum((1, 2)), 2 * one[:, 0])
            return total, pull.add_(slopes, alpha=1 / n).mul_(unit).flatten(1)

        return unit * minimise(loss, (start / unit).flatten(1), PRECISION).view_as(unit)

    def cross_entropy(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """The sums ``[S]`` over rows for weights and biases ``[S, r + 1, K]``, and their gradients."""
        own, offset = weights[:, :-1], weights[:, -1:]
        if self.shift is not None:
            offset = offset - self.shift[:, None] @ own
        if isinstance(self.rows, Tensor):
            logits = torch.baddbmm(offset, self.rows, own)
        else:
            logits = _product(self.rows[0], own).view(len(own), -1, own.shape[2]).add_(offset)
        if self.targets.ndim == 3:
            value = softplus(logits).sub_(logits * self.targets).sum((1, 2), dtype=torch.float64)
            error = logits.sigmoid_().sub_(self.targets)
        else:
            error, true = logits.log_softmax(2), self.targets[:, :, None]
            value = -error.gather(2, true).sum((1, 2), dtype=torch.float64)
            error.exp_().scatter_add_(2, true, error.new_full((), -1.0).expand(true.shape))
        total = error.sum(1, keepdim=True)
        if isinstance(self.rows, Tensor):
            slopes = (error.mT @ self.rows).mT  # the short matrix first: half as long as the other way round
        else:
            slopes = _product(self.rows[1], error).view_as(own)
        if self.shift is not None:
            slopes = torch.baddbmm(slopes, self.shift[:, :, None], total, alpha=-1)
        return value, torch.cat([slopes, total], 1)


def _stack(parts: list[Tensor], value: float) -> Tensor:
    """Tensors ``[..., r]`` as one, those with fewer columns filled up with a value."""
    width = max(part.shape[-1] for part in parts)
    return torch.stack([pad(part, (0, width - part.shape[-1]), value=value) for part in parts])


def _product(matrix: Any, y: Tensor) -> Tensor:
    """A sparse ``[m, p]``, of SciPy or on a device, by ``[S, p / S, K]`` as ``[p, K]``."""
    y = y.flatten(0, 1)
    return matrix @ y if isinstance(matrix, Tensor) else torch.from_numpy(matrix @ y.numpy())


def _on(device: torch.device, matrix: Any) -> Tensor:
    """A SciPy matrix as CSR on a device."""
    csr = sparse.csr_array(matrix)
    starts, columns = (torch.as_tensor(part, dtype=torch.int64) for part in (csr.indptr, csr.indices))
    return torch.sparse_csr_tensor(starts, columns, torch.from_numpy(csr.data), csr.shape).to(device)


def _as_it_is(x: Any) -> _Frame:
    """The coordinates of x ``[n, d]``, a tensor or CSR, themselves."""
    mean, squares = _moments(x)
    variances = (squares - mean**2).clamp(min=0)
    scale = _scale(variances, mean)
    rows = (x / scale).astype(np.float32) if sparse.issparse(x) else (x / scale).float()
    return _Frame(rows, mean, None, scale, variances / scale**2)


def _rotated(x: Tensor) -> _Frame:
    """The coordinates of x ``[n, d]`` along its principal axes."""
    mean, (n, d) = x.mean(0, dtype=torch.float64), x.shape
    if n < d:
        centred = x - mean
        squares, sides = torch.linalg.eigh(_gram(centred.T))
        kept = squares > 1e-10 * squares.max()
        axes = centred.T @ (sides[:, kept] / squares[kept].sqrt())
    else:
        mean = mean.to(x.dtype).double()  # what is subtracted in the precision of x
        gram = sum((_gram(block) for block in _centred(x, mean)), x.new_zeros(()))
        try:
            _, axes = torch.linalg.eigh(gram)
        except RuntimeError:  # MKL does not converge in single precision where many columns are constant
            _, axes = torch.linalg.eigh(gram.double())
    rows = torch.cat([block @ axes.float() for block in _centred(x, mean)])
    variances = torch.stack([block.double().square().sum(0) for block in rows.split(BLOCK)]).sum(0) / n
    kept = variances > 1e-10 * variances.max()  # along the others, rows differ by rounding
    scale = _scale(variances, mean)
    rows = rows if kept.all() else rows[:, kept]
    return _Frame(rows.div_(scale), mean, axes[:, kept].double(), scale, variances[kept] / scale**2)


def _centred(x: Tensor, mean: Tensor) -> Iterator[Tensor]:
    """Blocks of x ``[n, d]`` without their mean ``[d]``, in single precision."""
    return ((block - mean.to(x.dtype)).float() for block in x.split(BLOCK))


def _unscaled(weights: Tensor, frame: _Frame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights ``[d, K]`` and biases ``[K]`` for rows as x has them, from ``[r + 1, K]`` for those of its frame."""
    weights, bias = weights[: len(frame.variances)].to(frame.mean.device), weights[-1].to(frame.mean.device)
    own = (weights if frame.axes is None else frame.axes @ weights) / frame.scale
    return own.cpu().numpy(), (bias - frame.mean @ own).cpu().numpy()


def _gram(x: Tensor) -> Tensor:
    """``x.T @ x`` of ``[n, d]``; on a CPU by numpy, which computes one half of it, as torch does not."""
    return torch.from_numpy(x.numpy().T @ x.numpy()) if x.device.type == "cpu" else x.T @ x


def _moments(x: Any) -> tuple[Tensor, Tensor]:
    """Mean and mean square ``[d]`` of each column of ``[n, d]``, a tensor or CSR, in double precision."""
    if isinstance(x, Tensor):
        return x.mean(0, dtype=torch.float64), sum(block.double().square().sum(0) for block in x.split(BLOCK)) / len(x)
    mean = np.asarray(x.mean(axis=0, dtype=np.float64))
    # Not by x.power, which sorts indices that its result shares with x.
    sums = np.bincount(x.indices, np.square(x.data, dtype=np.float64), x.shape[1]).astype(np.float64)
    return torch.from_numpy(mean), torch.from_numpy(sums / x.shape[0])


def _scale(variances: Tensor, mean: Tensor) -> float:
    """Root mean square distance of rows from their mean ``[d]``; 1 if it is only rounding."""
    spread = float(variances.sum())
    return spread**0.5 if spread > 1e-13 * float(mean @ mean) else 1.0
