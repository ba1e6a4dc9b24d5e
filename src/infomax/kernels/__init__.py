"""The backend of a training: which kernels it uses, plain torch (`plain`), numba (`cpu`) or Triton (`gpu`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from infomax.kernels import plain
from infomax.kernels.host import Workspace, on_one_thread
from infomax.kernels.ranks import Portion

# Above which amount of work compiled kernels are used. It depends on the work alone, since all kernels round
# differently, and those of a GPU draw other shuffles: a seed gives the same encoder whatever a process did before.

LARGE = 1 << 19
"""Numbers that a call computes on a CPU: loading numba's kernels takes about a second."""
IMAGE = 1 << 12
"""Numbers as which one image of a permutation counts: torch takes 9 ms even for few images."""
EMBEDDING = 1 << 26
"""Numbers, nodes times width, that an embedding computes: it is a single pass, on a CPU as well as on a GPU."""
TRAINING = 1 << 31
"""Nodes times width times epochs of a training on a GPU: loading takes 0.7 s, compiling 2 to 7 more."""


class Backend:
    """The device of a training or an embedding, the kernels that it uses, and the memory for their results.

    It is made once, from the device and the amount of work, and passed on to all that calls a kernel. If the work is
    ``small``, no kernels are compiled. Else they are where they exist: by Triton for float32 on a GPU, by numba on a
    CPU for each call that computes at least ``large`` numbers, `LARGE` unless another number is given.
    """

    def __init__(
        self, device: torch.device, *, small: bool = False, large: float | None = None
    ) -> None:
        self.device, self.small = device, small
        self.large = LARGE if large is None else large
        self.workspace: Workspace | None = None
        """Memory for large results, within `reusing`."""
        self.uses_numba = False
        """Whether a call has used numba's kernels, on whose threads those of torch would then be in the way."""
        self.threads: int | None = None
        """Threads of the training; None: as many as torch has."""

    @classmethod
    def of_training(
        cls, device: torch.device, numbers: float, per_step: float = math.inf
    ) -> Backend:
        """Choose the backend of a training that computes about so many numbers, and at most so many in an operation.

        Where these are so few that a CPU takes less than a millisecond for a step, it uses one thread: a second would
        wait longer than it works, and keep its core busy meanwhile.
        """
        backend = cls(device, small=device.type == "cuda" and numbers < TRAINING)
        backend.threads = 1 if per_step < LARGE else None
        return backend

    @classmethod
    def of_embedding(cls, device: torch.device, numbers: float) -> Backend:
        """Choose the backend of an embedding that computes so many numbers."""
        return cls(device, small=numbers < EMBEDDING)

    @cached_property
    def triton(self) -> ModuleType | None:
        """The Triton kernels; None where there is no GPU, Triton is not installed or not worth loading."""
        return None if self.small or self.device.type != "cuda" else _load("gpu")

    def numba(self, numbers: int) -> ModuleType | None:
        """Return the numba kernels for a call that computes so many numbers; None where they are not used."""
        if (
            self.small
            or self.device.type != "cpu"
            or numbers < self.large
            or (kernels := _load("cpu")) is None
        ):
            return None
        self.uses_numba = True
        return kernels

    @contextmanager
    def reusing(self) -> Iterator[None]:
        """Let freed memory be used again within this context, for steps that compute arrays of the same sizes."""
        self.workspace = Workspace()
        try:
            yield
        finally:
            self.workspace = None

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with arbitrary contents: from the workspace if there is one, else from NumPy."""
        return (
            np.empty(shape, dtype) if self.workspace is None else self.workspace.empty(shape, dtype)
        )

    def prepare(self, matrix: Tensor) -> Any:
        """Convert a CSR matrix to the form in which `product` is fastest."""
        if kernels := self.gpu(matrix.values()):
            return kernels.Sparse(matrix)
        return plain.Pieces.of(matrix) if matrix.is_cuda else matrix

    def product(self, matrix: Any, y: Tensor) -> Tensor:
        """Multiply a prepared CSR matrix ``[M, N]`` by a dense ``[N, D]``, on a CPU also by ``[B, N, D]``.

        `SparseOperand` has the gradient.
        """
        if isinstance(matrix, plain.Pieces):  # asked first: loading Triton takes half a second
            return plain.product(matrix, y)
        if self.triton and isinstance(matrix, self.triton.Sparse):
            return self.triton.product(matrix, y)  # type: ignore[no-any-return]
        if kernels := self.numba(max(matrix.shape[0], y.shape[-2]) * y.shape[-1]):
            return kernels.product(matrix, y, self.empty)  # type: ignore[no-any-return]
        return plain.product(matrix, y)

    def pair_product(self, matrix: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        """P Y and P Y[rows], ``[2, M, D]``, for a permutation ``[N]``, on a CPU."""
        if kernels := self.numba(max(matrix.shape) * y.shape[1]):
            return kernels.pair_product(matrix, rows, y, self.empty)  # type: ignore[no-any-return]
        return torch.stack(plain.pair_product(matrix, rows, y))

    def pair_gradient(self, transpose: Tensor, rows: Tensor, grad: Tensor) -> Tensor:
        """The gradient ``[N, D]`` by Y, from that ``[2, M, D]`` of `pair_product`; with the transpose of P."""
        if kernels := self.numba(max(transpose.shape) * grad.shape[2]):
            return kernels.pair_gradient(transpose, rows, grad, self.empty)  # type: ignore[no-any-return]
        return plain.pair_gradient(transpose, rows, grad)

    def permutation(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw a random permutation ``[n]``."""
        if self.triton:
            return self.triton.permutations(1, n, generator)[0]  # type: ignore[no-any-return]
        return torch.randperm(n, generator=generator, device=generator.device)

    def bias_prelu(self, bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:
        """Concatenate the parts, add a bias, apply PReLU with one slope: ``[n, d_1], ... -> [n, d_1 + ...]``."""
        if kernels := self.gpu(parts[0]):
            return kernels.BiasPReLU.apply(bias, slope, *parts)  # type: ignore[no-any-return]
        return plain.bias_prelu(bias, slope, *parts)

    def mean_prelu(
        self, biases: Sequence[Tensor], slopes: Sequence[Tensor], parts: Sequence[Tensor]
    ) -> Tensor:
        """Return the mean over the parts ``[n, d]`` of PReLU(part + bias); a gradient may overwrite the parts."""
        if kernels := self.numba(parts[0].numel()) if torch.is_grad_enabled() else None:
            return kernels.MeanPReLU.apply(self.empty, len(parts), *parts, *biases, *slopes)  # type: ignore[no-any-return]
        means = list(map(self.bias_prelu, biases, slopes, parts))
        return sum(means[1:], means[0]) / len(means)

    @torch.no_grad()
    def pair_loss(
        self, z: Tensor, z_negative: Tensor, *last: Tensor, portion: Portion | None = None
    ) -> plain.Outcome:
        """Compute loss and gradients from the last linear map on: PReLU, sigmoid-mean readout, scores, cross-entropy.

        The ``last`` arguments are bias b, slope, weight W and offset o. With h = PReLU(z + b), s = σ(mean h),
        v = W s, scores h_i·v + o and g_i the gradient of the mean loss by score i, the gradient of h_i is g_i v;
        positives add a row c, from the summary. Only the PReLU's mask needs a matrix.

        With a ``portion``, z and z_negative are this rank's rows of a batch; summary and loss are of the whole batch.
        Rows that the portion calls padding count nowhere, and their gradient is 0.

        Returns:
            loss, discriminator accuracy and summary spread, ``[3]``; and the gradient of the loss by each argument.
            Those by weight and offset are of the whole batch; the others are to be added over the ranks. z and
            z_negative may be overwritten.
        """
        padded = portion is not None and portion.real is not None
        kernels = None if padded else self.gpu(z) or self.numba(z.numel())
        return (kernels or plain).pair_loss(z, z_negative, *last, portion=portion)  # type: ignore[no-any-return]

    @torch.no_grad()
    def shuffle_loss(
        self, matrix: Any, transpose: Any, rows: Tensor, y: Tensor, *last: Tensor
    ) -> plain.Outcome:
        """Compute `pair_loss` of a graph and its shuffle, z = P Y and P Y[rows], with one gradient by Y, not two by z.

        ``matrix`` and ``transpose`` are P ``[N, N]`` and its transpose, prepared.
        """
        if self.triton and isinstance(matrix, self.triton.Sparse):
            return self.triton.shuffle_loss(matrix, transpose, rows, y, *last)  # type: ignore[no-any-return]
        if kernels := self.numba(y.numel()):
            return kernels.shuffle_loss(matrix, transpose, rows, y, *last, empty=self.empty)  # type: ignore[no-any-return]
        return plain.shuffle_loss(matrix, transpose, rows, y, *last)

    @torch.no_grad()
    def add_record(self, record: Tensor, *books: Any) -> None:
        """Add a step's record ``[k]`` to the books of a `Ledger`; they are as in `plain.add_record`."""
        (self.gpu(record) or plain).add_record(record, *books)

    def gpu(self, x: Tensor) -> ModuleType | None:
        """Return the Triton kernels if x is float32 on a GPU."""
        return self.triton if x.is_cuda and x.dtype == torch.float32 else None


class Adam:
    """Adam (Kingma & Ba, 2015): the weights, running means of their gradients and of the squares, and the steps.

    Args:
        weights: what it changes, in place.
        rates: the learning rate, one number for all steps or one for each.
        backend: the kernels that it uses.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        rates: float | Sequence[float],
        backend: Backend | None = None,
    ) -> None:
        self.weights = [weight.detach() for weight in weights]
        self.constant_rate = rates if isinstance(rates, float) else None
        device = self.weights[0].device
        self.rates = torch.tensor(
            [rates] if isinstance(rates, float) else rates,
            dtype=torch.float32 if device.type == "cuda" else torch.float64,
            device=device,
        )
        """The rate of each step ``[steps]``, or of all of them ``[1]``."""
        self.means = [torch.zeros_like(weight) for weight in self.weights]
        self.variances = [torch.zeros_like(weight) for weight in self.weights]
        self.count = torch.zeros((), device=self.weights[0].device)
        self.backend = backend or Backend(self.count.device)

    def next_rate(self) -> float | Tensor:
        """The rate of the step that comes next; on a GPU a tensor, so that no step waits for the GPU."""
        if self.constant_rate is not None:
            return self.constant_rate
        step = self.count.long().clamp(max=len(self.rates) - 1)
        # Indexing by a tensor without dimensions would wait for the GPU, and cannot be recorded.
        rate = self.rates.index_select(0, step.reshape(1)).reshape(())
        return rate if rate.is_cuda else rate.item()

    @torch.no_grad()
    def step(
        self,
        gradients: Sequence[Tensor],
        kept: list[Tensor] | None = None,
        waited: Tensor | None = None,
    ) -> None:
        """Do and count one step; if ``waited`` is 0 and ``kept`` is given, copy the weights to it first."""
        # The kernels index memory directly: a gradient needs the same layout as its weight.
        gradients = [
            gradient
            if gradient.stride() == weight.stride()
            else torch.empty_like(weight).copy_(gradient)
            for weight, gradient in zip(self.weights, gradients, strict=True)
        ]
        flat = all(
            weight.dtype == torch.float32 and weight.is_contiguous() for weight in self.weights
        )
        numbers = sum(map(torch.numel, gradients))
        kernels = self.backend.gpu(self.weights[0]) or (
            self.backend.numba(numbers) if flat else None
        )
        if kernels is None and self.backend.uses_numba:
            on_one_thread(plain.adam, self, gradients, kept, waited)
        else:
            (kernels or plain).adam(self, gradients, kept, waited)


@cache
def _load(name: str) -> ModuleType | None:
    """Return the module of compiled kernels, cpu or gpu; None where it cannot be loaded."""
    try:
        return import_module(f"infomax.kernels.{name}")
    except (ImportError, OSError):  # OSError: too little memory for the compiler
        return None
