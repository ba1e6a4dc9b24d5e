"""The operations that are worth a kernel of their own, and the choice of the kernel.

A `Backend` has one method per operation. Each is written in plain torch (``plain.py``), which runs
on any device and in any precision. Where that pays the same is computed by numba on a CPU
(``cpu.py``) or by Triton on a GPU (``gpu/``), in fewer passes over memory:

===============  =======================================================  =====  ======
method           in plain torch                                           numba  Triton
===============  =======================================================  =====  ======
product          ``matrix @ y``                                           yes    yes
pair_product     ``stack([matrix @ y, matrix @ y[rows]])``                yes    -
pair_gradient    the gradient of ``pair_product`` by y                    yes    -
bias_prelu       ``prelu(cat(parts, dim=1) + bias, slope)``               -      yes
mean_prelu       ``mean(stack([prelu(part + bias, slope), ...]))``        yes    -
pair_loss        PReLU, readout, scores and loss, with their gradient     yes    yes
shuffle_loss     ``pair_loss`` of ``matrix @ y`` and ``matrix @ y[rows]`` yes    yes
permutation      ``randperm(n)``                                          -      yes
add_record       adding a step's losses to the history                    -      yes
`Adam.step`      torch's fused Adam                                       yes    yes
===============  =======================================================  =====  ======

tests/laws/test_step.py holds plain torch to autograd of the paper's formulas in float64.
tests/kernels/test_kernels.py holds numba, and test_gpu.py Triton, to plain torch. Triton's
permutations are other ones than torch's, so there the law is that every entry occurs once.

The other files: ``random.py`` permutations and random numbers without an array of all;
``cpu_neighbourhoods.py`` and ``cpu_events.py`` means over neighbours and events; ``spectrum.py``
eigenvectors; ``host.py`` threads and memory of a CPU; ``ranks.py`` several processes;
``replay.py``, ``transfer.py``, ``room.py`` and ``device.py`` recording, copies, memory and choice
of a GPU; ``initialisation.py`` seeds and Glorot's weights; ``compiling.py`` the way to compile with
numba.
"""

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

# Amounts of work from which on compiled kernels are used. A choice depends on the work alone, never
# on what the process has loaded: all kernels round differently, and those of a GPU draw other
# shuffles, so else a seed would give another encoder each time.

FEWEST_NUMBERS_FOR_NUMBA = 1 << 19
"""Numbers that a call computes on a CPU: loading numba's kernels takes about a second."""
NUMBERS_PER_IMAGE = 1 << 12
"""Numbers as which one image of a permutation counts: torch takes 9 ms even for few images."""
FEWEST_NUMBERS_OF_EMBEDDING = 1 << 26
"""Numbers, nodes times width, of an embedding, which is a single pass, on a CPU as on a GPU."""
FEWEST_NUMBERS_OF_TRAINING = 1 << 31
"""Nodes times width times epochs of a training on a GPU: loading Triton takes 0.7 s, and compiling
2 to 7 s more."""


