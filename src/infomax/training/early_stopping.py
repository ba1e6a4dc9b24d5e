"""Early stopping: training ends after ``patience`` epochs without a lower training loss.

It is the paper's rule: the weights with the lowest loss are kept. All numbers stay on the device,
so that no step waits for a GPU; the loop reads them back now and then, and forgets the epochs after
the end. A training of known length has no patience: only its records are kept.

Who does what: ``Backend.add_record`` (kernels/plain.py) compares the losses, Adam keeps a copy of
the weights before the best step, and ``Training.read_history`` (training/loop.py) ends the
training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from infomax.kernels import Backend


class Ledger:
    """The records of recent epochs, and with a patience the weights with the lowest loss.

    A record has k metrics, of which the first is the loss.

    Args:
        weights: the weights that are trained.
        steps: steps per epoch.
        patience: epochs without a lower loss after which training ends; None: it does not end
        early.
        shape: ``(capacity, k)``: records of so many epochs are stored until they are read.
        buffers: returns the other tensors of the parts that change, such as running means; it is
            called again after each epoch, since a part may replace its buffers.
        backend: the kernels that it uses.

    Shapes:
        sums: ``[k]``, sum of the records of the epoch's steps so far
        curve: ``[capacity, k]``, the mean record of each epoch, stored at epoch modulo capacity
        lowest: ``[]``, the lowest loss
        counts: ``[3]``, number of epochs; epoch of the lowest loss; epochs since then
        kept_weights: the weights with the lowest loss; None without patience
        kept_buffers: the buffers of that epoch
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        steps: int,
        patience: int | None,
        shape: tuple[int, int],
        buffers: Callable[[], Iterable[Tensor]] = tuple,
        backend: Backend | None = None,
    ) -> None:
        device = weights[0].device
        self.backend = backend or Backend(device)
        self.steps = steps
        self.patience = patience
        self.sums = torch.zeros(shape[1], dtype=torch.float64, device=device)
        self.curve = torch.zeros(shape, dtype=torch.float64, device=device)
        self.lowest = torch.full((), torch.inf, dtype=torch.float64, device=device)
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)

        self.kept_weights: list[Tensor] | None = None
        self.buffers: Callable[[], Iterable[Tensor]] = tuple
        if patience is not None:
            self.kept_weights = [weight.detach().clone() for weight in weights]
            self.buffers = buffers
        self.kept_buffers = [buffer.clone() for buffer in self.buffers()]

    @property
    def epochs_waited(self) -> Tensor:
        """Epochs since the lowest loss; 0 right after an epoch whose loss is the lowest so far."""
        return self.counts[2]

    def add_record(self, record: Tensor, is_last: bool) -> None:
        """Add the record ``[k]`` of a step; after the last step, store the mean of the epoch."""
        self.backend.add_record(
            record,
            self.sums,
            self.curve,
            self.lowest,
            self.counts,
            self.steps,
            self.patience or 0,
            is_last,
        )
        # The weights of an epoch with the lowest loss are kept by the optimiser, in its update.
        if is_last:
            for buffer, kept_buffer in zip(self.buffers(), self.kept_buffers, strict=True):
                torch.where(self.epochs_waited == 0, buffer, kept_buffer, out=kept_buffer)

    def read(self, since: int) -> tuple[list[list[float]], int]:
        """Return the records from epoch ``since`` on, and the epochs since the lowest loss."""
        curve = self.curve.tolist()
        epoch_count, _, epochs_waited = self.counts.tolist()
        records = [curve[epoch % len(curve)] for epoch in range(since, epoch_count)]
        return records, epochs_waited

    def ends_training(self, epochs_waited: int) -> bool:
        """Whether training ends after so many epochs without a lower loss."""
        return self.patience is not None and epochs_waited >= self.patience

    def kept_index(self, epoch_count: int) -> int:
        """The number, from 0, of the epoch whose weights are kept.

        Without patience that is the last one.
        """
        if self.patience is None:
            return epoch_count - 1
        return int(self.counts[1])

    def put_back(self, weights: Sequence[Tensor]) -> None:
        """Set weights and buffers to those with the lowest loss.

        Without patience they stay as they are after the last step.
        """
        if self.kept_weights is not None:
            torch._foreach_copy_(list(weights), self.kept_weights)
        for buffer, kept_buffer in zip(self.buffers(), self.kept_buffers, strict=True):
            buffer.copy_(kept_buffer)