class Backend:
    """The device of a training or an embedding, its kernels, and the memory for their results.

    A backend is made once, from the device and the amount of work, and passed on to everything that
    calls a kernel.

    Args:
        device: where to compute.
        small: whether the work is small, so that no kernel is compiled. Else Triton is used for
            float32 on a GPU, and numba for large calls on a CPU, where they are installed.
        fewest_numbers: the numbers that a call on a CPU computes from which on numba is used; None:
            `FEWEST_NUMBERS_FOR_NUMBA`.
    """

    def __init__(
        self, device: torch.device, *, small: bool = False, fewest_numbers: float | None = None
    ) -> None:
        self.device = device
        self.small = small
        self.fewest_numbers = (
            fewest_numbers if fewest_numbers is not None else FEWEST_NUMBERS_FOR_NUMBA
        )
        self.workspace: Workspace | None = None
        """Memory for large results, within `reusing`."""
        self.uses_numba = False
        """Whether a call has used numba, whose threads those of torch would then be in the way
        of."""
        self.threads: int | None = None
        """Threads of the training; None: as many as torch has."""

    @classmethod
    def of_training(
        cls, device: torch.device, numbers: float, numbers_per_operation: float = math.inf
    ) -> Backend:
        """Choose the backend of a training.

        Args:
            device: where to train.
            numbers: about how many numbers the training computes.
            numbers_per_operation: the most numbers that an operation computes. Where a CPU takes
                less than a millisecond for them, the training uses one thread: a second would wait
                longer than it works, and keep its core busy meanwhile.
        """
        is_small = device.type == "cuda" and numbers < FEWEST_NUMBERS_OF_TRAINING
        backend = cls(device, small=is_small)
        if numbers_per_operation < FEWEST_NUMBERS_FOR_NUMBA:
            backend.threads = 1
        return backend

    @classmethod
    def of_embedding(cls, device: torch.device, numbers: float) -> Backend:
        """Choose the backend of an embedding that computes so many numbers."""
        return cls(device, small=numbers < FEWEST_NUMBERS_OF_EMBEDDING)

    # Which kernels

    @cached_property
    def triton(self) -> ModuleType | None:
        """The Triton kernels; None where there is no GPU, or Triton is not installed or not worth
        loading."""
        if self.small or self.device.type != "cuda":
            return None
        return _load("gpu")

    def triton_for(self, x: Tensor) -> ModuleType | None:
        """Return the Triton kernels if x is float32 on a GPU."""
        return self.triton if x.is_cuda and x.dtype == torch.float32 else None

    def numba_for(self, numbers: int) -> ModuleType | None:
        """Return the numba kernels for a call that computes so many numbers; None where they are
        not used."""
        if self.small or self.device.type != "cpu" or numbers < self.fewest_numbers:
            return None
        kernels = _load("cpu")
        if kernels is not None:
            self.uses_numba = True
        return kernels

    # Memory for results

    @contextmanager
    def reusing(self) -> Iterator[None]:
        """Let freed memory be used again within this context, for steps that compute arrays of the
        same sizes."""
        self.workspace = Workspace()
        try:
            yield
        finally:
            self.workspace = None

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array with arbitrary contents: from the workspace if there is one, else from
        NumPy."""
        if self.workspace is None:
            return np.empty(shape, dtype)
        return self.workspace.empty(shape, dtype)

    # The operations

    def prepare(self, matrix: Tensor) -> Any:
        """Convert a CSR matrix to the form in which `product` is fastest."""
        kernels = self.triton_for(matrix.values())
        if kernels is not None:
            return kernels.Sparse(matrix)
        return plain.Pieces.of(matrix) if matrix.is_cuda else matrix

    def product(self, matrix: Any, y: Tensor) -> Tensor:
        """Multiply a prepared CSR matrix ``[M, N]`` by a dense ``[N, D]``, on a CPU also by
        ``[B, N, D]``.

        `SparseOperand` has the gradient.
        """
        # This comes before any question for Triton, whose loading takes half a second.
        if isinstance(matrix, plain.Pieces):
            return plain.product(matrix, y)

        product: Tensor
        if self.triton and isinstance(matrix, self.triton.Sparse):
            product = self.triton.product(matrix, y)
            return product
        kernels = self.numba_for(max(matrix.shape[0], y.shape[-2]) * y.shape[-1])
        if kernels is not None:
            product = kernels.product(matrix, y, self.empty)
            return product
        return plain.product(matrix, y)

    def pair_product(self, matrix: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        """P Y and P Y[rows], ``[2, M, D]``, for a permutation ``rows`` ``[N]``, on a CPU."""
        kernels = self.numba_for(max(matrix.shape) * y.shape[1])
        if kernels is not None:
            products: Tensor = kernels.pair_product(matrix, rows, y, self.empty)
            return products
        return torch.stack(plain.pair_product(matrix, rows, y))

    def pair_gradient(self, transpose: Tensor, rows: Tensor, grad: Tensor) -> Tensor:
        """The gradient by Y ``[N, D]``, from the gradient by the result of `pair_product`.

        Args:
            transpose: the transpose of P.
            rows: the permutation ``[N]``.
            grad: ``[2, M, D]``.
        """
        kernels = self.numba_for(max(transpose.shape) * grad.shape[2])
        if kernels is not None:
            y_grad: Tensor = kernels.pair_gradient(transpose, rows, grad, self.empty)
            return y_grad
        return plain.pair_gradient(transpose, rows, grad)

    def permutation(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw a random permutation ``[n]``."""
        if self.triton:
            permutation: Tensor = self.triton.permutations(1, n, generator)[0]
            return permutation
        return torch.randperm(n, generator=generator, device=generator.device)

    def bias_prelu(self, bias: Tensor, slope: Tensor, *parts: Tensor) -> Tensor:
        """Concatenate the parts, add a bias, apply PReLU with one slope: ``[n, d_1], ... ->
        [n, d_1 + ...]``."""
        kernels = self.triton_for(parts[0])
        if kernels is not None:
            h: Tensor = kernels.BiasPReLU.apply(bias, slope, *parts)
            return h
        return plain.bias_prelu(bias, slope, *parts)

    def mean_prelu(
        self, biases: Sequence[Tensor], slopes: Sequence[Tensor], parts: Sequence[Tensor]
    ) -> Tensor:
        """Return the mean over the parts ``[n, d]`` of PReLU(part + bias); a gradient may overwrite
        the parts."""
        kernels = None
        if torch.is_grad_enabled():
            kernels = self.numba_for(parts[0].numel())
        if kernels is not None:
            mean: Tensor = kernels.MeanPReLU.apply(self.empty, len(parts), *parts, *biases, *slopes)
            return mean
        first, *others = map(self.bias_prelu, biases, slopes, parts)
        return sum(others, first) / len(parts)

    @torch.no_grad()
    def pair_loss(
        self, z: Tensor, z_negative: Tensor, *last_weights: Tensor, portion: Portion | None = None
    ) -> plain.Outcome:
        """Compute the loss of a pair and its gradients, from the last linear map of the encoder on.

        After z come PReLU, the readout by a sigmoid of the mean, scores and cross-entropy. With
        h = PReLU(z + b), s = σ(mean h), v = W s, scores h_i·v + o and g_i the gradient of the mean
        loss by score i, the gradient of h_i is g_i v; positives add a row c, from the summary. Only
        the PReLU's mask needs a matrix.

        Args:
            z: ``[N, d]``, of the positive. It may be overwritten.
            z_negative: ``[M, d]``. It may be overwritten.
            last_weights: bias b ``[d]``, slope ``[1]``, weight W ``[d, d]`` and offset o ``[]``.
            portion: where several processes share a batch, this process's part of it: z and
                z_negative are its rows, summary and loss are of the whole batch. Rows that the
                portion calls padding count nowhere, and their gradient is 0.

        Returns:
            loss, discriminator accuracy and summary spread, ``[3]``; and the gradient of the loss
            by each argument. The gradients by weight and offset are of the whole batch; the others
            are to be added over the processes.
        """
        has_padding = portion is not None and portion.node_mask is not None
        kernels = None
        if not has_padding:
            kernels = self.triton_for(z) or self.numba_for(z.numel())
        module = kernels or plain
        outcome: plain.Outcome = module.pair_loss(z, z_negative, *last_weights, portion=portion)
        return outcome

    @torch.no_grad()
    def shuffle_loss(
        self, matrix: Any, transpose: Any, rows: Tensor, y: Tensor, *last_weights: Tensor
    ) -> plain.Outcome:
        """Compute `pair_loss` of a graph and its shuffle, z = P Y and P Y[rows], with one gradient
        by Y, not two by z.

        ``matrix`` and ``transpose`` are P ``[N, N]`` and its transpose, prepared.
        """
        outcome: plain.Outcome
        if self.triton and isinstance(matrix, self.triton.Sparse):
            outcome = self.triton.shuffle_loss(matrix, transpose, rows, y, *last_weights)
            return outcome
        kernels = self.numba_for(y.numel())
        if kernels is not None:
            outcome = kernels.shuffle_loss(
                matrix, transpose, rows, y, *last_weights, empty=self.empty
            )
            return outcome
        return plain.shuffle_loss(matrix, transpose, rows, y, *last_weights)

    @torch.no_grad()
    def add_record(self, record: Tensor, *books: Any) -> None:
        """Add a step's record ``[k]`` to the books of a `Ledger`; they are as in
        `plain.add_record`."""
        (self.triton_for(record) or plain).add_record(record, *books)


class Adam:
    """Adam (Kingma & Ba, 2015): the weights, running means of their gradients and of the squares,
    and the number of steps.

    Args:
        weights: the weights that it changes, in place.
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
        rate_dtype = torch.float32 if device.type == "cuda" else torch.float64
        if isinstance(rates, float):
            # Filled on the device: a copy from the host would wait for a GPU.
            self.rates = torch.full((1,), rates, dtype=rate_dtype, device=device)
        else:
            self.rates = torch.tensor(rates, dtype=rate_dtype, device=device)
        """The rate of each step ``[steps]``, or of all of them ``[1]``."""
        self.means = [torch.zeros_like(weight) for weight in self.weights]
        self.variances = [torch.zeros_like(weight) for weight in self.weights]
        self.count = torch.zeros((), device=device)
        self.backend = backend or Backend(device)

    def next_rate(self) -> float | Tensor:
        """The rate of the step that comes next; on a GPU a tensor, so that no step waits for the
        GPU."""
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
        """Do and count one step.

        Args:
            gradients: one for each weight.
            kept: the weights with the lowest loss, a copy for each weight; None: nothing is copied.
            waited: ``[]``, epochs since the lowest loss; 0: the weights are first copied to
                ``kept``.
        """
        # The kernels index memory directly: a gradient needs the same layout as its weight.
        gradients_in_layout = []
        for weight, gradient in zip(self.weights, gradients, strict=True):
            if gradient.stride() != weight.stride():
                gradient = torch.empty_like(weight).copy_(gradient)
            gradients_in_layout.append(gradient)

        kernels = self.backend.triton_for(self.weights[0])
        if kernels is None and self._fits_numba():
            kernels = self.backend.numba_for(sum(map(torch.numel, gradients_in_layout)))

        if kernels is None and self.backend.uses_numba:
            on_one_thread(plain.adam, self, gradients_in_layout, kept, waited)
        else:
            (kernels or plain).adam(self, gradients_in_layout, kept, waited)

    def _fits_numba(self) -> bool:
        """Whether the kernel of numba, which takes flat arrays, can change all weights."""
        return all(
            weight.dtype == torch.float32 and weight.is_contiguous() for weight in self.weights
        )


@cache
def _load(name: str) -> ModuleType | None:
    """Return the module of compiled kernels, cpu or gpu; None where it cannot be loaded."""
    try:
        return import_module(f"infomax.kernels.{name}")
    except (ImportError, OSError):  # OSError: too little memory for the compiler
        return None
